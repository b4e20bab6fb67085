"""What any token counter must do: a suite to subclass.

```python
class TestMyCounter(TextCounterSuite):
    reference = "o200k_base"  # if it claims never to count less than that

    def make_counter(self):
        return MyCounter()
```
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from libctx_core.ports import TextCounter
from libctx_core.testing.texts import AWKWARD_TEXTS, ORDINARY_TEXTS
from libctx_core.tokens import TokenCounter


class TextCounterSuite:
    """Tests of a token counter; subclass it and say how one is made.

    Attributes:
        reference: Encoding whose tokens the counter promises never to undercount, or None.
    """

    reference: str | None = None

    def make_counter(self) -> TextCounter:
        """Return a new counter."""
        raise NotImplementedError

    def test_has_the_port(self) -> None:
        """A stable name, a word on exactness, and a method that counts."""
        first, second = self.make_counter(), self.make_counter()
        assert isinstance(first, TextCounter)
        assert isinstance(first.name, str)
        assert first.name.strip() == first.name == second.name != ""
        assert isinstance(first.exact, bool)

    @pytest.mark.parametrize("text", [*ORDINARY_TEXTS, *AWKWARD_TEXTS], ids=lambda text: f"{len(text)}-{text[:8]!a}")
    def test_counts_any_text(self, text: str) -> None:
        """A whole number, never an exception, the same every time; words cost something."""
        counter = self.make_counter()
        tokens = counter.count(text)
        assert type(tokens) is int
        assert tokens >= (1 if text.strip() else 0)
        assert counter.count(text) == tokens == self.make_counter().count(text)

    @pytest.mark.parametrize("text", [*ORDINARY_TEXTS, *AWKWARD_TEXTS], ids=lambda text: f"{len(text)}-{text[:8]!a}")
    def test_never_falls_below_its_reference(self, text: str) -> None:
        """An estimate errs upwards: the budget is a promise."""
        if self.reference is None:
            assert self.make_counter().count(text) >= 0
            return
        assert self.make_counter().count(text) >= TokenCounter.for_encoding(self.reference).count(text)

    def test_serves_a_governor(self) -> None:
        """Messages are counted with it, overhead included."""
        counter = TokenCounter(self.make_counter())
        message = {"role": "user", "content": ORDINARY_TEXTS[0]}
        assert counter.count_message(message) > counter.count(ORDINARY_TEXTS[0])

    def test_threads_may_share_it(self) -> None:
        """Eight threads at once get what one gets."""
        counter = self.make_counter()
        expected = [counter.count(text) for text in ORDINARY_TEXTS]
        with ThreadPoolExecutor(8) as pool:
            for counts in pool.map(lambda _: [counter.count(text) for text in ORDINARY_TEXTS], range(8)):
                assert counts == expected
