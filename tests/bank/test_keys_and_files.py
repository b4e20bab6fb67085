"""Keys as file names, hostile files in place of ours, and the layout of the seed."""

import errno
import json
import os
import stat
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libctx_core.access import Authority, DenialReason, Operation, ResourceMetadata, Rights
from libctx_core.bank import ContextBank, FileBankStore, StorageMode, TodoList
from libctx_core.bank.filenames import is_shortened, key_of, name_of
from libctx_core.bank.safefile import file_lock, names_fold_case, write_atomically
from libctx_core.errors import InvalidInputError, ResourceExistsError
from libctx_core.errors.bank import PayloadError
from libctx_core.testing.access import AWKWARD_KEYS
from tests.bank.helpers import KIND, MINE, REQUIRE, THEIRS, TODO_KIND, denied, scope, window

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX file semantics")
DISK = StorageMode.DISK_ONLY
KEYS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=80)


@pytest.fixture
def lore(tmp_path):
    return tmp_path / "lore"


@pytest.fixture
def store(tmp_path, lore):
    return FileBankStore(lore, tmp_path / "todo")


@pytest.fixture
def bank(store, access):
    bank = ContextBank(store, Authority(access))
    yield bank
    bank.close()


class TestNames:
    @given(KEYS, st.booleans())
    def test_names_are_reversible_single_components(self, key, fold_case):
        name = name_of(key, fold_case=fold_case)
        assert name.isascii()
        assert len(name) <= 200
        assert not set(name) & set('/\\:*?"<>|\n\x00 ')
        assert not name.startswith(".")
        assert not name.endswith((".", " "))
        if not is_shortened(name):
            assert key_of(name, fold_case=fold_case) == key

    @given(KEYS, KEYS)
    def test_two_keys_are_two_names_also_without_case(self, first, second):
        if first != second:
            assert name_of(first) != name_of(second)
            assert name_of(first, fold_case=True).lower() != name_of(second, fold_case=True).lower()

    def test_ordinary_keys_keep_their_spelling(self):
        assert name_of("Private-page_2.v1") == "Private-page_2.v1"
        assert name_of("Page", fold_case=True) == "%50age"

    @pytest.mark.parametrize("name", ["a b", "%zz", "%41", ".x", "%ff", "a%2"])
    def test_foreign_file_names_are_no_keys(self, name):
        assert key_of(name) is None

    @pytest.mark.parametrize("key", AWKWARD_KEYS)
    def test_t30_no_key_leaves_its_directory(self, store, lore, key):
        path = store.payload_path(KIND, key)
        assert path.parent == lore
        assert path.resolve().parent == lore.resolve()

    def test_t31_the_file_system_is_probed(self, tmp_path):
        assert names_fold_case(tmp_path) in {True, False}
        if sys.platform == "linux":
            assert not names_fold_case(tmp_path)


class TestLayout:
    def test_payloads_and_sidecars_lie_where_the_seed_puts_them(self, bank, tmp_path, lore):
        bank.create_context_window("private-page", MINE, window("x"), DISK)
        bank.create_todo_list("list", ResourceMetadata(TODO_KIND, "r"), TodoList(), DISK)
        bank.admin().register_resource_metadata("any", ResourceMetadata("BANKED_CONTEXT", "b"))
        assert json.loads((lore / "private-page.bank.access").read_bytes()) == {
            "resourceKind": KIND,
            "resourceId": "resource-17",
            "boundaryId": "workspace-3",
            "schemaVersion": 1,
        }
        payload = json.loads((lore / "private-page.bank").read_bytes())
        assert set(payload) == {"loreBookKeys", "contextElements", "converseHistory", "version"}
        assert (tmp_path / "todo" / "list.todo").exists()
        assert (tmp_path / "todo" / "list.todo.access").exists()
        assert (lore / "__banked_context.bank.access").exists()
        assert bank.page_keys() == ["private-page"]

    def test_files_of_another_writer_are_read(self, bank, lore, access):
        (lore / "k.bank").write_text('{"contextElements": ["x"], "converseHistory": {"history": []}}')
        (lore / "k.bank.access").write_text(
            '{"resourceKind": "CONTEXT_WINDOW", "resourceId": "resource-17", "schemaVersion": 1}'
        )
        with access.scope(scope(access)):
            assert bank.get("k").context_elements == ["x"]
        with access.scope(scope(access, Rights())):
            denied(bank.get, "k")

    @posix
    def test_t33_files_are_for_the_owner_only(self, bank, lore):
        bank.create_context_window("k", MINE, window("x"), DISK)
        for path in lore.iterdir():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        assert stat.S_IMODE(lore.stat().st_mode) == 0o700

    def test_shortened_names_keep_their_key_beside_them(self, bank, lore):
        key = "x" * 300
        bank.emplace(key, window("long"), DISK)
        assert bank.page_keys() == [key]
        (sidecar,) = lore.glob("*.key")
        sidecar.write_text("another key")
        assert bank.page_keys() == []
        sidecar.unlink()
        assert bank.page_keys() == []

    def test_kinds_without_files_are_refused(self, store):
        with pytest.raises(InvalidInputError):
            store.payload_path("THREAD", "k")


