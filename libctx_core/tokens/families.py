"""Which encoding a model name stands for, and how far other families may exceed it.

Sources: the model table of tiktoken for OpenAI names. The margins are the worst totals per kind of
text (chat, code, JSON, logs, hexadecimal, 20 scripts) that the families' own published vocabularies
gave against the larger of cl100k_base and o200k_base, rounded up; Claude's newer vocabularies are not
published, so its margin starts from the published one (1.29 on English and code) and leaves room.
"""

import re
from typing import Final

from libctx_core.tokens.bounds import Margin
from libctx_core.tokens.encodings import EncodingName

_OPENAI: Final[tuple[tuple[re.Pattern[str], EncodingName], ...]] = (
    (re.compile(r"(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|gpt-oss|o[134])(?![a-z0-9])"), "o200k_base"),
    (
        re.compile(r"(gpt-4|gpt-3\.?5|text-embedding-(3-small|3-large|ada-002)|(davinci|babbage)-002)(?![a-z0-9.])"),
        "cl100k_base",
    ),
    (re.compile(r"cl100k_base$"), "cl100k_base"),
    (re.compile(r"o200k_(base|harmony)$"), "o200k_base"),
)

# Tokens that a family with one token per digit adds where the reference takes three digits at once.
_ONE_TOKEN_PER_DIGIT: Final = 0.67

_FAMILIES: Final[tuple[tuple[re.Pattern[str], str, Margin], ...]] = (
    (re.compile(r"claude"), "claude", Margin(1.5)),
    (re.compile(r"qwen|qwq"), "qwen", Margin(1.15, _ONE_TOKEN_PER_DIGIT)),
    (re.compile(r"deepseek"), "deepseek", Margin(1.45)),
    (re.compile(r"llama-?(3|4)"), "llama3", Margin(1.0)),
    (re.compile(r"llama|vicuna|mistral-7b|mixtral|phi-3"), "llama2", Margin(1.6, _ONE_TOKEN_PER_DIGIT)),
)

OTHER: Final = ("other", Margin(1.3, _ONE_TOKEN_PER_DIGIT))
"""Family and margin of a model that no rule knows."""


def encoding_for(model: str) -> EncodingName | None:
    """Return the encoding that `model` really uses, or None when it has another vocabulary.

    A provider prefix (``openai/gpt-4o``), a fine-tuning prefix (``ft:gpt-4o:…``), a date or a
    deployment suffix do not matter; nor does case.
    """
    name = model.strip().lower().rsplit("/", 1)[-1].removeprefix("ft:")
    return next((encoding for pattern, encoding in _OPENAI if pattern.match(name)), None)


def family_of(model: str) -> tuple[str, Margin]:
    """Return the family name and margin of a model whose vocabulary is not at hand."""
    name = model.strip().lower()
    return next(((family, margin) for pattern, family, margin in _FAMILIES if pattern.search(name)), OTHER)
