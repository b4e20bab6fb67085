"""One tree of errors; catch `LibctxError` to catch them all, match on `code` to tell them apart.

```
LibctxError
├── InvalidInputError (ValueError)
│   ├── BlankContentError · InvalidTextError · UnknownRoleError
│   └── InvalidIdentifierError · InvalidBudgetError
├── OptionalDependencyError (ImportError)
├── EventConflictError (ValueError) · EventNotFoundError (LookupError)
├── ThreadNotFoundError (LookupError) · RecordNotFoundError (LookupError)
├── TurnTooLargeError (ValueError) · FreshnessTimeout (TimeoutError)
├── StoreError (RuntimeError)
│   ├── StoreMissingError (FileNotFoundError) · StorePathError (OSError)
│   ├── ForeignDatabaseError (ValueError) · NewerSchemaError · StoreCorruptError
│   ├── StoreReadOnlyError (PermissionError) · StoreFullError (OSError)
│   └── StoreBusyError (TimeoutError) · StoreClosedError
├── EmbeddingDimensionError (ValueError) · EmbeddingProfileError (ValueError)
└── PluginError (RuntimeError)
    └── PluginConflictError (ValueError) · PluginNotFoundError (LookupError)
```
"""

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
    "BlankContentError",
    "EmbeddingDimensionError",
    "EmbeddingProfileError",
    "EventConflictError",
    "EventNotFoundError",
    "ForeignDatabaseError",
    "FreshnessTimeout",
    "InvalidBudgetError",
    "InvalidIdentifierError",
    "InvalidInputError",
    "InvalidTextError",
    "LibctxError",
    "NewerSchemaError",
    "OptionalDependencyError",
    "PluginConflictError",
    "PluginError",
    "PluginNotFoundError",
    "RecordNotFoundError",
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
