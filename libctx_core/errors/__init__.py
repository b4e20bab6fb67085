"""One tree of errors; catch `LibctxError` to catch them all, match on `code` to tell them apart.

```
LibctxError
├── InvalidInputError (ValueError)
│   ├── BlankContentError · InvalidTextError · UnknownRoleError
│   ├── InvalidIdentifierError · InvalidBudgetError
│   └── InvalidMetadataError
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
    "BlankContentError",
    "ContextAccessDenied",
    "EmbeddingDimensionError",
    "EmbeddingProfileError",
    "EventConflictError",
    "EventNotFoundError",
    "ForeignDatabaseError",
    "FreshnessTimeout",
    "InvalidBudgetError",
    "InvalidIdentifierError",
    "InvalidInputError",
    "InvalidMetadataError",
    "InvalidTextError",
    "LibctxError",
    "MetadataCapabilityError",
    "NewerSchemaError",
    "OptionalDependencyError",
    "PackageDataError",
    "PluginConflictError",
    "PluginError",
    "PluginNotFoundError",
    "RecordNotFoundError",
    "ResourceExistsError",
    "ScopeActiveError",
    "ScopeForgeryError",
    "ScopeLeakError",
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
