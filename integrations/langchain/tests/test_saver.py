"""`LibrarySaver` beyond the conformance suite: bytes, types, forks, delta channels, loops."""

import asyncio
import collections
import fractions
import sqlite3
import sys
import time
import types
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_libctx.checkpoint import LibrarySaver, LibrarySerializer, UnrevivedValue, UnrevivedValueError
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel
from typing_extensions import TypedDict

from libctx_core.errors import InvalidInputError, NewerSchemaError

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def saver(tmp_path: Path):
    with LibrarySaver.from_conn_string(str(tmp_path / "state.sqlite")) as opened:
        yield opened


def put(saver: BaseCheckpointSaver, config: Any, **channels: Any) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = channels
    checkpoint["channel_versions"] = dict.fromkeys(channels, 1)
    return saver.put(config, checkpoint, {"step": 1}, dict.fromkeys(channels, 1))


def chat(saver: BaseCheckpointSaver, answer: str = "answer " * 50) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage(answer)]})
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder.compile(checkpointer=saver)


# -- bytes ------------------------------------------------------------------------


def bytes_per_turn(saver: LibrarySaver, before: int, turns: int = 40) -> float:
    graph = chat(saver)
    graph.update_state(CONFIG, {"messages": [HumanMessage("word " * 55, id=f"m{n}") for n in range(before)]})
    graph.invoke({"messages": [HumanMessage("warm up")]}, CONFIG)
    size = saver._database.size()
    for number in range(turns):
        graph.invoke({"messages": [HumanMessage(f"question {number} " * 20)]}, CONFIG)
    return (saver._database.size() - size) / turns


def test_bytes_of_a_turn_do_not_grow_with_the_conversation(tmp_path: Path) -> None:
    sizes = []
    for before in (10, 1_000):
        with LibrarySaver.from_conn_string(str(tmp_path / f"{before}.sqlite")) as saver:
            sizes.append(bytes_per_turn(saver, before))
    assert max(sizes) < 8_000
    assert sizes[1] < sizes[0] * 1.5


@pytest.mark.exhaustive
def test_bytes_of_a_turn_at_ten_thousand_messages(tmp_path: Path) -> None:
    with LibrarySaver.from_conn_string(str(tmp_path / "large.sqlite")) as saver:
        assert bytes_per_turn(saver, 10_000, turns=10) < 8_000


def test_an_unchanged_prefix_is_found_again_by_another_process(tmp_path: Path) -> None:
    """A fresh process has no memory of the list and must still not store it again."""
    path = str(tmp_path / "state.sqlite")
    with LibrarySaver.from_conn_string(path) as saver:
        chat(saver).update_state(CONFIG, {"messages": [HumanMessage("word " * 60, id=f"m{n}") for n in range(300)]})
        size = saver._database.size()
    for number in range(5):
        with LibrarySaver.from_conn_string(path) as saver:
            chat(saver).invoke({"messages": [HumanMessage(f"again {number}")]}, CONFIG)
            grown = saver._database.size() - size
    assert grown < 60_000


def test_values_in_place_that_changed_are_stored(saver: LibrarySaver) -> None:
    """A list that looks the same by identity but was edited is a new value."""
    messages = [HumanMessage(f"text {n} " * 20, id=str(n)) for n in range(20)]
    config = put(saver, CONFIG, messages=messages)
    messages[3].content = "edited"
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"messages": messages}
    checkpoint["channel_versions"] = {"messages": 2}
    config = saver.put(config, checkpoint, {}, {"messages": 2})
    loaded = saver.get_tuple(config).checkpoint["channel_values"]["messages"]
    assert loaded[3].content == "edited"
    assert loaded == messages


# -- what comes back --------------------------------------------------------------

MESSAGES = st.lists(
    st.one_of(
        st.builds(HumanMessage, content=st.text(max_size=80), id=st.uuids().map(str)),
        st.builds(
            AIMessage,
            content=st.text(max_size=200),
            id=st.uuids().map(str),
            tool_calls=st.lists(
                st.fixed_dictionaries(
                    {
                        "name": st.text("abc", min_size=1, max_size=5),
                        "args": st.dictionaries(
                            st.text(max_size=3), st.integers(-(2**60), 2**60) | st.booleans() | st.floats(-1, 1)
                        ),
                        "id": st.text("xyz", min_size=1, max_size=4),
                    }
                ),
                max_size=2,
            ),
        ),
        st.builds(ToolMessage, content=st.text(max_size=400), tool_call_id=st.text("xyz", min_size=1, max_size=4)),
    ),
    max_size=90,
)


