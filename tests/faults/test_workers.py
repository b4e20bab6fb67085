"""Whether the one who leased work is still there: proven dead, or waited for."""

import os
import sys

import pytest

from libctx_core.governor import workers
from libctx_core.testing.processes import Child
from tests.faults import children

linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell when a process started")


def test_a_worker_of_this_process_lives_until_it_is_dismissed():
    name = workers.enlist()
    assert not workers.is_dead(name)
    workers.dismiss(name)
    assert workers.is_dead(name)


def test_two_workers_of_one_process_are_two():
    one, other = workers.enlist(), workers.enlist()
    workers.dismiss(one)
    assert workers.is_dead(one)
    assert not workers.is_dead(other)
    workers.dismiss(other)


@linux
def test_a_worker_lives_as_long_as_its_process():
    with Child(children.enlist_and_wait) as child:
        name = child.hear()
        assert not workers.is_dead(name)
        child.kill()
    assert workers.is_dead(name)


@linux
def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it():
    machine, pid, started, tail = workers.enlist().split("/")
    assert workers.is_dead(f"{machine}/1/999999999999/{tail}")
    assert workers.is_dead(f"{machine}/{pid}/{int(started) - 1}/{tail}")


@pytest.mark.parametrize("name", ["", "somebody", "///", "host/x/1/a", "host/-1/1/a"])
def test_whoever_cannot_be_judged_is_waited_for(name):
    assert not workers.is_dead(name)


def test_a_worker_of_another_machine_is_waited_for():
    rest = workers.enlist().partition("/")[2]
    assert not workers.is_dead(f"another-machine/{rest}")
    assert not workers.is_dead(f"another-machine/{os.getpid()}/1/a")
