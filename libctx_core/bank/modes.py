"""Storage modes of pages."""

from enum import StrEnum


class StorageMode(StrEnum):
    """Where a page lives."""

    MEMORY_ONLY = "MEMORY_ONLY"
    """Payload and metadata in memory; gone when the bank is."""

    MEMORY_AND_DISK = "MEMORY_AND_DISK"
    """Stored, and kept in memory."""

    DISK_ONLY = "DISK_ONLY"
    """Stored, never kept in memory."""

    DISK_WITH_CACHE = "DISK_WITH_CACHE"
    """Stored, and kept in memory as long as the cache policy allows."""

    REMOTE = "REMOTE"
    """In the remote memory."""
