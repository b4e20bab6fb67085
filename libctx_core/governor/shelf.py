"""Books: what a collection or a team keeps for all its threads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apsw

from libctx_core.access.authority import Authority
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.errors import InvalidInputError, RecordNotFoundError
from libctx_core.errors.access import Operation
from libctx_core.governor import retrieval
from libctx_core.governor.drafts import Moment, moment
from libctx_core.governor.retrieval import SHELF, TEAM, Reading
from libctx_core.governor.runtime import Runtime
from libctx_core.models import (
    Hit,
    ThreadKey,
    canonical_json,
    check_identifier,
    new_id,
    normalise_content,
    normalise_metadata,
)
from libctx_core.store import events as log
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import COLLECTION, OwnerRow, create_owner, find_owner, owner_by_id
from libctx_core.store.records import RecordInput, embedded_text

CHUNK_CHARACTERS = 1_200
"""Size a document is cut to: about 300 tokens of English, one thought or two."""


class Shelf:
    """Puts books on the shelf of a collection or team, and finds them."""

    def __init__(self, runtime: Runtime, authority: Authority) -> None:
        self._runtime = runtime
        self._authority = authority

    def shelve(
        self,
        text: str,
        *,
        collection: str,
        book_id: str | None = None,
        title: str | None = None,
        team: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
    ) -> str:
        """Store one book and return its record id; a book of the same id is replaced."""
        checked = normalise_content("user", text)
        assert isinstance(checked.value, str)
        name = new_id("book") if book_id is None else check_identifier("book_id", book_id)
        record = _book(name, "book", checked.value, title, metadata, occurred_at, expires_at, team=team)
        return self._put([record], collection, team)[0]

    def shelve_document(
        self,
        text: str,
        *,
        collection: str,
        document_id: str | None = None,
        title: str | None = None,
        team: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
    ) -> list[str]:
        """Cut a document into chunks at its own seams, store them, and return their record ids.

        A document of the same id is replaced whole.
        """
        checked = normalise_content("user", text)
        assert isinstance(checked.value, str)
        name = new_id("doc") if document_id is None else check_identifier("document_id", document_id)
        records = [
            replace(
                _book(f"{name}#{number}", "chunk", chunk, title, metadata, occurred_at, expires_at, team=team),
                ref=name,
                session=name,
                sequence=number,
            )
            for number, chunk in enumerate(chunks(checked.value), start=1)
        ]
        return self._put(records, collection, team, replaces=name)

    def promote(self, source: ThreadKey, event_id: str, *, team: str | None = None) -> str:
        """Copy a thread's event to the collection's shelf, or to a team's, and return its record id."""
        with self._runtime.database.read() as connection:
            owner = find_owner(connection, "THREAD", source.collection, source.session_id)
            self._authority.require(
                Operation.READ,
                "THREAD",
                f"{source.collection}/{source.session_id}",
                metadata_state(owner),
            )
            event = None if owner is None else log.find(connection, owner.id, event_id)
        if event is None or event.redacted:
            raise RecordNotFoundError(event_id)
        record = RecordInput(
            key=f"{source.session_id}/{event.event_id}",
            kind="book",
            text=event.text,
            role=event.role,
            speaker=event.speaker,
            occurred_at=event.occurred_at,
            ref=f"{source.session_id}#{event.sequence}",
            metadata=None if event.metadata is None else canonical_json(event.metadata),
            visibility="project" if team is None else "team",
        )
        return self._put([record], source.collection, team)[0]

    def forget(self, record_id: str) -> None:
        """Remove a book or chunk by its record id.

        Raises:
            RecordNotFoundError: There is none that may be seen.
        """
        slot = _slot(record_id)

        def work(connection: apsw.Connection) -> None:
            row = connection.execute("SELECT owner FROM record WHERE slot = ?", (slot,)).fetchall()
            owner = owner_by_id(connection, row[0][0]) if row else None
            self._authority.selection(Operation.DELETE, COLLECTION)
            if owner is None or owner.kind != COLLECTION or not self._may_read(owner):
                # what may not be seen answers like what is not there
                raise RecordNotFoundError(record_id)
            self._require(Operation.DELETE, owner)
            self._runtime.index.remove(connection, [slot])

        self._runtime.database.write(work)

    def consult(
        self, query: str, k: int, reading: Reading, *, everything: bool = False, explain: bool = False
    ) -> list[Hit]:
        """Find the best records of the shelf, and of the threads the reading names."""
        if type(k) is not int or k < 1:
            raise InvalidInputError("k", "must be a whole number above 0")
        with self._runtime.database.read() as connection:
            self._authority.selection(Operation.READ, COLLECTION)
            owners = (
                retrieval.all_readable_owners(connection, self._runtime, self._authority)
                if everything
                else retrieval.readable_owners(connection, self._runtime, self._authority, reading)
            )
            if owners == ():
                return []
            found = retrieval.search(connection, self._runtime, query, owners, k=k, explain=explain)
            return retrieval.hits_of(connection, found)

    # -- internals ------------------------------------------------------------

    def _put(
        self, records: Sequence[RecordInput], collection: str, team: str | None, *, replaces: str | None = None
    ) -> list[str]:
        embedder = self._runtime.embedder
        vectors = None if embedder is None else embedder.embed_documents([embedded_text(item) for item in records])

        def work(connection: apsw.Connection) -> list[str]:
            owner = self._owner(connection, collection, team)
            old = [
                row[0]
                for item in records
                for row in connection.execute(
                    "SELECT slot FROM record WHERE owner = ? AND key = ?", (owner.id, item.key)
                )
            ]
            if replaces is not None:
                old += [
                    row[0]
                    for row in connection.execute(
                        "SELECT slot FROM record WHERE owner = ? AND ref = ?", (owner.id, replaces)
                    )
                ]
            if old:
                self._runtime.index.remove(connection, sorted(set(old)))
            profile = "" if embedder is None else embedder.profile_id
            slots = self._runtime.index.add(connection, owner.id, records, vectors, profile=profile)
            return [f"r{slot}" for slot in slots]

        return self._runtime.database.write(work)

    def _owner(self, connection: apsw.Connection, collection: str, team: str | None) -> OwnerRow:
        space = check_identifier("collection", collection) if team is None else check_identifier("team", team)
        key = SHELF if team is None else TEAM
        owner = find_owner(connection, COLLECTION, space, key)
        if owner is not None:
            self._require(Operation.WRITE, owner)
            return owner
        proposed = None
        if self._authority.scope is not None:
            # a right on a collection must not open the shelf of a team that happens to have its name
            boundary = space if team is None else f"{TEAM}:{space}"
            proposed = ResourceMetadata(COLLECTION, f"{key}:{space}", boundary)
            self._authority.require_create(COLLECTION, f"{space}/{key}", proposed)
        else:
            self._authority.require_write(COLLECTION, f"{space}/{key}", None)
        return create_owner(
            connection, COLLECTION, space, key, team=team,
            resource_id=None if proposed is None else proposed.resource_id,
            boundary_id=None if proposed is None else proposed.boundary_id,
        )  # fmt: skip

    def _may_read(self, owner: OwnerRow) -> bool:
        name = f"{owner.collection}/{owner.key}"
        return self._authority.allowed(Operation.READ, owner.kind, name, metadata_state(owner))

    def _require(self, operation: Operation, owner: OwnerRow) -> None:
        self._authority.require(operation, owner.kind, f"{owner.collection}/{owner.key}", metadata_state(owner))


