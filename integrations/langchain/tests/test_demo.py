"""The demo: its own conversation, other people's exports, and what it prints."""

import json
import socket
from types import SimpleNamespace

import pytest
from langchain_libctx.demo.conversation import Question, own_conversation, read_conversation
from langchain_libctx.demo.play import share_found, shared_prefix
from langchain_libctx.demo.window import SlidingWindowMemory

from libctx_core.cli.app import run
from libctx_core.errors import InvalidInputError


@pytest.fixture
def libctx(capsys):
    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


@pytest.fixture
def offline(monkeypatch):
    def refuse(*_):
        raise AssertionError("the demo must not use the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


# -- the conversation that ships with the package ---------------------------------


def test_the_own_conversation_is_long_and_its_questions_have_answers():
    conversation = own_conversation()
    assert len(conversation.turns) >= 200
    assert len(conversation.questions) >= 30
    for question in conversation.questions:
        (answer,) = question.evidence
        assert answer.casefold() in conversation.turns[question.turn].user.casefold()
        assert answer.casefold() not in question.text.casefold()


def test_every_turn_is_said_once():
    turns = own_conversation().turns
    assert len({turn.user for turn in turns}) == len(turns)


def test_old_facts_come_back_and_no_request_is_too_long(libctx, offline):
    result = libctx("demo", "--json")
    assert result.code == 0
    figures = json.loads(result.out)
    governed, window = figures["runs"]["libctx"], figures["runs"]["sliding window"]
    assert governed["requests"] == window["requests"] == 236
    assert governed["largest_request_tokens"] <= figures["token_budget"]
    assert window["largest_request_tokens"] <= figures["token_budget"]
    assert governed["answered"] >= 25
    assert governed["prefix_reuse"] >= 0.75
    assert window["answered"] <= 3
    assert governed["tokens_sent"] < window["tokens_sent"]


# -- other conversations ----------------------------------------------------------

OPENAI = [
    {
        "title": "Boats",
        "current_node": "d",
        "mapping": {
            "a": {"parent": None, "message": None},
            "b": {"parent": "a", "message": {"author": {"role": "user"}, "content": {"parts": ["Is she dry?"]}}},
            "x": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"parts": ["dropped"]}}},
            "c": {
                "parent": "b",
                "message": {"author": {"role": "assistant"}, "content": {"parts": [{"image": 1}, "Yes, dry."]}},
            },
            "d": {"parent": "c", "message": {"author": {"role": "tool"}, "content": {"parts": ["ignored"]}}},
        },
    }
]
CLAUDE = [
    {"name": "short", "chat_messages": []},
    {
        "name": "Bread",
        "chat_messages": [
            {"sender": "human", "text": "How much water?"},
            {"sender": "human", "text": "For rye."},
            {"sender": "assistant", "text": "72 percent."},
        ],
    },
]
LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1 May",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I bought a boat."},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice!", "blip_caption": "a blue boat"},
            ],
        },
        "qa": [
            {"question": "What did Ada buy?", "answer": "a boat", "evidence": ["D1:1"], "category": 4},
            {"question": "Which colour?", "answer": "blue", "evidence": ["D1:1; D:1:02"], "category": 1},
            {"question": "Who is the president?", "evidence": ["D1:1"], "category": 5},
            {"question": "Nowhere?", "evidence": ["D7:1"], "category": 4},
        ],
    }
]


@pytest.fixture
def saved(tmp_path):
    def save(value):
        path = tmp_path / "input.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return save


def test_an_openai_export_follows_the_current_branch(saved):
    conversation = read_conversation(saved(OPENAI))
    assert conversation.title == "Boats"
    assert [(turn.user, turn.assistant) for turn in conversation.turns] == [("Is she dry?", "Yes, dry.")]


def test_a_claude_export_joins_what_one_side_said(saved):
    conversation = read_conversation(saved(CLAUDE))
    assert conversation.title == "Bread"
    assert [(turn.user, turn.assistant) for turn in conversation.turns] == [
        ("How much water?\nFor rye.", "72 percent.")
    ]


def test_a_locomo_file_brings_its_questions_and_their_evidence(saved):
    conversation = read_conversation(saved(LOCOMO))
    assert conversation.turns[0].assistant == "Ben: Nice! [image: a blue boat]"
    assert [(question.text, question.evidence) for question in conversation.questions] == [
        ("What did Ada buy?", ("Ada: I bought a boat.",)),
        ("Which colour?", ("Ada: I bought a boat.", "Ben: Nice! [image: a blue boat]")),
    ]


@pytest.mark.parametrize("value", [[], {}, [1], {"mapping": {}}, "text"])
def test_anything_else_is_refused(saved, value):
    with pytest.raises(InvalidInputError):
        read_conversation(saved(value))


def test_a_file_that_is_no_json_is_one_line(libctx, tmp_path):
    path = tmp_path / "input.json"
    path.write_text("no json")
    result = libctx("demo", "--input", path)
    assert result.code == 1
    assert result.err.startswith("error[invalid_input]: input: is not JSON")


# -- what it prints ---------------------------------------------------------------


def test_turns_are_shown_on_request_and_the_library_is_kept(libctx, saved, tmp_path):
    library = tmp_path / "kept.sqlite"
    result = libctx("demo", "-v", "--input", saved(LOCOMO), "--library", library)
    assert result.code == 0
    assert "turn 1 ·" in result.out
    assert "paged out 0" in result.out
    assert "facts in view when asked for" in result.out
    assert "I bought a boat" in libctx("consult", library, "boat").out
    assert libctx("demo", "--library", library).err.startswith("error[store_path]:")


def test_an_export_without_questions_is_played_all_the_same(libctx, saved):
    result = libctx("demo", "--input", saved(CLAUDE))
    assert result.code == 0
    assert "facts in view" not in result.out
    assert "tokens sent" in result.out


# -- its measures -----------------------------------------------------------------


def test_the_shared_prefix_ends_at_the_first_difference():
    assert shared_prefix("abcd", "abxd") == "ab"
    assert shared_prefix("", "abc") == ""
    assert shared_prefix("ab", "abc") == "ab"


def test_evidence_is_found_behind_escapes_and_line_breaks():
    from langchain_core.messages import HumanMessage

    question = Question("?", ("fish & chips", "not here"), 0)
    assert share_found(question, [HumanMessage("…fish &amp;\n  Chips…")]) == 0.5


def test_the_window_keeps_whole_turns_that_fit():
    memory = SlidingWindowMemory(token_budget=10, count=lambda role, text: len(text))
    memory.save_context({"input": "aaa"}, {"response": "bbb"})
    memory.save_context({"input": "cc"}, {"response": "dd"})
    shown = memory.load_memory_variables({"input": "eeeee"})["history"]
    assert [message.text for message in shown] == ["cc", "dd"]
    memory.clear()
    assert memory.load_memory_variables({"input": "e"})["history"] == []