@settings(max_examples=40, deadline=None)
@given(first=MESSAGES, more=MESSAGES, cut=st.integers(0, 90))
def test_lists_of_messages_round_trip_whatever_changes(
    first: list[BaseMessage], more: list[BaseMessage], cut: int
) -> None:
    with LibrarySaver.from_conn_string(":memory:") as saver:
        config: Any = CONFIG
        versions = [first, [*first, *more], [*first[:cut], *more], more, []]
        stored = []
        for number, value in enumerate(versions):
            checkpoint = empty_checkpoint()
            checkpoint["channel_values"] = {"messages": value, "fixed": "same"}
            checkpoint["channel_versions"] = {"messages": number + 1, "fixed": 1}
            changed = {"messages": number + 1, **({"fixed": 1} if number == 0 else {})}
            config = saver.put(config, checkpoint, {}, changed)
            stored.append(config)
        for config, value in zip(stored, versions, strict=True):
            loaded = saver.get_tuple(config).checkpoint["channel_values"]
            assert loaded["messages"] == value
            assert [type(message) for message in loaded["messages"]] == [type(message) for message in value]
            assert loaded["fixed"] == "same"


class Colour(Enum):
    RED = 1


@dataclass
class Point:
    x: int
    y: int


class Box(BaseModel):
    label: str
    points: list[tuple[int, int]] = []


VALUES = [
    (1, (2, "x")),
    {"a": (1, 2)},
    {1, 2},
    frozenset({(1, 2), (3, 4)}),
    collections.OrderedDict(b=1, a=2),
    collections.Counter("hello"),
    collections.deque([1, 2, 3], maxlen=5),
    fractions.Fraction(1, 3),
    complex(1, -2),
    range(2, 9, 3),
    2**200,
    Decimal("1.10"),
    Colour.RED,
    Point(1, 2),
    Box(label="b", points=[(1, 2)]),
    b"\x00\xff",
    bytearray(b"ab"),
    [Point(n, n) for n in range(100)],
    {f"key {n}": "x" * 50 for n in range(50)},
    list(range(5_000)),
    ["long text " * 30] * 300,
    None,
    [],
    {},
]


@pytest.mark.parametrize("value", VALUES, ids=[f"{type(v).__name__}{n}" for n, v in enumerate(VALUES)])
def test_types_survive(saver: LibrarySaver, value: Any) -> None:
    config = put(saver, CONFIG, value=value)
    loaded = saver.get_tuple(config).checkpoint["channel_values"]["value"]
    assert loaded == value
    assert type(loaded) is type(value)
    assert getattr(loaded, "maxlen", None) == getattr(value, "maxlen", None)


def test_a_defaultdict_keeps_its_factory(saver: LibrarySaver) -> None:
    config = put(saver, CONFIG, value=collections.defaultdict(list, {"a": [1]}))
    loaded = saver.get_tuple(config).checkpoint["channel_values"]["value"]
    loaded["new"].append(2)
    assert dict(loaded) == {"a": [1], "new": [2]}


def test_what_cannot_be_serialised_is_refused_and_nothing_is_stored(saver: LibrarySaver) -> None:
    with pytest.raises(TypeError):
        put(saver, CONFIG, value=sqlite3)
    assert saver.get_tuple(CONFIG) is None


@pytest.fixture
def vanishing():
    """A module whose class is gone by the time its value is read."""
    module = types.ModuleType("vanishing_module")
    exec("from dataclasses import dataclass\n@dataclass\nclass Gone:\n    x: int\n", module.__dict__)
    module.Gone.__module__ = "vanishing_module"
    sys.modules["vanishing_module"] = module
    yield module
    sys.modules.pop("vanishing_module", None)


def test_a_class_that_is_gone_leaves_a_typed_placeholder(saver: LibrarySaver, vanishing: Any) -> None:
    config = put(saver, CONFIG, value={"inner": vanishing.Gone(7)})
    del sys.modules["vanishing_module"]
    kept = saver.get_tuple(config).checkpoint["channel_values"]["value"]["inner"]
    assert isinstance(kept, UnrevivedValue)
    assert (kept.module, kept.name, kept.payload) == ("vanishing_module", "Gone", {"x": 7})
    with pytest.raises(UnrevivedValueError):
        kept.x  # noqa: B018 - reading is the point
    again = put(saver, config, value={"inner": kept})
    sys.modules["vanishing_module"] = vanishing
    assert saver.get_tuple(again).checkpoint["channel_values"]["value"]["inner"] == vanishing.Gone(7)


