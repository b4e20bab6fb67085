"""What every place that keeps pages must pass, so that a scope holds there too.

Subclass a suite in your own tests and say how your backend is made::

    class TestMyStore(PayloadStoreSuite):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)

The suites run under plain pytest. `libctx_core.testing.access_fakes` has the spies and a
remote memory with fault injection.
"""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from libctx_core.access import (
    Authority,
    Boundary,
    ContextAccess,
    ContextAccessDenied,
    DenialReason,
    EnforcementMode,
    Operation,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.bank import ContextBank, ContextWindow, StorageMode
from libctx_core.bank.codec import WINDOW
from libctx_core.bank.remote import ContextResourceMetadataBackend, RemoteMemory, Success
from libctx_core.errors import ResourceExistsError
from libctx_core.errors.bank import VersionConflictError
from libctx_core.store.payloads import ABSENT, PayloadStore
from libctx_core.testing.access_fakes import SpyStore, metadata_of

KIND = WINDOW.kind
MINE = ResourceMetadata(KIND, "resource-17", "workspace-3")
THEIRS = ResourceMetadata(KIND, "resource-99", "workspace-9")

AWKWARD_KEYS = (
    "plain",
    "../up",
    "/etc/passwd",
    "a/b\\c",
    "C:stream",
    "con",
    "nul.txt",
    ".hidden",
    "trailing.",
    "trailing ",
    "line\nbreak",
    "keys",
    "page",
    "<execution>",
    "%2e%2e%2f",
    "key/exists",
    "key;v=1",
    "slash/",
    "%00",
    "*",
    "x') OR '1'='1",
    "ключ",
    "\u202eright to left",
    "e\u0301",
    "\u00e9",
    "Page",
    "page ",
    "x" * 300,
    "x" * 299 + "y",
)


def document(text: str) -> Callable[[int], bytes]:
    """Return what gives a window that holds one text."""

    def encode(version: int) -> bytes:
        window = ContextWindow(context_elements=[text], version=version)
        return WINDOW.encode(window)

    return encode


def text_of(page: Any) -> list[str]:
    """Return the elements of a stored window."""
    return WINDOW.decode(page.document).context_elements


class PayloadStoreSuite:
    """Behaviour of a `PayloadStore`; provide a `store` fixture."""

    @pytest.fixture
    def store(self) -> PayloadStore:
        """Return an empty store."""
        raise NotImplementedError

    def test_a_missing_page_has_no_head_and_no_page(self, store: PayloadStore) -> None:
        """Nothing is known of a key that was never used."""
        assert store.head(KIND, "none") == (None, None)
        assert store.stamp(KIND, "none") is None
        assert store.read(KIND, "none") is None
        assert list(store.entries(KIND)) == []

    def test_create_stores_payload_and_enrolment_as_one(self, store: PayloadStore) -> None:
        """Both are there afterwards, version 0."""
        store.create(KIND, "k", MINE, document("mine"))
        page = store.read(KIND, "k")
        assert page is not None
        assert text_of(page) == ["mine"]
        assert page.version in {0, None}
        assert page.metadata == MINE
        assert store.head(KIND, "k") == (MINE, page.stamp)

    @pytest.mark.parametrize("prepared", ["payload", "enrolment", "both"])
    def test_create_refuses_what_exists_and_changes_nothing(self, store: PayloadStore, prepared: str) -> None:
        """A payload or an enrolment alone is enough to be in the way."""
        if prepared != "enrolment":
            store.write(KIND, "k", document("first"))
        if prepared != "payload":
            store.put_metadata("k", THEIRS)
        before = store.head(KIND, "k")
        with pytest.raises(ResourceExistsError):
            store.create(KIND, "k", MINE, document("second"))
        assert store.head(KIND, "k") == before

    def test_only_one_of_many_creators_wins(self, store: PayloadStore) -> None:
        """The page and the enrolment are the winner's, both."""
        outcomes: list[str | None] = []

        def create(number: int) -> None:
            metadata = ResourceMetadata(KIND, f"resource-{number}", "w")
            try:
                store.create(KIND, "k", metadata, document(f"resource-{number}"))
            except ResourceExistsError:
                outcomes.append(None)
            else:
                outcomes.append(metadata.resource_id)

        threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [outcome for outcome in outcomes if outcome is not None]
        page = store.read(KIND, "k")
        assert len(outcomes) == 8
        assert len(winners) == 1
        assert page is not None
        assert text_of(page) == winners
        assert page.metadata == ResourceMetadata(KIND, winners[0], "w")

    def test_a_failing_encoder_creates_nothing(self, store: PayloadStore) -> None:
        """Neither payload nor enrolment stays behind."""

        def fail(version: int) -> bytes:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.create(KIND, "k", MINE, fail)
        assert store.head(KIND, "k") == (None, None)

    def test_writes_count_versions_and_change_the_stamp(self, store: PayloadStore) -> None:
        """Version 0 first, one more each time; no two documents share a stamp."""
        version, stamp = store.write(KIND, "k", document("a"))
        again, second = store.write(KIND, "k", document("bb"))
        assert (version, again) == (0, 1)
        assert stamp != second
        assert store.stamp(KIND, "k") == second

    @pytest.mark.parametrize(("stored", "expected"), [(None, 0), (0, ABSENT), (0, 1)])
    def test_an_unexpected_version_changes_nothing(
        self, store: PayloadStore, stored: int | None, expected: int
    ) -> None:
        """Optimistic writes compare and store in one step."""
        if stored is not None:
            store.write(KIND, "k", document("kept"))
        before = store.read(KIND, "k")
        with pytest.raises(VersionConflictError):
            store.write(KIND, "k", document("lost"), expected_version=expected)
        assert store.read(KIND, "k") == before

    def test_writing_keeps_the_enrolment(self, store: PayloadStore) -> None:
        """A new payload is protected like the old one."""
        store.create(KIND, "k", MINE, document("a"))
        store.write(KIND, "k", document("b"))
        assert metadata_of(store, KIND, "k") == MINE

    def test_a_recheck_sees_the_facts_and_can_refuse(self, store: PayloadStore) -> None:
        """It is asked inside the transaction, and its refusal leaves everything as it was."""
        store.create(KIND, "k", MINE, document("kept"))
        seen: list[object] = []

        def refuse(metadata: object, exists: bool) -> None:
            seen.append((metadata, exists))
            raise ContextAccessDenied(Operation.WRITE, KIND, "k")

        with pytest.raises(ContextAccessDenied):
            store.write(KIND, "k", document("lost"), recheck=refuse)
        with pytest.raises(ContextAccessDenied):
            store.delete(KIND, "k", recheck=refuse)
        page = store.read(KIND, "k")
        assert page is not None
        assert text_of(page) == ["kept"]
        assert seen == [(MINE, True), (MINE, True)]

    def test_delete_takes_the_enrolment_along_unless_it_stays_reserved(self, store: PayloadStore) -> None:
        """A reserved key keeps its enrolment and has no payload."""
        store.create(KIND, "gone", MINE, document("a"))
        store.create(KIND, "reserved", THEIRS, document("b"))
        assert store.delete(KIND, "gone")
        assert store.delete(KIND, "reserved", reserve=True)
        assert not store.delete(KIND, "gone")
        assert store.head(KIND, "gone") == (None, None)
        assert store.head(KIND, "reserved") == (THEIRS, None)

    def test_enrolments_come_and_go_without_payload(self, store: PayloadStore) -> None:
        """An enrolment may precede its payload and be replaced."""
        store.put_metadata("k", MINE)
        store.put_metadata("k", THEIRS)
        assert store.head(KIND, "k") == (THEIRS, None)
        assert store.delete_metadata(KIND, "k")
        assert not store.delete_metadata(KIND, "k")
        assert store.head(KIND, "k") == (None, None)

    def test_unique_resource_ids_are_kept_unique(self, store: PayloadStore) -> None:
        """Another key cannot claim the id, the same key can."""
        store.put_metadata("first", MINE, unique=True)
        store.put_metadata("first", MINE, unique=True)
        with pytest.raises(ResourceExistsError):
            store.put_metadata("second", MINE, unique=True)
        store.put_metadata("second", MINE)

    def test_kinds_do_not_share_keys(self, store: PayloadStore) -> None:
        """A window and a todo list of one key are two pages."""
        store.create(KIND, "k", MINE, document("a"))
        assert store.head("TODO_LIST", "k") == (None, None)

    def test_awkward_keys_are_kept_apart(self, store: PayloadStore) -> None:
        """No key is a path, and no two keys are one."""
        for number, key in enumerate(AWKWARD_KEYS):
            store.create(KIND, key, ResourceMetadata(KIND, f"r{number}"), document(key))
        for number, key in enumerate(AWKWARD_KEYS):
            page = store.read(KIND, key)
            assert page is not None
            assert text_of(page) == [key]
            assert page.metadata == ResourceMetadata(KIND, f"r{number}")
        assert {entry.key for entry in store.entries(KIND)} == set(AWKWARD_KEYS)

    def test_twenty_concurrent_enrolments_leave_one_whole_document(self, store: PayloadStore) -> None:
        """The last one wins, none is torn."""
        candidates = [ResourceMetadata(KIND, f"resource-{number}", f"b{number}") for number in range(20)]
        threads = [threading.Thread(target=store.put_metadata, args=("k", metadata)) for metadata in candidates]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert metadata_of(store, KIND, "k") in candidates

    def test_a_denied_call_touches_no_value(self, store: PayloadStore) -> None:
        """Through a bank: whatever the scope denies reaches no payload of the store."""
        spy = SpyStore(store)
        access = ContextAccess()
        bank = ContextBank(spy, Authority(access))
        bank.create_context_window("k", THEIRS, ContextWindow(context_elements=["secret"]), StorageMode.DISK_ONLY)
        scope = access.issue_root_scope(
            Principal("p"), Rights.all_on(Resource("else")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        denied: list[Callable[[], object]] = [
            lambda: bank.get("k"),
            lambda: bank.get("k", copy=False),
            lambda: bank.emplace("k", ContextWindow()),
            lambda: bank.mutate("k", lambda window: window.clear()),
            lambda: bank.append_element("k", "x"),
            lambda: bank.delete("k"),
            lambda: bank.evict("k"),
            lambda: bank.exists("k"),
            lambda: bank.query_lorebook("k"),
            lambda: bank.swap_bank("k"),
            lambda: bank.create_context_window("new", THEIRS, ContextWindow()),
            lambda: bank.create_context_window("k", THEIRS, ContextWindow()),
        ]
        spy.calls.clear()
        with access.scope(scope):
            for call in denied:
                with pytest.raises(ContextAccessDenied):
                    call()
            assert bank.page_keys() == []
        assert spy.values_touched() == 0


class RemoteMemorySuite:
    """Behaviour of a `RemoteMemory` with metadata; provide a `remote` and a `store` fixture."""

    @pytest.fixture
    def remote(self) -> RemoteMemory:
        """Return an empty remote memory that declares `RESOURCE_METADATA`."""
        raise NotImplementedError

    @pytest.fixture
    def store(self) -> PayloadStore:
        """Return an empty store for the local side."""
        raise NotImplementedError

    def _bank(self, remote: RemoteMemory, store: PayloadStore) -> tuple[ContextAccess, ContextBank]:
        access = ContextAccess()
        bank = ContextBank(store, Authority(access))
        bank.admin().set_remote(remote, everywhere=True)
        return access, bank

    def test_a_page_goes_there_and_comes_back(self, remote: RemoteMemory, store: PayloadStore) -> None:
        """Stored, read, listed and deleted remotely; nothing stays local."""
        _, bank = self._bank(remote, store)
        bank.emplace("k", ContextWindow(context_elements=["far"]))
        assert bank.get("k").context_elements == ["far"]
        assert bank.get("k").version == 0
        assert store.read(KIND, "k") is None
        assert bank.page_keys() == ["k"]
        assert bank.delete("k")
        assert bank.get("k").is_empty()
        bank.emplace("k", ContextWindow())
        assert bank.get("k").version == 0

    def test_enrolment_is_kept_and_decides(self, remote: RemoteMemory, store: PayloadStore) -> None:
        """Who created under a scope may read; another scope may not."""
        access, bank = self._bank(remote, store)
        mine = access.issue_root_scope(
            Principal("me"), Rights.all_on(Boundary("workspace-3")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        other = access.issue_root_scope(
            Principal("you"), Rights.all_on(Boundary("workspace-9")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        with access.scope(mine):
            bank.create_context_window("k", MINE, ContextWindow(context_elements=["far"]), StorageMode.REMOTE)
            assert bank.get("k").context_elements == ["far"]
            assert bank.page_keys() == ["k"]
        with access.scope(other):
            with pytest.raises(ContextAccessDenied) as denial:
                bank.get("k")
            assert denial.value.reason is DenialReason.MISSING_PERMISSION
            assert bank.page_keys() == []

    def test_versions_are_compared_remotely(self, remote: RemoteMemory, store: PayloadStore) -> None:
        """A stale writer is told so."""
        _, bank = self._bank(remote, store)
        bank.emplace("k", ContextWindow())
        bank.emplace("k", ContextWindow(), expected_version=0)
        with pytest.raises(VersionConflictError):
            bank.emplace("k", ContextWindow(), expected_version=0)

    def test_presence_is_told_without_a_payload(self, remote: RemoteMemory, store: PayloadStore) -> None:
        """The metadata plane answers for itself."""
        _, bank = self._bank(remote, store)
        bank.emplace("k", ContextWindow())
        exists = cast("ContextResourceMetadataBackend", remote).resource_exists
        assert _settled(bank, exists(KIND, "k")) == Success(True)
        assert _settled(bank, exists(KIND, "none")) == Success(False)


def _settled(bank: ContextBank, value: Any) -> Any:
    return bank.pages.state.bridge.settle(value)
