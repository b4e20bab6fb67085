"""One tree of errors; catch `LibctxError` to catch them all, match on `code` to tell them apart.

```
LibctxError
├── InvalidInputError (ValueError)
│   ├── BlankContentError · InvalidTextError · UnknownRoleError
│   ├── InvalidIdentifierError · InvalidBudgetError
│   └── InvalidMetadataError · InvalidFilterError
├── FilterTypeError (TypeError)
├── OptionalDependencyError (ImportError) · PackageDataError (RuntimeError)
├── EventConflictError (ValueError) · EventNotFoundError (LookupError)
├── ThreadNotFoundError (LookupError) · RecordNotFoundError (LookupError)
├── TurnTooLargeError (ValueError) · FreshnessTimeout (TimeoutError)
├── StoreError (RuntimeError)
│   ├── StoreMissingError (FileNotFoundError) · StorePathError (OSError)
│   ├── ForeignDatabaseError (ValueError) · NewerSchemaError · StoreCorruptError
│   ├── StoreReadOnlyError (PermissionError) · StoreFullError (OSError)
│   └── StoreBusyError (TimeoutError) · StoreClosedError
├── EmbeddingDimensionError (ValueError) · EmbeddingProfileError (ValueError)
├── ContextAccessDenied (PermissionError) · AdminTokenError (PermissionError)
├── ScopeActiveError · ScopeLeakError · ResourceExistsError · MetadataCapabilityError (RuntimeError)
├── ScopeForgeryError (TypeError)
├── SourceError
│   ├── SourceNotFoundError · SourceAdapterNotFoundError · SourceVanishedError (LookupError)
│   ├── InvalidSourceAdapterError · InvalidSourceEntryError · InvalidSourceResultError (TypeError)
│   ├── SourceConflictError · InvalidSourceReferenceError (ValueError)
│   ├── SourceUnreadableError (ValueError) · its SourceTooLargeError
│   └── SourceChangedError (RuntimeError)
├── ArtifactError
│   ├── ArtifactNotFoundError (LookupError) · RevisionConflictError (RuntimeError)
│   └── InvalidArtifactReferenceError · ArtifactFamilyMismatchError (ValueError)
├── GenerationConflictError (RuntimeError)
├── MemoryLayerError
│   ├── CapabilityNotSupportedError · MemoryBackendConfigurationError (RuntimeError)
│   ├── MemoryEntryError
│   │   ├── MemoryEntryNotFoundError (LookupError) · its MemoryEntryPurgedError
│   │   └── MemoryEntryInactiveError · MemoryEntryConflictError (RuntimeError)
│   └── InvalidMemoryCandidateError · InvalidMemoryEvidenceError
│       · InvalidEmbeddingError · InvalidMemoryCitationError (ValueError)
├── InferenceError
│   ├── InferenceConfigurationError · InferenceUnavailableError (RuntimeError)
│   ├── InferenceTimeoutError (TimeoutError)
│   └── InvalidInferenceOutputError (ValueError)
└── PluginError (RuntimeError)
    └── PluginConflictError (ValueError) · PluginNotFoundError (LookupError)
```
"""

