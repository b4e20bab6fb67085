"""A scope holds wherever the store runs a write: on the caller's thread, or on the thread that groups commits."""

import threading

import pytest

from libctx_core.access import (
    Authority,
    ContextAccess,
    ContextAccessDenied,
    EnforcementMode,
    Operation,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.store.database import Database


@pytest.mark.parametrize("memory", [True, False])
def test_a_contended_write_is_decided_under_the_callers_scope(tmp_path, memory):
    database = Database(":memory:" if memory else tmp_path / "library.sqlite", durability="normal")
    access = ContextAccess()
    authority = Authority(access)
    page = ResourceMetadata("THREAD", "theirs")
    holding, release = threading.Event(), threading.Event()

    def hold(connection):
        holding.set()
        release.wait(10)

    def act():
        scope = access.issue_root_scope(
            Principal("me"), Rights.all_on(Resource("mine")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        with access.scope(scope):
            try:
                database.write(lambda connection: authority.require(Operation.WRITE, "THREAD", "k", page))
            except ContextAccessDenied:
                outcomes.append("denied")
            else:
                outcomes.append("written")

    outcomes = []
    holder = threading.Thread(target=lambda: database.write(hold))
    holder.start()
    holding.wait(10)
    writers = [threading.Thread(target=act) for _ in range(4)]
    for writer in writers:
        writer.start()
    release.set()
    for thread in (holder, *writers):
        thread.join(10)
    database.close()
    assert outcomes == ["denied"] * 4
