"""The public hashes: golden values, and the rules they rest on."""

import json
import unicodedata

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.artifacts import ArtifactRef
from libctx_core.errors import InvalidMemoryCandidateError
from libctx_core.memory import (
    EmbeddingProfile,
    MemoryChange,
    MemoryContent,
    MemoryManifest,
    MemoryManifestEntry,
    canonical_bytes,
    embedding_content_hash,
    entry_content_hash,
    memory_content_hash,
)
from libctx_core.memory.canonical import (
    content_bytes,
    entry_bytes,
    normalise_reason,
    normalise_refs,
    normalise_text,
)
from libctx_core.sources import SourceRef

FIRST = "d7883f2e9f8fb21cc3f9af077fd6aedd86c51bbbc465a8f95a8c4b6c52f67d28"


def content(identity: str) -> SourceRef:
    return SourceRef(source_type="content", source_id=identity)


def test_golden_entry_without_references():
    assert entry_content_hash("fact", "Use SQLite.") == FIRST


def test_golden_entry_with_padding_decomposed_text_and_repeated_references():
    digest = entry_content_hash(
        " decision ",
        "  Cafe\u0301 ",
        [content("b"), content("a"), content("a")],
        [ArtifactRef(family="memory", artifact_id="m", revision=2)],
    )
    assert digest == "1f66445f80b432add1847357ff5f11ac91f6c51da4e8b41857c4a232cab19d16"


def test_golden_embedding():
    profile = EmbeddingProfile(profile_id="p", model="m", dimension=3)
    assert embedding_content_hash(profile, FIRST) == "d39526d63619569953ae4a4156b19491d7bfd8ef5521f590c28079c144297dd7"


def test_golden_empty_memory():
    assert (
        memory_content_hash(MemoryContent(manifest=MemoryManifest()))
        == "7831a6c9aa2430f751a78aec528ce38c1a1502648e0ed87294d0d75b664cbbee"
    )


def test_golden_memory_with_one_entry():
    entry = MemoryManifestEntry(entry_id="e1", entry_version_id="v1", entry_content_hash=FIRST, state="active")
    change = MemoryChange(op="add", entry_id="e1", from_entry_version_id=None, to_entry_version_id="v1")
    value = MemoryContent(manifest=MemoryManifest(entries=(entry,)), changes=(change,))
    assert memory_content_hash(value) == "65580c7d894d863e44aca6664263764ddf1a87b3919008b1fc25e8ae20383a68"


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60).filter(
    lambda text: unicodedata.normalize("NFC", text).strip() != ""
)
kinds = st.sampled_from(["fact", " decision ", "Vorliebe", "注意"])
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=20)
source_refs = st.lists(st.builds(lambda t, i: SourceRef(source_type=t, source_id=i), names, names), max_size=4)
artifact_refs = st.lists(
    st.builds(
        lambda f, i, r: ArtifactRef(family=f, artifact_id=i, revision=r), names, names, st.integers(1, 2**53 - 1)
    ),
    max_size=3,
)


@settings(max_examples=200)
@given(kinds, words, source_refs, artifact_refs)
def test_the_fast_encoding_of_an_entry_is_rfc_8785(kind, text, sources, artifacts):
    plain = {
        "kind": unicodedata.normalize("NFC", kind).strip(),
        "text": unicodedata.normalize("NFC", text).strip(),
        "source_refs": [ref.model_dump() for ref in normalise_refs(sources)],
        "artifact_refs": [ref.model_dump() for ref in normalise_refs(artifacts)],
    }
    assert entry_bytes(kind, text, sources, artifacts) == canonical_bytes(plain)


identifiers = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1, max_size=12)


@settings(max_examples=100)
@given(st.lists(st.tuples(identifiers, identifiers, st.booleans(), words | st.none()), max_size=6))
def test_the_fast_encoding_of_a_revision_is_rfc_8785(rows):
    entries = tuple(
        MemoryManifestEntry(
            entry_id=entry, entry_version_id=version, entry_content_hash=FIRST, state="active" if up else "inactive"
        )
        for entry, version, up, _ in rows
    )
    changes = tuple(
        MemoryChange(
            op="add",
            entry_id=entry,
            from_entry_version_id=None,
            to_entry_version_id=version,
            reason=normalise_reason(reason),
        )
        for entry, version, _, reason in rows
    )
    value = MemoryContent(manifest=MemoryManifest(entries=entries), changes=changes)
    plain = json.loads(value.model_dump_json(by_alias=True))
    assert content_bytes(value) == rfc8785.dumps(plain)


@given(words)
def test_identity_does_not_depend_on_unicode_form_or_padding(text):
    decomposed = unicodedata.normalize("NFD", text)
    assert entry_content_hash("fact", f" {decomposed}\n") == entry_content_hash("fact", text)


@given(source_refs)
def test_references_are_a_sorted_set(refs):
    once = normalise_refs(refs)
    assert set(once) == set(refs)
    assert normalise_refs([*reversed(refs), *refs]) == once


def test_keys_that_collide_after_normalisation_are_refused():
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        canonical_bytes({"\u00e9": 1, "e\u0301": 2})
    assert caught.value.code == "canonical"


def test_what_is_not_json_is_a_type_error():
    with pytest.raises(TypeError):
        canonical_bytes({"value": object()})
    with pytest.raises(InvalidMemoryCandidateError):
        canonical_bytes(float("nan"))


def test_text_is_limited_in_bytes_after_normalisation():
    assert normalise_text("é" * 4096)
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        normalise_text("é" * 4097)
    assert "8194 bytes" in str(caught.value)
    assert normalise_text("x" * 8192 + "   ")


@pytest.mark.parametrize("text", ["", "  \n", "a\x00b", "\ud800"])
def test_text_that_cannot_be_an_entry(text):
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        normalise_text(text)
    assert caught.value.code == "canonical"


def test_reasons_count_code_points_and_blank_is_none():
    assert normalise_reason("  ") is None
    assert normalise_reason("é" * 512) == "é" * 512
    with pytest.raises(InvalidMemoryCandidateError):
        normalise_reason("e" * 513)
