"""Short names for ids that every store takes: some accept nothing but UUIDs."""

import uuid
from collections.abc import Iterable

_names: dict[str, str] = {}


def id_of(name: str) -> str:
    """Return the UUID that stands for a short name, always the same one."""
    node_id = str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    _names[node_id] = name
    return node_id


def names_of(node_ids: Iterable[object]) -> list[str]:
    """Return the short names of ids, an unknown id as it is."""
    return [_names.get(str(node_id), str(node_id)) for node_id in node_ids]
