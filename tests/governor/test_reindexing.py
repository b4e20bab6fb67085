"""Embedding and indexing again: with another embedder, after a failure, and without losing anything."""

import numpy as np
import pytest

from libctx_core import LibraryOfContext
from libctx_core.store.owners import VECTOR_COLLECTION, get_or_create_owner
from libctx_core.store.records import RecordInput
from libctx_core.store.vectors import vector_state


class Letters:
    """How often each letter occurs."""

    profile_id = "letters-1"
    dimension = 26

    def embed_documents(self, texts, /):
        rows = np.array([[text.casefold().count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)
        lengths = np.linalg.norm(rows.reshape(-1, 26), axis=1, keepdims=True)
        return np.divide(rows.reshape(-1, 26), lengths, out=rows.reshape(-1, 26), where=lengths > 0)

    def embed_query(self, text, /):
        return self.embed_documents([text])[0]


@pytest.fixture
def path(tmp_path):
    """A library with threads, a shelf, an amended, a redacted and a forgotten record."""
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path) as library:
        for session in ("one", "two"):
            governor = library.open_context_governor(session)
            governor.record_many(
                {"role": "user", "content": f"In {session} we saw {n} herons near lock {n * 7}.", "speaker": "Ada"}
                for n in range(300)
            )
            governor.record("user", "The hull is blue.", event_id="hull")
            governor.amend("hull", "The hull is painted steel blue.")
            governor.record("user", "The code is 4719.", event_id="code")
            assert governor.flush(60)
            governor.redact("code")
        library.shelve("The office opens at eight.", book_id="office")
        library.forget(library.shelve("This was a mistake."))
        assert library.flush(60)
    return path


QUESTIONS = ("How is the hull painted?", "herons near lock 84", "When does the office open?")


def answers(library):
    return {
        question: [
            (hit.record_id, hit.text, round(hit.score, 4)) for hit in library.consult(question, 20, everything=True)
        ]
        for question in QUESTIONS
    }


def test_the_same_embedder_finds_the_same(path):
    with LibraryOfContext(path) as library:
        before = answers(library)
        seen = []
        count = library.reindex(lambda done, total: seen.append((done, total)))
        after = answers(library)
        # what a removed record once had in common with others is no longer in the index
        assert [hits[0][:2] for hits in after.values()] == [hits[0][:2] for hits in before.values()]
        library.reindex()
        assert answers(library) == after
    assert count == seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


def test_another_embedder_takes_over(path):
    with LibraryOfContext(path, embedder=Letters()) as library:
        library.reindex()
        hits = library.consult("How is the hull painted?", 3, everything=True)
        assert "steel blue" in hits[0].text
        assert "vector" in {channel for hit in hits for channel in hit.matched_by}
        governor = library.open_context_governor("one")
        governor.record("user", "One more heron.")
        assert governor.flush(30)
        assert not governor.status().quarantined
    with LibraryOfContext(path, read_only=True) as library, library.database.read() as connection:
        profiles = {profile for (profile,) in connection.execute("SELECT profile FROM vector_profile")}
    assert profiles == {"letters-1"}


def test_what_was_removed_stays_removed(path):
    with LibraryOfContext(path) as library:
        library.reindex()
        for question in ("What is the code?", "a mistake"):
            texts = [hit.text for hit in library.consult(question, 700, everything=True)]
            assert not any("4719" in text or "mistake" in text for text in texts)
        assert not any("is blue" in hit.text for hit in library.consult("hull", 700, everything=True))


def test_it_goes_on_where_it_failed(path):
    with LibraryOfContext(path) as library:
        library.reindex()
        expected = answers(library)

        def stop(done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            library.reindex(stop)
    with LibraryOfContext(path) as library:
        library.reindex()
        assert answers(library) == expected


def test_the_library_stays_in_use_meanwhile(path):
    with LibraryOfContext(path) as library:
        governor = library.open_context_governor("one")

        def say(done, total):
            governor.prepare(f"Said at {done}.", event_id=f"said-{done}")

        library.reindex(say)
        assert governor.flush(30)
        assert "Said at" in governor.recall("What was said at 256?", 1)[0].text


def test_vectors_that_others_made_are_left_alone(path):
    with LibraryOfContext(path) as library:

        def add(connection):
            owner = get_or_create_owner(connection, VECTOR_COLLECTION, "default", "nodes").id
            record = RecordInput(key="n1", kind="node", text="a node about tides")
            library.index.add(connection, owner, [record], np.eye(1, 3, dtype=np.float32), profile="theirs")
            return owner

        owner = library.database.write(add)
        library.reindex()
        with library.database.read() as connection:
            state = vector_state(connection, owner)
        assert (state.profile, state.dimension, state.count) == ("theirs", 3, 1)


def test_without_an_embedder_words_are_indexed_and_vectors_stay(path):
    with LibraryOfContext(path, embedder=False) as library:
        with library.database.read() as connection:
            before = connection.execute("SELECT count(*) FROM vector").get
        library.reindex()
        with library.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM vector").get == before > 0


def test_memories_are_made_again_too(path):
    with LibraryOfContext(path) as library:
        library.memory.remember("The mooring costs 38 euros a week.", kind="fact")
        assert library.memory.search("What does the mooring cost?").hits
    with LibraryOfContext(path, embedder=Letters()) as library:
        library.reindex()
        (hit, *_) = library.memory.search("What does the mooring cost?").hits
        assert "38 euros" in hit.text
        with library.database.read() as connection:
            profiles = {profile for (profile,) in connection.execute("SELECT profile FROM vector_profile")}
    assert profiles == {"letters-1"}
