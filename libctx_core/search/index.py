"""The write door of search: records, vectors, postings and attributes in one transaction."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import apsw

from libctx_core.search import flags
from libctx_core.search.analysis import ANALYSIS_VERSION, Document, analyse_document
from libctx_core.search.sittings import is_spoken, place_record
from libctx_core.store.database import Database
from libctx_core.store.index import (
    INDEX,
    Attributes,
    IndexState,
    append_attributes,
    append_postings,
    change_attributes,
    change_postings,
    count_names,
    drop_index,
    name_ordinal,
    read_clock,
    read_state,
    read_tails,
    terms_at,
    write_state,
)
from libctx_core.store.index_records import (
    RecordRow,
    clear_records,
    delete_records,
    find_slot,
    insert_records,
    read_record,
    read_records,
    read_records_at,
    replace_record,
)
from libctx_core.store.owners import OWNERS
from libctx_core.store.records import RECORDS, RecordInput, owner_and_position, slot_of
from libctx_core.store.vectors import fix_profile, put_vectors, remove_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_REMOVED = Attributes(session=0, length=0, words=0, speaker=0, flags=0, kind=0, role=0, fresh=0)


class SearchIndex:
    """Adds, changes and removes searchable records.

    Every method takes the connection of a write transaction (`Database.write`), so an
    index change commits or vanishes together with what it belongs to. Embed before the
    transaction: it holds the library's one write lock.
    """

    def __init__(self, database: Database) -> None:
        for component in (OWNERS, RECORDS, INDEX):
            database.ensure(component)

    # -- adding ---------------------------------------------------------------

    def add(
        self,
        connection: apsw.Connection,
        owner_id: int,
        records: Sequence[RecordInput],
        vectors: "Vectors | None",
        *,
        profile: str = "",
    ) -> list[int]:
        """Store records and make them searchable; a key the owner has already is left as it is.

        Args:
            connection: The writer, inside a transaction.
            owner_id: The owner object they belong to.
            records: The records, in conversation order.
            vectors: One unit row per record, shape ``(len(records), dimension)``, or None.
            profile: Profile id of the embedder the vectors come from.

        Returns:
            The slot of each record.

        Raises:
            EmbeddingProfileError: The owner's vectors come from another embedder.
            EmbeddingDimensionError: They have another number of dimensions.
        """
        state = _state(connection, owner_id)
        self._post_pending(connection, state, limit=None)
        slots, fresh = self._insert(connection, state, records, vectors, profile)
        if fresh:
            self._post(connection, state, [records[at] for at in fresh], [slots[at] for at in fresh])
            write_state(connection, state)
        return slots

    def add_pending(
        self,
        connection: apsw.Connection,
        owner_id: int,
        records: Sequence[RecordInput],
        vectors: "Vectors | None",
        *,
        profile: str = "",
    ) -> list[int]:
        """Store records and vectors now; `catch_up` makes their words searchable later.

        Takes, returns and raises what `add` does.
        """
        state = _state(connection, owner_id)
        slots, fresh = self._insert(connection, state, records, vectors, profile)
        if fresh:
            write_state(connection, state)
        return slots

    def catch_up(self, connection: apsw.Connection, owner_id: int, *, limit: int | None = None) -> int:
        """Post the words of records stored by `add_pending`; return how many are still waiting.

        Args:
            connection: The writer, inside a transaction.
            owner_id: The owner to bring up to date.
            limit: Records to post in this call; None means all.
        """
        state = _state(connection, owner_id)
        if self._post_pending(connection, state, limit=limit):
            write_state(connection, state)
        return state.positions - state.posted

    def _insert(
        self,
        connection: apsw.Connection,
        state: IndexState,
        records: Sequence[RecordInput],
        vectors: "Vectors | None",
        profile: str,
    ) -> tuple[list[int], list[int]]:
        """Insert the rows of new keys; return all slots and the indexes of the new ones."""
        slots: list[int] = []
        fresh: list[int] = []
        within: dict[str, int] = {}
        for at, record in enumerate(records):
            slot = within.get(record.key)
            if slot is None and state.positions > len(fresh):
                slot = find_slot(connection, state.owner, record.key)
            if slot is None:
                slot = slot_of(state.owner, state.positions + len(fresh))
                fresh.append(at)
                within[record.key] = slot
            slots.append(slot)
        new_slots = [slots[at] for at in fresh]
        insert_records(connection, new_slots, [records[at] for at in fresh])
        if vectors is not None and len(records):
            fix_profile(connection, state.owner, profile, int(vectors.shape[1]))
            put_vectors(connection, state.owner, [(slots[at], _packed(vectors[at])) for at in fresh])
        state.positions += len(fresh)
        return slots, fresh

    def _post_pending(self, connection: apsw.Connection, state: IndexState, *, limit: int | None) -> bool:
        waiting = state.positions - state.posted
        count = waiting if limit is None else min(waiting, limit)
        if count <= 0:
            return False
        end = slot_of(state.owner, state.posted + count)
        rows = [row for row in read_records(connection, state.owner, state.posted, count) if row.slot < end]
        self._post(connection, state, [row.record for row in rows], [row.slot for row in rows], count=count)
        return True

    def _post(
        self,
        connection: apsw.Connection,
        state: IndexState,
        records: Sequence[RecordInput],
        slots: Sequence[int],
        *,
        count: int | None = None,
    ) -> None:
        """Append postings and attributes; positions without a record (removed while pending) stay empty."""
        start = state.posted
        rows = [_REMOVED.packed()] * (len(records) if count is None else count)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        names = _Names(connection, state.owner)
        documents = [_analyse(record) for record in records]
        tails = read_tails(connection, state.owner, {term for document in documents for term in document.terms})
        for record, slot, document in zip(records, slots, documents, strict=True):
            position = owner_and_position(slot)[1]
            session = place_record(state, record, names)
            attributes = replace(
                _attributes(record, document, session, names),
                fresh=sum(
                    term not in tails and term not in postings for term in document.terms if term not in document.date
                ),
            )
            rows[position - start] = attributes.packed()
            state.alive += 1
            state.length += attributes.length
            for term, frequency in document.terms.items():
                postings[term].append((position, frequency))
        append_postings(connection, state.owner, postings, tails)
        append_attributes(connection, state.owner, start, rows)
        state.posted = start + len(rows)

    # -- changing and removing ------------------------------------------------

    def update(
        self,
        connection: apsw.Connection,
        slot: int,
        record: RecordInput,
        vector: "Vectors | None",
        *,
        profile: str = "",
    ) -> None:
        """Give a record other contents in its place; its session stays. A missing slot is left alone.

        Args:
            connection: The writer, inside a transaction.
            slot: The record to change.
            record: Its new contents, key included.
            vector: Its new unit vector, shape ``(dimension,)``, or None to have none.
            profile: Profile id of the embedder the vector comes from.
        """
        stored = read_record(connection, slot)
        if stored is None:
            return
        owner, position = owner_and_position(slot)
        state = _state(connection, owner)
        replace_record(connection, slot, record)
        if vector is None:
            remove_vectors(connection, owner, [slot])
        else:
            fix_profile(connection, owner, profile, int(vector.shape[0]))
            put_vectors(connection, owner, [(slot, _packed(vector))])
        if position < state.posted:
            names = _Names(connection, owner)
            new = _analyse(record)
            held = dict.fromkeys(_held(connection, state, stored))
            put = {**held, **new.terms}
            change_postings(connection, owner, {term: {position: count} for term, count in put.items()})
            before, after = change_attributes(
                connection,
                owner,
                position,
                lambda was: replace(
                    _attributes(record, new, was.session, names),
                    fresh=was.fresh,
                ),
            )
            state.length += after.length - before.length
        state.revision = read_clock(connection) + 1
        write_state(connection, state)

    def remove(self, connection: apsw.Connection, slots: Collection[int]) -> int:
        """Remove records, their words and vectors; return how many there were."""
        rows: dict[int, list[RecordRow]] = defaultdict(list)
        for stored in read_records_at(connection, sorted(slots)):
            rows[owner_and_position(stored.slot)[0]].append(stored)
        for owner, gone in rows.items():
            self._remove(connection, owner, gone)
        return sum(map(len, rows.values()))

    def _remove(self, connection: apsw.Connection, owner: int, gone: Sequence[RecordRow]) -> None:
        state = _state(connection, owner)
        changes: dict[str, dict[int, None]] = defaultdict(dict)
        for stored in gone:
            position = owner_and_position(stored.slot)[1]
            if position < state.posted:
                for term in _held(connection, state, stored):
                    changes[term][position] = None
                before, _ = change_attributes(
                    connection, owner, position, lambda was: replace(_REMOVED, session=was.session)
                )
                state.alive -= 1
                state.length -= before.length
        change_postings(connection, owner, changes)
        delete_records(connection, owner, [stored.slot for stored in gone])
        state.revision = read_clock(connection) + 1
        write_state(connection, state)

    def remove_owner(self, connection: apsw.Connection, owner_id: int) -> None:
        """Remove all records of an owner object and everything the index holds about it."""
        clear_records(connection, owner_id)
        drop_index(connection, owner_id)


class _Names:
    """Ordinals of session, speaker, kind and role names, read and written once per batch."""

    def __init__(self, connection: apsw.Connection, owner: int) -> None:
        self._connection = connection
        self._owner = owner
        self._known: dict[tuple[str, str], int] = {}

    def ordinal(self, field: str, name: str | None, *, new: int | None = None) -> int:
        """Return a name's ordinal, 0 for no name; a new name gets `new`, or the next number from 1."""
        if not name:
            return 0
        known = self._known.get((field, name))
        if known is None:
            following = count_names(self._connection, self._owner, field) + 1 if new is None else new
            known = name_ordinal(self._connection, self._owner, field, name, following)
            self._known[field, name] = known
        return known


