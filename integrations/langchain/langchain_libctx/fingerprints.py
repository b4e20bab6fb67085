"""Telling cheaply whether a message is the one that was seen before."""

import marshal
from typing import Any

from pydantic import BaseModel


def fingerprint(item: Any) -> bytes | None:
    """Return bytes that change whenever the fields of a message change, or None.

    Marshalling a message's fields is a fifth of the cost of serialising it, and tells
    apart all that its serialised form tells apart. The bytes are compared within this
    process only and never read back.
    """
    if not isinstance(item, BaseModel):
        return None
    try:
        return type(item).__qualname__.encode() + marshal.dumps((item.__dict__, item.__pydantic_extra__), 2)
    except ValueError:
        return None
