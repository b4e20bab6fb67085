"""LlamaIndex's metadata filters as the core's filter tree."""

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from libctx_core.search.filters import And, Compare, Filter, Nor, Or

_GROUPS: dict[FilterCondition, type[And] | type[Or] | type[Nor]] = {
    FilterCondition.AND: And,
    FilterCondition.OR: Or,
    FilterCondition.NOT: Nor,
}


def to_filter(filters: MetadataFilters | None) -> Filter | None:
    """Return the core's filter for LlamaIndex's, None where nothing is asked.

    A missing condition is AND; NOT means that none of the parts match; a group may stand
    inside another; an empty group restricts nothing. A key names one key of the metadata's
    top level, whatever characters it holds.

    Raises:
        InvalidFilterError: A value does not fit its operator.
        FilterTypeError: A text match is asked with a value that is no text.
    """
    return None if filters is None else _group(filters)


def _group(filters: MetadataFilters) -> Filter:
    group = _GROUPS[filters.condition or FilterCondition.AND]
    return group(tuple(_part(part) for part in filters.filters))


def _part(part: MetadataFilter | MetadataFilters) -> Filter:
    if isinstance(part, MetadataFilters):
        return _group(part)
    return Compare(part.key, part.operator.value, part.value)
