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

from langchain_libctx.testing.envelopes import Violation, violations
from langchain_libctx.testing.history import HistorySuite
from langchain_libctx.testing.memory import MemorySuite

__all__ = ["HistorySuite", "MemorySuite", "Violation", "violations"]
