"""The two byte-pair encodings that ship with the package, and counting with them.

Each is built as a private ``tiktoken.Encoding`` from package data: tiktoken's registry, its
cache folder, the environment and the network stay untouched.
"""

import lzma
import re
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final, Literal

from libctx_core.data import read_data

if TYPE_CHECKING:
    import tiktoken

EncodingName = Literal["cl100k_base", "o200k_base"]

COUNTER_VERSION: Final = 1
"""Part of every counter's name; raised when any count would change, by text, framing or margin."""

SLICE_CHARS: Final = 65_536
"""A text is encoded in pieces of about this many characters."""

MAX_BLANK_RUN: Final = 400_000
"""Longest run of blanks given to tiktoken; o200k_base panics at about 1,000,000 of them."""

_PATTERNS: Final[dict[EncodingName, str]] = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""How each encoding splits text before merging; published with tiktoken (MIT)."""

# Where both patterns always split, whatever stands further left or right, so that the pieces
# have together exactly the tokens of the whole: before a space that follows a visible character,
# after a line break before one (a slash may still belong to the line break), between an ASCII
# letter and a digit, between an ideograph or kana and the punctuation behind it. Python counts a
# few more characters as white space than the encoder does, which only makes seams rarer.
_SEAM: Final = re.compile(
    r"(?<=\S)(?= )|(?<=\n)(?=[^\s/])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])"
    r"|(?<=[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff])(?=[\u3001\u3002\uff01\uff0c\uff1f])"
)
_SEAM_WINDOW: Final = 2_048

_BLANK_RUN: Final = re.compile(rf"[^\S\r\n]{{{MAX_BLANK_RUN}}}")

_FILES: Final[dict[EncodingName, str]] = {name: f"{name}.vocab.xz" for name in _PATTERNS}

_build_lock: Final = Lock()


def utf8_length(text: str) -> int:
    """Return the bytes of `text` in UTF-8, at least its tokens in any byte-level encoding.

    A lone surrogate counts three bytes, as the replacement character that encoders put there.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def slices(text: str, size: int = SLICE_CHARS) -> Iterator[str]:
    """Cut `text` where both encodings split anyway, into pieces of about `size` characters.

    A piece grows beyond `size` where no such place is near.
    """
    start = 0
    while len(text) - start > size:
        target = start + size
        seam = -1
        for match in _SEAM.finditer(text, max(start + 1, target - _SEAM_WINDOW), target):
            seam = match.start()
        if seam < 0:
            following = _SEAM.search(text, target)
            if following is None:
                break
            seam = following.start()
        yield text[start:seam]
        start = seam
    yield text[start:]


def _unpack(packed: bytes) -> dict[bytes, int]:
    """Return token to rank from packed data: all lengths, one byte each, then all tokens."""
    plain = lzma.decompress(packed)
    ranks: dict[bytes, int] = {}
    # The lengths end where they and their sum fill the file.
    rest = len(plain)
    count = 0
    while rest > count:
        rest -= plain[count]
        count += 1
    position = count
    for rank in range(count):
        end = position + plain[rank]
        ranks[plain[position:end]] = rank
        position = end
    return ranks


@lru_cache(maxsize=len(_PATTERNS))
def _build(name: EncodingName) -> "tiktoken.Encoding":
    import tiktoken

    ranks = _unpack(read_data(_FILES[name]))
    encoding = tiktoken.Encoding(name, pat_str=_PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    # The encoder holds its own copy; ours would keep tens of megabytes alive.
    ranks.clear()
    return encoding


def load_encoding(name: EncodingName) -> "tiktoken.Encoding":
    """Return the process-wide encoder of `name`, built on first use (0.3 to 0.7 CPU-seconds).

    Raises:
        PackageDataError: Its vocabulary is missing or altered.
    """
    with _build_lock:
        return _build(name)


class EncodingCounter:
    """Counts exactly as ``encode_ordinary`` of one encoding, for text of any size and content.

    Special-token text such as ``<|endoftext|>`` is ordinary text here. Where the encoder gives
    up (a run of blanks as long as `MAX_BLANK_RUN`), the UTF-8 bytes of that piece count instead.

    Raises:
        PackageDataError: The vocabulary is missing or altered (checked on construction; it is
            unpacked on the first count).
    """

    exact = True

    def __init__(self, encoding: EncodingName) -> None:
        read_data(_FILES[encoding])
        self.encoding: EncodingName = encoding
        self.name = f"{encoding}/{COUNTER_VERSION}"
        self._encoder: tiktoken.Encoding | None = None

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`."""
        encoder = self._encoder or self._load()
        if len(text) <= SLICE_CHARS:
            return _count_piece(encoder, text)
        return sum(_count_piece(encoder, piece) for piece in slices(text))

    def exceeds(self, text: str, limit: int, /) -> bool:
        """Return whether `text` has more than `limit` tokens, reading no more of it than needed."""
        encoder = self._encoder or self._load()
        total = 0
        for piece in slices(text):
            total += _count_piece(encoder, piece)
            if total > limit:
                return True
        return False

    def _load(self) -> "tiktoken.Encoding":
        self._encoder = load_encoding(self.encoding)
        return self._encoder


def _count_piece(encoder: "tiktoken.Encoding", piece: str) -> int:
    if len(piece) >= MAX_BLANK_RUN and _BLANK_RUN.search(piece):
        return utf8_length(piece)
    try:
        return len(encoder.encode_ordinary(piece))
    except BaseException as error:
        # The encoder's Rust panics arrive as a BaseException that cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return utf8_length(piece)
