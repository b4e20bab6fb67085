"""Remote pages: denied before the wire, failures told apart, creation undone or kept closed."""

import asyncio

import pytest

from libctx_core.access import Authority, DenialReason, Operation, Resource, Rights
from libctx_core.bank import ContextBank, StorageMode, error_type_of
from libctx_core.bank.codec import WINDOW
from libctx_core.bank.remote import Success, require_success, require_value
from libctx_core.errors import MetadataCapabilityError, ResourceExistsError, ScopeActiveError
from libctx_core.errors.bank import MemoryErrorType, MemoryRemoteError, RemoteFailure, VersionConflictError
from libctx_core.testing.access_fakes import AsyncRemoteMemory, FakeRemoteMemory
from tests.bank.helpers import KIND, LEGACY, MINE, THEIRS, denied, only, scope, window

REMOTE = StorageMode.REMOTE
DOWN = RemoteFailure(503, MemoryErrorType.SERVER, "down")


@pytest.fixture
def remote():
    return FakeRemoteMemory()


@pytest.fixture
def bank(store, access, remote):
    bank = ContextBank(store, Authority(access), remote=remote)
    yield bank
    bank.close()


@pytest.fixture
def page(bank, remote):
    bank.create_context_window("page", MINE, window("far"), REMOTE)
    remote.calls.clear()
    return "page"


def test_a_denied_call_reads_and_writes_no_value(bank, access, page, remote):
    with access.scope(scope(access, Rights.all_on(Resource("other")))):
        for call in (
            lambda: bank.get(page),
            lambda: bank.emplace(page, window()),
            lambda: bank.mutate(page, lambda window: None),
            lambda: bank.delete(page),
            lambda: bank.evict(page),
        ):
            denied(call)
    assert set(remote.calls) == {"get_resource_metadata"}


def test_enumeration_is_denied_before_the_keys_are_asked_for(bank, access, page, remote):
    with access.scope(scope(access, only(read=True))):
        assert denied(bank.page_keys).resource_key == "<enumeration>"
    assert remote.calls["list_keys"] == 0
    with access.scope(scope(access)):
        assert bank.page_keys() == [page]


def test_enumeration_decides_remote_keys_one_by_one(bank, access, remote):
    bank.create_context_window("mine", MINE, window(), REMOTE)
    bank.create_context_window("theirs", THEIRS, window(), REMOTE)
    bank.emplace("unenrolled", window(), REMOTE)
    assert bank.page_keys() == ["mine", "theirs", "unenrolled"]
    with access.scope(scope(access)):
        assert bank.page_keys() == ["mine"]
    with access.scope(scope(access, mode=LEGACY)):
        assert bank.page_keys() == ["mine", "unenrolled"]
    assert remote.calls["get_page"] == 0


class TestOlderBackends:
    @pytest.fixture
    def remote(self):
        return FakeRemoteMemory(capabilities=())

    def test_scopes_are_refused_and_nothing_is_listed(self, bank, access, remote):
        bank.admin().set_remote(remote, everywhere=True)
        bank.emplace("k", window("x"))
        remote.calls.clear()
        for mode in (LEGACY, None):
            with access.scope(scope(access, **({} if mode is None else {"mode": mode}))):
                assert denied(bank.get, "k").reason is DenialReason.METADATA_UNAVAILABLE
                error = denied(bank.page_keys)
                assert (error.resource_key, error.reason) == ("<remote>", DenialReason.METADATA_UNAVAILABLE)
                error = denied(bank.create_context_window, "new", MINE, window(), REMOTE)
                assert (error.operation, error.reason) == (Operation.CREATE, DenialReason.METADATA_UNAVAILABLE)
        assert sum(remote.calls.values()) == 0
        assert bank.get("k").context_elements == ["x"]

    def test_enrolment_needs_the_capability(self, bank, remote):
        bank.admin().set_remote(remote, everywhere=True)
        for call in (
            lambda: bank.create_context_window("new", MINE, window(), REMOTE),
            lambda: bank.admin().register_resource_metadata("k", MINE),
            lambda: bank.admin().delete_resource_metadata("k", KIND),
        ):
            with pytest.raises(MetadataCapabilityError):
                call()


class TestMetadataFailures:
    @pytest.mark.parametrize(
        ("failure", "reason"),
        [
            (RemoteFailure(404, MemoryErrorType.NOT_FOUND), DenialReason.METADATA_UNAVAILABLE),
            (RemoteFailure(422, MemoryErrorType.SERIALIZATION), DenialReason.INVALID_METADATA),
            (RemoteFailure(401, MemoryErrorType.AUTH), DenialReason.METADATA_UNAVAILABLE),
            (DOWN, DenialReason.METADATA_UNAVAILABLE),
            (ConnectionError("secret host"), DenialReason.METADATA_UNAVAILABLE),
            (TimeoutError(), DenialReason.METADATA_UNAVAILABLE),
        ],
    )
    def test_failures_become_denials(self, bank, access, page, remote, failure, reason):
        remote.failures["get_resource_metadata"] = failure
        with access.scope(scope(access)):
            error = denied(bank.get, page)
        assert error.reason is reason
        assert "secret" not in str(error)
        assert remote.calls["get_page"] == 0

    def test_missing_is_open_in_legacy_but_unreachable_is_not(self, bank, access, page, remote):
        with access.scope(scope(access, mode=LEGACY)):
            remote.failures["get_resource_metadata"] = RemoteFailure(404, MemoryErrorType.NOT_FOUND)
            assert bank.get(page).context_elements == ["far"]
            remote.failures["get_resource_metadata"] = DOWN
            denied(bank.get, page)


