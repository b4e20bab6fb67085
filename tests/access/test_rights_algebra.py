"""The algebra of rights: narrowing only, by value, from sets that nobody can change."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.access import Boundary, Contained, Operation, Principal, Resource, Rights
from libctx_core.access.containment import admit, open_questions
from libctx_core.access.rights import SELECTABLE, rights_from_sets
from libctx_core.errors import InvalidIdentifierError, InvalidInputError

IDS = st.sampled_from(["a", "b", "w"])
SELECTORS = st.one_of(
    st.builds(Resource, IDS), st.builds(Boundary, IDS), st.builds(Contained, IDS, st.sampled_from(["w", "v"]))
)
SETS = st.frozensets(SELECTORS, max_size=5)
RIGHTS = st.builds(
    lambda sets, delegable: rights_from_sets(sets, delegable=delegable),
    st.tuples(SETS, SETS, SETS, SETS, SETS),
    st.booleans(),
)
RESOURCES = [(resource, boundary) for resource in ("a", "b", "w", "x") for boundary in (None, "a", "b", "w", "v")]


def granted(rights):
    return {
        (operation, resource, boundary)
        for operation in SELECTABLE
        for resource, boundary in RESOURCES
        if rights.matcher(operation).matches(resource, boundary)
    }


@settings(max_examples=50, deadline=None)
@given(RIGHTS, RIGHTS)
def test_an_intersection_never_grants_more_than_either(first, second):
    met = first.intersect(second)
    assert granted(met) <= granted(first) & granted(second)
    assert met.delegable == (first.delegable and second.delegable)
    assert granted(met) == granted(second.intersect(first))


@settings(max_examples=50, deadline=None)
@given(RIGHTS)
def test_intersecting_with_itself_changes_nothing(rights):
    assert rights.intersect(rights) == rights
    assert granted(rights.intersect(rights_from_sets([rights.selectors(op) for op in SELECTABLE], delegable=True))) == (
        granted(rights)
    )


@settings(max_examples=50, deadline=None)
@given(RIGHTS, RIGHTS)
def test_equal_selectors_survive(first, second):
    met = first.intersect(second)
    for operation in SELECTABLE:
        assert first.selectors(operation) & second.selectors(operation) <= met.selectors(operation)


@settings(max_examples=50, deadline=None)
@given(RIGHTS, RIGHTS, st.sets(st.tuples(st.builds(Resource, IDS), st.builds(Boundary, IDS))), st.booleans())
def test_containment_admits_only_what_was_asked_and_confirmed(ambient, requested, facts, recheck):
    questions = open_questions(ambient, requested)
    confirmed = [(r, b) for r, boundaries in questions.items() for b in boundaries if (r, b) in facts]
    result = admit(ambient, requested, confirmed, recheck=recheck)
    for operation in SELECTABLE:
        for selector in result.selectors(operation) - ambient.intersect(requested).selectors(operation):
            assert type(selector) is (Contained if recheck else Resource)
            resource = Resource(selector.resource_id if recheck else selector.id)
            assert resource in requested.selectors(operation)
            boundaries = {b for b in ambient.selectors(operation) if (resource, b) in facts}
            assert boundaries
            if recheck:
                assert Boundary(selector.boundary_id) in boundaries
        assert not {s for s in result.selectors(operation) if type(s) is Boundary} - ambient.selectors(operation)


def test_t1_a_boundary_and_a_resource_inside_it_do_not_intersect():
    narrowed = Rights.all_on(Boundary("w")).intersect(Rights.all_on(Resource("r")))
    assert granted(narrowed) == set()


def test_t2_resource_and_boundary_of_one_id_are_different():
    assert Resource("x") != Boundary("x")
    assert len({Resource("x"), Boundary("x"), Contained("x", "x")}) == 3
    assert granted(Rights.read_only(Resource("w"))) != granted(Rights.read_only(Boundary("w")))


def test_nothing_is_granted_by_default_and_delegate_never_by_selectors():
    assert granted(Rights()) == set()
    assert not Rights().delegable
    everything = Rights.all_on(Resource("a"), delegable=True)
    assert everything.selectors(Operation.DELEGATE) == frozenset()
    assert not everything.matcher(Operation.DELEGATE).matches("a", None)


def test_helpers():
    assert granted(Rights.read_only(Resource("a"))) == {
        (operation, "a", boundary)
        for operation in (Operation.READ, Operation.ENUMERATE)
        for boundary in (None, "a", "b", "w", "v")
    }
    assert Rights.all_on(Resource("a")).creatable_resources == {Resource("a")}


def test_sets_are_copied_at_construction():
    selectors = {Resource("a")}
    rights = Rights(readable_resources=selectors)
    selectors.add(Boundary("everything"))
    assert rights.readable_resources == {Resource("a")}


def test_rights_are_immutable_and_hashable():
    rights = Rights.read_only(Resource("a"))
    for name in ("delegable", "readable_resources", "_sets", "new"):
        with pytest.raises(AttributeError):
            setattr(rights, name, True)
    assert hash(rights) == hash(Rights.read_only(Resource("a")))
    assert copy.copy(rights) == rights
    assert rights != "rights"
    assert repr(rights) == "Rights(read 1, enumerate 1)"


@pytest.mark.parametrize("values", ["a", b"a", {"a": 1}, 3, None, ["a"], [Principal("a")], [Resource("a"), "b"]])
def test_only_selectors_are_accepted(values):
    with pytest.raises(InvalidInputError):
        Rights(readable_resources=values)


@pytest.mark.parametrize("value", [1, "yes", None])
def test_delegable_is_exactly_a_bool(value):
    with pytest.raises(InvalidInputError):
        Rights(delegable=value)


@pytest.mark.parametrize("build", [Resource, Boundary, Principal])
@pytest.mark.parametrize("value", ["", " ", "\n", 3, None, "a\x00", "\ud800", "x" * 4097])
def test_blank_and_odd_ids_are_refused(build, value):
    with pytest.raises(InvalidIdentifierError):
        build(value)