def test_a_class_that_is_gone_raises_where_asked(tmp_path: Path, vanishing: Any) -> None:
    serde = LibrarySerializer(unknown="raise")
    with LibrarySaver.from_conn_string(str(tmp_path / "s.sqlite"), serde=serde) as saver:
        config = put(saver, CONFIG, value=vanishing.Gone(7))
        del sys.modules["vanishing_module"]
        with pytest.raises(UnrevivedValueError) as caught:
            saver.get_tuple(config)
        assert caught.value.name == "Gone"


def test_stored_names_never_run_code(saver: LibrarySaver) -> None:
    """A checkpoint that names a function, or a class that is no data, does not get it called."""
    import ormsgpack

    for module, name, argument in (("os", "system", "exit 7"), ("subprocess", "Popen", ["true"])):
        data = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb((module, name, argument))))
        value = LibrarySerializer().loads_typed(("msgpack", data))
        assert isinstance(value, UnrevivedValue)


def test_an_allow_list_is_obeyed() -> None:
    data = LibrarySerializer().dumps_typed([Point(1, 2), Box(label="b")])
    first, second = LibrarySerializer(allowed=[Point]).loads_typed(data)
    assert first == Point(1, 2)
    assert isinstance(second, UnrevivedValue)


def test_encrypted_checkpoints(tmp_path: Path) -> None:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    class Reverse:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            return "reverse", plaintext[::-1]

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            return ciphertext[::-1]

    path = tmp_path / "secret.sqlite"
    with LibrarySaver.from_conn_string(str(path), serde=EncryptedSerializer(Reverse(), LibrarySerializer())) as saver:
        files = {f"secret-file-{n}": "secret words " * 20 for n in range(30)}
        config = put(saver, CONFIG, messages=[HumanMessage("secret words " * 20)] * 5, files=files)
        assert saver.get_tuple(config).checkpoint["channel_values"]["files"] == files
        saver._database.truncate_wal()
        assert b"secret" not in path.read_bytes()


# -- lineage ----------------------------------------------------------------------


def test_forks_keep_both_pasts(saver: LibrarySaver) -> None:
    graph = chat(saver, "reply")
    graph.invoke({"messages": [HumanMessage("one")]}, CONFIG)
    before = graph.get_state(CONFIG).config
    graph.invoke({"messages": [HumanMessage("two")]}, CONFIG)
    graph.invoke({"messages": [HumanMessage("fork")]}, before)
    texts = {
        tuple(message.content for message in state.values.get("messages", []))
        for state in graph.get_state_history(CONFIG)
        if not state.next
    }
    assert {("one", "reply", "two", "reply"), ("one", "reply", "fork", "reply")} <= texts


def test_same_history_as_the_reference(tmp_path: Path) -> None:
    """The same graph on LangGraph's own saver tells the same story."""
    histories = []
    with LibrarySaver.from_conn_string(str(tmp_path / "s.sqlite")) as ours:
        for saver in (InMemorySaver(), ours):
            graph = chat(saver, "reply")
            for number in range(3):
                graph.invoke({"messages": [HumanMessage(f"q{number}", id=f"h{number}")]}, CONFIG)
            histories.append(
                [
                    (state.next, state.metadata["step"], [m.content for m in state.values.get("messages", [])])
                    for state in graph.get_state_history(CONFIG)
                ]
            )
    assert histories[0] == histories[1]


def test_writes_come_in_the_order_a_step_applies_them(saver: LibrarySaver) -> None:
    config = put(saver, CONFIG, x=1)
    saver.put_writes(config, [("a", 1), ("b", 2)], "task-9", "~path, 1")
    saver.put_writes(config, [("a", 3)], "task-1", "~path, 2")
    saver.put_writes(config, [("a", 0)], "task-5", "")
    writes = saver.get_tuple(config).pending_writes
    assert [(task, channel, value) for task, channel, value in writes] == [
        ("task-5", "a", 0),
        ("task-9", "a", 1),
        ("task-9", "b", 2),
        ("task-1", "a", 3),
    ]