def sidecar_states():
    def write(data):
        return lambda path: path.write_bytes(data)

    good = b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"resource-17","boundaryId":null,"schemaVersion":1}'
    yield "empty", write(b"")
    yield "not json", write(b"not-json")
    yield "without version", write(good.replace(b',"schemaVersion":1', b""))
    yield "null version", write(good.replace(b":1}", b":null}"))
    yield "newer", write(good.replace(b":1}", b":2}"))
    yield "another kind", write(good.replace(b"CONTEXT_WINDOW", b"TODO_LIST"))
    yield "10 MB", write(good + b" " * 10_000_000)
    yield "directory", lambda path: path.mkdir()
    if sys.platform != "win32":
        yield "pipe", lambda path: os.mkfifo(path)
        yield "dangling link", lambda path: path.symlink_to("nowhere")
        yield "looping link", lambda path: path.symlink_to(path.name)
        yield "link to a good one", _link_to_good(good)
        if os.geteuid() != 0:
            yield "unreadable", lambda path: (path.write_bytes(good), path.chmod(0))
        else:
            yield "somebody else's", lambda path: (path.write_bytes(good), os.chown(path, 12345, 12345))


def _link_to_good(good):
    def make(path):
        target = path.with_name("elsewhere")
        target.write_bytes(good)
        path.symlink_to(target)

    return make


STATES = dict(sidecar_states())


