"""A user's own counting function in the shape of a counter."""

import hashlib
import logging
from collections.abc import Callable
from types import CodeType

from libctx_core.tokens.encodings import utf8_length

_log = logging.getLogger("libctx.tokens")


def callable_name(function: Callable[[str], int]) -> str:
    """Return a name for `function` that is stable while its code is.

    Counts are stored under it, so two different lambdas must not share one.
    """
    code = getattr(function, "__code__", None)
    qualname = getattr(function, "__qualname__", type(function).__qualname__)
    name = f"{getattr(function, '__module__', None) or type(function).__module__}.{qualname}"
    return f"{name}#{_fingerprint(code)}" if isinstance(code, CodeType) else name


def _fingerprint(code: CodeType) -> str:
    constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
    content = repr((code.co_code, code.co_names, constants))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]


class CallableCounter:
    """Counts with a function from text to a number of tokens.

    A function that raises, or returns anything but a whole number of at least 0, costs no turn: the
    UTF-8 bytes of that text count instead, and the log says so once.
    """

    def __init__(self, function: Callable[[str], int], name: str | None = None, *, exact: bool = True) -> None:
        self.name = name or callable_name(function)
        self.exact = exact
        self._function = function
        self._warned = False

    def count(self, text: str, /) -> int:
        """Return the function's count of `text`, or its UTF-8 bytes when there is none."""
        try:
            tokens = self._function(text)
        except Exception as error:  # noqa: BLE001 - foreign code; reported by the log below
            self._warn(error)
            return utf8_length(text)
        if type(tokens) is int and tokens >= 0:
            return tokens
        self._warn(None)
        return utf8_length(text)

    def _warn(self, error: Exception | None) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("token counter %r gave no count; UTF-8 bytes are used instead", self.name, exc_info=error)
