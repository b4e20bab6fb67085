"""Tables of the LangGraph store: namespaces, items and the vectors of their fields."""

from libctx_core.store.migrations import Component

STORE = Component(
    "langgraph_store",
    (
        """
        CREATE TABLE store_namespace(
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            store TEXT NOT NULL,
            path TEXT NOT NULL,
            UNIQUE(store, path)
        ) STRICT;
        CREATE TABLE store_item(
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            namespace INTEGER NOT NULL REFERENCES store_namespace(id),
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            created_at REAL NOT NULL,
            updated_at REAL NOT NULL,
            ttl REAL,
            expires_at REAL,
            UNIQUE(namespace, key)
        ) STRICT;
        CREATE INDEX store_item_recent ON store_item(namespace, updated_at, id);
        CREATE INDEX store_item_expiry ON store_item(expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE store_vector(
            id INTEGER PRIMARY KEY,
            namespace INTEGER NOT NULL,
            item INTEGER NOT NULL REFERENCES store_item(id) ON DELETE CASCADE,
            field TEXT NOT NULL,
            data BLOB NOT NULL
        ) STRICT;
        CREATE INDEX store_vector_item ON store_vector(item);
        CREATE INDEX store_vector_namespace ON store_vector(namespace, id);
        """,
    ),
)
"""A namespace's path is its labels joined by dots, which labels cannot hold.

`ttl` is in minutes, as LangGraph gives it; the other times are seconds since the epoch.
"""
