"""One small door to apsw's rows."""

from collections.abc import Sequence
from typing import Any

import apsw


def fetch(connection: apsw.Connection, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Run a statement and return all its rows."""
    rows: list[tuple[Any, ...]] = connection.execute(statement, tuple(values)).fetchall()
    return rows