def test_pruning_keeps_what_delta_channels_are_rebuilt_from(saver: LibrarySaver) -> None:
    delta = pytest.importorskip("langgraph.channels.delta")

    def extend(left: list[Any], right: Sequence[list[Any]]) -> list[Any]:
        return [*left, *(item for part in right for item in part)]

    class State(TypedDict):
        items: Annotated[list[Any], delta.DeltaChannel(extend)]

    builder = StateGraph(State)
    builder.add_node("add", lambda state: {"items": [f"item {len(state['items'])}"]})
    builder.add_edge(START, "add")
    builder.add_edge("add", END)
    graph = builder.compile(checkpointer=saver)
    for number in range(5):
        graph.invoke({"items": [f"input {number}"]}, CONFIG)
    expected = graph.get_state(CONFIG).values["items"]
    assert len(expected) == 10
    config = graph.get_state(CONFIG).config
    assert saver.get_delta_channel_history(config=config, channels=["items"]) == (
        BaseCheckpointSaver.get_delta_channel_history(saver, config=config, channels=["items"])
    )
    saver.prune(["t"])
    assert graph.get_state(CONFIG).values["items"] == expected
    saver.copy_thread("t", "copy")
    copied: Any = {"configurable": {"thread_id": "copy"}}
    assert graph.get_state(copied).values["items"] == expected


def test_pruning_frees_what_nothing_reaches(saver: LibrarySaver) -> None:
    graph = chat(saver)
    for number in range(10):
        graph.invoke({"messages": [HumanMessage(f"q{number}")]}, CONFIG)
    expected = graph.get_state(CONFIG).values

    def chunks() -> int:
        with saver._database.read() as connection:
            return connection.execute("SELECT count(*) FROM checkpoint_chunk").get

    before = chunks()
    saver.prune(["t"])
    assert chunks() < before / 2
    assert graph.get_state(CONFIG).values == expected
    graph.invoke({"messages": [HumanMessage("after")]}, CONFIG)
    assert len(graph.get_state(CONFIG).values["messages"]) == 22
    saver.delete_thread("t")
    assert chunks() == 0


def test_pruning_by_another_process_is_noticed(tmp_path: Path) -> None:
    """Remembered chunks may be gone: the next put stores them again instead of pointing at nothing."""
    path = str(tmp_path / "state.sqlite")
    with LibrarySaver.from_conn_string(path) as one, LibrarySaver.from_conn_string(path) as other:
        graph = chat(one, "reply")
        graph.invoke({"messages": [HumanMessage(f"text {n} " * 30) for n in range(10)]}, CONFIG)
        state = one.get_tuple(CONFIG)
        other.delete_thread("t")
        config = one.put(state.config, {**state.checkpoint, "id": empty_checkpoint()["id"]}, {}, {})
        loaded = one.get_tuple(config).checkpoint["channel_values"]["messages"]
        assert loaded == state.checkpoint["channel_values"]["messages"]


def test_an_unknown_pruning_strategy_is_refused(saver: LibrarySaver) -> None:
    with pytest.raises(InvalidInputError, match="keep_latest"):
        saver.prune(["t"], strategy="some")


def test_text_versions_of_another_saver_go_on(saver: LibrarySaver) -> None:
    first = saver.get_next_version(None, None)
    assert saver.get_next_version(first, None) > first
    old = f"{7:032}.0123"
    assert saver.get_next_version(old, None) > old


# -- loops and files --------------------------------------------------------------


async def test_sync_calls_on_the_loop_neither_hang_nor_fail(saver: LibrarySaver) -> None:
    """One peer waits for its own loop here, for ever."""
    started = time.monotonic()
    config = put(saver, CONFIG, x=1)
    saver.put_writes(config, [("x", 2)], "task")
    assert saver.get_tuple(config) is not None
    assert time.monotonic() - started < 1


async def test_commits_do_not_block_the_loop(saver: LibrarySaver) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    graph = chat(saver)
    for number in range(5):
        await graph.ainvoke({"messages": [HumanMessage(f"q{number}")]}, CONFIG)
    ticking.cancel()
    assert ticks > 3
    assert len([item async for item in saver.alist(CONFIG)]) == 15


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "newer.sqlite"
    with LibrarySaver.from_conn_string(str(path)) as saver:
        put(saver, CONFIG, x=1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema_component SET version = 99 WHERE name = 'langgraph_checkpoint'")
    connection.close()
    with pytest.raises(NewerSchemaError):
        LibrarySaver(path)


def test_listing_pages_through_many(saver: LibrarySaver) -> None:
    config: Any = CONFIG
    for number in range(50):
        checkpoint = empty_checkpoint()
        config = saver.put(config, checkpoint, {"step": number, "even": number % 2 == 0}, {})
    assert [item.metadata["step"] for item in saver.list(CONFIG)] == list(range(49, -1, -1))
    assert [item.metadata["step"] for item in saver.list(CONFIG, filter={"even": True}, limit=3)] == [48, 46, 44]
    assert [item.metadata["step"] for item in saver.list(None, filter={"step": {"$lt": 2}})] == [1, 0]
    assert AnyMessage is not None
