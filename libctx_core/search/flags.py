"""Bits that the index stores for each record."""

ALIVE = 1
"""The record exists; a removed one keeps its position."""

QUESTION = 2
"""Its text ends with a question mark."""

TIME = 4
"""It holds a word of time."""

FIRST_PERSON = 8
"""It speaks of the speaker."""

SPOKEN = 16
"""It is part of a conversation: it has a role, a speaker or a time."""
