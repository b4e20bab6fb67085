"""What is wrong with a metadata filter, or between a filter and the metadata it meets."""

from libctx_core.errors.base import InvalidInputError, LibctxError


class InvalidFilterError(InvalidInputError):
    """A filter cannot be built: an unknown operator, or a value that does not fit it."""

    code = "invalid_filter"


class FilterTypeError(LibctxError, TypeError):
    """A text match met something that is no text, in the filter or in the metadata.

    Attributes:
        operator: The text match.
        place: ``"value"`` of the filter or ``"metadata"`` of a record.
        found: Name of the type that was there.
    """

    code = "filter_type"

    def __init__(self, operator: str, place: str, found: str) -> None:
        super().__init__(f"{operator!r} compares text; the {place} holds {found}. Use another operator for this key")
        self.operator = operator
        self.place = place
        self.found = found
