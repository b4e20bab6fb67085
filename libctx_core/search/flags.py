"""Bits that the index stores for each record."""

ALIVE = 1
"""The record exists; a removed one keeps its position."""

QUESTION = 2
"""Its text ends with a question mark."""

TIME = 4
"""It holds a word of time."""

FIRST_PERSON = 8
"""It speaks of the speaker."""

CAPITALISED = 16
"""It holds a capitalised word inside a sentence, most often a name."""

NUMBER = 32
"""It holds a number."""

OPENING = 64
"""It is the first record of its session."""

CAPTION = 128
"""It carries an attachment."""
