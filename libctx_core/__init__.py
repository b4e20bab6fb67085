"""Governed context and memory for agents.

```python
from libctx_core import LibraryOfContext

with LibraryOfContext("chat.sqlite") as library:
    governor = library.open_context_governor("session-1", token_budget=8_000)
    prompt = governor.prepare("What did we decide about the deployment?")
    governor.commit(call_your_model(prompt.messages))
```
"""

from libctx_core.governor import ContextGovernor, GovernedPrompt, GovernedTextAgent
from libctx_core.library import LibraryOfContext, LibraryView
from libctx_core.models import ContextEvent, Hit, ThreadKey, Watermarks

__version__ = "0.1.0"

__all__ = [
    "ContextEvent",
    "ContextGovernor",
    "GovernedPrompt",
    "GovernedTextAgent",
    "Hit",
    "LibraryOfContext",
    "LibraryView",
    "ThreadKey",
    "Watermarks",
]
