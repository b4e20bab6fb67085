"""What scopes cost: decisions, entering, authorised reads, listings, copies, and permitted search beside an open one.

Each figure is the median over runs of the calling thread's CPU time. The permitted search
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


def microseconds(work: Callable[[], Any], loops: int, runs: int = 9) -> float:
    """Return the median CPU microseconds of one call."""

    def loop() -> None:
        for _ in range(loops):
            work()

    return round(percentiles(cpu_ms(loop, runs))["p50"] * 1e3 / loops, 3)


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

    rows = [
        ("pure decision", 2.0, lambda: decide(grant, policy, metadata, presence, read, KIND)),
        ("scope enter and exit", 3.0, enter),
    ]
    found = [
        {"what": name, "unit": "us", "value": microseconds(work, loops), "goal": goal} for name, goal, work in rows
    ]
    with access.scope(scope):
        required = microseconds(lambda: authority.require(read, KIND, "k", metadata), loops)
        found.append({"what": "nested enter and exit", "unit": "us", "value": microseconds(nest, loops)})
        found.append({"what": "authority.require", "unit": "us", "value": required})
    return found


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
            cost = microseconds(lambda bank=bank: bank.get("kept"), loops)
            rows.append({"what": f"authorised read, {name}", "unit": "us", "value": cost, "goal": 60.0})
            if name == "files":
                cost = microseconds(lambda bank=bank: bank.get("memory"), loops)
                rows.append({"what": "authorised read, memory only", "unit": "us", "value": cost, "goal": 60.0})
            for number in range(keys):
                store.create(KIND, f"k{number}", ResourceMetadata(KIND, f"r{number}", "w"), _empty)
            bank.page_keys()
            seconds = percentiles(cpu_ms(bank.page_keys, 3))["p50"] / 1e3
            goal = 0.5 * keys / 10_000
            rows.append({"what": f"list {keys + 2} enrolled keys, {name}", "unit": "s", "value": seconds, "goal": goal})
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
    copied = microseconds(window.copy, loops) / 1e3
    parsed = percentiles(cpu_ms(lambda: WINDOW.decode(WINDOW.encode(window)), 9))["p50"]
    return [
        {"what": f"copy of a {size} kB window", "unit": "ms", "value": round(copied, 4), "goal": 7.0},
        {"what": f"the same through its document, {size} kB", "unit": "ms", "value": parsed},
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
    medians = [percentiles(costs)["p50"] for costs in (open_cost, permitted_cost, own_cost)]
    rows = [
        {"what": f"open top {K} of {records}", "unit": "ms", "value": medians[0]},
        {"what": f"permitted top {K}, 1 % readable", "unit": "ms", "value": medians[1], "goal": 20.0},
        {"what": "the same, alone in a library", "unit": "ms", "value": medians[2]},
        {"what": "permitted over open", "unit": "ratio", "value": round(medians[1] / medians[0], 3), "goal": 1.2},
    ]
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
    median = percentiles(costs)["p50"]
    return [{"what": f"wardowl in memory, top {K}, 1 % readable", "unit": "ms", "value": median}]


def main() -> None:
    """Run every part and print the figures."""
    arguments = options(__doc__ or "")
    loops, keys, records, questions = (200, 300, 1_000, 10) if arguments.smoke else (5_000, 10_000, 10_000, 60)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        rows = decisions(loops * 4)
        rows += pages(directory, loops, keys)
        rows += copies(loops)
        found, exact = search(directory, records, questions)
        rows += found
    missed = [row["what"] for row in rows if "goal" in row and row["value"] > row["goal"]]
    finish("access", rows, {"exact_permitted_top_k": exact, "missed_goals": missed}, as_json=arguments.json)


if __name__ == "__main__":
    main()
