import pytest

from libctx_core.access import Authority, ContextAccess
from libctx_core.bank import ContextBank, FileBankStore
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database
from libctx_core.testing.access_fakes import SpyStore


@pytest.fixture
def events():
    return []


@pytest.fixture
def access(events):
    return ContextAccess(on_event=events.append)


@pytest.fixture(params=["sqlite", "files"])
def store(request, tmp_path):
    if request.param == "files":
        yield SpyStore(FileBankStore(tmp_path / "lore", tmp_path / "todo"))
        return
    database = Database(tmp_path / "library.sqlite", durability="normal")
    yield SpyStore(BankStore(database))
    database.close()


@pytest.fixture
def bank(store, access):
    bank = ContextBank(store, Authority(access))
    yield bank
    bank.close()
