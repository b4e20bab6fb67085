"""Settings of token budgets, and the arithmetic from a model's window to what context may take."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from libctx_core.bank.prompts import fit_prompt
from libctx_core.errors import InvalidBudgetError
from libctx_core.tokens import TokenCounter
from libctx_core.tokens.truncation import Where


class TruncationMethod(StrEnum):
    """Which end is cut away first."""

    TOP = "TruncateTop"
    """The oldest goes: kept is the end."""

    BOTTOM = "TruncateBottom"
    """The newest goes: kept is the beginning."""

    MIDDLE = "TruncateMiddle"
    """What lies between goes: kept are both ends."""


class MultiPageBudgetStrategy(StrEnum):
    """How several pages share one budget."""

    EQUAL_SPLIT = "EQUAL_SPLIT"
    WEIGHTED_SPLIT = "WEIGHTED_SPLIT"
    PRIORITY_FILL = "PRIORITY_FILL"
    DYNAMIC_FILL = "DYNAMIC_FILL"
    DYNAMIC_SIZE_FILL = "DYNAMIC_SIZE_FILL"


WHERE: Final[Mapping[TruncationMethod, Where]] = {
    TruncationMethod.TOP: "top",
    TruncationMethod.BOTTOM: "bottom",
    TruncationMethod.MIDDLE: "middle",
}
"""The part of a text that each method cuts away."""


@dataclass(frozen=True, slots=True)
class TruncationSettings:
    """What changes how a window is cut to its budget; counting is the token counter's business.

    Attributes:
        multiply_window_size_by: Factor on the budget; 0 or below leaves it as it is.
        fill_mode: Give the lorebook the whole budget first and fill it up with entries the
            text did not call for.
        fill_and_split_mode: Like `fill_mode`, but at most half where there is other content.
        preserve_text_matches: Keep elements and turns that share a word with the text first.
    """

    multiply_window_size_by: float = 0.0
    fill_mode: bool = False
    fill_and_split_mode: bool = False
    preserve_text_matches: bool = False

    def budget(self, max_tokens: int) -> int:
        """Return the budget after the factor, never below zero."""
        factor = self.multiply_window_size_by
        return max(0, int(max_tokens * factor) if factor > 0 else max_tokens)


@dataclass(frozen=True, slots=True)
class TokenBudgetSettings:
    """How the tokens of one model call are divided.

    Attributes:
        user_prompt_size: Tokens reserved for the user's prompt; None takes what it needs.
        max_tokens: Tokens reserved for the answer.
        reasoning_budget: Tokens for reasoning, within `max_tokens` unless subtracted from the input.
        context_window_size: The model's window; None allows no context.
        subtract_reasoning_from_input: Take the reasoning out of the input instead.
        allow_user_prompt_truncation: Cut a prompt that is too long instead of refusing it.
        preserve_json_in_user_prompt: Cut around JSON objects and whole turns, never inside them.
        compress_user_prompt: Collapse white space of a prompt that is too long, before cutting.
        truncate_context_window_as_string: Flatten a window to text and cut that.
        preserve_text_matches: Keep what shares words with the prompt first.
        truncation_method: Which end is cut away first.
        multi_page_budget_strategy: How several pages share the context's budget.
        page_weights: Weights of pages, for WEIGHTED_SPLIT.
        reserve_empty_page_budget: Whether empty pages keep their share.
    """

    user_prompt_size: int | None = None
    max_tokens: int | None = None
    reasoning_budget: int | None = None
    context_window_size: int | None = None
    subtract_reasoning_from_input: bool = False
    allow_user_prompt_truncation: bool = False
    preserve_json_in_user_prompt: bool = True
    compress_user_prompt: bool = False
    truncate_context_window_as_string: bool = False
    preserve_text_matches: bool = False
    truncation_method: TruncationMethod = TruncationMethod.TOP
    multi_page_budget_strategy: MultiPageBudgetStrategy = MultiPageBudgetStrategy.DYNAMIC_SIZE_FILL
    page_weights: Mapping[str, float] | None = None
    reserve_empty_page_budget: bool = True

    def available_context(self) -> int:
        """Return the tokens left for context by the settings alone, 0 without a window size."""
        if self.context_window_size is None:
            return 0
        reasoning = (self.reasoning_budget or 0) if self.subtract_reasoning_from_input else 0
        taken = (self.max_tokens or 0) + reasoning + (self.user_prompt_size or 0)
        return max(0, self.context_window_size - taken)


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """One call's tokens, divided.

    Attributes:
        prompt: The user's prompt, shortened if it had to be.
        prompt_tokens: Tokens of it.
        context_tokens: What context may take.
        answer_tokens: What the answer may take, reasoning excluded.
        reasoning_tokens: What reasoning may take.
    """

    prompt: str
    prompt_tokens: int
    context_tokens: int
    answer_tokens: int
    reasoning_tokens: int


_BLANKS: Final = re.compile(r"[ \t]+")
_GAPS: Final = re.compile(r"\s*\n\s*\n\s*")


def plan_prompt(
    settings: TokenBudgetSettings,
    prompt: str,
    counter: TokenCounter,
    *,
    system_prompt_tokens: int = 0,
    binary_tokens: int = 0,
) -> PromptPlan:
    """Divide a model's window among system prompt, answer, reasoning, prompt and context.

    Args:
        settings: The division.
        prompt: The user's prompt.
        counter: Counts tokens.
        system_prompt_tokens: Tokens of the system prompt, tools included.
        binary_tokens: Tokens of attachments.

    Raises:
        InvalidBudgetError: A part does not fit; the field names which.
    """
    if settings.context_window_size is None:
        raise InvalidBudgetError("context_window_size", "must be set")
    left = _take("system_prompt", settings.context_window_size, system_prompt_tokens)
    answer, reasoning = settings.max_tokens or 0, settings.reasoning_budget or 0
    left = _take("max_tokens", left, answer)
    if settings.subtract_reasoning_from_input:
        left = _take("reasoning_budget", left, reasoning)
    elif reasoning > answer:
        raise InvalidBudgetError("reasoning_budget", f"of {reasoning} exceeds max_tokens of {answer}")
    else:
        answer -= reasoning
    reserved = settings.user_prompt_size
    if reserved is not None and reserved > left:
        raise InvalidBudgetError("user_prompt_size", f"of {reserved} exceeds the {left} tokens that are left")
    room = left if reserved is None else reserved
    prompt = _shorten(settings, prompt, room, counter)
    used = counter.count(prompt)
    left -= used if reserved is None else reserved
    if binary_tokens:
        left = _take("binary_tokens", left, binary_tokens)
    return PromptPlan(prompt, used, left, answer, reasoning)


def _take(part: str, left: int, tokens: int) -> int:
    rest = left - tokens
    if tokens < 0 or rest <= 0:
        raise InvalidBudgetError(part, f"of {tokens} leaves nothing of {left} tokens")
    return rest


def _shorten(settings: TokenBudgetSettings, prompt: str, room: int, counter: TokenCounter) -> str:
    if not counter.exceeds(prompt, room):
        return prompt
    if settings.compress_user_prompt and not prompt.lstrip().startswith(("{", "[", "<")):
        prompt = _GAPS.sub("\n\n", _BLANKS.sub(" ", prompt)).strip()
        if not counter.exceeds(prompt, room):
            return prompt
    if not settings.allow_user_prompt_truncation:
        raise InvalidBudgetError(
            "user_prompt", f"of {counter.count(prompt)} tokens exceeds {room}; shorten it or allow truncation"
        )
    return fit_prompt(
        prompt,
        room,
        counter,
        where=WHERE[settings.truncation_method],
        keep_json=settings.preserve_json_in_user_prompt,
    )
