"""Which cached pages leave by themselves: only those the acting scope may delete."""

from libctx_core.access import Authority, Operation
from libctx_core.bank.cache import Address
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.planes import Facts
from libctx_core.bank.state import BankState


def drop_if_allowed(state: BankState, authority: Authority, address: Address) -> bool:
    """Drop a cached page unless the scope may not delete it; return whether it went."""
    facts = Facts(state.stored, address, served=False)
    allowed = authority.allowed(Operation.DELETE, *address, facts.metadata, facts.presence)
    return allowed and state.cache.drop(address)


def drop_surplus(state: BankState, authority: Authority, mode: StorageMode) -> None:
    """Bring the cache below its limits after a page of this mode was kept, as far as that is allowed."""
    if mode is not StorageMode.DISK_WITH_CACHE:
        return
    for address in state.cache.surplus():
        if state.cache.fits():
            return
        drop_if_allowed(state, authority, address)
