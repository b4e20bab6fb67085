"""Tools: LangChain's standard suites, what they answer, and the scopes they hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_libctx.tools import (
    library_tools,
    open_page_tool,
    recall_tool,
    remember_tool,
    secure_bank_tools,
    spec_tool,
)
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, ContextAccess, ContextAccessDenied, EnforcementMode, Principal, Rights
from libctx_core.bank import ContextBank, ContextWindow, FileBankStore
from libctx_core.bank.lorebook import LoreBook
from libctx_core.ports import ToolSpec


@pytest.fixture(scope="module")
def opened():
    with LibraryOfContext(":memory:") as library:
        governor = library.open_context_governor("s")
        governor.record("user", "The vault code is 4711.")
        governor.record("assistant", "Noted.")
        library.flush()
        yield library


_shared = LibraryOfContext(":memory:")
_governor = _shared.open_context_governor("s")
_event = _governor.record("user", "The vault code is 4711.")


class _Recall:
    @property
    def tool_constructor(self) -> BaseTool:
        return recall_tool(lambda: _governor)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"query": "vault code"}


class _OpenPage:
    @property
    def tool_constructor(self) -> BaseTool:
        return open_page_tool(lambda: _governor)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"event_id": _event.recall_id}


class _Remember:
    @property
    def tool_constructor(self) -> BaseTool:
        return remember_tool(_shared)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"text": "Ada prefers tea.", "kind": "preference"}


class TestRecallUnit(_Recall, ToolsUnitTests):
    """The tool recall."""


class TestRecallIntegration(_Recall, ToolsIntegrationTests):
    """The tool recall."""


class TestOpenPageUnit(_OpenPage, ToolsUnitTests):
    """The tool open_page."""


class TestOpenPageIntegration(_OpenPage, ToolsIntegrationTests):
    """The tool open_page."""


class TestRememberUnit(_Remember, ToolsUnitTests):
    """The tool remember."""


class TestRememberIntegration(_Remember, ToolsIntegrationTests):
    """The tool remember."""


def by_name(tools: list[BaseTool]) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in tools}


def test_recall_and_open(opened: LibraryOfContext) -> None:
    tools = by_name(library_tools(opened, "s"))
    assert sorted(tools) == ["open_page", "recall", "remember"]
    found = tools["recall"].invoke({"query": "vault code"})
    assert "4711" in found
    page = found.split("[")[1].split(" ")[0]
    assert "The vault code is 4711." in tools["open_page"].invoke({"event_id": page})
    assert "no page" in tools["open_page"].invoke({"event_id": "e999"})
    assert tools["recall"].invoke({"query": "zeppelin"}) is not None


async def test_async_tools(opened: LibraryOfContext) -> None:
    tools = by_name(library_tools(opened, "s"))
    assert "4711" in await tools["recall"].ainvoke({"query": "vault code"})
    assert "emembered" in await tools["remember"].ainvoke({"text": "The vault was moved in May."})
    assert opened.memory.search("vault moved")


def test_remember_is_idempotent(opened: LibraryOfContext) -> None:
    tool = remember_tool(opened, "facts")
    assert tool.invoke({"text": "Ada prefers tea."}) == "Remembered."
    assert tool.invoke({"text": "Ada prefers tea."}) == "That was remembered already."


def test_tools_of_plugins(opened: LibraryOfContext) -> None:
    spec = ToolSpec(
        name="count_events",
        description="Count.",
        parameters={"type": "object", "properties": {"factor": {"type": "integer"}}, "required": ["factor"]},
        function=lambda governor, factor: factor * len(list(governor.history())),
    )
    tool = spec_tool(spec, lambda: opened.open_context_governor("s"))
    assert tool.invoke({"factor": 3}) == 6
    assert tool.args["factor"]["type"] == "integer"


def test_tools_hold_their_scope(tmp_path: Path) -> None:
    access = ContextAccess()

    def scope(name: str) -> Any:
        return access.issue_root_scope(
            Principal(name), Rights.all_on(Boundary(name)), EnforcementMode.REQUIRE_ENROLLMENT
        )

    with LibraryOfContext(tmp_path / "l.sqlite", context_access=access) as library:
        ann = scope("ann")
        library.open_context_governor("s", collection="ann", scope=ann).record("user", "secret 4711")
        library.flush()
        mine = by_name(library_tools(library, "s", collection="ann", scope=ann))
        theirs = by_name(library_tools(library, "s", collection="ann", scope=scope("ben")))
        assert "4711" in mine["recall"].invoke({"query": "secret"})
        for name, arguments in (
            ("recall", {"query": "secret"}),
            ("open_page", {"event_id": "e1"}),
            ("remember", {"text": "x"}),
        ):
            with pytest.raises(ContextAccessDenied):
                theirs[name].invoke(arguments)


@pytest.fixture
def bank(tmp_path: Path) -> ContextBank:
    bank = ContextBank(FileBankStore(tmp_path / "lore", tmp_path / "todo"))
    window = ContextWindow()
    window.put_entry(LoreBook(key="harbour", value="opens at six", weight=1))
    bank.emplace("page", window)
    return bank


def test_the_ten_secure_tools(bank: ContextBank) -> None:
    tools = by_name(secure_bank_tools(bank, allow_unscoped=True))
    assert len(tools) == 10
    assert all(name.startswith("secure_") for name in tools)
    assert tools["secure_listPageKeys"].invoke({}) == ["page"]
    entry = tools["secure_getLorebookEntry"].invoke({"pageKey": "page", "key": "harbour"})
    assert entry["value"] == "opens at six"
    for tool in tools.values():
        assert tool.tool_call_schema is not None


def test_secure_tools_refuse_unscoped_use(bank: ContextBank) -> None:
    refused: Callable[[], Any] = lambda: by_name(secure_bank_tools(bank))["secure_listPageKeys"].invoke({})  # noqa: E731
    with pytest.raises(ContextAccessDenied):
        refused()
