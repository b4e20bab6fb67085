"""Does a turn ask for something? A question deserves an open desk; small talk rarely needs one."""

import re

_CUES = (
    "what|whats|which|who|whos|whom|whose|when|where|why|how|did|do|does|is|are|was|were|am|can|could|will|would|"
    "should|shall|may|might|has|have|had|any|remind|tell|recall|remember|list|name|summari[sz]e|explain|show|find|"
    "look|search|check|give|compare|repeat|quote|describe|continue|draft|write|plan|prepare|update|fix|"
    # the same in some other languages written with spaces
    "was|wer|wen|wem|wann|wo|woher|wohin|warum|wieso|wie|welche[rsmn]?|"
    "qui|que|quoi|quel(?:le)?s?|quand|où|pourquoi|comment|combien|"
    "qué|quién|cuál|cuándo|dónde|por qué|cómo|cuánt[oa]s?"
)
_START = re.compile(
    rf"(?:^|[.!?\n:;]\s*|\b(?:and|but|so|ok|okay|please|also|then|well|hey|hi)\b[\s,]*)(?:{_CUES})\b", re.IGNORECASE
)
_MARKS = re.compile(r"[?？؟]|(?:か|吗|呢|까|나요)[。.!！]?\s*$")


def asks(text: str) -> bool:
    """Tell whether a text asks or instructs, by its marks and by the words its clauses begin with.

    A text in a script it does not know the words of counts as asking only by its marks.
    """
    return bool(_MARKS.search(text) or _START.search(text))
