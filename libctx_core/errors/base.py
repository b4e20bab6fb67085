"""The root of the tree, and what a caller handed in wrongly."""

from typing import ClassVar


class LibctxError(Exception):
    """Base of every error this library raises on purpose.

    Attributes:
        code: A stable, lower-case identifier; safe to match on and to log.
    """

    code: ClassVar[str] = "libctx"


class InvalidInputError(LibctxError, ValueError):
    """An argument cannot be used.

    Attributes:
        field: Name of the argument or field.
        detail: What is wrong and what would be accepted, without the value itself.
    """

    code = "invalid_input"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail


class BlankContentError(InvalidInputError):
    """A user turn holds no text and no attachment."""

    code = "blank_content"


class InvalidTextError(InvalidInputError):
    """Text holds a NUL character or a lone surrogate, which cannot be stored as UTF-8."""

    code = "invalid_text"


class UnknownRoleError(InvalidInputError):
    """A role outside system, developer, user, assistant and tool."""

    code = "unknown_role"


class InvalidIdentifierError(InvalidInputError):
    """An identifier is blank, too long, or not exactly a string."""

    code = "invalid_identifier"


class InvalidBudgetError(InvalidInputError):
    """A token budget is not a positive whole number, or exceeds the model's window."""

    code = "invalid_budget"


class OptionalDependencyError(LibctxError, ImportError):
    """A feature needs a package that is not installed.

    Attributes:
        package: The distribution (with its extra) that brings it.
    """

    code = "optional_dependency"

    def __init__(self, feature: str, package: str) -> None:
        super().__init__(f"{feature} needs the package {package!r}, which is not installed")
        self.package = package