class TestPresence:
    def test_creation_asks_once_and_reads_nothing(self, bank, access, remote):
        with access.scope(scope(access)):
            bank.create_context_window("k", MINE, window("x"), REMOTE)
        assert remote.calls["resource_exists"] == 1
        assert remote.calls["get_page"] == 0

    def test_unknown_presence_creates_nothing(self, bank, access, remote):
        remote.presence_unknown = True
        with access.scope(scope(access)):
            error = denied(bank.create_context_window, "k", MINE, window(), REMOTE)
        assert (error.operation, error.reason) == (Operation.CREATE, DenialReason.METADATA_UNAVAILABLE)
        assert remote.pages == {}
        assert remote.metadata == {}

    @pytest.mark.parametrize("how", ["unknown", "fails", "odd"])
    def test_a_write_is_relabelled(self, bank, access, page, remote, how):
        remote.presence_unknown = how == "unknown"
        if how != "unknown":
            failure = ConnectionError() if how == "fails" else Success("yes")
            remote.failures["resource_exists"] = failure
        with access.scope(scope(access, only(write=True, create=True))):
            error = denied(bank.emplace, page, window())
            assert (error.operation, error.reason) == (Operation.WRITE, DenialReason.METADATA_UNAVAILABLE)
        with access.scope(scope(access, only(create=True))):
            assert denied(bank.emplace, page, window()).operation is Operation.CREATE
        with access.scope(scope(access)):
            assert denied(bank.get, page).reason is DenialReason.METADATA_UNAVAILABLE
        assert remote.calls["put_page"] == 0


class TestCreationAndRollback:
    def test_an_existing_page_or_enrolment_is_in_the_way(self, bank, access, page, remote):
        with access.scope(scope(access)), pytest.raises(ResourceExistsError):
            bank.create_context_window(page, MINE, window(), REMOTE)
        bank.emplace("unenrolled", window(), REMOTE)
        with access.scope(scope(access)), pytest.raises(ResourceExistsError):
            bank.create_context_window("unenrolled", MINE, window(), REMOTE)

    @pytest.mark.parametrize("failure", [DOWN, ConnectionError(), KeyboardInterrupt()])
    def test_a_failed_payload_takes_the_enrolment_back(self, bank, access, remote, failure):
        remote.failures["put_page"] = failure
        with access.scope(scope(access)), pytest.raises((MemoryRemoteError, KeyboardInterrupt)):
            bank.create_context_window("k", MINE, window(), REMOTE)
        assert remote.metadata == {}
        assert remote.pages == {}

    def test_a_payload_that_arrived_before_the_failure_is_removed(self, bank, access, remote):
        put = remote.put_page

        def store_then_fail(*arguments):
            put(*arguments)
            raise ConnectionError

        remote.put_page = store_then_fail
        with access.scope(scope(access)), pytest.raises(MemoryRemoteError):
            bank.create_context_window("k", MINE, window("x"), REMOTE)
        assert remote.pages == {}
        assert remote.metadata == {}

    def test_where_absence_cannot_be_confirmed_the_enrolment_stays(self, bank, access, remote):
        put = remote.put_page

        def store_then_fail(*arguments):
            put(*arguments)
            raise ConnectionError

        remote.put_page = store_then_fail
        remote.failures["delete_page"] = DOWN
        with access.scope(scope(access)), pytest.raises(MemoryRemoteError) as error:
            bank.create_context_window("k", MINE, window("x"), REMOTE)
        assert "could not be confirmed" in error.value.__notes__[0]
        assert remote.metadata == {(KIND, "k"): MINE}
        bank.admin().set_remote(remote, everywhere=True)
        with access.scope(scope(access, Rights.all_on(Resource("other")), LEGACY)):
            denied(bank.get, "k")

    @pytest.mark.parametrize("stop", range(8))
    @pytest.mark.parametrize("action", ["create", "emplace", "mutate", "delete"])
    async def test_cancellation_at_every_await_leaves_no_readable_unenrolled_page(self, store, access, stop, action):
        inner, steps, tasks = FakeRemoteMemory(), [], []
        if action != "create":
            inner.metadata[KIND, "k"] = MINE
            inner.pages[KIND, "k"] = b'{"contextElements":["old"],"version":0}'

        async def pause():
            steps.append(len(steps))
            if len(steps) == stop + 1:
                tasks[0].cancel()
            await asyncio.sleep(0)

        bank = ContextBank(store, Authority(access))
        bank.admin().set_remote(AsyncRemoteMemory(inner, pause), everywhere=True)
        actions = {
            "create": lambda: bank.acreate_context_window("k", MINE, window("new"), REMOTE),
            "emplace": lambda: bank.aemplace("k", window("new")),
            "mutate": lambda: bank.amutate("k", lambda page: page.context_elements.__setitem__(0, "new")),
            "delete": lambda: bank.adelete("k"),
        }

        async def act():
            async with access.scope(scope(access)):
                await actions[action]()

        tasks.append(asyncio.create_task(act()))
        outcome = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcome[0], asyncio.CancelledError) == (stop < len(steps))
        if (KIND, "k") in inner.pages:
            assert inner.metadata == {(KIND, "k"): MINE}
            assert WINDOW.decode(inner.pages[KIND, "k"]).context_elements in (["old"], ["new"])
        bank.admin().set_remote(inner, everywhere=True)
        assert access.current_scope() is None
        bank.close()


