"""What the tests of the store run in processes of their own."""

import os

from libctx_core import LibraryOfContext
from libctx_core.errors import StoreError
from libctx_core.testing.processes import say, wait_for_parent

NOBODY = 65534


def open_without_privileges(path: str) -> None:
    """Open a library for writing and for reading as a user whom file modes bind; say what comes of it."""
    with LibraryOfContext(":memory:", embedder=False, tokenizer=len) as library:
        # whatever is imported late is imported now: the files of Python may be out of reach afterwards
        library.open_context_governor("s").record("user", "warm up")
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    for name, read_only in (("write", False), ("read", True)):
        try:
            with LibraryOfContext(path, embedder=False, tokenizer=len, read_only=read_only) as library:
                say([name, [event.text for event in library.open_context_governor("s").history()]])
        except StoreError as error:
            say([name, [error.code, str(error)]])


def record_the_same(path: str, count: str) -> None:
    """Record events under given ids when the parent says go; say the library-wide ids they got."""
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        governor = library.open_context_governor("s")
        say("ready")
        wait_for_parent()
        say([governor.record("user", f"text {number}", event_id=f"e{number}").uid for number in range(int(count))])
