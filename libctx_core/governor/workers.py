"""Who leases work, and whether the process behind a name is still there."""

import os
import uuid
from pathlib import Path

_living: set[str] = set()
"""Workers of this process that were not dismissed."""


def enlist() -> str:
    """Return the name of a new worker of this process, which others on this machine can test for life."""
    name = f"{_machine()}/{os.getpid()}/{_process_stat(os.getpid())[1]}/{uuid.uuid4().hex[:8]}"
    _living.add(name)
    return name


def dismiss(name: str) -> None:
    """Say that a worker of this process does nothing any more."""
    _living.discard(name)


def is_dead(name: str) -> bool:
    """Tell whether a worker is proven dead.

    It is if it was dismissed here, or if it lived on this machine since its last start
    and its process is gone. A worker that cannot be proven dead has to be waited for.
    """
    machine, _, rest = name.partition("/")
    pid_text, _, rest = rest.partition("/")
    started = rest.partition("/")[0]
    if machine != _machine() or not pid_text.isdigit() or os.name == "nt":
        return False
    pid = int(pid_text)
    if pid == os.getpid() and started == _process_stat(pid)[1]:
        return name not in _living
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    state, since = _process_stat(pid)
    return state in ("Z", "X") or (bool(started) and bool(since) and since != started)


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        return boot.read_text().strip()
    except OSError:
        return f"{uuid.getnode():x}"


def _process_stat(pid: int) -> tuple[str, str]:
    """Return a process's state letter and its start in clock ticks since boot, where the system tells."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", ""
    # after the name in brackets: state is field 3 of the line, the start time field 22
    fields = stat.rpartition(")")[2].split()
    return fields[0], fields[19]
