"""Every row of the sidecar table: what decodes, and what is refused."""

import json

import pytest

from libctx_core.access import ResourceMetadata, decode_metadata, encode_metadata, lint_ids, metadata_for
from libctx_core.access.kinds import ResourceKinds
from libctx_core.errors import InvalidIdentifierError, InvalidMetadataError, LibctxError

GOOD = {"resourceKind": "CONTEXT_WINDOW", "resourceId": "r", "boundaryId": "b", "schemaVersion": 1}


def encoded(**changes):
    document = {**GOOD, **changes}
    return json.dumps({name: value for name, value in document.items() if value is not ...}).encode()


@pytest.mark.parametrize("boundary", ["b", None, ...])
def test_a_valid_document_decodes(boundary):
    metadata = decode_metadata(encoded(boundaryId=boundary))
    assert metadata == ResourceMetadata("CONTEXT_WINDOW", "r", None if boundary is ... else boundary)


def test_what_is_encoded_decodes_to_the_same():
    for metadata in (ResourceMetadata("TODO_LIST", "ключ \u200b", None), ResourceMetadata("MEMORY", "a", "b")):
        assert decode_metadata(encode_metadata(metadata)) == metadata


def test_the_wire_names_are_the_seeds():
    assert json.loads(encode_metadata(ResourceMetadata("CONTEXT_WINDOW", "r"))) == {
        "resourceKind": "CONTEXT_WINDOW",
        "resourceId": "r",
        "boundaryId": None,
        "schemaVersion": 1,
    }


REFUSED = {
    "empty file": b"",
    "not json": b"not-json",
    "array": b"[]",
    "string": b'"x"',
    "null": b"null",
    "two documents": encoded() + encoded(),
    "byte order mark": b"\xef\xbb\xbf" + encoded(),
    "invalid utf-8": encoded()[:-1] + b"\xff}",
    "utf-16": json.dumps(GOOD).encode("utf-16"),
    "NaN": b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"r","schemaVersion":NaN}',
    "duplicate id": b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"a","resourceId":"victim","schemaVersion":1}',
    "unknown field": encoded(expires="never"),
    "64 KiB and more": encoded(boundaryId="x" * 70_000),
    "10 MB": b" " * 10_000_000 + encoded(),
    "deep nesting": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep list": b"[" * 100_000,
    "version absent": encoded(schemaVersion=...),
    "version null": encoded(schemaVersion=None),
    "version string": encoded(schemaVersion="1"),
    "version true": encoded(schemaVersion=True),
    "version 1.0": b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"r","schemaVersion":1.0}',
    "version 0": encoded(schemaVersion=0),
    "version -1": encoded(schemaVersion=-1),
    "version 2": encoded(schemaVersion=2),
    "version 2^63": encoded(schemaVersion=2**63),
    "version of 5000 digits": b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"r","schemaVersion":1'
    + b"0" * 5000
    + b"}",
    "kind absent": encoded(resourceKind=...),
    "kind null": encoded(resourceKind=None),
    "kind unknown": encoded(resourceKind="SOMETHING"),
    "kind in small letters": encoded(resourceKind="context_window"),
    "kind a list": encoded(resourceKind=["CONTEXT_WINDOW"]),
    "id absent": encoded(resourceId=...),
    "id null": encoded(resourceId=None),
    "id number": encoded(resourceId=7),
    "id empty": encoded(resourceId=""),
    "id blank": encoded(resourceId=" \t\u3000"),
    "id with NUL": encoded(resourceId="a\x00b"),
    "id with lone surrogate": b'{"resourceKind":"CONTEXT_WINDOW","resourceId":"\\ud800","schemaVersion":1}',
    "boundary empty": encoded(boundaryId=""),
    "boundary blank": encoded(boundaryId="  "),
    "boundary object": encoded(boundaryId={}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_is_refused(name):
    with pytest.raises(InvalidMetadataError) as error:
        decode_metadata(REFUSED[name])
    assert "victim" not in str(error.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("CONTEXT_WINDOW", ""),
        ("CONTEXT_WINDOW", " "),
        ("CONTEXT_WINDOW", "r", " "),
        ("CONTEXT_WINDOW", "r", None, 0),
        ("CONTEXT_WINDOW", "r", None, True),
        ("context window", "r"),
        (3, "r"),
    ],
)
def test_metadata_cannot_be_built_wrongly(arguments):
    with pytest.raises((ValueError, LibctxError)):
        ResourceMetadata(*arguments)


def test_t12_a_str_subclass_is_no_identifier():
    class Everything(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    with pytest.raises(InvalidIdentifierError):
        ResourceMetadata("CONTEXT_WINDOW", Everything("x"))


def test_a_newer_version_can_be_described_but_is_not_usable():
    assert not ResourceMetadata("CONTEXT_WINDOW", "r", None, 2).usable


def test_kinds_are_open_and_validated():
    kinds = ResourceKinds()
    kinds.register("CHAT_HISTORY", "CHAT_HISTORY")
    assert "CHAT_HISTORY" in kinds
    assert decode_metadata(encoded(resourceKind="CHAT_HISTORY"), kinds).resource_kind == "CHAT_HISTORY"
    for name in ("chat", "", "1X", "A-B", "Ä", "X" * 65):
        with pytest.raises(InvalidIdentifierError):
            kinds.register(name)
    assert list(kinds)[:2] == ["BANKED_CONTEXT", "CHAT_HISTORY"]


def test_kind_spelling_is_ascii_only():
    kinds = ResourceKinds()
    assert kinds.parse("Context_Window") == "CONTEXT_WINDOW"
    for text in ("context_w\u0131ndow", "todo_li\u017ft", "", "nothing"):
        assert kinds.parse(text) is None


def test_t34_ids_are_compared_exactly_and_linted_on_request():
    assert ResourceMetadata("MEMORY", "\u00e9") != ResourceMetadata("MEMORY", "e\u0301")
    assert ResourceMetadata("MEMORY", "\u200b").resource_id == "\u200b"
    warnings = lint_ids(["plain", "e\u0301", "\u200bx", "Page", "page"])
    assert len(warnings) == 3
    assert lint_ids(["a", "b"]) == ()


def test_default_ids_never_name_two_places():
    assert metadata_for("THREAD", "team", "s1") == ResourceMetadata("THREAD", "thread:team/s1", "team")
    places = [("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("a", "b%2Fc"), ("u1", "0/x"), ("u10", "x")]
    assert len({metadata_for("THREAD", *place).resource_id for place in places}) == len(places)