def _state(connection: apsw.Connection, owner: int) -> IndexState:
    state = read_state(connection, owner)
    if state.positions == 0 and state.revision == 0:
        # an owner that is indexed anew never repeats a revision a cache may hold
        state.revision = read_clock(connection) + 1
        state.analysis = ANALYSIS_VERSION
    return state


def _held(connection: apsw.Connection, state: IndexState, stored: RecordRow) -> Iterable[str]:
    """Return the terms under which a record was posted, whichever analysis made them."""
    if state.analysis == ANALYSIS_VERSION:
        return _analyse(stored.record).terms
    return terms_at(connection, state.owner, owner_and_position(stored.slot)[1])


def _analyse(record: RecordInput) -> Document:
    return analyse_document(record.text, caption=record.caption, occurred_at=record.occurred_at)


def _attributes(record: RecordInput, document: Document, session: int, names: _Names) -> Attributes:
    return Attributes(
        session=session,
        length=document.length,
        words=document.words,
        speaker=names.ordinal("speaker", record.speaker),
        flags=document.bits | flags.ALIVE | (flags.SPOKEN if is_spoken(record) else 0),
        kind=names.ordinal("kind", record.kind),
        role=names.ordinal("role", record.role),
        fresh=0,
    )


def _packed(vector: "Vectors") -> bytes:
    return vector.astype("<f4", copy=False).tobytes()
