"""Killed and racing processes: what was acknowledged is there, nothing is half written."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from libctx_core.errors import RevisionConflictError
from libctx_core.memory import Memory, MemoryEntryInput, MemoryManifest, memory_content_hash
from libctx_core.memory.commits import next_manifest
from libctx_core.store import Database

WRITER = Path(__file__).with_name("writer.py")


def start(path: Path, name: str, count: int) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path), name, str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def acknowledged(output: bytes) -> list[list[str]]:
    """Complete lines only: a torn last line was not read by anybody."""
    return [line.split() for line in output.decode().split("\n")[:-1]]


def check_whole(memories, most: int = 200) -> None:
    """Every revision follows from the one before, and its parts fit each other; of many, an even sample."""
    ledger = memories._ledger
    newest = memories.head().revision
    assert [len(group.changes) > 0 for group in memories.changes(0)] == [True] * newest
    for number in range(1, newest + 1, max(1, newest // most)):
        revision = memories.revision(number)
        digests = {version.entry_id: version.entry_content_hash for version in ledger.entries(revision.as_ref())}
        base = MemoryManifest() if number == 1 else memories.revision(number - 1).content.manifest
        assert revision.content.manifest == next_manifest(base, revision.content.changes, digests)
        assert memories.content_hash(number) == memory_content_hash(revision.content)
    status = memories.status()
    assert status.active == len(memories.entries())
    assert status.entries == len(memories.entries(include_inactive=True))


def check_acknowledged(memories, lines: list[list[str]]) -> None:
    views = {view.entry_id: view for view in memories.entries(include_inactive=True)}
    forgotten = {ids[0] for word, *ids in lines if word == "forget"}
    for word, *ids in lines:
        for entry_id in ids:
            assert entry_id in views
        if word == "revise":
            assert views[ids[0]].version == 2
    assert all(views[entry_id].state == "inactive" for entry_id in forgotten)


def run_kills(tmp_path, open_memories, rounds: int) -> None:
    path = tmp_path / "library.db"
    chance = random.Random(4)
    lines: list[list[str]] = []
    for at in range(rounds):
        process = start(path, f"round{at}", 10_000)
        first = process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.25))
        process.kill()
        output, errors = process.communicate()
        assert b"Traceback" not in errors, errors.decode()
        lines += acknowledged(first + output)
        if at % 10 == 9 or at == rounds - 1:
            database = Database(path)
            memories = open_memories(database, "default", vectors=False)
            check_acknowledged(memories, lines)
            active = {view.entry_id for view in memories.entries()}
            # a quick machine acknowledges more than any fixed limit holds
            found = {hit.entry_id for hit in memories.search(f"round{at}", limit=len(active) + 1).hits}
            assert found == active
            if at == rounds - 1:
                check_whole(memories)
            database.close()
    assert lines


@pytest.mark.timeout(300)
def test_what_was_acknowledged_survives_being_killed(tmp_path, open_memories):
    run_kills(tmp_path, open_memories, 3)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_what_was_acknowledged_survives_200_kills(tmp_path, open_memories):
    run_kills(tmp_path, open_memories, 200)


@pytest.mark.timeout(300)
def test_two_processes_write_one_memory(tmp_path, open_memories):
    path = tmp_path / "library.db"
    Database(path).close()
    processes = [start(path, name, 8) for name in ("left", "right")]
    outputs = [process.communicate(timeout=240) for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        assert process.returncode == 0, errors.decode()
    database = Database(path)
    memories = open_memories(database, "default", vectors=False)
    for output, _ in outputs:
        check_acknowledged(memories, acknowledged(output))
    assert len(memories.entries(include_inactive=True)) == 32
    assert memories.head().revision == 2 * (8 + 3 + 2)
    check_whole(memories)
    database.close()


async def test_racing_writers_on_one_base_have_one_winner(memories):
    import anyio

    service = memories.service()
    base = await service.remember(memory=None, entries=[MemoryEntryInput(kind="fact", text="Base.")])
    outcomes = []

    async def write(number: int) -> None:
        entry = MemoryEntryInput(kind="fact", text=f"Writer {number}.")
        try:
            outcomes.append(await service.remember(memory=base, entries=[entry]))
        except RevisionConflictError as error:
            outcomes.append(error)

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(write, number)
    winners = [outcome for outcome in outcomes if isinstance(outcome, Memory)]
    assert len(winners) == 1
    assert len(memories.entries()) == 2
    losers = [outcome for outcome in outcomes if isinstance(outcome, RevisionConflictError)]
    assert all(loser.artifact == base and loser.current == winners[0] for loser in losers)


async def test_writers_that_try_again_all_get_through(memories):
    import anyio

    service = memories.service()
    await service.remember(memory=None, entries=[MemoryEntryInput(kind="fact", text="Base.")])
    conflicts = []

    async def write(number: int) -> None:
        entry = MemoryEntryInput(kind="fact", text=f"Writer {number}.")
        while True:
            try:
                await service.remember(memory=await service.head("memory"), entries=[entry])
                return
            except RevisionConflictError as error:
                conflicts.append(error)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(write, number)
    assert memories.head().revision == 11
    assert len(memories.entries()) == 11
    check_whole(memories)
