"""A turn is noted before anybody can find its event."""

import threading

import pytest
from langchain_core.messages import HumanMessage
from langchain_libctx.turns import OpenTurns, begin_turn, caller

from libctx_core import LibraryOfContext


class Interrupted:
    """A governor in whose `record_many` another caller asks, right after the event is stored."""

    def __init__(self, governor, meanwhile):
        self._governor = governor
        self._meanwhile = meanwhile

    def __getattr__(self, name):
        return getattr(self._governor, name)

    def record_many(self, events):
        stored = self._governor.record_many(events)
        other = threading.Thread(target=self._meanwhile)
        other.start()
        other.join()
        return stored


def test_a_question_asked_between_storing_and_returning_is_a_second_turn():
    with LibraryOfContext(":memory:", plugins=[]) as library:
        governor, turns, said = library.open_context_governor("s"), OpenTurns(), HumanMessage("same")
        found = []
        interrupted = Interrupted(governor, lambda: found.append(begin_turn(governor, said, turns, caller())))
        first = begin_turn(interrupted, said, turns, caller())
        assert first.event_id != found[0].event_id
        assert len(list(governor.history())) == 2


def test_a_turn_that_could_not_be_stored_waits_for_nothing():
    class Broken:
        key = None

        def history(self, limit):
            return []

        def record_many(self, events):
            raise ConnectionError("no disk")

    with LibraryOfContext(":memory:", plugins=[]) as library:
        broken, turns = Broken(), OpenTurns()
        broken.key = library.open_context_governor("s").key
        with pytest.raises(ConnectionError):
            begin_turn(broken, HumanMessage("same"), turns, caller())
        assert turns.waiting("s", "same", caller()) is None
