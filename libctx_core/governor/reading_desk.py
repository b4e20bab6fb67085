"""A desk on its own: the bounded set of retrieved books for one thread and one subject after another."""

from collections.abc import Callable

from libctx_core import display
from libctx_core.errors import InvalidBudgetError
from libctx_core.governor import desk as desks
from libctx_core.governor.envelope import Desk
from libctx_core.models import Hit
from libctx_core.tokens import TokenCounter


class ReadingDesk:
    """Holds what was last retrieved, within a token budget, and says what each turn swapped.

    Args:
        retrieve: Finds hits for a subject.
        counter: Counts tokens.
        token_budget: Tokens the desk may hold.
    """

    def __init__(self, retrieve: Callable[[str], list[Hit]], counter: TokenCounter, token_budget: int) -> None:
        if type(token_budget) is not int or token_budget < 1:
            raise InvalidBudgetError("token_budget", "must be a whole number of tokens above 0")
        self._retrieve = retrieve
        self._counter = counter
        self._budget = token_budget
        self.subject: str | None = None
        self.desk = Desk()
        self.text = ""
        self.token_count = 0

    def turn_to(self, subject: str) -> Desk:
        """Retrieve for a subject; what is no longer relevant leaves the desk."""
        items = desks.candidates(self._retrieve(subject), self._counter, self._budget)
        chosen, block, tokens = desks.fill(items, self._budget, self._counter)
        before = [item.hit.record_id for item in self.desk.items]
        self.desk = desks.changes(before, chosen)
        self.subject = subject
        self.text = "" if block is None else str(block["content"])
        self.token_count = tokens
        return self.desk

    def clear(self) -> Desk:
        """Take everything off the desk."""
        before = [item.hit.record_id for item in self.desk.items]
        self.desk = desks.changes(before, [])
        self.subject, self.text, self.token_count = None, "", 0
        return self.desk

    def __str__(self) -> str:
        return display.desk_summary(self.desk)

    def _repr_html_(self) -> str:
        return display.desk_html(self.desk)
