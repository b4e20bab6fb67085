"""How a token budget is shared out: plain arithmetic, no I/O."""

from dataclasses import dataclass

from libctx_core.errors import InvalidBudgetError

RECENT_SHARE = 0.80
"""Default share of the window for recent events. They are a stable prefix, so a large
share costs little where providers bill cached prefixes at a fraction."""

PROTECTED_SHARE = 0.15
DESK_FLOOR = 0.12
"""Share recent events never take, so that one retrieved item always finds room."""

DESK_SHARE = 0.5
"""Default ceiling of the desk; it reaches it only with items that are relevant enough."""

WINDOW_FLOOR = 0.25
"""Share of the recent window that remains right after it moved. A small share moves the
window less often, which keeps the prefix; a large one keeps more of the last turns."""

WHOLE_TURNS = WINDOW_FLOOR / 2
"""Share of the recent window that whole turns must fill; below it, the turn in which the
window begins is so long that its question and its newest steps are shown as well. Half the
floor: where turns are of common size, the floor less the turn that was cut is more."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """Token limits of one request.

    Attributes:
        total: The whole request, tools and system prompt included.
        recent: Ceiling of recent events.
        protected: Ceiling of protected events.
        desk: Ceiling of retrieved items.
    """

    total: int
    recent: int
    protected: int
    desk: int

    @property
    def desk_floor(self) -> int:
        """Tokens kept free of recent events."""
        return min(self.desk, int(self.total * DESK_FLOOR))


def resolve_budgets(
    total: int,
    *,
    recent: int | None = None,
    protected: int | None = None,
    desk: int | None = None,
    max_output_tokens: int = 0,
    window: int | None = None,
) -> Budgets:
    """Check budgets and fill in the shares that were not given.

    Args:
        total: Tokens of a request, from 1 up to the model's window.
        recent: Ceiling of recent events; default 80 % of `total`.
        protected: Ceiling of protected events; default 15 %.
        desk: Ceiling of retrieved items; default 50 %.
        max_output_tokens: Taken off `total` for the reply.
        window: The model's input window, if known.

    Raises:
        InvalidBudgetError: A number is not positive, or larger than what holds it.
    """
    _positive("token_budget", total)
    if window is not None and total > window:
        raise InvalidBudgetError("token_budget", f"is {total}, the model's window is {window}")
    if type(max_output_tokens) is not int or not 0 <= max_output_tokens < total:
        raise InvalidBudgetError("max_output_tokens", f"must be at least 0 and below the token_budget of {total}")
    available = total - max_output_tokens
    return Budgets(
        total=available,
        recent=_part("recent_token_budget", recent, available, RECENT_SHARE),
        protected=_part("protected_token_budget", protected, available, PROTECTED_SHARE),
        desk=_part("desk_token_budget", desk, available, DESK_SHARE),
    )


def _positive(field: str, value: object) -> None:
    if type(value) is not int or value <= 0:
        detail = f"is {value}" if type(value) is int else f"is of type {type(value).__name__}"
        raise InvalidBudgetError(field, f"must be a whole number of tokens above 0, {detail}")


def _part(field: str, given: int | None, total: int, share: float) -> int:
    if given is None:
        return int(total * share)
    if type(given) is not int or given < 0:
        raise InvalidBudgetError(field, "must be a whole number of tokens, 0 or more")
    if given > total:
        raise InvalidBudgetError(field, f"is {given}, the whole request holds {total}")
    return given


def window_start(running_total: int, high: int) -> int:
    """Return the running total before which recent events are left out.

    The window grows with each turn until it would exceed `high` and then moves by
    three quarters of it at once: between two moves every request begins with the
    bytes of the one before. It depends on nothing but the log, so two processes, or
    one before and after a restart, agree.
    """
    if running_total <= high or high <= 0:
        return max(0, running_total) if high <= 0 else 0
    step = max(1, high - int(high * WINDOW_FLOOR))
    return -(-(running_total - high) // step) * step