def _book(
    key: str,
    kind: str,
    text: str,
    title: str | None,
    metadata: Mapping[str, Any] | None,
    occurred_at: Moment | None,
    expires_at: Moment | None,
    *,
    team: str | None,
) -> RecordInput:
    plain = normalise_metadata(metadata)
    return RecordInput(
        key=key,
        kind=kind,
        text=text,
        caption=None if title is None else check_identifier("title", title),
        ref=title,
        occurred_at=moment(occurred_at),
        expires_at=moment(expires_at),
        metadata=None if plain is None else json.dumps(plain, ensure_ascii=False, sort_keys=True),
        visibility="project" if team is None else "team",
    )


def _slot(record_id: str) -> int:
    number = record_id.removeprefix("r")
    if number == record_id or not number.isascii() or not number.isdigit() or len(number) > 18:
        raise RecordNotFoundError(record_id)
    return int(number)


def chunks(text: str, size: int = CHUNK_CHARACTERS) -> Iterator[str]:
    """Yield pieces of at most `size` characters, cut at paragraphs, else lines, sentences, words.

    Joined again they are the text. For code and Markdown use the splitter of libctx-sources.
    """
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            for seam in ("\n\n", "\n", ". ", " "):
                at = text.rfind(seam, start + size // 4, end)
                if at != -1:
                    end = at + len(seam)
                    break
        piece = text[start:end]
        if piece.strip():
            yield piece
        start = end
