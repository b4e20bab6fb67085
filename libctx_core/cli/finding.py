"""What one check found, and what to do about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from libctx_core.errors import LibctxError

State = Literal["ok", "warning", "fault"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        check: What was looked at.
        state: ``ok``; ``warning``, worth knowing; ``fault``, to be mended.
        found: What was seen.
        advice: What to do; empty when all is well.
    """

    check: str
    state: State
    found: str
    advice: str = ""


def well(check: str, found: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, "ok", found)


def judged(check: str, found: str, *, good: bool, advice: str, otherwise: State = "fault") -> Finding:
    """Return a finding that is well if `good`, and `otherwise` with its advice."""
    return well(check, found) if good else Finding(check, otherwise, found, advice)


def attempted(check: str, look: Callable[[], Finding], advice: str) -> Finding:
    """Return what a check found; an exception in it is a fault with the given advice."""
    try:
        return look()
    except LibctxError as error:
        return Finding(check, "fault", f"{error.code}: {error}", advice)
    except Exception as error:  # noqa: BLE001 - a doctor reports whatever fails, and looks further
        return Finding(check, "fault", f"{type(error).__name__}: {error}", advice)
