"""Text, HTML and SVG views: pure functions from values to strings, the standard library only.

Whatever they show is treated as hostile: control characters are removed, markup is escaped,
texts are capped to a preview and tables to `MAX_ROWS` rows. There is no script in any view.
"""

from libctx_core.display.desk import desk_html, desk_records, desk_summary, desk_text
from libctx_core.display.hits import hits_html, hits_records, hits_text
from libctx_core.display.markup import Html
from libctx_core.display.plain import MAX_PREVIEW, MAX_ROWS, preview, visible
from libctx_core.display.prompt import prompt_html, prompt_records, prompt_summary, prompt_text
from libctx_core.display.status import status_html, status_records, status_summary, status_text
from libctx_core.display.table import table_html, table_text
from libctx_core.display.timeline import Tick, timeline_html, timeline_records, timeline_text

__all__ = [
    "MAX_PREVIEW",
    "MAX_ROWS",
    "Html",
    "Tick",
    "desk_html",
    "desk_records",
    "desk_summary",
    "desk_text",
    "hits_html",
    "hits_records",
    "hits_text",
    "preview",
    "prompt_html",
    "prompt_records",
    "prompt_summary",
    "prompt_text",
    "status_html",
    "status_records",
    "status_summary",
    "status_text",
    "table_html",
    "table_text",
    "timeline_html",
    "timeline_records",
    "timeline_text",
    "visible",
]
