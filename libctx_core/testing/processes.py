"""Real processes for tests: start a function in one, hear what it says, kill it without warning.

A store that promises to survive ``kill -9`` has to be killed. The function runs in a
fresh interpreter, so it shares no lock, cache or connection with the test::

    def writes(path: str) -> None:  # in an importable file; arguments are text
        library = LibraryOfContext(path)
        governor = library.open_context_governor("s")
        for number in range(1_000):
            say(governor.record("user", f"turn {number}").event_id)  # acknowledged, then said

    with Child(writes, path) as child:
        child.hear()
        child.kill()
    assert set(child.heard) <= stored_ids(path)
"""

import importlib.util
import inspect
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 60.0
"""Seconds to wait for a word of a child, or for its end, on a busy machine."""


class ChildError(AssertionError):
    """A child ended with an error, or said nothing in time."""


def say(value: object) -> None:
    """Tell the parent something; call it in a child. The value must be JSON.

    What was said before a kill is heard: the line is in the pipe when this returns.
    """
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def wait_for_parent() -> None:
    """Block until the parent says `go` or goes away; call it in a child."""
    sys.stdin.readline()


class Child:
    """One function in a process of its own; killed at the latest when the block ends.

    Args:
        function: A module-level function; its file is loaded in the child by its path.
        *arguments: Text, handed to the function.
    """

    def __init__(self, function: Callable[..., None], *arguments: str) -> None:
        source = inspect.getsourcefile(function)
        if source is None:
            raise ChildError(f"{function!r} has no source file that a child could load")
        self.heard: list[Any] = []
        """Everything said so far and taken by `hear`, or left over at its end."""
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
            [sys.executable, "-m", __name__, str(Path(source).resolve()), function.__name__, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._complaints: list[str] = []
        self._ears = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._keep_complaints, daemon=True),
        ]
        for ear in self._ears:
            ear.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                self._lines.put(line)
        self._lines.put(None)

    def _keep_complaints(self) -> None:
        assert self._process.stderr is not None
        self._complaints.extend(self._process.stderr)

    def hear(self, timeout: float = PATIENCE) -> Any:
        """Return the next thing the child says.

        Raises:
            ChildError: It ended, or said nothing in time.
        """
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise ChildError(f"nothing said for {timeout:g} s") from None
        if line is None:
            self._process.wait(PATIENCE)
            raise ChildError(f"ended with {self._process.returncode}:\n{self.complaints}")
        self.heard.append(json.loads(line))
        return self.heard[-1]

    def go(self) -> None:
        """Let a child that called `wait_for_parent` go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    @property
    def complaints(self) -> str:
        """What it wrote to its error stream."""
        return "".join(self._complaints)

    def kill(self) -> None:
        """Kill it at whatever instruction it is, and take what it had said by then."""
        self._process.kill()
        self._finish()

    def join(self, timeout: float = PATIENCE) -> list[Any]:
        """Wait for its end and return everything it said.

        Raises:
            ChildError: It ended with an error, or did not end in time.
        """
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise ChildError(f"still running after {timeout:g} s") from None
        self._finish()
        if self._process.returncode != 0:
            raise ChildError(f"ended with {self._process.returncode}:\n{self.complaints}")
        return self.heard

    def _finish(self) -> None:
        self._process.wait(PATIENCE)
        for ear in self._ears:
            ear.join(PATIENCE)
        self.heard.extend(json.loads(line) for line in self._rest())
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None and not stream.closed:
                stream.close()

    def _rest(self) -> Iterator[str]:
        while not self._lines.empty():
            line = self._lines.get()
            if line is not None:
                yield line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def address(thing: object) -> tuple[str, str]:
    """Return file and name of an object's class, for a child that makes its own with `load_attribute`."""
    source = inspect.getsourcefile(type(thing))
    if source is None:
        raise ChildError(f"{type(thing)!r} has no source file that a child could load")
    return str(Path(source).resolve()), type(thing).__name__


def load_attribute(source: str, name: str) -> Any:
    """Load a file as a module and return a function or a class of it."""
    spec = importlib.util.spec_from_file_location(Path(source).stem, source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return getattr(module, name)


if __name__ == "__main__":
    load_attribute(sys.argv[1], sys.argv[2])(*sys.argv[3:])
