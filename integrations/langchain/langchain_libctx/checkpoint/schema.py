"""Tables of the checkpointer: threads, checkpoints, their writes, and the chunks they share."""

from libctx_core.store.migrations import Component

CHECKPOINTS = Component(
    "langgraph_checkpoint",
    (
        """
        CREATE TABLE checkpoint_thread(
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            thread_id TEXT NOT NULL UNIQUE,
            epoch INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE checkpoint_chunk(
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            thread INTEGER NOT NULL REFERENCES checkpoint_thread(id),
            digest BLOB NOT NULL,
            kind TEXT NOT NULL,
            data BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX checkpoint_chunk_digest ON checkpoint_chunk(thread, digest);
        CREATE TABLE checkpoint(
            thread INTEGER NOT NULL REFERENCES checkpoint_thread(id),
            ns TEXT NOT NULL,
            checkpoint_id TEXT NOT NULL,
            parent_id TEXT,
            run_id TEXT,
            channels TEXT NOT NULL,
            state_kind TEXT NOT NULL,
            state BLOB NOT NULL,
            metadata_kind TEXT NOT NULL,
            metadata BLOB NOT NULL
        ) STRICT;
        CREATE UNIQUE INDEX checkpoint_place ON checkpoint(thread, ns, checkpoint_id);
        CREATE INDEX checkpoint_run ON checkpoint(run_id) WHERE run_id IS NOT NULL;
        CREATE TABLE checkpoint_write(
            thread INTEGER NOT NULL REFERENCES checkpoint_thread(id),
            ns TEXT NOT NULL,
            checkpoint_id TEXT NOT NULL,
            task_path TEXT NOT NULL,
            task_id TEXT NOT NULL,
            idx INTEGER NOT NULL,
            channel TEXT NOT NULL,
            chunk INTEGER NOT NULL,
            PRIMARY KEY(thread, ns, checkpoint_id, task_id, idx)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
)
"""A chunk is one serialised value, or a node that lists other chunks of its thread.

`checkpoint.channels` is a JSON object: channel name to its version and the chunk that
holds its value at that version. `checkpoint_thread.epoch` grows whenever chunks of the
thread are deleted, so that ids remembered by a process are known to be stale.
"""
