"""No statement of the log or its outbox looks at more rows than it needs, however large a thread is."""

from collections import defaultdict

import apsw
import apsw.ext
import pytest

from libctx_core import LibraryOfContext
from libctx_core.plugins import hookimpl
from libctx_core.store import events, outbox
from libctx_core.store.database import Database
from libctx_core.testing.storage_log import EventLog, draft

LOG_TABLES = ("event", "thread", "outbox", "quarantine", "event_tokens", "event_revision", "branch", "owner")

SCANS_ALLOWED = (
    "carray",  # the values bound to a statement
    "event_floor",  # one row
    "outbox USING COVERING INDEX outbox_claim",  # the leased rows only, a batch per worker
)


ANY_WORK = "SELECT 1 FROM outbox LIMIT 1"
"""Looks at one row, which a plan cannot show."""


class Meter:
    """Counts the steps of SQLite's machine per statement, on every connection."""

    def __init__(self):
        self.steps = defaultdict(list)

    @hookimpl
    def sqlite_connect(self, connection):
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._profile)

    def _profile(self, event):
        status = event["stmt_status"]
        self.steps[event["sql"]].append(
            status["SQLITE_STMTSTATUS_VM_STEP"] + 100 * status["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
        )

    def cost_of(self, work):
        """Return the statements of `work` with the steps that each took in all."""
        self.steps.clear()
        work()
        return {statement: sum(steps) for statement, steps in self.steps.items()}


def log_with(tmp_path, meter, count):
    """A log of `count` events in one thread, half of them indexed, among other threads."""
    log = EventLog(Database(tmp_path / f"store{count}", durability="normal", on_connect=meter.sqlite_connect))
    for base in range(0, count, 500):
        log.append("s", *((f"e{number}", f"text {number}") for number in range(base, min(base + 500, count))))
    for number in range(20):
        log.append(f"other{number}", ("o", "text"))
    claim = log.claim("worker", limit=count // 2)
    log.complete(claim)
    return log


OPERATIONS = {
    "append": lambda c, t, n: events.append(c, t, [draft("new", "text")]),
    "append fresh": lambda c, t, n: events.append(c, t, [draft("newer", "text", fresh=True)]),
    "append again": lambda c, t, n: events.append(c, t, [draft("e7", "text 7")]),
    "head": lambda c, t, n: events.thread_head(c, t),
    "find": lambda c, t, n: events.find(c, t, "e9"),
    "by uid": lambda c, t, n: events.by_uid(c, 9),
    "newest": lambda c, t, n: events.newest(c, t, through=n, limit=20),
    "after": lambda c, t, n: events.after(c, t, n - 10, 10),
    "protected": lambda c, t, n: events.protected(c, t),
    "answer": lambda c, t, n: events.answer_to(c, t, "e9"),
    "protect": lambda c, t, n: events.set_protected(c, t, events.find(c, t, "e9"), value=True),
    "amend": lambda c, t, n: events.amend(
        c, t, events.find(c, t, "e9"), content="x", is_blocks=False, tokens=1, counter="c", native=None, at=0.0
    ),
    "revisions": lambda c, t, n: events.revisions(c, 9),
    "redact": lambda c, t, n: events.redact(c, t, events.find(c, t, "e9")),
    "tokens under": lambda c, t, n: events.tokens_under(c, [8, 9], "c"),
    "store tokens": lambda c, t, n: events.store_tokens(c, {8: 1, 9: 1}, "c"),
    "watermarks": lambda c, t, n: outbox.watermarks(c, t),
    "is clear": lambda c, t, n: (outbox.is_clear(c), outbox.is_clear(c, t), outbox.is_clear(c, t, n // 4)),
    "owners": lambda c, t, n: outbox.claim_owners(c),
    "claim": lambda c, t, n: outbox.claim(c, owner="w", token="t", now=1.0, lease=9.0, limit=8, dead=["d"], beyond=t),
    "held": lambda c, t, n: outbox.is_held(c, "t", t, n),
    "complete": lambda c, t, n: outbox.complete(c, "t", t, [n]),
    "postpone": lambda c, t, n: outbox.postpone(c, "t", t, n, not_before=1.0),
    "quarantine": lambda c, t, n: outbox.quarantine(c, "t", t, n, error="e", at=1.0),
    "quarantined": lambda c, t, n: outbox.quarantined(c, t),
    "retry": lambda c, t, n: outbox.retry(c, t, 9),
    "release": lambda c, t, n: outbox.release(c, "w"),
}


def costs_of_operations(tmp_path, count):
    meter = Meter()
    log = log_with(tmp_path, meter, count)
    thread = log.thread("s")
    costs = {}
    for name, work in OPERATIONS.items():
        costs[name] = meter.cost_of(lambda work=work: log.storage.write(lambda c: work(c, thread, count)))
    log.close()
    return costs


@pytest.mark.parametrize("sizes", [(400, 4_000), pytest.param((400, 100_000), marks=pytest.mark.exhaustive)])
def test_the_cost_of_every_operation_is_flat(tmp_path, sizes):
    """Ten times the events, and no operation takes twice the steps."""
    small, large = (costs_of_operations(tmp_path, count) for count in sizes)
    for name in OPERATIONS:
        for statement, steps in large[name].items():
            assert steps <= 2 * small[name].get(statement, 0) + 100, (name, statement)


def test_a_binary_search_finds_the_start_of_the_window(tmp_path):
    meter = Meter()
    costs = []
    for count in (400, 4_000):
        log = log_with(tmp_path, meter, count)
        thread = log.thread("s")
        cost = meter.cost_of(
            lambda log=log, thread=thread, count=count: log.storage.write(
                lambda c: events.start_of_running_total(c, thread, count, 300)
            )
        )
        costs.append(sum(cost.values()))
        log.close()
    assert costs[1] < 2 * costs[0]


def test_no_statement_of_the_log_scans_a_table(tmp_path):
    """The plan of each statement, as SQLite explains it."""
    meter = Meter()
    log = log_with(tmp_path, meter, 400)
    thread = log.thread("s")
    statements = set()
    for work in OPERATIONS.values():
        statements |= set(meter.cost_of(lambda work=work: log.storage.write(lambda c: work(c, thread, 400))))
    with log.storage.read() as connection:
        plans = {
            statement: plan_of(connection, statement)
            for statement in statements
            if statement.startswith(("SELECT", "INSERT", "UPDATE", "DELETE")) and statement != ANY_WORK
        }
    log.close()
    assert len(plans) > 25
    scans = [
        (step, statement)
        for statement, steps in plans.items()
        for step in steps
        if step.startswith("SCAN") and not any(allowed in step for allowed in SCANS_ALLOWED)
    ]
    assert scans == []
    assert not [step for steps in plans.values() for step in steps if "AUTOMATIC" in step]


def plan_of(connection, statement):
    """Return the steps of a statement's plan as text."""
    steps, left = [], [apsw.ext.query_info(connection, statement, explain_query_plan=True).query_plan]
    while left:
        node = left.pop()
        steps.append(node.detail)
        left.extend(node.sub or ())
    return steps


@pytest.mark.parametrize("sizes", [(300, 3_000), pytest.param((300, 100_000), marks=pytest.mark.exhaustive)])
def test_a_turn_costs_the_log_the_same_at_any_length(tmp_path, sizes):
    """Prepare and commit, whole: the statements on the log's own tables stay flat."""
    totals = []
    for count in sizes:
        meter = Meter()
        with LibraryOfContext(
            tmp_path / f"library{count}", embedder=False, tokenizer=len, plugins=[meter], durability="normal"
        ) as library:
            governor = library.open_context_governor("s", token_budget=3_000)
            for base in range(0, count, 1_000):
                governor.record_many(
                    {"role": "assistant" if number % 2 else "user", "content": f"about number {number}"}
                    for number in range(base, min(base + 1_000, count))
                )
            assert library.flush(300)
            governor.prepare("warm up")
            governor.commit("warm")
            assert library.flush(30)
            steps = meter.cost_of(lambda governor=governor: turn(governor))
        totals.append(sum(cost for statement, cost in steps.items() if touches_log(statement)))
    assert totals[1] <= 1.5 * totals[0]


def turn(governor):
    governor.prepare("what about number 7?", event_id="q")
    governor.commit("that is seven")
    governor.status()
    list(governor.history(limit=10))
    governor.open_event("q")


def touches_log(statement):
    words = statement.replace("(", " ").split()
    return any(table in words for table in LOG_TABLES)
