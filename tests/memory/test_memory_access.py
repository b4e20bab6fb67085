"""A memory is a resource: no scope reads, writes, lists, counts or searches another's."""

import pytest

from libctx_core.access import ContextAccess, Principal, Resource, Rights
from libctx_core.access.authority import Authority
from libctx_core.errors import ContextAccessDenied
from libctx_core.sources import AuthorityGuard
from libctx_core.store.owners import MEMORY, find_owner

MINE, THEIRS = "memory:team/mine", "memory:team/theirs"


@pytest.fixture
def access():
    return ContextAccess()


@pytest.fixture
def guarded(database, open_memories, access):
    memories = open_memories(database, guard=AuthorityGuard(Authority(access)))
    owner = access.issue_root_scope(Principal("owner"), Rights.all_on(Resource(MINE), Resource(THEIRS)))
    with access.scope(owner):
        memories.remember("Our deploys happen on Friday.", memory="mine")
        memories.remember("Their deploys happen on Monday.", memory="theirs")
    return memories


def reader(access, rights: Rights):
    return access.scope(access.issue_root_scope(Principal("reader"), rights))


def test_a_memory_made_under_a_scope_is_enrolled_in_the_same_transaction(database, guarded):
    with database.read() as connection:
        owner = find_owner(connection, MEMORY, "team", "mine")
    assert (owner.resource_id, owner.boundary_id) == (MINE, "team")


def test_only_permitted_memories_are_listed_and_searched(guarded, access):
    with reader(access, Rights.all_on(Resource(MINE))):
        assert guarded.names() == ("mine",)
        assert [hit.text for hit in guarded.search("when are deploys?", limit=10).hits] == [
            "Our deploys happen on Friday."
        ]


def test_every_operation_on_another_memory_is_denied(guarded, access):
    entry = guarded.entries(memory="theirs")[0]
    head = guarded.head(memory="theirs").as_ref()
    with reader(access, Rights.all_on(Resource(MINE))):
        for call in (
            lambda: guarded.remember("x", memory="theirs"),
            lambda: guarded.revise(entry.entry_id, "x", memory="theirs"),
            lambda: guarded.forget(entry.entry_id, memory="theirs"),
            lambda: guarded.tag(entry.entry_id, add=["x"], memory="theirs"),
            lambda: guarded.organize(memory="theirs"),
            lambda: guarded.purge(entry.entry_id, memory="theirs"),
            lambda: guarded.delete(memory="theirs"),
            lambda: guarded.head(memory="theirs"),
            lambda: guarded.revision(head.revision, memory="theirs"),
            lambda: guarded.entries(memory="theirs"),
            lambda: guarded.entry(entry.entry_id, memory="theirs"),
            lambda: guarded.history(entry.entry_id, memory="theirs"),
            lambda: guarded.changes(memory="theirs"),
            lambda: guarded.diff(0, memory="theirs"),
            lambda: guarded.status(memory="theirs"),
            lambda: guarded.content_hash(1, memory="theirs"),
            lambda: guarded.search("deploys", memories=["theirs"]),
            lambda: guarded.cite(entry.citation),
            lambda: guarded.remember("x", memory="new"),
        ):
            with pytest.raises(ContextAccessDenied):
                call()
    assert guarded.names() == ("mine", "theirs")
    assert guarded.entries(memory="theirs") == (entry,)


def test_reading_does_not_mean_writing(guarded, access):
    with reader(access, Rights.read_only(Resource(MINE))):
        entry = guarded.entries(memory="mine")[0]
        assert guarded.search("deploys", memories=["mine"]).hits
        for call in (
            lambda: guarded.remember("x", memory="mine"),
            lambda: guarded.purge(entry.entry_id, memory="mine"),
        ):
            with pytest.raises(ContextAccessDenied):
                call()
    assert guarded.head(memory="mine").revision == 1


async def test_the_service_is_under_the_same_authority(guarded, access):
    head = guarded.head(memory="theirs")
    service = guarded.service()
    with reader(access, Rights.all_on(Resource(MINE))):
        for call in (
            lambda: service.get(head),
            lambda: service.head("theirs"),
            lambda: service.forget(head, entries=[]),
            lambda: service.search("deploys", memories=[head]),
        ):
            with pytest.raises(ContextAccessDenied):
                await call()


def test_derived_entries_of_unreadable_memories_are_not_named(guarded, access):
    from libctx_core.sources import SourceRef

    source = SourceRef(source_type="event", source_id="e1")
    guarded.remember("Secret.", memory="theirs", sources=[source])
    with reader(access, Rights.all_on(Resource(MINE))):
        assert guarded.derived_from([source]) == {}
