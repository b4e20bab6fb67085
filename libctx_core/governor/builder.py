"""Building one request: read the thread, lay out what is settled, retrieve, assemble."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import apsw

from libctx_core.access.authority import Authority
from libctx_core.governor import desk as desks
from libctx_core.governor import retrieval
from libctx_core.governor.asking import asks
from libctx_core.governor.assembly import show
from libctx_core.governor.budget import Budgets
from libctx_core.governor.envelope import DeskItem, GovernedPrompt
from libctx_core.governor.omissions import list_omissions
from libctx_core.governor.packing import Layout, fit_turn, lay_out
from libctx_core.governor.recent import give_to_desk
from libctx_core.governor.rendering import CONTINUED, Message, event_message
from libctx_core.governor.retrieval import Reading
from libctx_core.governor.runtime import Runtime
from libctx_core.governor.thread import Tail, ThreadState, read_tail
from libctx_core.governor.units import Item, Unit, group, total
from libctx_core.models import HEAD_ROLES, ContextEvent, Hit
from libctx_core.ports import DeskCandidate, DeskRequest
from libctx_core.store import events as log
from libctx_core.store import outbox
from libctx_core.store.events import ThreadHead
from libctx_core.tokens import TokenCounter

Overflow = Literal["error", "truncate_top", "truncate_middle", "truncate_bottom"]

MIN_ITEM = 18
"""Tokens a retrieved item takes at least; bounds how many are asked for."""

MAX_ITEMS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What one request is built for.

    Attributes:
        focus: What the desk should be about; None for the words of the running turn.
        system_prompt: Text at the head.
        tools: Tool schemas that will be sent along.
        through: Build as of this sequence.
        branch: See the thread as this branch does.
        reserve: Tokens of a turn the caller adds itself; then everything stored is history.
        upcoming: The caller adds the user's turn itself.
        hide: Events that are left out although they are in the log.
    """

    focus: str | None = None
    system_prompt: str = ""
    tools: Sequence[Mapping[str, Any]] | None = None
    through: int | None = None
    branch: int | None = None
    reserve: int = 0
    upcoming: bool = False
    hide: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Builds the requests of one governor.

    Attributes:
        runtime: The library's shared parts.
        authority: Decides what the desk may read.
        reading: Where the desk looks.
        budgets: Limits of a request.
        counter: Counts its tokens.
        overflow: What happens to a turn that is too large.
        min_relevance: Relevance an item needs to be put on the desk.
    """

    runtime: Runtime
    authority: Authority
    reading: Reading
    budgets: Budgets
    counter: TokenCounter
    overflow: Overflow = "error"
    min_relevance: float = retrieval.MIN_RELEVANCE

    def build(self, connection: apsw.Connection, thread: int | None, question: Question) -> GovernedPrompt:
        """Build a request on a snapshot.

        Raises:
            TurnTooLargeError: The running turn, the system prompt and the tools do not fit.
        """
        head = None if thread is None else log.thread_head(connection, thread)
        if head is None:
            head = ThreadHead(thread or 0, 0, 0, 0, 0, 0)
        state = self.runtime.states.of(head.owner) if thread is not None else ThreadState()
        tail = read_tail(
            connection, head, state,
            through=question.through, branch=question.branch, high=self._window_ceiling(), upcoming=question.upcoming,
        )  # fmt: skip
        tail = _without(tail, question.hide)
        protected = [] if thread is None else self._protected(connection, tail, question)
        tokens = self._token_lookup(connection, [*tail.events, *protected])
        grouped = group(tail.events, tokens, self.counter.count_message)
        before = sum(1 for unit in grouped.units if unit.sequence < tail.turn_start)
        fixed = self.counter.count_messages([]) + self.counter.count_tools(question.tools or [])
        system = self._system(question.system_prompt)
        room = self.budgets.total - fixed - question.reserve - (system.tokens if system else 0)
        window, running = grouped.units[:before], grouped.units[before:]
        turn = fit_turn(self._opened(running), room, self.overflow, self.counter)
        layout = lay_out(
            budgets=self.budgets, fixed=fixed, system=system, protected=protected, window=window, turn=turn,
            tokens=tokens, counter=self.counter, reserve=question.reserve,
        )  # fmt: skip
        focus = question.focus if question.focus is not None else _words_of(tail.turn)
        found = self._retrieve(connection, head, state, tail, layout, focus, stated=question.focus is not None)
        layout, chosen, block, block_tokens = self._open_desk(layout, found)
        shelf = desks.changes(state.desk, chosen)
        state.desk = tuple(item.hit.record_id for item in chosen)
        shown = show(layout, shelf, None if block is None else Item(block, block_tokens))
        return GovernedPrompt(
            messages=shown.messages,
            parts=shown.parts,
            token_count=fixed + shown.tokens,
            token_budget=self.budgets.total,
            recent_event_ids=shown.recent_event_ids,
            protected_event_ids=tuple(
                event.event_id
                for event in (*layout.protected, *(e for e in tail.turn if e.protected and e.uid in shown.uids))
            ),
            omitted_protected=layout.omitted_protected,
            omitted=list_omissions(tail, layout, grouped.orphans, shown.uids, hidden=len(question.hide)),
            paged_out_events=max(0, tail.visible - len(shown.uids)),
            desk=shelf,
            watermarks=outbox.watermarks(connection, head.owner, head.last_sequence),
            tokenizer=self.counter.name,
            exact=self.counter.exact,
            thread=self.reading.key,
            event_id=None if tail.asked is None else tail.asked.event_id,
            answer=self._answer(connection, tail),
        )

    # -- reading --------------------------------------------------------------

    def _window_ceiling(self) -> int:
        return min(self.budgets.recent, self.budgets.total - self.budgets.desk_floor)

    def _protected(self, connection: apsw.Connection, tail: Tail, question: Question) -> list[ContextEvent]:
        path = None
        if tail.head.branches:
            branch = tail.head.tip_branch if question.branch is None else question.branch
            path = log.branch_path(connection, tail.head.owner, branch)
        in_turn = {event.uid for event in tail.turn if event.role not in HEAD_ROLES}
        return [
            event
            for event in log.protected(connection, tail.head.owner)
            if event.sequence <= tail.through
            and event.uid not in in_turn
            and event.event_id not in question.hide
            and (path is None or event.sequence <= path.get(event.branch, 0))
        ]

    def _token_lookup(
        self, connection: apsw.Connection, events: Sequence[ContextEvent]
    ) -> Callable[[ContextEvent], int]:
        """Return the tokens of each event under this counter, counting and keeping those never counted with it."""
        name = self.counter.name
        foreign = [event for event in events if event.counter != name]
        known = log.tokens_under(connection, [event.uid for event in foreign], name) if foreign else {}
        missing = {
            event.uid: self.counter.count_message(event_message(event)) for event in foreign if event.uid not in known
        }
        if missing and not self.runtime.database.read_only and self.runtime.indexer is not None:
            self.runtime.indexer.keep_counts(missing, name)
        known.update(missing)
        return lambda event: known.get(event.uid, event.token_count)

    def _system(self, text: str) -> Item | None:
        if not text:
            return None
        message: Message = {"role": "system", "content": text}
        return Item(message, self.counter.count_message(message))

    def _opened(self, turn: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Let a turn that has no user message begin with one; providers refuse it otherwise."""
        if not turn or turn[0].starts_a_turn:
            return turn
        message: Message = {"role": "user", "content": CONTINUED}
        opening = Item(message, self.counter.count_message(message), note="the thread has no user turn here")
        return (Unit((opening,), opening.tokens), *turn)

    # -- desk -----------------------------------------------------------------

    def _retrieve(
        self,
        connection: apsw.Connection,
        head: ThreadHead,
        state: ThreadState,
        tail: Tail,
        layout: Layout,
        focus: str,
        *,
        stated: bool,
    ) -> list[desks.Candidate]:
        if not focus.strip() or self.budgets.desk < MIN_ITEM:
            return []
        shown = [event.event_id for event in (*layout.recent_events, *tail.turn, *layout.protected)]
        key = (focus, tail.turn[0].uid if tail.turn else None, head.revision, self.reading, self.budgets, tail.through)
        with state.lock:
            kept = state.turn
        stable = bool(tail.turn) and kept is not None and kept[0][:5] == key[:5]
        if stable and kept is not None:
            names = set(shown)
            hits = [hit for hit in kept[1] if hit.event_id not in names or hit.thread != self.reading.key]
        else:
            bar = self._bar(focus, stated=stated)
            hits = self._search(connection, head, tail, focus, shown, bar)
            with state.lock:
                state.turn = (key, tuple(hits))
        return self._offer(desks.candidates(hits, self.counter, self.budgets.desk), focus)

    def _bar(self, focus: str, *, stated: bool) -> "Bar":
        if stated or asks(focus):
            return Bar(self.min_relevance * retrieval.FIRST_SHARE, self.min_relevance)
        bar = max(self.min_relevance, retrieval.STATEMENT_RELEVANCE)
        return Bar(bar, bar)

    def _search(
        self, connection: apsw.Connection, head: ThreadHead, tail: Tail, focus: str, shown: Sequence[str], bar: "Bar"
    ) -> list[Hit]:
        owners = retrieval.readable_owners(connection, self.runtime, self.authority, self.reading)
        if not owners or (owners == (head.owner,) and len(set(shown)) == head.last_sequence):
            return []  # there is nothing to read, or the request shows all of it already
        exclude = retrieval.slots_of(connection, head.owner, shown)
        exclude |= self._out_of_sight(connection, head, tail)
        found = retrieval.search(
            connection, self.runtime, focus, owners,
            k=min(MAX_ITEMS, self.budgets.desk // MIN_ITEM), exclude=exclude,
            min_relevance=bar.others, few=FIRST, few_relevance=bar.first, neighbours=1, dedupe=True,
        )  # fmt: skip
        known = {hit.slot for hit in found} | exclude
        context = []
        for hit in [hit for hit in found if hit.relevance >= bar.others][:NEIGHBOURED]:
            for record in hit.neighbours:
                if record.slot not in known:
                    known.add(record.slot)
                    context.append(replace(record, score=hit.score, relevance=hit.relevance, neighbours=()))
        return retrieval.hits_of(connection, [*found, *context])

    def _out_of_sight(self, connection: apsw.Connection, head: ThreadHead, tail: Tail) -> set[int]:
        """Return the slots of events after the build's point or on other branches."""
        if head.branches == 0:
            if tail.through >= head.last_sequence:
                return set()
            rows = connection.execute(
                "SELECT event_id FROM event WHERE thread = ? AND sequence > ?", (head.owner, tail.through)
            )
            return retrieval.slots_of(connection, head.owner, [row[0] for row in rows.fetchall()])
        hidden = [
            row[0]
            for row in connection.execute(
                "SELECT event_id, sequence, branch FROM event WHERE thread = ?", (head.owner,)
            )
            if row[1] > tail.through or row[1] > tail.path.get(row[2], 0)
        ]
        return retrieval.slots_of(connection, head.owner, hidden)

    def _offer(self, items: list[desks.Candidate], focus: str) -> list[desks.Candidate]:
        """Let a plugin choose among the candidates, if one wants to."""
        if not items or not self.runtime.plugins.implements("select_context"):
            return items
        by_id = {item.hit.record_id: item for item in items}
        chosen = self.runtime.plugins.select_context(
            DeskRequest(
                collection=self.reading.key.collection,
                session_id=self.reading.key.session_id,
                focus=focus,
                token_budget=self.budgets.desk,
                candidates=tuple(
                    DeskCandidate(item.hit.record_id, item.hit.text, item.tokens, item.hit.score) for item in items
                ),
            )
        )
        return items if chosen is None else [by_id[record_id] for record_id in chosen]

    def _open_desk(
        self, layout: Layout, items: list[desks.Candidate]
    ) -> tuple[Layout, list[DeskItem], Message | None, int]:
        """Fill the desk; items that are relevant may take room from the oldest recent units."""
        if not items:
            return layout, [], None, 0
        wish = min(desks.wanted(items, self.counter), self.budgets.desk)
        if wish > layout.free:
            kept, dropped = give_to_desk(layout.recent, wish - layout.free, self.budgets, self.counter)
            layout = replace(
                layout, recent=kept, left_out=(*layout.left_out, *dropped), free=layout.free + total(dropped)
            )
        chosen, block, tokens = desks.fill(items, min(self.budgets.desk, layout.free), self.counter)
        return layout, chosen, block, tokens

    # -- assembly -------------------------------------------------------------

    def _answer(self, connection: apsw.Connection, tail: Tail) -> ContextEvent | None:
        """Return the stored reply to the running turn's question; an answer is stored after what it answers."""
        if tail.asked is None or tail.asked.sequence == tail.head.last_sequence:
            return None
        return log.answer_to(connection, tail.head.owner, tail.asked.event_id)


@dataclass(frozen=True, slots=True)
class Bar:
    """Relevance that the first few items, and all others, must reach."""

    first: float
    others: float


FIRST = 3
"""Best items that a lower bar suffices for: a missed fact costs more than a few tokens."""

NEIGHBOURED = 3
"""Best hits whose neighbours come along: the question before an answer, the answer after a question."""


def _without(tail: Tail, hidden: Collection[str]) -> Tail:
    if not hidden:
        return tail
    names = frozenset(hidden)
    return replace(
        tail,
        question=None if tail.question is None or tail.question.event_id in names else tail.question,
        window=tuple(event for event in tail.window if event.event_id not in names),
        turn=tuple(event for event in tail.turn if event.event_id not in names),
    )


def _words_of(turn: Sequence[ContextEvent]) -> str:
    for event in turn:
        if event.role == "user":
            return event.text
    return ""