class TestOperations:
    def test_pages_are_not_kept_locally(self, bank, page, remote, store):
        bank.get(page)
        bank.get(page)
        assert remote.calls["get_page"] == 2
        assert store.values_touched() == 0

    def test_failures_are_typed(self, bank, page, remote):
        for failure, kind in (
            (RemoteFailure(401, MemoryErrorType.AUTH), MemoryErrorType.AUTH),
            (DOWN, MemoryErrorType.SERVER),
            (ConnectionError(), MemoryErrorType.TRANSPORT),
        ):
            remote.failures["get_page"] = failure
            with pytest.raises(MemoryRemoteError) as error:
                bank.get(page)
            assert error.value.failure.error_type is kind
            assert error.value.operation == "get_page"

    def test_versions_conflict_remotely(self, bank, page, remote):
        bank.emplace(page, window("a"), expected_version=0)
        with pytest.raises(VersionConflictError):
            bank.emplace(page, window("b"), expected_version=0)
        assert bank.mutate(page, lambda page: page.add_text("c")).version == 2
        assert bank.fetch_merge_save(page, window("local"))
        assert bank.get(page).context_elements == ["local", "a", "c"]

    def test_a_locked_remote_page_reads_as_empty_and_an_unknown_lock_counts(self, bank, page, remote):
        remote.locked.add(page)
        assert bank.get(page).is_empty()
        remote.locked.clear()
        remote.failures["page_is_locked"] = DOWN
        assert bank.get(page).is_empty()
        assert remote.calls["get_page"] == 0

    def test_deleting_takes_the_enrolment_along(self, bank, access, page, remote):
        with access.scope(scope(access, only(delete=True))):
            assert bank.delete(page)
        assert remote.pages == remote.metadata == {}
        assert not bank.delete(page)

    def test_t25_presence_never_fetches_a_value(self, bank, access, page, remote):
        with access.scope(scope(access)):
            assert bank.exists(page)
        assert remote.calls["get_page"] == 0

    def test_t17_a_scoped_caller_cannot_skip_the_remote_plane(self, bank, access, page, remote):
        bank.admin().set_remote(remote, everywhere=True)
        bank.get("k", skip_remote=True)
        with access.scope(scope(access, mode=LEGACY)):
            for call in (
                lambda: bank.get(page, skip_remote=True),
                lambda: bank.emplace(page, window(), skip_remote=True),
                lambda: bank.delete(page, skip_remote=True),
                lambda: bank.create_context_window("new", MINE, window(), skip_remote=True),
            ):
                with pytest.raises(ScopeActiveError):
                    call()

    def test_t17_storing_in_another_plane_is_decided_there_too(self, bank, access, remote):
        remote.metadata[KIND, "k"] = THEIRS
        remote.pages[KIND, "k"] = b'{"contextElements":["secret"],"version":0}'
        with access.scope(scope(access, mode=LEGACY)):
            denied(bank.emplace, "k", window("overwritten"), REMOTE)
        assert remote.calls["put_page"] == 0

    def test_disconnecting(self, bank, page):
        bank.admin().set_remote(None)
        with pytest.raises(MetadataCapabilityError):
            bank.get(page)


def test_results_and_status_mapping():
    assert require_value("op", Success(3)) == 3
    require_success("op", Success(None))
    with pytest.raises(MemoryRemoteError) as error:
        require_success("op", DOWN)
    assert error.value.failure is DOWN
    mapping = {400: "badRequest", 401: "auth", 403: "auth", 404: "notFound", 409: "conflict", 418: "unknown"}
    assert {status: str(error_type_of(status)) for status in mapping} == mapping
    assert error_type_of(500) is error_type_of(599) is MemoryErrorType.SERVER
    assert error_type_of(None) is MemoryErrorType.TRANSPORT
