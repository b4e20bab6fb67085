"""Physical deletion: nothing of the text is left in the file, a tombstone is."""

from pathlib import Path

import pytest

from libctx_core.errors import ArtifactNotFoundError, MemoryEntryPurgedError
from libctx_core.memory import Proposal
from libctx_core.sources import SourceRef

SECRET = "xylophone-quartz-8841"


def bytes_on_disk(tmp_path: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir()) if path.is_file())


@pytest.fixture
def purged(memories, tmp_path):
    memories.remember_many(Proposal(kind="fact", text=f"Harmless entry {at}.") for at in range(50))
    done = memories.remember(
        f"The code is {SECRET}.", reason=f"because {SECRET}", tags=[SECRET], metadata={"code": SECRET},
        sources=[SourceRef(source_type="event", source_id="e1")], speaker="Anna",
    )  # fmt: skip
    memories.revise(done.citations[0].entry_id, f"The code was {SECRET}.")
    memories.flush()
    assert SECRET.encode() in bytes_on_disk(tmp_path)
    return done.citations[0]


def test_no_byte_of_the_text_stays(memories, tmp_path, purged):
    before = [memories.content_hash(number) for number in range(1, 4)]
    manifests = [memories.revision(number).content.manifest for number in range(1, 4)]
    receipt = memories.purge(purged.entry_id)
    assert (receipt.entries, receipt.versions, receipt.log_truncated) == ((purged.entry_id,), 2, True)
    assert SECRET.encode() not in bytes_on_disk(tmp_path)
    for part in (b"xylophon", b"quartz"):
        assert part not in bytes_on_disk(tmp_path)
    assert [memories.content_hash(number) for number in range(1, 4)] == before
    assert [memories.revision(number).content.manifest for number in range(1, 4)] == manifests


def test_the_tombstone(memories, purged):
    receipt = memories.purge(purged.entry_id)
    assert receipt.memory_ref.revision == 4
    (change,) = memories.head().content.changes
    assert (change.op, change.reason) == ("deactivate", "purge")
    view = memories.entry(purged.entry_id)
    assert (view.purged, view.text, view.kind, view.state, view.tags) == (True, "", "", "inactive", ())
    for call in (
        lambda: memories.cite(purged),
        lambda: memories.reactivate(purged.entry_id),
        lambda: memories.revise(purged.entry_id, "back"),
    ):
        with pytest.raises(MemoryEntryPurgedError):
            call()
    assert all(hit.entry_id != purged.entry_id for hit in memories.search(SECRET, limit=100).hits)
    assert [version.text for version in memories.history(purged.entry_id)] == ["", ""]
    assert memories.diff(0).redacted == (2,)


def test_purging_twice_changes_nothing_more(memories, purged):
    first = memories.purge(purged.entry_id)
    again = memories.purge(purged.entry_id)
    assert again.memory_ref == first.memory_ref
    assert again.versions == 0


def test_an_equal_entry_can_be_remembered_afterwards(memories, purged):
    memories.purge(purged.entry_id)
    assert memories.remember(f"The code was {SECRET}.").written == 1


def test_a_forgotten_entry_is_purged_without_a_new_revision(memories, purged):
    memories.forget(purged.entry_id)
    assert memories.purge(purged.entry_id).memory_ref.revision == 4


def test_derived_entries_follow_their_source(memories, purged):
    source = SourceRef(source_type="event", source_id="e1")
    assert memories.derived_from([source]) == {"memory": (purged.entry_id,)}
    assert memories.purge_derived([source])["memory"].entries == (purged.entry_id,)
    assert memories.derived_from([source]) == {}


def test_a_whole_memory(memories, tmp_path, purged):
    receipt = memories.delete()
    assert (receipt.memory_ref, len(receipt.entries), receipt.versions) == (None, 51, 52)
    assert memories.names() == ()
    for part in (SECRET.encode(), b"Harmless", b"harmless"):
        assert part not in bytes_on_disk(tmp_path)
    with pytest.raises(ArtifactNotFoundError):
        memories.head()
    with pytest.raises(ArtifactNotFoundError):
        memories.delete()
    assert memories.remember("Anew.").memory_ref.revision == 1


def test_another_entry_that_does_not_exist_stops_the_whole_purge(memories, purged):
    with pytest.raises(LookupError):
        memories.purge(purged.entry_id, "nobody")
    assert memories.cite(purged)
