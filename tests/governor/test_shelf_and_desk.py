"""Books, documents, promotion, and the desk on its own."""

import time

import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import RecordNotFoundError
from libctx_core.governor.shelf import chunks
from libctx_core.plugins import hookimpl
from libctx_core.search.vectors import VectorIndex


def test_a_book_reaches_every_thread_of_its_collection_and_no_other(library) -> None:
    book = library.shelve("The ferry to the island leaves at 06:40.", title="ferry")
    other = library.open_context_governor("x", collection="elsewhere", token_budget=600)
    mine = library.open_context_governor("y", token_budget=600)
    assert "06:40" in str(mine.prepare("When does the ferry to the island leave?").messages)
    assert "06:40" not in str(other.prepare("When does the ferry to the island leave?").messages)
    library.forget(book)
    assert library.consult("ferry to the island") == []
    with pytest.raises(RecordNotFoundError):
        library.forget(book)


def test_other_sessions_are_read_only_when_asked(library) -> None:
    ada = library.open_context_governor("ada-1", owner="ada", token_budget=600)
    ada.record("user", "My passport number is P-5521.")
    ada.flush()
    question = "What is my passport number?"
    plain = library.open_context_governor("ada-2", owner="ada", token_budget=600)
    assert "P-5521" not in str(plain.prepare(question).messages)
    wide = library.open_context_governor("ada-3", owner="ada", token_budget=600, reach="owner")
    assert "P-5521" in str(wide.prepare(question).messages)
    bob = library.open_context_governor("bob-1", owner="bob", token_budget=600, reach="owner")
    assert "P-5521" not in str(bob.prepare(question).messages)


def test_a_promoted_event_is_found_by_other_threads_with_its_place(library) -> None:
    one = library.open_context_governor("one", token_budget=600)
    event = one.record("user", "We decided on PostgreSQL for billing.", speaker="Ada")
    library.promote("one", event.event_id)
    hit = library.consult("Which database for billing?")[0]
    assert "PostgreSQL" in hit.text
    assert hit.speaker == "Ada"
    assert "one#1" in hit.citation


def test_team_books_are_routed_by_name(library) -> None:
    library.shelve("The team ritual is cake on Fridays.", team="kitchen")
    question = "What is the team ritual?"
    assert library.consult(question) == []
    assert "cake" in library.consult(question, teams=["kitchen"])[0].text


def test_a_document_is_replaced_whole_and_cut_at_its_seams(library) -> None:
    long = "\n\n".join(f"Paragraph {number} tells of lanterns. " + "More words follow. " * 20 for number in range(12))
    records = library.shelve_document(long, document_id="doc")
    assert len(records) > 3
    library.shelve_document("Only this is left, about umbrellas.", document_id="doc")
    assert [hit.text for hit in library.consult("lanterns and umbrellas", k=20)] == [
        "Only this is left, about umbrellas."
    ]
    assert "".join(chunks(long)) == long
    assert all(len(piece) <= 1_200 for piece in chunks(long))


def test_a_book_of_one_id_is_replaced(library) -> None:
    first = library.shelve("The colour is red.", book_id="colour")
    library.shelve("The colour is green.", book_id="colour")
    assert [hit.text for hit in library.consult("colour")] == ["The colour is green."]
    assert first


def test_what_a_caller_hides_comes_back_by_no_way(governor) -> None:
    secret = governor.record("user", "The harbour code is 4471.")
    governor.record("assistant", "Noted.")
    for number in range(40):
        governor.record("user", f"Message {number} about gardens and their many different plants.")
        governor.record("assistant", f"Answer {number} about gardens and their many different plants.")
    governor.flush()
    asked = governor.record("user", "What is the harbour code?")
    assert "4471" in str(governor.build_prompt(at=asked.event_id).messages)
    hidden = governor.build_prompt(at=asked.event_id, hide=[secret.event_id])
    assert "4471" not in str(hidden.messages)
    assert any(omission.reason == "hidden by the caller" for omission in hidden.omitted)


def test_a_reading_desk_swaps_books_by_subject(library) -> None:
    library.shelve("Bees need water in summer.", book_id="bees")
    library.shelve("Kilns are fired for eleven hours.", book_id="kilns")
    desk = library.open_reading_desk(token_budget=200)
    bees = desk.turn_to("What do bees need in summer?")
    assert "water" in desk.text
    kilns = desk.turn_to("For how many hours are kilns fired?")
    assert "eleven" in desk.text
    assert bees.items
    assert kilns.items
    assert desk.token_count <= 200
    assert desk.clear().items == ()


def test_expired_books_are_not_found(library) -> None:
    library.shelve("The discount code is SUMMER.", expires_at=time.time() - 1)
    assert library.consult("discount code") == []


def test_what_a_question_derived_from_a_large_shelf_is_kept_in_the_file_when_there_is_time() -> None:
    class SmallCache:
        @hookimpl
        def register_vector_indexes(self):
            return {"small-cache": lambda: VectorIndex(cache_bytes=1)}

    with LibraryOfContext(":memory:", plugins=[SmallCache()], vector_index="small-cache") as library:
        library.shelve_document("".join(f"Kiln {number} is fired on day {number}.\n\n" for number in range(900)))
        assert "Kiln 77 " in library.consult("When is kiln 77 fired?", k=1)[0].text

        def kept() -> int:
            with library.database.read() as connection:
                return connection.execute("SELECT count(*) FROM vector_code").get

        deadline = time.monotonic() + 10
        while not kept() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert kept() > 0
