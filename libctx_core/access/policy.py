"""Switches of an authority: how strict it is about enrolment, missing scopes and creation."""

from enum import StrEnum


class EnforcementMode(StrEnum):
    """How an active scope treats a resource without metadata."""

    LEGACY_COMPATIBLE = "LEGACY_COMPATIBLE"
    """It stays shared: readable and writable without any right."""

    REQUIRE_ENROLLMENT = "REQUIRE_ENROLLMENT"
    """It is refused with METADATA_UNAVAILABLE."""


class UnscopedPolicy(StrEnum):
    """What a call without any scope may do."""

    LEGACY_ALLOWED = "LEGACY_ALLOWED"
    """Everything: the caller owns the library."""

    DENY = "DENY"
    """Nothing: a scope that was lost on the way to a thread must not open the library."""


class CreatePolicy(StrEnum):
    """Which ids of the proposed metadata a CREATE right must cover."""

    EITHER = "EITHER"
    """The resource id or the boundary id."""

    BOTH = "BOTH"
    """Both: nobody enrols into a foreign boundary or claims a foreign resource id."""


_LEGACY = EnforcementMode.LEGACY_COMPATIBLE


def stricter(first: EnforcementMode, second: EnforcementMode) -> EnforcementMode:
    """Return the stricter of two modes."""
    return second if first is _LEGACY else first
