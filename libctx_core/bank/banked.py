"""The banked context: one active window per bank, and the page it was swapped in from."""

from typing import Final

from libctx_core.access import MetadataState, Operation, ResourceKind
from libctx_core.bank.codec import WINDOW
from libctx_core.bank.pages import Pages
from libctx_core.bank.state import BANKED_KEY
from libctx_core.bank.window import ContextWindow

_KIND: Final = str(ResourceKind.BANKED_CONTEXT)
_SHOWN: Final = "<banked-context>"


class BankedContext:
    """The active window of a bank. It lives in memory; its enrolment lives in the store."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    def _metadata(self) -> MetadataState:
        return self._pages.state.stored.head(_KIND, BANKED_KEY).metadata

    def _require_source(self) -> None:
        """Demand READ on the page it came from: being swapped in does not make it public."""
        source = self._pages.state.banked_source
        if source is not None:
            plane = self._pages.plane_of(self._pages.mode_for(source, skip_remote=False))
            self._pages.authority.require(Operation.READ, *source, self._pages.facts(plane, source).metadata)

    def read(self, *, copy: bool = True) -> ContextWindow:
        """Return the window, a copy of it unless `copy` is False, which a scope refuses.

        Raises:
            ContextAccessDenied: READ is not allowed, here or on the page it came from.
        """
        state = self._pages.state
        with state.lock((_KIND, BANKED_KEY)):
            if copy:
                self._pages.authority.require(Operation.READ, _KIND, _SHOWN, self._metadata)
            else:
                self._pages.authority.refuse_reference(Operation.READ, _KIND, _SHOWN, self._metadata)
            self._require_source()
            return state.banked.copy() if copy else state.banked

    def reference(self) -> ContextWindow:
        """Return the live window; refused at once under a scope.

        Raises:
            ContextAccessDenied: A scope is in force, or one is needed.
        """
        self._pages.authority.refuse_reference(Operation.READ, _KIND, _SHOWN, None, checked=False)
        return self._pages.state.banked

    def update(self, window: ContextWindow) -> None:
        """Make a copy of `window` the active one.

        Raises:
            ContextAccessDenied: WRITE is not allowed.
        """
        state = self._pages.state
        replacement = WINDOW.check(window).copy()
        with state.lock((_KIND, BANKED_KEY)):
            self._pages.authority.require(Operation.WRITE, _KIND, _SHOWN, self._metadata)
            state.banked, state.banked_source = replacement, None

    def swap(self, key: str) -> None:
        """Make a copy of a page the active window.

        Raises:
            ContextAccessDenied: WRITE here or READ on the page is not allowed.
        """
        state = self._pages.state
        self._pages.authority.require(Operation.WRITE, _KIND, _SHOWN, self._metadata)
        page = self._pages.read(WINDOW, key)
        with state.lock((_KIND, BANKED_KEY)):
            self._pages.authority.require(Operation.WRITE, _KIND, _SHOWN, self._metadata)
            state.banked, state.banked_source = page, (WINDOW.kind, key)

    def clear(self) -> None:
        """Make an empty window the active one."""
        self.update(ContextWindow())
