"""The permitted set in SQL equals the decision, one owner at a time, whatever is enrolled."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.access import (
    Authority,
    Boundary,
    Contained,
    ContextAccess,
    DenialReason,
    EnforcementMode,
    Operation,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.access.filters import OwnerFilter
from libctx_core.errors import ResourceExistsError
from libctx_core.store.access import ACCESS, PermittedOwners, enrol_owner, metadata_state, unenrol_owner
from libctx_core.store.database import Database
from libctx_core.store.owners import OWNERS, create_owner, find_owner, owner_by_id

IDS = st.sampled_from(["a", "b", "1", "x') OR '1'='1", "%", "_", "*", "a--", 'a"', "\\", "u1", "u10"])
SELECTORS = st.one_of(st.builds(Resource, IDS), st.builds(Boundary, IDS), st.builds(Contained, IDS, IDS))
SETS = st.frozensets(SELECTORS, max_size=4)
OWNER_ROWS = st.lists(st.one_of(st.none(), st.tuples(IDS, st.one_of(st.none(), IDS))), max_size=12)
MODES = st.sampled_from(list(EnforcementMode))


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "library.sqlite")
    database.ensure(OWNERS)
    database.ensure(ACCESS)
    yield database
    database.close()


def add(database, *enrolments, kind="THREAD"):
    def work(connection):
        start = connection.execute("SELECT count(*) FROM owner").get
        return [
            create_owner(
                connection,
                kind,
                "c",
                f"k{start + number}",
                resource_id=None if enrolment is None else enrolment[0],
                boundary_id=None if enrolment is None else enrolment[1],
            ).id
            for number, enrolment in enumerate(enrolments)
        ]

    return database.write(work, durable=False)


def permitted(database, owners, selection, guard=None):
    with database.read() as connection:
        return owners.ids(connection, selection, guard)


def expected(database, selection):
    with database.read() as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM owner ORDER BY id")]
        rows = [owner_by_id(connection, owner) for owner in ids]
    return tuple(row.id for row in rows if selection.admits(metadata_state(row), row.kind))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(OWNER_ROWS, OWNER_ROWS, SETS, SETS, MODES, st.data())
def test_sql_and_decision_agree_also_after_changes(tmp_path, first, second, selectors, layer, mode, data):
    database = Database(":memory:")
    database.ensure(OWNERS)
    database.ensure(ACCESS)
    access = ContextAccess()
    scope = access.issue_root_scope(Principal("p"), Rights(readable_resources=selectors), mode)
    if layer:
        scope = scope.attenuate(Rights(readable_resources=layer), layered=True)
    selection = Authority(access).bound(scope).selection(Operation.READ, "THREAD")
    owners = PermittedOwners()
    ids = add(database, *first)
    assert permitted(database, owners, selection) == expected(database, selection)
    ids += add(database, *second)
    assert permitted(database, owners, selection) == expected(database, selection)
    if ids:
        changed = data.draw(st.sampled_from(ids))
        change = data.draw(st.sampled_from(["delete", "unenrol", "move", "damage"]))
        statements = {
            "delete": "DELETE FROM owner WHERE id = ?",
            "unenrol": "UPDATE owner SET resource_id = NULL, boundary_id = NULL, metadata_version = NULL WHERE id = ?",
            "move": "UPDATE owner SET resource_id = 'a', boundary_id = 'b', metadata_version = 1 WHERE id = ?",
            "damage": "UPDATE owner SET metadata_version = 2, resource_id = 'a' WHERE id = ?",
        }
        database.write(lambda connection: connection.execute(statements[change], (changed,)), durable=False)
        assert permitted(database, owners, selection) == expected(database, selection)
    database.close()


def test_without_a_scope_everything_is_permitted(database, authority):
    add(database, ("a", "b"))
    selection = authority.selection(Operation.READ, "THREAD")
    assert permitted(database, PermittedOwners(), selection) is None
    with database.read() as connection:
        assert PermittedOwners().narrow(connection, [3, 1, 2], selection) == (3, 1, 2)


def test_narrowing_keeps_the_order(database, access, authority):
    ids = add(database, ("a", "w"), ("b", "v"), ("c", "w"), None)
    scope = access.issue_root_scope(Principal("p"), Rights.read_only(Boundary("w")))
    with access.scope(scope), database.read() as connection:
        selection = authority.selection(Operation.READ, "THREAD")
        assert PermittedOwners().narrow(connection, ids[::-1], selection) == (ids[3], ids[2], ids[0])


def test_another_process_is_noticed(tmp_path, access, authority):
    path = tmp_path / "library.sqlite"
    mine, other = Database(path), Database(path)
    for database in (mine, other):
        database.ensure(OWNERS)
        database.ensure(ACCESS)
    (owner,) = add(mine, ("a", "w"))
    owners = PermittedOwners()
    with access.scope(access.issue_root_scope(Principal("p"), Rights.read_only(Boundary("w")))):
        selection = authority.selection(Operation.READ, "THREAD")
    assert permitted(mine, owners, selection) == (owner,)
    moved = ResourceMetadata("THREAD", "a", "elsewhere")
    other.write(lambda connection: enrol_owner(connection, "c", "k0", moved))
    assert permitted(mine, owners, selection) == ()
    mine.close()
    other.close()


def test_a_guard_narrows_enrolled_owners(database, access):
    asked = []

    def guard(question):
        asked.append(len(question.resources))
        return {"b"}

    authority = Authority(access, guard=guard)
    ids = add(database, ("a", "w"), ("b", "w"), None)
    owners = PermittedOwners()
    scope = access.issue_root_scope(Principal("p"), Rights.read_only(Boundary("w")))
    selection = authority.bound(scope).selection(Operation.READ, "THREAD")
    for _ in range(2):
        assert permitted(database, owners, selection, authority.guard) == (ids[0], ids[2])
    assert asked == [2]


def test_enrolling_and_unenrolling_rows(database):
    metadata = ResourceMetadata("MEMORY", "r", "b")
    database.write(lambda connection: enrol_owner(connection, "c", "k", metadata))
    with database.read() as connection:
        assert metadata_state(find_owner(connection, "MEMORY", "c", "k")) == metadata
    with pytest.raises(ResourceExistsError):
        database.write(lambda connection: enrol_owner(connection, "c", "other", metadata, unique=True))
    database.write(lambda connection: enrol_owner(connection, "c", "k", metadata, unique=True))
    assert database.write(lambda connection: unenrol_owner(connection, "MEMORY", "c", "k"))
    assert not database.write(lambda connection: unenrol_owner(connection, "MEMORY", "c", "k"))
    with database.read() as connection:
        assert metadata_state(find_owner(connection, "MEMORY", "c", "k")) is None
    assert metadata_state(None) is None


@pytest.mark.parametrize(
    "columns", ["resource_id = 'r', metadata_version = NULL", "boundary_id = 'b'", "metadata_version = 1"]
)
def test_odd_columns_are_invalid_and_permitted_to_nobody(database, columns):
    (owner,) = add(database, None)
    database.write(lambda connection: connection.execute(f"UPDATE owner SET {columns} WHERE id = ?", (owner,)))
    with database.read() as connection:
        assert metadata_state(owner_by_id(connection, owner)) is DenialReason.INVALID_METADATA
    everything = OwnerFilter(Operation.READ, unenrolled=True)
    assert not everything.admits(DenialReason.INVALID_METADATA, "THREAD")
    access = ContextAccess()
    scope = access.issue_root_scope(Principal("p"), Rights.read_only(Resource("r"), Boundary("b")))
    selection = Authority(access).bound(scope).selection(Operation.READ, "THREAD")
    assert permitted(database, PermittedOwners(), selection) == ()
