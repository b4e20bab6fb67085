"""The part of the storage suite about events: stored once, all or nothing, in order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from libctx_core.errors import EventConflictError, StoreClosedError
from libctx_core.store import events
from libctx_core.testing.storage_log import StorageTests, draft


class EventTests(StorageTests):
    """An acknowledged event is there, once, with its outbox row."""

    def test_an_event_stored_twice_is_stored_once(self, tmp_path: Path) -> None:
        """Same id, role and content return the stored event and queue no second work."""
        log = self.open_log(tmp_path / "store")
        first, again = (log.append("s", ("e1", "hello"))[0] for _ in range(2))
        assert again == first
        assert log.events("s") == [first]
        assert log.pending() == 1
        log.close()

    @pytest.mark.parametrize(("content", "role"), [("other", "user"), ("hello", "assistant")])
    def test_an_id_used_for_something_else_is_refused(self, tmp_path: Path, content: str, role: Any) -> None:
        """The whole call writes nothing, the innocent event before the conflict included."""
        log = self.open_log(tmp_path / "store")
        stored = log.append("s", ("e1", "hello"))
        with pytest.raises(EventConflictError) as caught:
            log.append("s", ("e2", "innocent"), ("e1", content), role=role)
        assert caught.value.event_id == "e1"
        assert log.events("s") == stored
        assert log.pending() == 1
        log.close()

    def test_one_id_may_name_an_event_in_each_thread(self, tmp_path: Path) -> None:
        """Ids are unique within a thread; the library-wide ones differ."""
        log = self.open_log(tmp_path / "store")
        left, right = log.append("left", ("e1", "hello"))[0], log.append("right", ("e1", "good bye"))[0]
        assert left.uid != right.uid
        assert [event.content for event in log.events("left")] == ["hello"]
        log.close()

    def test_library_wide_ids_never_come_back(self, tmp_path: Path) -> None:
        """A recall id seen before a thread was deleted must not open an event stored after."""
        log = self.open_log(tmp_path / "store")
        log.append("stays", ("e1", "hello"))
        gone = {event.uid for event in log.append("goes", ("e1", "secret"), ("e2", "another"))}
        log.delete("goes")
        assert not gone & {event.uid for event in log.append("stays", ("e2", "later"), ("e3", "later still"))}
        log.close()

    def test_sequences_have_no_gaps(self, tmp_path: Path) -> None:
        """Neither a refused event nor a failed transaction uses up a place."""
        log = self.open_log(tmp_path / "store")
        log.append("s", ("e1", "a"), ("e2", "b"))
        with pytest.raises(EventConflictError):
            log.append("s", ("e3", "c"), ("e1", "not a"))
        log.append("s", ("e3", "c"))
        assert [(event.sequence, event.event_id) for event in log.events("s")] == [(1, "e1"), (2, "e2"), (3, "e3")]
        log.close()

    def test_running_totals_add_up(self, tmp_path: Path) -> None:
        """Each event carries the tokens of the thread up to and including it."""
        log = self.open_log(tmp_path / "store")
        log.append("s", ("e1", "abc"), ("e2", "de"))
        log.append("s", ("e3", "f"))
        assert [event.running_total for event in log.events("s")] == [3, 5, 6]
        log.close()

    def test_a_failed_transaction_leaves_nothing(self, tmp_path: Path) -> None:
        """Events and outbox rows written before the error are gone; the error is the caller's own."""
        log = self.open_log(tmp_path / "store")
        thread = log.thread("s")

        class OwnError(Exception):
            pass

        def work(connection: Any) -> None:
            events.append(connection, thread, [draft("e1", "hello")])
            raise OwnError

        with pytest.raises(OwnError):
            log.storage.write(work)
        assert log.events("s") == []
        assert log.pending() == 0
        assert [event.sequence for event in log.append("s", ("e1", "hello"))] == [1]
        log.close()

    def test_a_failure_reaches_the_caller_whose_work_failed_only(self, tmp_path: Path) -> None:
        """Writers that share a commit are strangers to each other's errors."""
        log = self.open_log(tmp_path / "store")
        log.append("s", ("taken", "first"))
        start = threading.Barrier(8)

        def write(worker: int) -> list[str]:
            start.wait()
            failed = []
            for number in range(20):
                if number % 4 == 3:
                    with pytest.raises(EventConflictError):
                        log.append("s", (f"{worker}-{number}", "undone"), ("taken", "second"))
                    failed.append(f"{worker}-{number}")
                else:
                    log.append("s", (f"{worker}-{number}", "kept"))
            return failed

        with ThreadPoolExecutor(8) as pool:
            undone = {event_id for ids in pool.map(write, range(8)) for event_id in ids}
        stored = [event.event_id for event in log.events("s")]
        assert len(stored) == len(set(stored)) == 1 + 8 * 15
        assert not undone & set(stored)
        log.close()

    def test_many_threads_keep_their_own_order(self, tmp_path: Path) -> None:
        """All writes are there, each writer's in the order it made them, places without gaps."""
        log = self.open_log(tmp_path / "store")

        def write(worker: int) -> None:
            for number in range(25):
                log.append("s", (f"{worker}-{number}", f"{number}"))

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(write, range(16)))
        stored = log.events("s")
        assert [event.sequence for event in stored] == list(range(1, 401))
        for worker in range(16):
            own = [event.content for event in stored if event.event_id.startswith(f"{worker}-")]
            assert own == [str(number) for number in range(25)]
        log.close()

    def test_the_same_event_from_many_threads_is_stored_once(self, tmp_path: Path) -> None:
        """A retry that overtakes the first try is no second event."""
        log = self.open_log(tmp_path / "store")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: log.append("s", ("e1", "hello"))[0], range(32)))
        assert {event.uid for event in found} == {log.events("s")[0].uid}
        assert len(log.events("s")) == log.pending() == 1
        log.close()

    def test_a_snapshot_does_not_move(self, tmp_path: Path) -> None:
        """All statements of one read see the store as of its first."""
        log = self.open_log(tmp_path / "store")
        log.append("s", ("e1", "hello"))
        thread = log.thread("s")
        with log.storage.read() as connection:
            before = events.after(connection, thread, 0, 10)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(log.append, "s", ("e2", "later")).result()
            assert events.after(connection, thread, 0, 10) == before
        assert len(log.events("s")) == 2
        log.close()

    def test_another_store_on_the_same_path_sees_what_was_acknowledged(self, tmp_path: Path) -> None:
        """At once, and after both were closed."""
        one, other = self.open_log(tmp_path / "store"), self.open_log(tmp_path / "store")
        stored = one.append("s", ("e1", "hello"))
        assert other.events("s") == stored
        one.close()
        stored += other.append("s", ("e2", "again"))
        other.close()
        reopened = self.open_log(tmp_path / "store")
        assert reopened.events("s") == stored
        assert reopened.pending() == 2
        reopened.close()

    def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        """Reading and writing raise the library's error; closing again is harmless."""
        log = self.open_log(tmp_path / "store")
        log.close()
        log.close()
        with pytest.raises(StoreClosedError):
            log.append("s", ("e1", "hello"))
        with pytest.raises(StoreClosedError):
            log.events("s")
