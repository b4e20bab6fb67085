import pytest

from libctx_core.access import Authority, ContextAccess


@pytest.fixture
def events():
    return []


@pytest.fixture
def access(events):
    return ContextAccess(on_event=events.append)


@pytest.fixture
def authority(access):
    return Authority(access)
