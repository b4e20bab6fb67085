"""Texts that suites try: plain ones, and everything that has broken something somewhere."""

ORDINARY_TEXTS = [
    "The gate of the marina opens with a code.",
    "Never deploy on a Friday.",
    "Wie hoch ist die Brücke am alten Hafen?",
    "El tren sale a las siete de la mañana.",
    "def add(a, b):\n    return a + b",
    "Three herons stood on the jetty all morning.",
]
"""Plain words, a few languages, a little code; all different."""

AWKWARD_TEXTS = [
    "",
    " \n\t ",
    "\x00",
    "\ud800 alone",
    "😀" * 40,
    "👨‍👩‍👧‍👦 and ☕️",
    "日本語のテキストと漢字",
    "مرحبا بالعالم",
    "\u202eright to left\u202c",
    "e\u0301" * 50,
    "{}[]();:<>/\\|`~!@#$%^&*",
    "<|endoftext|>",
    "a" * 100_000,
    " " * 100_000,
    "word " * 20_000,
    "0123456789" * 2_000,
]
"""Blank, huge, of other scripts, with control characters, and one that is no valid Unicode."""
