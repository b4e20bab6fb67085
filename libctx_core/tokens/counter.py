"""The one token counter of the library."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, get_args, runtime_checkable

from libctx_core.errors import InvalidInputError, PackageDataError
from libctx_core.ports import TextCounter
from libctx_core.tokens import messages as rules
from libctx_core.tokens.bounds import FamilyEstimate, LargerOf, Utf8Bound
from libctx_core.tokens.custom import CallableCounter
from libctx_core.tokens.encodings import EncodingCounter, EncodingName
from libctx_core.tokens.families import encoding_for, family_of

_log = logging.getLogger("libctx.tokens")

SHORT_TEXT: Final = 512
"""Texts of up to this many characters are counted once and remembered."""
REMEMBERED_TEXTS: Final = 8_192

_ENCODINGS: Final[tuple[EncodingName, ...]] = get_args(EncodingName)


@runtime_checkable
class _EarlyExit(Protocol):
    def exceeds(self, text: str, limit: int, /) -> bool: ...


class TokenCounter:
    """Counts text, messages, content blocks and tool schemas with one vocabulary.

    Make one with `for_model` or `for_encoding`, or from a counter of your own. Instances are
    immutable, may be shared between threads, and never touch the network or the environment.

    Args:
        counter: Anything with `name`, `exact` and `count` (`libctx_core.ports.TextCounter`), or a
            function from text to a whole number.
        name: Name under which counts are stored; needed where a function's behaviour can change
            without its code.

    Attributes:
        name: Stable name of vocabulary and counting rules. Counts stored under another name are
            counted again.
        exact: Whether `count` gives the model's own number; otherwise it is an upper estimate.
        lines_add_up: Whether the count of a text is the sum over its lines, each with its line
            break, where every line begins with a bracket and breaks once. Both encodings split
            there before they merge anything; of other counters it is not known.
    """

    __slots__ = ("_backend", "_short", "exact", "lines_add_up", "name")

    def __init__(self, counter: TextCounter | Callable[[str], int], *, name: str | None = None) -> None:
        backend = counter if isinstance(counter, TextCounter) else CallableCounter(counter, name)
        self.name: Final = name or backend.name
        self.exact: Final = backend.exact
        self.lines_add_up: Final = isinstance(backend, EncodingCounter)
        self._backend: Final = backend
        self._short: Final = lru_cache(maxsize=REMEMBERED_TEXTS)(backend.count)

    @staticmethod
    def for_model(model: str | None = None) -> "TokenCounter":
        """Return the counter of a model.

        Args:
            model: A model name in any provider's spelling (``gpt-4o``, ``openai/gpt-4.1``,
                ``claude-sonnet-4-5``), or None when the model is not known: then the larger of
                cl100k_base and o200k_base counts, which holds under both. A name outside OpenAI's
                families gets that larger count times the margin of its family, an estimate.
        """
        return _for_model(None if model is None or not model.strip() else model)

    @staticmethod
    def for_encoding(name: str) -> "TokenCounter":
        """Return the exact counter of an encoding, ``cl100k_base`` or ``o200k_base``.

        Without its vocabulary (a damaged installation) UTF-8 bytes count instead, a strict upper
        bound; `exact` is then False and the log says so once.

        Raises:
            InvalidInputError: No such encoding ships with the library.
        """
        return _for_encoding(name)

    def count(self, text: str, /) -> int:
        """Return the tokens of plain text; never raises for any string."""
        if len(text) <= SHORT_TEXT:
            return self._short(text)
        return self._backend.count(text)

    def exceeds(self, text: str, limit: int, /) -> bool:
        """Return whether `text` has more than `limit` tokens, reading no more of it than needed."""
        if len(text) > SHORT_TEXT and isinstance(self._backend, _EarlyExit):
            return self._backend.exceeds(text, limit)
        return self.count(text) > limit

    def count_block(self, block: Mapping[str, Any] | str) -> int:
        """Return the tokens of one content block; media are estimates, base64 is never text."""
        return rules.block_tokens(block, self.count)

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return the tokens of one message with role, name, tool calls, ids and framing."""
        return rules.message_tokens(message, self.count)

    def count_messages(self, messages: Iterable[Mapping[str, Any]]) -> int:
        """Return the tokens of a request: its messages, and once the frame of the reply."""
        return rules.messages_tokens(messages, self.count)

    def count_tools(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """Return the tokens of tool schemas (JSON objects as sent to the provider)."""
        return rules.tools_tokens(tools, self.count)

    def __repr__(self) -> str:
        return f"TokenCounter({self.name!r}, exact={self.exact})"


@lru_cache(maxsize=64)
def _for_model(model: str | None) -> TokenCounter:
    encoding = encoding_for(model) if model is not None else None
    if encoding is not None:
        return TokenCounter(_encoding_or_bytes(encoding))
    counters = [_encoding_or_bytes(name) for name in _ENCODINGS]
    bound = next((counter for counter in counters if not counter.exact), None)
    reference = bound or LargerOf(*counters)
    if model is None:
        return TokenCounter(reference)
    return TokenCounter(FamilyEstimate(family_of(model)[0], reference, family_of(model)[1]))


@lru_cache(maxsize=8)
def _for_encoding(name: str) -> TokenCounter:
    encoding = next((known for known in _ENCODINGS if known == name), None)
    if encoding is None:
        raise InvalidInputError("encoding", f"no such vocabulary here; there are {' and '.join(_ENCODINGS)}")
    return TokenCounter(_encoding_or_bytes(encoding))


@lru_cache(maxsize=len(_ENCODINGS))
def _encoding_or_bytes(name: EncodingName) -> TextCounter:
    try:
        return EncodingCounter(name)
    except PackageDataError as error:
        _log.warning("tokens are counted as UTF-8 bytes, a safe upper bound: %s", error)
        return Utf8Bound()
