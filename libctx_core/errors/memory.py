"""What can go wrong with a memory, its entries and its citations."""

from libctx_core.errors.base import LibctxError

PowerContextError = LibctxError
"""The seed's name for the root of the tree."""


class MemoryLayerError(PowerContextError):
    """Base of what goes wrong in the memory family."""

    code = "memory"


class CapabilityNotSupportedError(MemoryLayerError, RuntimeError):
    """The memory as it is set up cannot do this.

    Attributes:
        capability: What was asked, e.g. ``"extract"``, ``"vector"`` or ``"head"``.
        detail: Why it cannot, if there is more to say.
    """

    code = "capability_not_supported"

    def __init__(self, capability: str, detail: str | None = None) -> None:
        super().__init__(f"{capability} is not supported here" + (f": {detail}" if detail else ""))
        self.capability = capability
        self.detail = detail


class MemoryEntryError(MemoryLayerError):
    """Base of what goes wrong with one entry.

    Attributes:
        entry_id: The entry.
    """

    code = "memory_entry"
    problem = "cannot be used"

    def __init__(self, entry_id: str) -> None:
        super().__init__(f"memory entry {entry_id!r} {self.problem}")
        self.entry_id = entry_id


class MemoryEntryNotFoundError(MemoryEntryError, LookupError):
    """The memory holds no such entry."""

    code = "memory_entry_not_found"
    problem = "is not in this memory"


class MemoryEntryInactiveError(MemoryEntryError, RuntimeError):
    """The entry was forgotten; reactivate it before revising it."""

    code = "memory_entry_inactive"
    problem = "is inactive; reactivate it first"


class MemoryEntryPurgedError(MemoryEntryNotFoundError):
    """The entry's text was physically deleted; only its tombstone is left."""

    code = "memory_entry_purged"
    problem = "was purged; only its tombstone is left"


class MemoryEntryConflictError(MemoryEntryError, RuntimeError):
    """The entry was changed by somebody else in the meantime; nothing was written.

    Attributes:
        expected: State version the caller went by.
        current: State version that is stored.
    """

    code = "memory_entry_conflict"

    def __init__(self, entry_id: str, expected: int, current: int) -> None:
        super().__init__(entry_id)
        self.args = (f"memory entry {entry_id!r} is at state version {current}, not {expected}; read it and try again",)
        self.expected = expected
        self.current = current


class _CodedError(MemoryLayerError, ValueError):
    """A rule was broken; `code` of the instance names the rule.

    Attributes:
        detail: What is wrong, if there is more to say than the code does.
    """

    def __init__(self, code: str, detail: str | None = None) -> None:
        super().__init__(code if detail is None else f"{code}: {detail}")
        # the seed's instances carry the broken rule in `code`, finer than the class does
        vars(self)["code"] = code
        self.detail = detail


class InvalidMemoryCandidateError(_CodedError):
    """A proposed entry, or the way it is proposed, breaks a rule.

    Codes: ``remember-mode``, ``identity-kind``, ``canonical``, ``duplicate-target``,
    ``id-collision``, ``organize-mode``.
    """

    code = "invalid_memory_candidate"


class InvalidMemoryEvidenceError(_CodedError):
    """Evidence of an entry cannot be accepted.

    Codes: ``source-resolver``, ``artifact-resolver``, ``source-outside``,
    ``artifact-outside``, ``projection``, ``source-adapter``.
    """

    code = "invalid_memory_evidence"


class InvalidEmbeddingError(_CodedError):
    """A vector breaks the rules of its profile.

    Codes: ``count``, ``dimension``, ``finite``, ``zero``.
    """

    code = "invalid_embedding"


class InvalidMemoryCitationError(_CodedError):
    """A memory, hit or citation does not match what is stored.

    Codes: ``base-mismatch``, ``memory-mismatch``, ``duplicate-versions``,
    ``missing-version``, ``cross-identity``, ``hash-mismatch``, ``expand-count``,
    ``expand-anchor``, ``entry-mismatch``, ``entry-missing``, ``projection-version``.
    """

    code = "invalid_memory_citation"


class MemoryBackendConfigurationError(MemoryLayerError, RuntimeError):
    """A backend cannot satisfy the configuration it declares."""

    code = "memory_backend_configuration"
