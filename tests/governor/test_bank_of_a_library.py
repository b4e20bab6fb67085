"""The context bank through the library: shared pages, scopes of their own, and the host's token."""

import pytest

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, ContextAccess, EnforcementMode, Principal, ResourceMetadata, Rights
from libctx_core.bank import ContextWindow, StorageMode
from libctx_core.errors import AdminTokenError, ContextAccessDenied


def test_views_share_pages_and_keep_their_own_scope() -> None:
    access = ContextAccess()
    with LibraryOfContext(":memory:", plugins=[], context_access=access) as library:
        scopes = {
            name: access.issue_root_scope(
                Principal(name), Rights.all_on(Boundary(name)), EnforcementMode.REQUIRE_ENROLLMENT
            )
            for name in ("red", "blue")
        }
        red = library.scoped(scopes["red"]).bank()
        window = ContextWindow()
        window.add_text("The vault code is R-1.")
        red.create_context_window(
            "plans", ResourceMetadata("CONTEXT_WINDOW", "plans", "red"), window, StorageMode.MEMORY_AND_DISK
        )
        assert "R-1" in str(red.get("plans").context_elements)
        assert "R-1" in str(library.bank().get("plans").context_elements)
        with pytest.raises(ContextAccessDenied):
            library.scoped(scopes["blue"]).bank().get("plans")


def test_the_hosts_token_opens_administration_where_access_is_required(tmp_path) -> None:
    access = ContextAccess()
    token = access.take_admin_token()
    with LibraryOfContext(tmp_path / "a.sqlite", plugins=[], context_access=access, access="required") as library:
        with pytest.raises(AdminTokenError):
            library.vacuum()
        library.vacuum(token=token)
        library.backup(tmp_path / "b.sqlite", token=token)
        assert library.reindex(token=token) == 0
    assert (tmp_path / "b.sqlite").exists()
