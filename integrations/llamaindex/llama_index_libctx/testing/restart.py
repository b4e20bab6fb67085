"""6 checks of what is left when a store is opened again: all of it, and it goes on working."""

from collections.abc import Callable

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_libctx.testing.lifecycle import EAST, NORTH, UP, equals, nearest, node, three
from llama_index_libctx.testing.report import SuiteReport, expect, run_check

Opener = Callable[[], BasePydanticVectorStore]
"""Opens the same store each time it is called, as after a restart."""

Check = Callable[[Opener], None]


def _same(found: list[str], wanted: str) -> None:
    expect(sorted(found) == wanted.split(), f"expected {wanted.split()}, got {sorted(found)}")


def nodes_survive(reopen: Opener) -> None:
    """What was added is found."""
    reopen().add(three())
    _same(nearest(reopen(), NORTH), "n1 n2 n3")
    expect(nearest(reopen(), EAST)[0] == "n2", "the nearest node is another one")


def filters_survive(reopen: Opener) -> None:
    """What was added is filtered."""
    reopen().add(three())
    _same(nearest(reopen(), NORTH, filters=equals("rank", "b")), "n2 n3")


def documents_survive(reopen: Opener) -> None:
    """A document that was added before is deleted whole, and stays deleted."""
    reopen().add(three())
    reopen().delete("doc-1")
    _same(nearest(reopen(), NORTH), "n3")


def replacing_survives(reopen: Opener) -> None:
    """A node added before is replaced, not doubled."""
    reopen().add(three())
    reopen().add([node("n1", UP, doc="doc-1", rank="z")])
    _same(nearest(reopen(), NORTH, filters=equals("rank", "z")), "n1")
    _same(nearest(reopen(), NORTH), "n1 n2 n3")


def lengths_survive(reopen: Opener) -> None:
    """The length of the vectors is remembered."""
    reopen().add(three())
    try:
        reopen().add([node("n4", [1.0] * 5)])
    except ValueError:
        return
    expect(False, "a vector of 5 numbers was accepted among vectors of 3")


def clearing_survives(reopen: Opener) -> None:
    """What was cleared stays away."""
    reopen().add(three())
    reopen().clear()
    _same(nearest(reopen(), NORTH), "")


CHECKS: tuple[Check, ...] = (
    nodes_survive,
    filters_survive,
    documents_survive,
    replacing_survives,
    lengths_survive,
    clearing_survives,
)
"""The checks, in the order they run; each gets a place of its own."""


def run(make_opener: Callable[[], Opener]) -> SuiteReport:
    """Run all checks.

    Args:
        make_opener: Returns, for a new and empty place, the function that opens it.
    """

    def on_new_place(check: Check) -> Callable[[], None]:
        return lambda: check(make_opener())

    return SuiteReport("restart", tuple(run_check(check.__name__, on_new_place(check)) for check in CHECKS))
