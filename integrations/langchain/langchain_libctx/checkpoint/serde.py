"""LangGraph's msgpack format, read without losing a type and without running code.

It reads whatever `JsonPlusSerializer` wrote and adds what that one loses. Tuples,
ordered dicts, counters and their like keep their type. Only data classes are rebuilt
(pydantic models, dataclasses, enums, named tuples and a fixed set of standard types),
never an arbitrary callable that a stored name points to. And what cannot be rebuilt
comes back as an `UnrevivedValue` that keeps the stored bytes, instead of a bare dict
or ``None``.
"""

import collections
import dataclasses
import fractions
import importlib
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, NoReturn

from langchain_libctx.extras import extra

with extra("langgraph", "the LangGraph checkpointer"):
    import ormsgpack
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from pydantic import BaseModel, ValidationError

from libctx_core.errors import LibctxError

# extension codes of LangGraph's format
_SINGLE_ARGUMENT, _POSITIONAL, _KEYWORDS, _METHOD, _PYDANTIC_V1, _PYDANTIC_V2, _ARRAY, _DELTA = range(8)

_STANDARD = frozenset(
    {
        *(("datetime", name) for name in ("datetime", "date", "time", "timedelta", "timezone")),
        ("uuid", "UUID"),
        ("decimal", "Decimal"),
        ("builtins", "set"),
        ("builtins", "frozenset"),
        ("collections", "deque"),
        ("zoneinfo", "ZoneInfo"),
        ("re", "compile"),
        *(("ipaddress", f"IPv{v}{name}") for v in (4, 6) for name in ("Address", "Interface", "Network")),
        *(("pathlib", name) for name in ("Path", "PosixPath", "WindowsPath")),
        *(("pathlib._local", name) for name in ("Path", "PosixPath", "WindowsPath")),
        ("langgraph.types", "Send"),
        ("langgraph.store.base", "Item"),
        ("langgraph.store.base", "SearchItem"),
        ("pydantic.types", "SecretStr"),
        ("pydantic.types", "SecretBytes"),
    }
)
_MESSAGE_PACKAGE = "langchain_core.messages."


class UnrevivedValueError(LibctxError, AttributeError):
    """A stored value whose class cannot be rebuilt was used, or was met in strict mode.

    Attributes:
        module: Module of the class that was stored.
        name: Name of the class.
        reason: Why it could not be rebuilt.
    """

    code = "unrevived_value"

    def __init__(self, module: str, name: str, reason: str) -> None:
        super().__init__(
            f"a stored {module}.{name} could not be rebuilt ({reason}); "
            "make the class importable under that name, or migrate the thread"
        )
        self.module = module
        self.reason = reason
        self.name = name


class UnrevivedValue:
    """Stands for a stored object whose class is gone, refused or no longer fits.

    It is written back byte for byte, and becomes the object again once the class can be
    imported. Reading any other attribute raises `UnrevivedValueError`.

    Attributes:
        module: Module of the stored class.
        name: Name of the stored class.
        reason: Why it was not rebuilt.
        payload: The fields that were stored, as plain data.
    """

    def __init__(self, module: str, name: str, reason: str, payload: Any, code: int, data: bytes) -> None:
        self.module = module
        self.name = name
        self.reason = reason
        self.payload = payload
        self._stored = {"code": code, "data": data}

    def _asdict(self) -> dict[str, Any]:
        return self._stored

    def __getattr__(self, attribute: str) -> NoReturn:
        raise UnrevivedValueError(self.module, self.name, self.reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnrevivedValue) and self._stored == other._stored

    def __hash__(self) -> int:
        return hash((self.module, self.name))

    def __repr__(self) -> str:
        return f"<UnrevivedValue {self.module}.{self.name}: {self.reason}>"


class Container:
    """A built-in container or number that msgpack would downcast, on its way to disk."""

    def __init__(self, kind: str, parts: Any) -> None:
        self.kind = kind
        self.parts = parts

    def _asdict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": self.parts}


_OUR_MODULE = UnrevivedValue.__module__


def _factory_path(factory: Callable[[], Any] | None) -> list[str] | None:
    """Name a defaultdict's factory, if it can be found again by name."""
    if factory is None:
        return None
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    if module is None or not isinstance(factory, type) or getattr(sys.modules.get(module), name, None) is not factory:
        raise TypeError(
            f"a defaultdict with the factory {name!r} cannot be stored: only classes can be found again by name"
        )
    return [module, name]


