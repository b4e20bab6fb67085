"""Tools with which the model of an agent brings back what was paged out."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool, StructuredTool

from langchain_libctx.extras import extra
from langchain_libctx.recall import event_text, hits_text
from libctx_core.concurrency import run_sync
from libctx_core.governor import ContextGovernor

with extra("agents", "the recall tools of an agent"):
    from langchain.tools import ToolRuntime

RECALL_NOTE = (
    "Older messages of this conversation may be paged out. Text in brackets such as "
    "[paged out: 900 tokens. Recall it by e12.] stands for a tool result that is kept elsewhere. "
    "Call recall_paged to search everything said before, and open_page with a recall id (e12) to read one item whole."
)

RECALL_DESCRIPTION = (
    "Search everything said earlier in this conversation, paged out or not. "
    "`query` says what to look for, in the words that were used."
)
OPEN_DESCRIPTION = "Read one earlier message or tool result whole. `event_id` is its recall id, for example e12."
HITS = 5

GovernorOf: TypeAlias = Callable[[Any, Sequence[BaseMessage]], ContextGovernor]


def paging_tools(governor_of: GovernorOf) -> list[BaseTool]:
    """Return the tools ``recall_paged`` and ``open_page`` of an agent.

    Args:
        governor_of: Finds the governor of a running call from its configuration and messages.
    """

    def current(runtime: Any) -> ContextGovernor:
        return governor_of(runtime.config, runtime.state.get("messages", ()) if runtime.state else ())

    def recall_paged(query: str, runtime: ToolRuntime) -> str:
        return hits_text(current(runtime).recall(query, HITS))

    async def arecall_paged(query: str, runtime: ToolRuntime) -> str:
        return await run_sync(lambda: hits_text(current(runtime).recall(query, HITS)))

    def open_page(event_id: str, runtime: ToolRuntime) -> str:
        return event_text(current(runtime), event_id)

    async def aopen_page(event_id: str, runtime: ToolRuntime) -> str:
        return await run_sync(lambda: event_text(current(runtime), event_id))

    return [
        StructuredTool.from_function(
            recall_paged, arecall_paged, name="recall_paged", description=RECALL_DESCRIPTION, parse_docstring=False
        ),
        StructuredTool.from_function(
            open_page, aopen_page, name="open_page", description=OPEN_DESCRIPTION, parse_docstring=False
        ),
    ]
