"""A batch of store operations, checked and sorted by what they need."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_libctx.extras import extra
from langchain_libctx.filters import check_filter
from langchain_libctx.store.index import ItemIndex, Passage
from langchain_libctx.store.items import encode_value
from libctx_core.errors import InvalidInputError
from libctx_core.errors.access import Operation

with extra("langgraph", "the LangGraph store"):
    from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, Op, PutOp, SearchOp


@dataclass(slots=True)
class Write:
    """One put or delete, its value already text.

    Attributes:
        op: The operation.
        value: The stored value, None to delete.
        passages: Texts to embed.
    """

    op: PutOp
    value: str | None
    passages: list[Passage]


@dataclass(slots=True)
class Plan:
    """What a batch asks for.

    Attributes:
        reads: Position and operation of everything that reads.
        writes: The last write of each key, in the order keys were first written.
        size: Operations in the batch.
    """

    reads: list[tuple[int, GetOp | SearchOp | ListNamespacesOp]] = field(default_factory=list)
    writes: dict[tuple[tuple[str, ...], str], Write] = field(default_factory=dict)
    size: int = 0

    def operations(self) -> set[Operation]:
        """Return what the batch does, for the authority to decide about."""
        found: set[Operation] = set()
        for _, op in self.reads:
            found.add(Operation.ENUMERATE if isinstance(op, ListNamespacesOp) else Operation.READ)
        for write in self.writes.values():
            found.add(Operation.DELETE if write.value is None else Operation.WRITE)
        return found

    def queries(self, index: ItemIndex | None) -> list[str]:
        """Return the distinct questions to embed."""
        if index is None:
            return []
        return list(dict.fromkeys(op.query for _, op in self.reads if isinstance(op, SearchOp) and op.query))

    def texts(self) -> list[str]:
        """Return the distinct passages to embed."""
        return list(dict.fromkeys(one.text for write in self.writes.values() for one in write.passages))


def plan(ops: Iterable[Op], index: ItemIndex | None) -> Plan:
    """Check every operation before the first one is carried out.

    Raises:
        InvalidNamespaceError: A label is empty, no text, or holds a dot or NUL.
        InvalidFilterError: A filter cannot be meant.
        InvalidInputError: A value is not JSON, or an operation is of no known kind.
    """
    result = Plan()
    for position, op in enumerate(ops):
        result.size = position + 1
        for path in _paths(op):
            _check_labels(path)
        if isinstance(op, PutOp):
            result.writes[op.namespace, op.key] = _write(op, index)
        elif isinstance(op, SearchOp):
            check_filter(op.filter or {})
            result.reads.append((position, op))
        elif isinstance(op, GetOp | ListNamespacesOp):
            result.reads.append((position, op))
        else:
            raise InvalidInputError("ops", f"{type(op).__name__} is no operation of a store")
    return result


def _paths(op: Op) -> list[tuple[str, ...]]:
    if isinstance(op, ListNamespacesOp):
        return [condition.path for condition in op.match_conditions or ()]
    if isinstance(op, SearchOp):
        return [op.namespace_prefix]
    return [op.namespace] if isinstance(op, GetOp | PutOp) else []


def _check_labels(path: tuple[str, ...]) -> None:
    """Refuse labels that `BaseStore.put` refuses; `batch` alone does not look at them."""
    for place, label in enumerate(path):
        if not isinstance(label, str):
            raise InvalidNamespaceError(f"label {place} of the namespace is a {type(label).__name__}, not a text")
        if not label or "." in label or "\x00" in label:
            raise InvalidNamespaceError(f"label {place} of the namespace is empty or holds a dot or NUL")


def _write(op: PutOp, index: ItemIndex | None) -> Write:
    if op.value is None:
        return Write(op, None, [])
    if op.ttl is not None and not op.ttl >= 0:
        raise InvalidInputError("ttl", "must be a number of minutes, 0 or more")
    return Write(op, encode_value(op.value), index.passages(op) if index is not None else [])


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of a plan's texts.

    Attributes:
        queries: Vector of each question.
        passages: Stored form of each passage's vector.
    """

    queries: Mapping[str, Sequence[float]] = field(default_factory=dict)
    passages: Mapping[str, bytes] = field(default_factory=dict)

    def vectors(self, write: Write) -> list[tuple[str, Any]]:
        """Return field and stored vector of each passage of a write."""
        return [(one.field, self.passages[one.text]) for one in write.passages]