def preserve(value: Any) -> Any:
    """Return `value` with each container that msgpack would downcast replaced by its `Container`.

    Only exact built-in containers are walked; what pydantic models and dataclasses hold
    is typed by their own fields.
    """
    handler = _PRESERVE.get(type(value))
    return value if handler is None else handler(value)


def _items(value: Iterable[Any]) -> list[Any]:
    return [preserve(item) for item in value]


def _pairs(value: Mapping[Any, Any]) -> list[list[Any]]:
    return [[preserve(key), preserve(item)] for key, item in value.items()]


def _number(value: int) -> Any:
    """Keep a number as it is, unless it is larger than msgpack can hold."""
    return value if -(2**63) <= value < 2**64 else Container("int", str(value))


_PRESERVE: Mapping[type, Callable[[Any], Any]] = {
    int: _number,
    dict: lambda value: {key: preserve(item) for key, item in value.items()},
    list: _items,
    tuple: lambda value: Container("tuple", _items(value)),
    set: lambda value: Container("set", _items(value)),
    frozenset: lambda value: Container("frozenset", _items(value)),
    collections.deque: lambda value: Container("deque", [_items(value), value.maxlen]),
    collections.OrderedDict: lambda value: Container("OrderedDict", _pairs(value)),
    collections.Counter: lambda value: Container("Counter", _pairs(value)),
    collections.defaultdict: lambda value: Container(
        "defaultdict", [_pairs(value), _factory_path(value.default_factory)]
    ),
    complex: lambda value: Container("complex", [value.real, value.imag]),
    fractions.Fraction: lambda value: Container("Fraction", [str(value.numerator), str(value.denominator)]),
    range: lambda value: Container("range", [value.start, value.stop, value.step]),
}


def _restore_defaultdict(parts: Any) -> Any:
    pairs, path = parts
    factory = None if path is None else getattr(importlib.import_module(path[0]), path[1])
    if factory is not None and not isinstance(factory, type):
        raise TypeError("a stored defaultdict factory is not a class")
    return collections.defaultdict(factory, pairs)


_RESTORE: Mapping[str, Callable[[Any], Any]] = {
    "int": int,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "deque": lambda parts: collections.deque(parts[0], parts[1]),
    "OrderedDict": collections.OrderedDict,
    "Counter": lambda parts: collections.Counter(dict(parts)),
    "defaultdict": _restore_defaultdict,
    "complex": lambda parts: complex(*parts),
    "Fraction": lambda parts: fractions.Fraction(int(parts[0]), int(parts[1])),
    "range": lambda parts: range(*parts),
}


def _hashable(value: Any) -> Hashable:
    """Undo msgpack's lists where a set needs tuples."""
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    hashable: Hashable = value
    return hashable


def _is_data_class(target: Any) -> bool:
    return isinstance(target, type) and (
        issubclass(target, (BaseModel, Enum)) or dataclasses.is_dataclass(target) or hasattr(target, "_asdict")
    )


class _Reviver:
    """Rebuilds the objects of one stored value and remembers what it could not rebuild."""

    def __init__(self, allowed: frozenset[tuple[str, str]] | None) -> None:
        self._allowed = allowed
        self.unrevived: list[UnrevivedValue] = []

    def unpack(self, data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=self.revive, option=ormsgpack.OPT_NON_STR_KEYS)

    def revive(self, code: int, data: bytes) -> Any:
        if code == _DELTA:
            from langgraph.checkpoint.serde.types import _DeltaSnapshot

            return _DeltaSnapshot(self.unpack(data))
        if code == _ARRAY:
            return self._array(data)
        module, name, payload, *rest = self.unpack(data)
        if module.startswith(_MESSAGE_PACKAGE) and code == _PYDANTIC_V2:
            return _build_message(*_message_class(module, name), payload)
        if module == _OUR_MODULE:
            return self._ours(name, payload)
        try:
            target = self._resolve(module, name)
            return _build(code, target, payload, rest)
        except _RefusedError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a stored class may fail in any way; the value is kept
            reason = f"{type(error).__name__} while rebuilding it"
        return self._keep(module, name, reason, payload, code, data)

    def _keep(self, module: str, name: str, reason: str, payload: Any, code: int, data: bytes) -> UnrevivedValue:
        kept = UnrevivedValue(module, name, reason, payload, code, data)
        self.unrevived.append(kept)
        return kept

    def _ours(self, name: str, payload: dict[str, Any]) -> Any:
        if name == UnrevivedValue.__name__:
            return self.revive(payload["code"], payload["data"])
        return _RESTORE[payload["kind"]](payload["parts"])

    def _resolve(self, module: str, name: str) -> Any:
        """Find a stored class, refusing everything that is not plain data.

        Raises:
            _RefusedError: It is missing, not on the allow list, or not a data class.
        """
        known = (module, name) in _STANDARD
        if self._allowed is not None and not known and (module, name) not in self._allowed:
            raise _RefusedError("it is not on the allow list")
        try:
            target = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise _RefusedError("its class cannot be imported") from error
        if not (known or _is_data_class(target)):
            raise _RefusedError("it is not a data class")
        return target

    def _array(self, data: bytes) -> Any:
        import numpy as np

        dtype, shape, order, buffer = self.unpack(data)
        return np.frombuffer(buffer, dtype=np.dtype(dtype)).reshape(shape, order=order)


