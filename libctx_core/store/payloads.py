"""What a bank asks of the place its pages are stored in: the port every payload store fills."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from libctx_core.access.metadata import MetadataState, ResourceMetadata

Recheck: TypeAlias = Callable[[MetadataState, bool], None]
"""Asked inside a store's transaction with the metadata and whether the payload exists; raises to refuse."""

Encode: TypeAlias = Callable[[int], bytes]
"""Gives the document of a page for the version it is stored as."""

ABSENT: Final = -1
"""As an expected version: the page must not exist."""


class StoredHead(NamedTuple):
    """What is known of a key without its payload.

    Attributes:
        metadata: Its enrolment.
        stamp: Stamp of its payload, None where there is none.
    """

    metadata: MetadataState
    stamp: object | None


@dataclass(frozen=True, slots=True)
class StoredPage:
    """One page as a store returned it.

    Attributes:
        document: Its payload.
        version: How often it was stored since it was created; None where only the document says.
        stamp: Changes whenever the payload does.
        metadata: Its enrolment in the same moment.
    """

    document: bytes
    version: int | None
    stamp: object
    metadata: MetadataState


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One key of a listing.

    Attributes:
        key: The key.
        metadata: Its enrolment.
        present: Whether it has a payload.
    """

    key: str
    metadata: MetadataState
    present: bool


@runtime_checkable
class PayloadStore(Protocol):
    """Keeps documents and their enrolment, each pair created and deleted as one.

    Every store must pass `libctx_core.testing.access`. Kinds are resource kinds, keys any
    non-blank text; both are compared exactly.
    """

    def head(self, kind: str, key: str, /) -> StoredHead:
        """Return enrolment and stamp of a key in one moment, without reading its payload."""
        ...

    def stamp(self, kind: str, key: str, /) -> object | None:
        """Return the stamp alone, where it is cheaper than the head."""
        ...

    def read(self, kind: str, key: str, /) -> StoredPage | None:
        """Return a page, or None."""
        ...

    def write(
        self,
        kind: str,
        key: str,
        encode: Encode,
        *,
        expected_version: int | None = None,
        recheck: Recheck | None = None,
    ) -> tuple[int, object]:
        """Store a page; its version is 0, or one above the stored one.

        Args:
            kind: Its kind.
            key: Its key.
            encode: Gives the document.
            expected_version: The version that must be stored now; `ABSENT` for none.
            recheck: Called before anything is changed, in the same transaction.

        Returns:
            The version and the stamp it is stored as.

        Raises:
            VersionConflictError: Another version is stored; nothing was changed.
        """
        ...

    def create(self, kind: str, key: str, metadata: ResourceMetadata | None, encode: Encode) -> object:
        """Store a new page, version 0, and its enrolment, or neither; return its stamp.

        Raises:
            ResourceExistsError: There is a payload or an enrolment already.
        """
        ...

    def delete(self, kind: str, key: str, *, recheck: Recheck | None = None, reserve: bool = False) -> bool:
        """Remove a page and its enrolment; return whether there was a page.

        Args:
            kind: Its kind.
            key: Its key.
            recheck: Called before anything is changed, in the same transaction.
            reserve: Keep the enrolment, so that nobody without a right can use the key.
        """
        ...

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool = False) -> None:
        """Enrol a key, with or without a payload, replacing what is there.

        Raises:
            ResourceExistsError: `unique` is set and another key has this resource id.
        """
        ...

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment; return whether there was one."""
        ...

    def entries(self, kind: str, /) -> Iterable[StoredEntry]:
        """Return every key of a kind that has a payload or an enrolment."""
        ...