class TestHostileFiles:
    """Attack B and every row of the sidecar table."""

    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("name", STATES)
    @pytest.mark.parametrize("mode", [REQUIRE, None])
    def test_anything_but_a_good_sidecar_denies(self, bank, access, lore, name, mode):
        (lore / "k.bank").write_text('{"contextElements": ["x"]}')
        STATES[name](lore / "k.bank.access")
        with access.scope(scope(access, **({"mode": mode} if mode else {}))):
            assert denied(bank.get, "k").reason is DenialReason.INVALID_METADATA
            assert denied(bank.emplace, "k", window()).reason is DenialReason.INVALID_METADATA
            assert bank.page_keys() == []
        with pytest.raises((ResourceExistsError, PermissionError)):
            bank.create_context_window("k", MINE, window(), DISK)

    def test_a_missing_sidecar_is_open_in_legacy_and_unavailable_otherwise(self, bank, access, lore):
        (lore / "k.bank").write_text('{"contextElements": ["x"]}')
        with access.scope(scope(access)):
            assert denied(bank.get, "k").reason is DenialReason.METADATA_UNAVAILABLE

    def test_a_sidecar_of_another_kind_cannot_be_renamed_into_place(self, bank, access, tmp_path, lore):
        bank.create_todo_list("k", ResourceMetadata(TODO_KIND, "resource-17"), TodoList(), DISK)
        bank.create_context_window("k", THEIRS, window("secret"), DISK)
        (tmp_path / "todo" / "k.todo.access").replace(lore / "k.bank.access")
        with access.scope(scope(access)):
            assert denied(bank.get, "k").reason is DenialReason.INVALID_METADATA

    @posix
    @pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
    @pytest.mark.timeout(20)
    def test_a_payload_that_is_no_file_of_ours_is_not_read(self, bank, lore, tmp_path, kind):
        secret = tmp_path / "secret"
        secret.write_text('{"contextElements": ["/etc/shadow"]}')
        path = lore / "k.bank"
        {"directory": path.mkdir, "link": lambda: path.symlink_to(secret), "pipe": lambda: os.mkfifo(path)}[kind]()
        with pytest.raises(PayloadError):
            bank.get("k")

    @posix
    def test_t33_a_lock_file_that_is_a_link_is_refused(self, bank, lore, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("kept")
        (lore / "k.bank.access.lck").symlink_to(victim)
        with pytest.raises(OSError):
            bank.emplace("k", window(), DISK)
        assert victim.read_text() == "kept"
        assert not (lore / "k.bank").exists()

    @pytest.mark.parametrize(
        "document",
        [
            b"",
            b"[]",
            b"{",
            b'{"contextElements": [1]}',
            b'{"version": -1}',
            b'{"version": true}',
            b'{"version": 99999999999999999999}',
            b'{"loreBookKeys": {"k": {"key": ""}}}',
            b'{"converseHistory": {"history": [{"role": "root", "content": "x"}]}}',
            b'{"contextElements": NaN}',
        ],
    )
    def test_a_damaged_payload_is_an_error_and_stays_as_it_is(self, bank, lore, document):
        (lore / "k.bank").write_bytes(document)
        with pytest.raises(PayloadError):
            bank.get("k")
        assert (lore / "k.bank").read_bytes() == document

    def test_a_delete_removes_payload_before_sidecar(self, tmp_path, lore):
        steps = []
        store = FileBankStore(lore, tmp_path / "todo", on_step=steps.append)
        store.create(KIND, "k", MINE, lambda version: b"{}")
        store.delete(KIND, "k")
        assert steps == ["sidecar", "payload", "payload", "sidecar"]


class TestRollback:
    """Creation that fails after any step leaves nothing, or an enrolment without payload."""

    @pytest.mark.parametrize("failing", ["sidecar", "payload"])
    @pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
    def test_payload_first_sidecar_last(self, tmp_path, lore, failing, error):
        def fail(step):
            if step == failing:
                raise error

        store = FileBankStore(lore, tmp_path / "todo", on_step=fail)
        with pytest.raises(error):
            store.create(KIND, "k", MINE, lambda version: b"{}")
        assert store.head(KIND, "k") == (None, None)
        assert not list(lore.glob(".tmp-*"))

    def test_where_the_payload_cannot_be_removed_the_sidecar_stays(self, tmp_path, lore, monkeypatch):
        def fail(step):
            if step == "payload":
                monkeypatch.setattr("libctx_core.bank.files.remove", refuse)
                raise RuntimeError

        def refuse(path):
            raise PermissionError

        store = FileBankStore(lore, tmp_path / "todo", on_step=fail)
        with pytest.raises(RuntimeError) as error:
            store.create(KIND, "k", MINE, lambda version: b"{}")
        assert "could not be confirmed" in error.value.__notes__[0]
        assert store.head(KIND, "k").metadata == MINE

    def test_a_writer_that_takes_no_lock_is_not_overwritten(self, tmp_path, lore):
        def intrude(step):
            if step == "sidecar":
                (lore / "k.bank").write_text('{"contextElements": ["theirs"]}')

        store = FileBankStore(lore, tmp_path / "todo", on_step=intrude)
        with pytest.raises(ResourceExistsError):
            store.create(KIND, "k", MINE, lambda version: b"{}")
        assert "theirs" in (lore / "k.bank").read_text()
        assert store.head(KIND, "k").metadata == MINE

    @posix
    def test_a_file_system_without_hard_links_will_do(self, tmp_path, lore, monkeypatch):
        def no_links(*arguments, **keywords):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", no_links)
        store = FileBankStore(lore, tmp_path / "todo")
        store.create(KIND, "k", MINE, lambda version: b"{}")
        assert store.head(KIND, "k").metadata == MINE
        with pytest.raises(FileExistsError):
            write_atomically(store.payload_path(KIND, "k"), b"x", exclusive=True)
        assert store.payload_path(KIND, "k").read_bytes() == b"{}"
        monkeypatch.setattr(os, "link", lambda *a, **k: (_ for _ in ()).throw(OSError(errno.EIO, "disk")))
        with pytest.raises(OSError, match="disk"):
            store.create(KIND, "other", MINE, lambda version: b"{}")
        assert store.head(KIND, "other") == (None, None)


class TestLocks:
    @pytest.mark.timeout(20)
    def test_a_file_lock_waits_for_the_other_holder(self, tmp_path):
        path, order = tmp_path / "lock", []
        holding = threading.Event()

        def hold():
            with file_lock(path):
                holding.set()
                order.append("first")
                threading.Event().wait(0.1)
                order.append("first done")

        thread = threading.Thread(target=hold)
        thread.start()
        holding.wait()
        with file_lock(path):
            order.append("second")
        thread.join()
        assert order == ["first", "first done", "second"]


def test_operations_are_named_in_denials(bank, access):
    with access.scope(scope(access)):
        assert denied(bank.delete, "k").operation is Operation.DELETE
