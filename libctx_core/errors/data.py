"""What can go wrong with the files that ship inside the package."""

from libctx_core.errors.base import LibctxError


class PackageDataError(LibctxError, RuntimeError):
    """A data file of the package is missing, or its bytes are not the released ones.

    Attributes:
        file: Name of the file inside the package's data folder.
    """

    code = "package_data"

    def __init__(self, file: str, detail: str) -> None:
        super().__init__(f"package data {file!r}: {detail}; reinstall libctx-core")
        self.file = file
