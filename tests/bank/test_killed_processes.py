"""Real processes killed at any line: a payload that survives is enrolled, or it does not survive."""

import os
import random
import signal
import sys
import threading
import time

import pytest

from libctx_core.access import Authority, Boundary, ContextAccess, ContextAccessDenied, ResourceMetadata, Rights
from libctx_core.bank import ContextBank, FileBankStore, StorageMode
from libctx_core.bank.codec import WINDOW
from libctx_core.errors import LibctxError, ResourceExistsError
from libctx_core.errors.bank import VersionConflictError
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database
from tests.bank.helpers import KIND, LEGACY, MINE, THEIRS, scope, window

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SAMPLES = 10


def open_store(kind, directory):
    if kind == "files":
        return FileBankStore(directory / "lore", directory / "todo")
    return BankStore(Database(directory / "library.sqlite", durability="normal"))


def document(text):
    return lambda version: WINDOW.encode(window(text))


def create(store):
    store.create(KIND, "k", MINE, document("mine"))


def delete(store):
    store.delete(KIND, "k")


def replace(store):
    store.write(KIND, "k", document("newer"))


def enrol(store):
    store.put_metadata("k", MINE)


def in_child(work):
    """Run `work` in a child process; return its exit status, negative for the signal that killed it."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def killed_at(line, kind, directory, action):
    """Perform an action in a child that kills itself before the given line of this library runs."""

    def work():
        store = open_store(kind, directory)
        remaining = line

        def trace(frame, event, argument):
            nonlocal remaining
            if "libctx_core" not in frame.f_code.co_filename:
                return None
            if event == "line":
                remaining -= 1
                if remaining < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        threading.settrace(trace)
        action(store)

    return in_child(work)


def lines_of(kind, directory, prepare, action):
    """Return how many lines of this library an action runs."""
    place = directory / "probe"
    place.mkdir()
    store = open_store(kind, place)
    prepare(store)
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if "libctx_core" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        action(store)
    finally:
        sys.settrace(previous)
    return lines


def nothing(store):
    """Leave the store empty."""


ACTIONS = {
    "create": (nothing, create),
    "delete": (create, delete),
    "replace": (create, replace),
    "enrol": (create, enrol),
}


def check(kind, tmp_path, action, points):
    prepare, act = ACTIONS[action]
    outcomes = set()
    for number, line in enumerate(points):
        place = tmp_path / f"kill{number}"
        place.mkdir()
        assert in_child(lambda place=place: prepare(open_store(kind, place))) == 0
        assert killed_at(line, kind, place, act) in {0, -signal.SIGKILL}
        store = open_store(kind, place)
        metadata, stamp = store.head(KIND, "k")
        page = store.read(KIND, "k")
        outcomes.add((metadata is None, stamp is None))
        if page is not None:
            assert metadata == MINE, f"{action} killed before line {line} left a payload with {metadata}"
            assert WINDOW.decode(page.document).context_elements in (["mine"], ["newer"])
        if action in {"replace", "enrol"}:
            assert page is not None
        bank = ContextBank(store, Authority(ContextAccess()))
        stranger = scope(bank.authority.access, Rights.all_on(Boundary("elsewhere")), LEGACY)
        try:
            seen = bank.scoped(stranger).get("k")
        except ContextAccessDenied:
            seen = window()
        assert seen.is_empty()
        bank.close()
    return outcomes


@pytest.mark.parametrize("kind", ["files", "sqlite"])
@pytest.mark.parametrize("action", ACTIONS)
def test_no_kill_leaves_a_readable_unenrolled_payload(kind, action, tmp_path):
    prepare, act = ACTIONS[action]
    total = lines_of(kind, tmp_path, prepare, act)
    assert total > SAMPLES
    points = sorted(random.Random(action).sample(range(total), SAMPLES))
    outcomes = check(kind, tmp_path, action, [*points, total * 2])
    if action == "create":
        assert (False, False) in outcomes


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["files", "sqlite"])
@pytest.mark.parametrize("action", ACTIONS)
def test_no_kill_at_any_line_leaves_a_readable_unenrolled_payload(kind, action, tmp_path):
    prepare, act = ACTIONS[action]
    total = lines_of(kind, tmp_path, prepare, act)
    check(kind, tmp_path, action, range(total + 1))


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_of_two_processes_one_creates(kind, tmp_path):
    open_store(kind, tmp_path)
    begin = time.monotonic() + 0.3
    pids = []
    for number in range(4):
        process = os.fork()
        if process == 0:
            status = 2
            try:
                store = open_store(kind, tmp_path)
                time.sleep(max(0, begin - time.monotonic()))
                store.create(KIND, "k", ResourceMetadata(KIND, f"r{number}"), document(f"r{number}"))
                status = 0
            except ResourceExistsError:
                status = 1
            finally:
                os._exit(status)
        pids.append(process)
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in pids]
    assert sorted(codes) == [0, 1, 1, 1]
    winner = f"r{codes.index(0)}"
    page = open_store(kind, tmp_path).read(KIND, "k")
    assert page.metadata == ResourceMetadata(KIND, winner)
    assert WINDOW.decode(page.document).context_elements == [winner]


def race(kind, directory, role, seed):
    """Create, read, change and delete one key under one's own scope; never see another's content."""
    access = ContextAccess()
    bank = ContextBank(open_store(kind, directory), Authority(access))
    metadata = {"mine": MINE, "theirs": THEIRS}[role]
    own = scope(access, Rights.all_on(Boundary(metadata.boundary_id)))
    chance = random.Random(seed)
    with access.scope(own):
        for _ in range(40):
            try:
                action = chance.choice(["create", "read", "change", "delete", "list"])
                if action == "create":
                    bank.create_context_window("k", metadata, window(role), StorageMode.MEMORY_AND_DISK)
                elif action == "read":
                    elements = bank.get("k").context_elements
                    assert not elements or set(elements) == {role}
                elif action == "change":
                    bank.append_element("k", role)
                elif action == "delete":
                    bank.delete("k")
                else:
                    bank.page_keys()
            except (ContextAccessDenied, ResourceExistsError, VersionConflictError):
                continue


@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_racing_processes_of_two_tenants_never_mix(kind, tmp_path):
    open_store(kind, tmp_path)
    pids = []
    for number, role in enumerate(["mine", "theirs", "mine", "theirs"]):
        process = os.fork()
        if process == 0:
            status = 1
            try:
                race(kind, tmp_path, role, number)
                status = 0
            except LibctxError:
                status = 3
            finally:
                os._exit(status)
        pids.append(process)
    codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in pids]
    assert codes == [0, 0, 0, 0]
    store = open_store(kind, tmp_path)
    page = store.read(KIND, "k")
    if page is not None:
        owner = "mine" if page.metadata == MINE else "theirs"
        assert set(WINDOW.decode(page.document).context_elements) == {owner}
