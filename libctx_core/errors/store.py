"""What can go wrong with the library file, its vectors and its plugins."""

from libctx_core.errors.base import LibctxError


class StoreError(LibctxError, RuntimeError):
    """The library file cannot do what was asked.

    Attributes:
        path: The file concerned.
    """

    code = "store"

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


class StoreMissingError(StoreError, FileNotFoundError):
    """The file does not exist and may not be created here."""

    code = "store_missing"


class StorePathError(StoreError, OSError):
    """The path is a directory or otherwise no place for a library file."""

    code = "store_path"


class ForeignDatabaseError(StoreError, ValueError):
    """The file is not a libctx library."""

    code = "foreign_database"


class NewerSchemaError(StoreError):
    """The file was written by a newer release.

    Attributes:
        component: The part of the schema that is newer.
        found: Its version in the file.
        supported: The newest version this release reads.
    """

    code = "newer_schema"

    def __init__(self, path: str, component: str, found: int, supported: int) -> None:
        super().__init__(
            path,
            f"schema of {component!r} is version {found}, this release reads up to {supported}; upgrade libctx-core",
        )
        self.component = component
        self.found = found
        self.supported = supported


class StoreReadOnlyError(StoreError, PermissionError):
    """A write reached a library that is open, or mounted, read-only."""

    code = "store_read_only"


class StoreFullError(StoreError, OSError):
    """The disk is full; the transaction was rolled back."""

    code = "store_full"


class StoreCorruptError(StoreError):
    """SQLite reports damaged pages; restore a backup or export what is readable."""

    code = "store_corrupt"


class StoreBusyError(StoreError, TimeoutError):
    """Another process held the write lock longer than the busy timeout."""

    code = "store_busy"


class StoreClosedError(StoreError):
    """The library was closed, or was opened by the process that this one was forked from."""

    code = "store_closed"


class EmbeddingDimensionError(LibctxError, ValueError):
    """A vector has another number of dimensions than its index.

    Attributes:
        expected: Dimensions of the index.
        found: Dimensions of the vector.
    """

    code = "embedding_dimension"

    def __init__(self, expected: int, found: int) -> None:
        super().__init__(f"the index holds vectors of {expected} dimensions, this one has {found}")
        self.expected = expected
        self.found = found


class EmbeddingProfileError(LibctxError, ValueError):
    """The library was indexed with another embedder; vectors of two profiles are never compared.

    Attributes:
        stored: Profile id in the file.
        given: Profile id of the embedder at hand.
    """

    code = "embedding_profile"

    def __init__(self, stored: str, given: str) -> None:
        super().__init__(
            f"the library is indexed with the embedder {stored!r}, not {given!r}; "
            "open it with that embedder, or re-embed it with `libctx reindex`"
        )
        self.stored = stored
        self.given = given


class PluginError(LibctxError, RuntimeError):
    """A plugin failed, or its registration cannot be used.

    Attributes:
        plugin: Name of the plugin.
    """

    code = "plugin"

    def __init__(self, plugin: str, detail: str) -> None:
        super().__init__(f"plugin {plugin!r}: {detail}")
        self.plugin = plugin


class PluginConflictError(PluginError, ValueError):
    """Two plugins claim one name.

    Attributes:
        name: The name.
        owners: Both plugins.
    """

    code = "plugin_conflict"

    def __init__(self, kind: str, name: str, owners: tuple[str, str]) -> None:
        super().__init__(owners[1], f"{kind} {name!r} is already registered by {owners[0]!r}")
        self.name = name
        self.owners = owners


class PluginNotFoundError(PluginError, LookupError):
    """No plugin registers this name."""

    code = "plugin_not_found"
