"""Behaviour suites for chat memories, message histories and agent middleware.

LangChain's own standard tests cover none of the three. Subclass a suite, say how an
object is made, and run pytest:

```python
from langchain_libctx.testing import HistorySuite

class TestMyHistory(HistorySuite):
    def new_history(self, session):
        return MyHistory(session)
```
"""

from typing import TYPE_CHECKING, Any

from langchain_libctx.testing.envelopes import Violation, violations
from langchain_libctx.testing.history import HistorySuite
from langchain_libctx.testing.memory import MemorySuite

if TYPE_CHECKING:
    from langchain_libctx.testing.middleware import MiddlewareSuite

__all__ = ["HistorySuite", "MemorySuite", "MiddlewareSuite", "Violation", "violations"]


def __getattr__(name: str) -> Any:
    # agents are an extra of their own
    if name == "MiddlewareSuite":
        from langchain_libctx.testing.middleware import MiddlewareSuite

        return MiddlewareSuite
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
