"""`library.memory`: the memories of one collection, in both colours."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from libctx_core.concurrency import run_sync
from libctx_core.memory.facade import MemoryWriting

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def _twin(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the asynchronous twin of a method: one thread hop, the same arguments."""

    @wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_sync(method, self, *args, **kwargs)

    return twin


class Memories(MemoryWriting):
    """The memories of one collection; each operation has an ``a…`` twin that is one thread hop."""

    aremember = _twin(MemoryWriting.remember)
    aremember_many = _twin(MemoryWriting.remember_many)
    arevise = _twin(MemoryWriting.revise)
    aforget = _twin(MemoryWriting.forget)
    areactivate = _twin(MemoryWriting.reactivate)
    aorganize = _twin(MemoryWriting.organize)
    atag = _twin(MemoryWriting.tag)
    apurge = _twin(MemoryWriting.purge)
    adelete = _twin(MemoryWriting.delete)
    aderived_from = _twin(MemoryWriting.derived_from)
    apurge_derived = _twin(MemoryWriting.purge_derived)
    aflush = _twin(MemoryWriting.flush)
    arebuild = _twin(MemoryWriting.rebuild)
    asearch = _twin(MemoryWriting.search)
    aexpand = _twin(MemoryWriting.expand)
    acite = _twin(MemoryWriting.cite)
    aentries = _twin(MemoryWriting.entries)
    aentry = _twin(MemoryWriting.entry)
    ahistory = _twin(MemoryWriting.history)
    achanges = _twin(MemoryWriting.changes)
    adiff = _twin(MemoryWriting.diff)
    ahead = _twin(MemoryWriting.head)
    arevision = _twin(MemoryWriting.revision)
    acontent_hash = _twin(MemoryWriting.content_hash)
    anames = _twin(MemoryWriting.names)
    astatus = _twin(MemoryWriting.status)
