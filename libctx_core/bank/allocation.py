"""Sharing one token budget among several pages."""

from collections.abc import Mapping

from libctx_core.bank.settings import MultiPageBudgetStrategy

_PASSES = 3
"""Times that unused tokens are handed on to pages that lack some."""


def allocate(
    strategy: MultiPageBudgetStrategy,
    needs: Mapping[str, int],
    total: int,
    *,
    weights: Mapping[str, float] | None = None,
    reserve_empty: bool = True,
) -> dict[str, int]:
    """Return the tokens each page may take; together never more than `total`.

    Args:
        strategy: EQUAL_SPLIT, WEIGHTED_SPLIT (by `weights`, equal without any),
            PRIORITY_FILL (in page order, each what it needs), DYNAMIC_FILL (equal shares,
            what is left unused goes where it is needed), DYNAMIC_SIZE_FILL (smallest
            pages first, so that they fit whole).
        needs: Tokens of each page, in order of priority.
        total: The budget; at 0 or below every page gets nothing.
        weights: Weights of pages; a missing or negative one counts as 0.
        reserve_empty: Whether pages that need nothing get a share as well.
    """
    pages = [page for page, need in needs.items() if need > 0 or reserve_empty]
    shares = dict.fromkeys(needs, 0)
    if total <= 0 or not pages:
        return shares
    if strategy is MultiPageBudgetStrategy.EQUAL_SPLIT:
        shares.update(_by_weight(pages, total, {}))
    elif strategy is MultiPageBudgetStrategy.WEIGHTED_SPLIT:
        shares.update(_by_weight(pages, total, weights or {}))
    elif strategy is MultiPageBudgetStrategy.PRIORITY_FILL:
        shares.update(_in_order(pages, needs, total))
    elif strategy is MultiPageBudgetStrategy.DYNAMIC_FILL:
        shares.update(_redistributed(pages, needs, total))
    else:
        smallest_first = sorted(pages, key=lambda page: needs[page])
        shares.update(_redistributed(smallest_first, needs, total))
    return shares


def _by_weight(pages: list[str], total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Return floor shares; what rounding leaves goes to the first pages, one token each."""
    usable = {page: max(0.0, weights.get(page, 0.0)) for page in pages}
    summed = sum(usable.values())
    if summed <= 0:
        usable, summed = dict.fromkeys(pages, 1.0), float(len(pages))
    shares = {page: min(total, int(total * weight / summed)) for page, weight in usable.items()}
    left = total - sum(shares.values())
    for page in pages:
        if left <= 0:
            break
        if usable[page] > 0:
            shares[page] += 1
            left -= 1
    return shares


def _in_order(pages: list[str], needs: Mapping[str, int], total: int) -> dict[str, int]:
    shares = {}
    for page in pages:
        shares[page] = min(max(0, needs[page]), total)
        total -= shares[page]
    return shares


def _redistributed(pages: list[str], needs: Mapping[str, int], total: int) -> dict[str, int]:
    """Return equal shares, none above its need, unused tokens passed on in proportion to what lacks."""
    shares = {page: min(max(0, needs[page]), share) for page, share in _by_weight(pages, total, {}).items()}
    for _ in range(_PASSES):
        left = total - sum(shares.values())
        lacking = {page: needs[page] - shares[page] for page in pages if needs[page] > shares[page]}
        if left <= 0 or not lacking:
            break
        wanted = sum(lacking.values())
        for page, lack in lacking.items():
            shares[page] += min(lack, left * lack // wanted if wanted > left else lack)
    left = total - sum(shares.values())
    for page in pages:
        extra = min(left, max(0, needs[page] - shares[page]))
        shares[page] += extra
        left -= extra
    return shares
