"""Memory entries and source chunks on the desk, and events turned into entries that cite them."""


def test_events_become_entries_that_reach_other_threads_with_their_citation(library) -> None:
    one = library.open_context_governor("one", token_budget=800)
    event = one.record("user", "My sister Noor keeps bees on the roof of the museum.", speaker="Ada")
    remembered = one.remember([event.event_id], kind="fact")
    assert remembered.written == 1
    entry = library.memory.entries()[0]
    assert entry.sources[0].source_id == event.recall_id
    library.memory.flush()
    other = library.open_context_governor("two", token_budget=800)
    prompt = other.prepare("Where does my sister Noor keep bees?")
    block = prompt.messages[-2]["content"]
    assert "roof of the museum" in block
    assert prompt.desk.items[0].hit.citation in block
    assert prompt.desk.items[0].hit.kind == "entry"


def test_what_is_revised_or_forgotten_is_gone_from_every_desk_at_once(library, monkeypatch) -> None:
    import libctx_core.memory.indexing as indexing

    question = "When is the kiln fired?"
    entry = library.memory.remember("The kiln is fired every Thursday.").citations[0].entry_id
    library.memory.flush()
    governor = library.open_context_governor("t", token_budget=800)
    assert "Thursday" in str(governor.build_prompt(focus=question).messages)
    for change in (
        lambda: library.memory.revise(entry, "The kiln is fired every Monday."),
        lambda: library.memory.forget(entry),
    ):
        # an indexer that stands still must not keep old words alive
        monkeypatch.setattr(indexing.MemoryIndexer, "catch_up", lambda self, owner, limit=None: 0)
        change()
        assert "kiln is fired" not in str(governor.build_prompt(focus=question).messages)
        monkeypatch.undo()
        library.memory.reactivate(entry)
        library.memory.flush()
        assert "kiln is fired every Monday" in str(governor.build_prompt(focus=question).messages)


def test_redaction_lists_what_was_derived_and_cascades_when_asked(library) -> None:
    governor = library.open_context_governor("one", token_budget=800)
    first = governor.record("user", "The vault opens with tulip-tulip.")
    second = governor.record("user", "The vault of the bank opens with rose-rose.")
    governor.remember([first.event_id, second.event_id])
    listed = governor.redact(first.event_id)
    assert len(listed.derived) == 1
    assert not listed.cascaded
    assert any("tulip" in entry.text for entry in library.memory.entries())
    purged = governor.redact(second.event_id, cascade=True)
    assert purged.cascaded
    assert all("rose" not in entry.text for entry in library.memory.entries())
    library.memory.flush()
    assert "rose" not in str(library.consult("vault bank rose", everything=True))


def test_what_is_remembered_becomes_searchable_without_being_asked_for(library) -> None:
    import time

    library.memory.remember("The kiln is fired every second Thursday.")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if library.consult("When is the kiln fired?"):
            break
        time.sleep(0.05)
    assert "Thursday" in library.consult("When is the kiln fired?")[0].text
