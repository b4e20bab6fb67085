import pytest

from libctx_core.access import (
    Boundary,
    ContextAccessDenied,
    EnforcementMode,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.bank import ContextWindow

KIND = "CONTEXT_WINDOW"
TODO_KIND = "TODO_LIST"
LEGACY, REQUIRE = EnforcementMode.LEGACY_COMPATIBLE, EnforcementMode.REQUIRE_ENROLLMENT
MINE = ResourceMetadata(KIND, "resource-17", "workspace-3")
THEIRS = ResourceMetadata(KIND, "resource-99", "workspace-9")
ALL_MINE = Rights.all_on(Resource("resource-17"))


def window(*texts):
    return ContextWindow(context_elements=list(texts))


def scope(access, rights=ALL_MINE, mode=REQUIRE, name="agent-1"):
    return access.issue_root_scope(Principal(name), rights, mode)


def only(**sets):
    """Return rights on MINE for the named operations."""
    names = {
        "read": "readable_resources",
        "write": "writable_resources",
        "create": "creatable_resources",
        "delete": "deletable_resources",
        "list": "enumerable_resources",
    }
    return Rights(**{names[name]: {Resource("resource-17"), Boundary("workspace-3")} for name in sets if sets[name]})


def denied(call, *arguments, **keywords):
    with pytest.raises(ContextAccessDenied) as denial:
        call(*arguments, **keywords)
    return denial.value
