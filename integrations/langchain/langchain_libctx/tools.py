"""Tools over a library: recall, open a page, remember, the bank's secure tools, and those of plugins."""

from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.recall import event_text, hits_text
from langchain_libctx.sessions import Governors, SessionId, configurable_session
from libctx_core.access.scope import Scope
from libctx_core.bank import BankTool, ContextBank, secure_tools
from libctx_core.concurrency import run_sync
from libctx_core.governor import ContextGovernor
from libctx_core.library import LibraryView
from libctx_core.ports import ToolSpec


class RecallInput(BaseModel):
    """Arguments of ``recall``."""

    query: str = Field(description="What to look for, in the words that were used.")


class OpenPageInput(BaseModel):
    """Arguments of ``open_page``."""

    event_id: str = Field(description="Recall id of the item, for example e12.")


class RememberInput(BaseModel):
    """Arguments of ``remember``."""

    text: str = Field(description="One statement that is understood on its own.")
    kind: str = Field(default="fact", description="fact, preference, decision, constraint or working_note.")


def recall_tool(governor_of: Callable[[], ContextGovernor], k: int = 5) -> BaseTool:
    """Return the tool ``recall``: search everything a conversation has said.

    Args:
        governor_of: Returns the governor of the current conversation.
        k: Items it shows.
    """

    def recall(query: str) -> str:
        return hits_text(governor_of().recall(query, k))

    return _tool(recall, "recall", "Search everything said earlier, whether or not it is still in view.", RecallInput)


def open_page_tool(governor_of: Callable[[], ContextGovernor]) -> BaseTool:
    """Return the tool ``open_page``: read one stored item whole.

    Args:
        governor_of: Returns the governor of the current conversation.
    """

    def open_page(event_id: str) -> str:
        return event_text(governor_of(), event_id)

    return _tool(open_page, "open_page", "Read one earlier message or tool result whole.", OpenPageInput)


def remember_tool(library: LibraryView, collection: str | None = None) -> BaseTool:
    """Return the tool ``remember``: keep a fact beyond this conversation.

    Args:
        library: The library, under the scope that counts.
        collection: Collection of the memory; the library's by default.
    """
    memories = library.memories(collection or library.namespace)

    def remember(text: str, kind: str = "fact") -> str:
        done = memories.remember(text, kind=kind)
        return "Remembered." if done.written else "That was remembered already."

    return _tool(remember, "remember", "Keep a fact, preference or decision beyond this conversation.", RememberInput)


def library_tools(
    library: LibrarySource,
    session_id: SessionId | None = None,
    *,
    scope: Scope | None = None,
    collection: str | None = None,
    owner: str | None = None,
    k: int = 5,
    remember: bool = True,
    plugins: bool = False,
    **options: Any,
) -> list[BaseTool]:
    """Return the tools with which a model uses a library.

    Args:
        library: An open library or view, or a path.
        session_id: The conversation, or a callable that names it; by default
            ``config["configurable"]["session_id"]`` of the running call.
        scope: Held for every call.
        collection: Its namespace; the library's by default.
        owner: The user it belongs to.
        k: Items that ``recall`` shows.
        remember: Offer ``remember`` too.
        plugins: Offer the tools that plugins register too.
        **options: Further arguments of `open_context_governor`.
    """
    view, _ = open_library(library, scope)
    governors = Governors(
        view,
        configurable_session() if session_id is None else session_id,
        collection=collection,
        owner=owner,
        **options,
    )
    tools = [recall_tool(governors.current, k), open_page_tool(governors.current)]
    if remember:
        tools.append(remember_tool(view, collection))
    if plugins:
        tools.extend(spec_tool(spec, governors.current) for spec in view.plugins.tools())
    return tools


def spec_tool(spec: ToolSpec, governor_of: Callable[[], ContextGovernor]) -> BaseTool:
    """Return a tool that a plugin registered as a LangChain tool.

    Args:
        spec: The plugin's tool.
        governor_of: Returns the governor of the current conversation.
    """

    def run(**arguments: Any) -> Any:
        return spec.function(governor_of(), **arguments)

    return _tool(run, spec.name, spec.description, dict(spec.parameters))


def secure_bank_tools(bank: ContextBank, *, allow_unscoped: bool = False) -> list[BaseTool]:
    """Return the ten ``secure_…`` tools of a bank as LangChain tools.

    Args:
        bank: The bank, bound to a scope or not.
        allow_unscoped: Let them work without any scope.
    """
    return [_bank_tool(tool) for tool in secure_tools(bank, allow_unscoped=allow_unscoped)]


def _bank_tool(tool: BankTool) -> BaseTool:
    def run(**arguments: Any) -> Any:
        return tool.call(arguments)

    return _tool(run, tool.name, tool.description, tool.parameters)


def _tool(
    function: Callable[..., Any], name: str, description: str, schema: type[BaseModel] | dict[str, Any]
) -> BaseTool:
    async def twin(**arguments: Any) -> Any:
        return await run_sync(lambda: function(**arguments))

    return StructuredTool.from_function(
        function, twin, name=name, description=description, args_schema=schema, infer_schema=False
    )
