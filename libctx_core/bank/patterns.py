"""Regular expressions that a model supplies, run in time that does not explode."""

import importlib.util
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from re import _constants as opcodes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final, TypeAlias

from libctx_core.errors.bank import PatternError

MAX_PATTERN: Final = 256
"""Characters of a pattern."""
MAX_TEXT: Final = 4096
"""Characters searched without RE2, where one pass can be quadratic in them."""

Extract: TypeAlias = Callable[[str], str]

_SINGLE: Final = {opcodes.LITERAL, opcodes.NOT_LITERAL, opcodes.ANY, opcodes.IN, opcodes.CATEGORY}
_REPEATS: Final = {opcodes.MAX_REPEAT, opcodes.MIN_REPEAT, opcodes.POSSESSIVE_REPEAT}


@lru_cache(maxsize=256)
def extractor(pattern: str) -> Extract:
    """Return a function that gives the first match of a pattern in a text, or "".

    RE2, which is linear, is used where it is installed. Without it only patterns that
    cannot backtrack exponentially are accepted: at most one alternation, or one repetition
    of varying length, of a single character or class.

    Raises:
        PatternError: The pattern is malformed, too long, or not accepted without RE2.
    """
    if not pattern:
        return lambda text: ""
    if len(pattern) > MAX_PATTERN:
        raise PatternError("extract_regex", f"exceeds {MAX_PATTERN} characters")
    return _with_re2(pattern) if importlib.util.find_spec("re2") else _with_standard_library(pattern)


def _with_re2(pattern: str) -> Extract:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError("extract_regex", "is not a pattern that RE2 understands") from error

    def extract(text: str) -> str:
        found = compiled.search(text)
        return "" if found is None else str(found.group(0))

    return extract


def _with_standard_library(pattern: str) -> Extract:
    try:
        compiled = re.compile(pattern)
        places = _backtracking_places(parser.parse(pattern))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError("extract_regex", "is malformed") from error
    if places > 1:
        raise PatternError(
            "extract_regex",
            "may hold one repetition of a character or class, or one alternation; install libctx-core[regex] for more",
        )

    def extract(text: str) -> str:
        found = compiled.search(text, 0, MAX_TEXT)
        return "" if found is None else found.group(0)

    return extract


def _backtracking_places(items: Iterable[tuple[Any, Any]]) -> int:
    """Return how many places can backtrack; more than 1 also for what is not accepted at all."""
    total = 0
    for operation, argument in items:
        if operation in _REPEATS:
            low, high, body = argument
            if len(body) != 1 or body[0][0] not in _SINGLE or low > MAX_PATTERN:
                return 2
            total += low != high
        elif operation is opcodes.SUBPATTERN:
            total += _backtracking_places(argument[3])
        elif operation is opcodes.BRANCH:
            total += 1 + max(_backtracking_places(branch) for branch in argument[1])
        elif operation not in _SINGLE and operation is not opcodes.AT:
            return 2
    return total
