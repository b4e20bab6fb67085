"""What scopes cost: decisions, entering, authorised reads, listings, copies, and permitted search beside an open one.

Each figure is the median over runs of the calling thread's CPU time, with the best run
beside it. The permitted search
asks for the best 10 of 10,000 records of which 1 % may be read; it is compared with the
open search over all of them, with an open search over a library that holds only the
readable ones (its answer must be the same), and, where it is installed, with wardowl's
in-memory backend over the same records.

    uv run python benchmarks/access.py [--json] [--smoke]
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from report import cpu_ms, finish, options, percentiles, sentence

from libctx_core import LibraryOfContext
from libctx_core.access import (
    Authority,
    Boundary,
    ContextAccess,
    EnforcementMode,
    Operation,
    Presence,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
    UnscopedPolicy,
    decide,
)
from libctx_core.access.scope import grant_of
from libctx_core.bank import ContextBank, ContextWindow, FileBankStore, StorageMode
from libctx_core.bank.codec import WINDOW
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database
from libctx_core.store.payloads import PayloadStore

KIND = "CONTEXT_WINDOW"
K = 10


def row(what: str, unit: str, costs: list[float], goal: float | None = None) -> dict[str, Any]:
    """Return the median of some costs, and the best, which a busy machine inflates least."""
    found = {"what": what, "unit": unit, "value": round(percentiles(costs)["p50"], 4), "best": round(min(costs), 4)}
    return found if goal is None else {**found, "goal": goal}


def microseconds(work: Callable[[], Any], loops: int, runs: int = 15) -> list[float]:
    """Return the CPU microseconds of one call, for each run of many."""

    def loop() -> None:
        for _ in range(loops):
            work()

    return [cost * 1e3 / loops for cost in cpu_ms(loop, runs)]


def decisions(loops: int) -> list[dict[str, Any]]:
    access = ContextAccess()
    scope = access.issue_root_scope(
        Principal("p"), Rights.all_on(Boundary("w"), Resource("r")), EnforcementMode.REQUIRE_ENROLLMENT
    )
    inner = access.issue_root_scope(Principal("q"), Rights.all_on(Boundary("w")))
    grant, metadata = grant_of(scope), ResourceMetadata(KIND, "r", "w")
    policy, presence, read = UnscopedPolicy.DENY, Presence.PRESENT, Operation.READ
    authority = Authority(access)

    def enter() -> None:
        with access.scope(scope):
            pass

    def nest() -> None:
        with access.scope(inner):
            pass

    pure = microseconds(lambda: decide(grant, policy, metadata, presence, read, KIND), loops)
    rows = [
        row("pure decision", "us", pure, 2.0),
        row("scope enter and exit", "us", microseconds(enter, loops), 3.0),
    ]
    with access.scope(scope):
        rows.append(row("nested enter and exit", "us", microseconds(nest, loops)))
        required = microseconds(lambda: authority.require(read, KIND, "k", metadata), loops)
        rows.append(row("authority.require", "us", required))
    return rows


def pages(directory: Path, loops: int, keys: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    database = Database(directory / "bank.sqlite", durability="normal")
    stores: dict[str, PayloadStore] = {
        "library file": BankStore(database),
        "files": FileBankStore(directory / "lore", directory / "todo"),
    }
    for name, store in stores.items():
        access = ContextAccess()
        bank = ContextBank(store, Authority(access))
        metadata = ResourceMetadata(KIND, "r", "w")
        page = ContextWindow(context_elements=["private value"])
        scope = access.issue_root_scope(
            Principal("p"), Rights.all_on(Boundary("w")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        with access.scope(scope):
            for key, mode in (("kept", StorageMode.MEMORY_AND_DISK), ("memory", StorageMode.MEMORY_ONLY)):
                bank.create_context_window(key, metadata, page, mode)
            costs = microseconds(lambda bank=bank: bank.get("kept"), loops)
            rows.append(row(f"authorised read, {name}", "us", costs, 60.0))
            if name == "files":
                costs = microseconds(lambda bank=bank: bank.get("memory"), loops)
                rows.append(row("authorised read, memory only", "us", costs, 60.0))
            for number in range(keys):
                store.create(KIND, f"k{number}", ResourceMetadata(KIND, f"r{number}", "w"), _empty)
            bank.page_keys()
            seconds = [cost / 1e3 for cost in cpu_ms(bank.page_keys, 5)]
            rows.append(row(f"list {keys + 2} enrolled keys, {name}", "s", seconds, 0.5 * keys / 10_000))
        bank.close()
    database.close()
    return rows


def _empty(version: int) -> bytes:
    return b'{"version":0}'


def copies(loops: int) -> list[dict[str, Any]]:
    window = ContextWindow()
    for number in range(850):
        window.add_lore_book_entry(f"key {number}", sentence(number, 20), number, alias_keys=["a", "b"])
        window.add_text(sentence(number + 1, 20))
    size = len(WINDOW.encode(window)) // 1000
    copied = [cost / 1e3 for cost in microseconds(window.copy, loops)]
    parsed = cpu_ms(lambda: WINDOW.decode(WINDOW.encode(window)), 9)
    return [
        row(f"copy of a {size} kB window", "ms", copied, 7.0),
        row(f"the same through its document, {size} kB", "ms", parsed),
    ]


def search(directory: Path, records: int, questions: int) -> tuple[list[dict[str, Any]], bool]:
    """Fill a library of which 1 % is readable, and one that holds only that."""
    access = ContextAccess()
    threads = 100
    each = records // threads
    readable = {"t7"}
    libraries = {}
    for name, kept in (("all", [f"t{number}" for number in range(threads)]), ("own", sorted(readable))):
        library = LibraryOfContext(directory / f"{name}.sqlite", context_access=access, durability="normal", plugins=())
        for session in kept:
            number = int(session[1:])
            with access.scope(access.issue_root_scope(Principal("w"), Rights.all_on(Boundary(session)))):
                governor = library.open_context_governor(session, collection=session)
                governor.record_many(
                    {"role": "user", "content": sentence(number * each + index)} for index in range(each)
                )
        library.flush(600)
        libraries[name] = library
    scope = access.issue_root_scope(
        Principal("p"), Rights.read_only(*[Boundary(name) for name in readable]), EnforcementMode.REQUIRE_ENROLLMENT
    )
    queries = [sentence(10_000_000 + number, 8) for number in range(questions)]

    def ask(library: LibraryOfContext, query: str) -> list[str]:
        return [hit.text for hit in library.consult(query, K, everything=True)]

    for library in libraries.values():
        ask(library, "warm up")
    open_cost, permitted_cost, own_cost, exact = [], [], [], True
    answers: dict[str, list[str]] = {}
    for query in queries:
        open_cost += cpu_ms(lambda query=query: ask(libraries["all"], query))
    with access.scope(scope):
        ask(libraries["all"], "warm up")
        for query in queries:
            permitted_cost += cpu_ms(lambda query=query: answers.__setitem__(query, ask(libraries["all"], query)))
    for query in queries:
        expected: list[str] = []
        own_cost += cpu_ms(lambda query=query, into=expected: into.extend(ask(libraries["own"], query)))
        exact = exact and sorted(answers[query]) == sorted(expected)
    for library in libraries.values():
        library.close()
    rows = [
        row(f"open top {K} of {records}", "ms", open_cost),
        row(f"permitted top {K}, 1 % readable", "ms", permitted_cost, 20.0),
        row("the same, alone in a library", "ms", own_cost),
    ]
    ratio = round(rows[1]["value"] / rows[0]["value"], 3)
    rows.append({"what": "permitted over open", "unit": "ratio", "value": ratio, "goal": 1.2})
    return rows + peer(records, each, queries), exact


def peer(records: int, each: int, queries: list[str]) -> list[dict[str, Any]]:
    """Ask wardowl's in-memory backend the same questions, where it is installed."""
    try:
        import wardowl
    except ImportError:
        return []
    backend = wardowl.InMemoryBackend(
        wardowl.Document(str(number), sentence(number), {"allowed_groups": [f"t{number // each}"]})
        for number in range(records)
    )
    retriever = wardowl.PermissionedRetriever(backend, wardowl.MetadataACLAuthorizer())
    subject = wardowl.Subject("p", groups=["t7"])
    costs: list[float] = []
    for query in queries:
        costs += cpu_ms(lambda query=query: retriever.retrieve(query, subject, K))
    return [row(f"wardowl in memory, top {K}, 1 % readable", "ms", costs)]


def main() -> None:
    """Run every part and print the figures."""
    arguments = options(__doc__ or "")
    loops, keys, records, questions = (200, 300, 1_000, 10) if arguments.smoke else (5_000, 10_000, 10_000, 60)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        rows = decisions(loops * 4)
        rows += pages(directory, loops, keys)
        rows += copies(loops)
        searched, exact = search(directory, records, questions)
        rows += searched
    missed = [found["what"] for found in rows if "goal" in found and found["value"] > found["goal"]]
    finish("access", rows, {"exact_permitted_top_k": exact, "missed_goals": missed}, as_json=arguments.json)


if __name__ == "__main__":
    main()
