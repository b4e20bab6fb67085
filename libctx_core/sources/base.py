"""The base of every value in the sources, artifacts and memory rooms."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from libctx_core.errors import InvalidInputError, LibctxError


def our_error(error: ValidationError) -> LibctxError:
    """Return the library's error for the first fault pydantic found; never the value itself."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, LibctxError):
        return cause
    field = ".".join(str(part) for part in first["loc"]) or error.title
    detail = first["msg"]
    raw = error.errors(include_url=False)[0].get("input")
    if isinstance(raw, str | bytes | list | tuple | dict):
        detail += f" (got {type(raw).__name__} of size {len(raw)})"
    else:
        detail += f" (got {type(raw).__name__})"
    return InvalidInputError(field, detail)


class Checked(BaseModel):
    """A model whose faults surface as the library's errors, not as pydantic's."""

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise our_error(error) from None

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Build the model from a mapping or an instance.

        Raises:
            InvalidInputError: A field is missing or cannot be used.
        """
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise our_error(error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Build the model from JSON text.

        Raises:
            InvalidInputError: The text is not JSON, or a field cannot be used.
        """
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise our_error(error) from None


class Value(Checked):
    """An immutable value."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Build the value from fields that are known to be valid, every one of them.

        It saves the check where the library reads back what it has checked before.
        """
        value = cls.__new__(cls)
        object.__setattr__(value, "__dict__", fields)
        object.__setattr__(value, "__pydantic_fields_set__", set(fields))
        object.__setattr__(value, "__pydantic_extra__", None)
        object.__setattr__(value, "__pydantic_private__", None)
        return value
