"""Optional frameworks: imported where they are used, missing with the name of the extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from libctx_core.errors import OptionalDependencyError

DISTRIBUTION = "langchain-libctx"


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Turn a failed import inside the block into an error that names the extra.

    Args:
        name: The extra of this distribution, e.g. ``"classic"``.
        feature: What the import is for, as the message shows it.

    Raises:
        OptionalDependencyError: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise OptionalDependencyError(feature, f"{DISTRIBUTION}[{name}]") from error