from libctx_core.errors.access import (
    AdminTokenError,
    ContextAccessDenied,
    InvalidMetadataError,
    MetadataCapabilityError,
    ResourceExistsError,
    ScopeActiveError,
    ScopeForgeryError,
    ScopeLeakError,
)
from libctx_core.errors.base import (
    BlankContentError,
    InvalidBudgetError,
    InvalidIdentifierError,
    InvalidInputError,
    InvalidTextError,
    LibctxError,
    OptionalDependencyError,
    UnknownRoleError,
)
from libctx_core.errors.data import PackageDataError
from libctx_core.errors.events import (
    EventConflictError,
    EventNotFoundError,
    FreshnessTimeout,
    RecordNotFoundError,
    ThreadNotFoundError,
    TurnTooLargeError,
)
from libctx_core.errors.filters import FilterTypeError, InvalidFilterError
from libctx_core.errors.inference import (
    InferenceConfigurationError,
    InferenceError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInferenceOutputError,
)
from libctx_core.errors.memory import (
    CapabilityNotSupportedError,
    InvalidEmbeddingError,
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    InvalidMemoryEvidenceError,
    MemoryBackendConfigurationError,
    MemoryEntryConflictError,
    MemoryEntryError,
    MemoryEntryInactiveError,
    MemoryEntryNotFoundError,
    MemoryEntryPurgedError,
    MemoryLayerError,
    PowerContextError,
)
from libctx_core.errors.sources import (
    ArtifactError,
    ArtifactFamilyMismatchError,
    ArtifactNotFoundError,
    GenerationConflictError,
    InvalidArtifactReferenceError,
    InvalidSourceAdapterError,
    InvalidSourceEntryError,
    InvalidSourceReferenceError,
    InvalidSourceResultError,
    RevisionConflictError,
    SourceAdapterNotFoundError,
    SourceChangedError,
    SourceConflictError,
    SourceError,
    SourceNotFoundError,
    SourceTooLargeError,
    SourceUnreadableError,
    SourceVanishedError,
)
from libctx_core.errors.store import (
    EmbeddingDimensionError,
    EmbeddingProfileError,
    ForeignDatabaseError,
    NewerSchemaError,
    PluginConflictError,
    PluginError,
    PluginNotFoundError,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreMissingError,
    StorePathError,
    StoreReadOnlyError,
)

__all__ = [
    "AdminTokenError",
    "ArtifactError",
    "ArtifactFamilyMismatchError",
    "ArtifactNotFoundError",
    "BlankContentError",
    "CapabilityNotSupportedError",
    "ContextAccessDenied",
    "EmbeddingDimensionError",
    "EmbeddingProfileError",
    "EventConflictError",
    "EventNotFoundError",
    "FilterTypeError",
    "ForeignDatabaseError",
    "FreshnessTimeout",
    "GenerationConflictError",
    "InferenceConfigurationError",
    "InferenceError",
    "InferenceTimeoutError",
    "InferenceUnavailableError",
    "InvalidArtifactReferenceError",
    "InvalidBudgetError",
    "InvalidEmbeddingError",
    "InvalidFilterError",
    "InvalidIdentifierError",
    "InvalidInferenceOutputError",
    "InvalidInputError",
    "InvalidMemoryCandidateError",
    "InvalidMemoryCitationError",
    "InvalidMemoryEvidenceError",
    "InvalidMetadataError",
    "InvalidSourceAdapterError",
    "InvalidSourceEntryError",
    "InvalidSourceReferenceError",
    "InvalidSourceResultError",
    "InvalidTextError",
    "LibctxError",
    "MemoryBackendConfigurationError",
    "MemoryEntryConflictError",
    "MemoryEntryError",
    "MemoryEntryInactiveError",
    "MemoryEntryNotFoundError",
    "MemoryEntryPurgedError",
    "MemoryLayerError",
    "MetadataCapabilityError",
    "NewerSchemaError",
    "OptionalDependencyError",
    "PackageDataError",
    "PluginConflictError",
    "PluginError",
    "PluginNotFoundError",
    "PowerContextError",
    "RecordNotFoundError",
    "ResourceExistsError",
    "RevisionConflictError",
    "ScopeActiveError",
    "ScopeForgeryError",
    "ScopeLeakError",
    "SourceAdapterNotFoundError",
    "SourceChangedError",
    "SourceConflictError",
    "SourceError",
    "SourceNotFoundError",
    "SourceTooLargeError",
    "SourceUnreadableError",
    "SourceVanishedError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreMissingError",
    "StorePathError",
    "StoreReadOnlyError",
    "ThreadNotFoundError",
    "TurnTooLargeError",
    "UnknownRoleError",
]
