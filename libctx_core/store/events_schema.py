"""Tables of threads and their events.

An append is paid per page it touches, so what another row tells already is not stored
again: a thread's head is its newest event, and the outbox is ordered by the key that
watermarks ask for. Library-wide ids never come back after a deletion: `event_floor`
keeps the highest one deleted, where AUTOINCREMENT would write a page for every event.
"""

from libctx_core.store.migrations import Component

EVENTS = Component(
    "events",
    (
        """
        CREATE TABLE thread(
            owner INTEGER PRIMARY KEY REFERENCES owner(id) ON DELETE CASCADE,
            revision INTEGER NOT NULL DEFAULT 0,
            branches INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE branch(
            thread INTEGER NOT NULL REFERENCES thread(owner) ON DELETE CASCADE,
            id INTEGER NOT NULL,
            parent INTEGER NOT NULL,
            fork_sequence INTEGER NOT NULL,
            PRIMARY KEY(thread, id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE event(
            uid INTEGER PRIMARY KEY,
            thread INTEGER NOT NULL REFERENCES thread(owner) ON DELETE CASCADE,
            sequence INTEGER NOT NULL,
            event_id TEXT NOT NULL,
            role TEXT NOT NULL,
            content TEXT NOT NULL,
            is_blocks INTEGER NOT NULL,
            metadata TEXT,
            importance REAL NOT NULL,
            protected INTEGER NOT NULL,
            tokens INTEGER NOT NULL,
            counter TEXT NOT NULL,
            running_total INTEGER NOT NULL,
            created_at REAL NOT NULL,
            speaker TEXT,
            occurred_at REAL,
            turn_id TEXT,
            reply_to TEXT,
            parent_event_id TEXT,
            label TEXT,
            native TEXT,
            redacted INTEGER NOT NULL DEFAULT 0,
            repaired INTEGER NOT NULL DEFAULT 0,
            branch INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0,
            identity BLOB
        ) STRICT;
        CREATE UNIQUE INDEX event_sequence ON event(thread, sequence);
        CREATE UNIQUE INDEX event_name ON event(thread, event_id);
        CREATE INDEX event_protected ON event(thread, sequence) WHERE protected = 1;
        CREATE INDEX event_reply ON event(thread, reply_to) WHERE reply_to IS NOT NULL;
        CREATE TABLE event_floor(one INTEGER PRIMARY KEY CHECK(one = 1), uid INTEGER NOT NULL) STRICT;
        INSERT INTO event_floor VALUES(1, 0);
        CREATE TRIGGER event_deleted AFTER DELETE ON event WHEN OLD.uid > (SELECT uid FROM event_floor)
        BEGIN UPDATE event_floor SET uid = OLD.uid; END;
        CREATE TABLE event_tokens(
            uid INTEGER NOT NULL REFERENCES event(uid) ON DELETE CASCADE,
            counter TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY(uid, counter)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE event_revision(
            uid INTEGER NOT NULL REFERENCES event(uid) ON DELETE CASCADE,
            revision INTEGER NOT NULL,
            content TEXT NOT NULL,
            is_blocks INTEGER NOT NULL,
            native TEXT,
            replaced_at REAL NOT NULL,
            PRIMARY KEY(uid, revision)
        ) STRICT;
        CREATE TABLE outbox(
            thread INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            uid INTEGER NOT NULL,
            again INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            not_before REAL NOT NULL DEFAULT 0,
            claim_owner TEXT,
            claim_token TEXT,
            claim_until REAL,
            PRIMARY KEY(thread, sequence),
            FOREIGN KEY(thread, sequence) REFERENCES event(thread, sequence) ON DELETE CASCADE
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX outbox_claim ON outbox(claim_owner) WHERE claim_owner IS NOT NULL;
        CREATE TABLE quarantine(
            uid INTEGER PRIMARY KEY REFERENCES event(uid) ON DELETE CASCADE,
            thread INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            error TEXT NOT NULL,
            at REAL NOT NULL
        ) STRICT;
        CREATE INDEX quarantine_thread ON quarantine(thread, sequence);
        """,
    ),
)
