"""Real processes for tests: start a function in one, hear what it says, kill it without warning.

A store that promises to survive ``kill -9`` has to be killed. The function runs in a
process that shares no lock, cache or connection with the test::

    def writes(path: str) -> None:  # at the top of a file
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
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 60.0
"""Seconds to wait for a word of a child, or for its end, on a busy machine."""

_PRELOADED = ("libctx_core.library", "libctx_core.search.index", "libctx_core.search.searcher", "numpy")
"""Imported once in the process that children are forked from, which has no connection open."""

_parent: list[Connection] = []


class ChildError(AssertionError):
    """A child ended with an error, or said nothing in time."""


def say(value: object) -> None:
    """Tell the parent something; call it in a child.

    What was said before a kill is heard: it is in the pipe when this returns.
    """
    _parent[0].send(value)


def wait_for_parent() -> None:
    """Block until the parent says `go` or goes away; call it in a child."""
    try:
        _parent[0].recv()
    except EOFError:
        return


class Child:
    """One function in a process of its own; killed at the latest when the block ends.

    Args:
        function: A module-level function; its file is loaded in the child by its path.
        *arguments: Plain values, handed to the function.
    """

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        self.heard: list[Any] = []
        """Everything said that was taken by `hear`, or was left over at its end."""
        with tempfile.NamedTemporaryFile(prefix="libctx-child-", delete=False) as errors:
            self._errors = Path(errors.name)
        self._last_words = ""
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = _context().Process(
            target=_live,
            args=(theirs, str(self._errors), source_of(function), function.__name__, arguments),
            daemon=True,
        )
        self._process.start()
        theirs.close()

    def hear(self, timeout: float = PATIENCE) -> Any:
        """Return the next thing the child says.

        Raises:
            ChildError: It ended, or said nothing in time.
        """
        if not self._pipe.poll(timeout):
            raise ChildError(f"nothing said for {timeout:g} s")
        try:
            self.heard.append(self._pipe.recv())
        except (EOFError, OSError):
            self._process.join(PATIENCE)
            raise ChildError(f"ended with {self._process.exitcode}:\n{self.complaints}") from None
        return self.heard[-1]

    def go(self) -> None:
        """Let a child that called `wait_for_parent` go on."""
        self._pipe.send("go")

    @property
    def complaints(self) -> str:
        """What it wrote to its error stream."""
        return self._errors.read_text() if self._errors.exists() else self._last_words

    def kill(self) -> None:
        """Kill it at whatever instruction it is, and take what it had said by then."""
        if self._pipe.closed:
            return
        self._process.kill()
        self._finish()

    def join(self, timeout: float = PATIENCE) -> list[Any]:
        """Wait for its end and return everything it said.

        Raises:
            ChildError: It ended with an error, or did not end in time.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise ChildError(f"still running after {timeout:g} s")
        self._finish()
        if self._process.exitcode != 0:
            raise ChildError(f"ended with {self._process.exitcode}:\n{self.complaints}")
        return self.heard

    def _finish(self) -> None:
        self._process.join(PATIENCE)
        try:
            while self._pipe.poll():
                self.heard.append(self._pipe.recv())
        except (EOFError, OSError):
            # the end of the pipe, or of a word that the kill cut off
            pass
        self._pipe.close()
        self._last_words = self.complaints
        self._errors.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def source_of(thing: object) -> str:
    """Return the file of a function, or of an object's class, for a child to load."""
    found = inspect.getsourcefile(thing if inspect.isfunction(thing) else type(thing))
    if found is None:
        raise ChildError(f"{thing!r} has no source file that a child could load")
    return str(Path(found).resolve())


def address(thing: object) -> tuple[str, str]:
    """Return file and name of an object's class, for a child that makes its own with `load_attribute`."""
    return source_of(thing), type(thing).__name__


def load_attribute(source: str, name: str) -> Any:
    """Load a file as a module and return a function or a class of it."""
    spec = importlib.util.spec_from_file_location(Path(source).stem, source)
    if spec is None or spec.loader is None:
        raise ImportError(f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _context() -> Any:
    """Return how processes are started: forked from a clean one, or fresh where there is no fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    return context


def _live(parent: Connection, errors: str, source: str, name: str, arguments: tuple[object, ...]) -> None:
    """Run in the child."""
    _parent.append(parent)
    descriptor = os.open(errors, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    load_attribute(source, name)(*arguments)