class _RefusedError(Exception):
    """Why a stored class is not rebuilt."""


def _build(code: int, target: Any, payload: Any, rest: list[Any]) -> Any:
    """Rebuild one object the way its extension code says."""
    if code == _SINGLE_ARGUMENT:
        if target in (set, frozenset):
            return target(_hashable(item) for item in payload)
        return target(payload)
    if code == _POSITIONAL:
        if target.__name__ == "Send" and len(payload) > 2:
            return target(payload[0], payload[1], timeout=payload[2])
        return target(*payload)
    if code == _KEYWORDS:
        return target(**payload)
    if code == _METHOD:
        if rest != ["fromisoformat"]:
            raise _RefusedError("its constructor is not an allowed one")
        return target.fromisoformat(payload)
    if code in (_PYDANTIC_V1, _PYDANTIC_V2):
        return _build_model(target, payload)
    raise _RefusedError(f"extension {code} is unknown to this release")


def _build_model(target: Any, payload: dict[str, Any]) -> Any:
    try:
        return target(**payload)
    except ValidationError:
        # stored by field name, while the class validates by alias
        return target.model_validate(payload, by_alias=False, by_name=True)


@cache
def _message_class(module: str, name: str) -> tuple[type[BaseModel], frozenset[str]]:
    """Return a message class of LangChain and its fields; cached, for there are as many lookups as messages."""
    found = getattr(importlib.import_module(module), name)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise TypeError(f"{module}.{name} is not a message class")
    return found, frozenset(found.model_fields)


def _build_message(target: type[BaseModel], fields: frozenset[str], payload: dict[str, Any]) -> BaseModel:
    """Rebuild a message from its own dump, which holds plain data only: validation could only cost time."""
    if payload.keys() != fields:
        return target.model_construct(**payload)
    message = target.__new__(target)
    message.__setstate__(
        {
            "__dict__": payload,
            "__pydantic_extra__": {},
            "__pydantic_fields_set__": set(payload),
            "__pydantic_private__": None,
        }
    )
    return message


class LibrarySerializer(JsonPlusSerializer):
    """Serialiser of the checkpointer: LangGraph's format, nothing lost and nothing executed.

    Args:
        allowed: The only application classes that are rebuilt, as classes or
            ``(module, name)`` pairs; None rebuilds any importable data class.
        unknown: ``"keep"`` returns an `UnrevivedValue` for what cannot be rebuilt,
            ``"raise"`` raises `UnrevivedValueError` as soon as it is read.
    """

    def __init__(
        self,
        *,
        allowed: Iterable[type | tuple[str, ...]] | None = None,
        unknown: Literal["keep", "raise"] = "keep",
    ) -> None:
        super().__init__(pickle_fallback=False)
        self.allowed = None if allowed is None else frozenset(_class_path(item) for item in allowed)
        self.unknown = unknown

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> "LibrarySerializer":
        """Return a serialiser that rebuilds these classes too, and no others beyond its own list."""
        return LibrarySerializer(allowed=[*(self.allowed or ()), *extra_allowlist], unknown=self.unknown)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise a value; containers keep their exact type.

        Raises:
            TypeError: A class that the format cannot express.
        """
        return super().dumps_typed(preserve(obj))

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialise a value.

        Raises:
            UnrevivedValueError: With ``unknown="raise"``, for a class that cannot be rebuilt.
        """
        if data[0] != "msgpack":
            return super().loads_typed(data)
        reviver = _Reviver(self.allowed)
        value = reviver.unpack(data[1])
        if reviver.unrevived and self.unknown == "raise":
            first = reviver.unrevived[0]
            raise UnrevivedValueError(first.module, first.name, first.reason)
        return value


def _class_path(item: type | tuple[str, ...]) -> tuple[str, str]:
    if isinstance(item, type):
        return item.__module__, item.__name__
    return item[0], item[1]
