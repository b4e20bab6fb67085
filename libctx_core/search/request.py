"""What a caller asks of search, and what comes back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["auto", "lexical", "vector", "hybrid"]
Fusion = Literal["signals", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One question to the records of some owners.

    Attributes:
        text: The question; any string is valid.
        owners: Ids of the owner objects that may be searched; None means all of the
            library. Statistics are summed over these only.
        k: Hits wanted.
        exclude: Slots left out before ranking, so that they take no place.
        kinds: Kinds of record wanted; None means all.
        where: Slots that may be found, as a metadata filter selected them; None means all.
        mode: Channels: words, vectors, or both; ``auto`` uses both where vectors exist.
        fusion: ``signals`` scores by the learnt weights, ``rrf`` by reciprocal ranks.
        rrf_k: Constant of reciprocal rank fusion.
        min_relevance: Hits below this relevance (0 to 1) are dropped; 0 keeps all.
        few: Number of best hits for which `few_relevance` suffices.
        few_relevance: Relevance that those need.
        neighbours: Records before and after each hit that come with it as context.
        dedupe: Drop near-duplicates of better hits.
        explain: Give each signal's part of the score.
        now: Records that expire at or before this time are not found; None ignores expiry.
    """

    text: str
    owners: Sequence[int] | None = None
    k: int = 10
    exclude: Collection[int] = ()
    kinds: Collection[str] | None = None
    where: Collection[int] | None = None
    mode: Mode = "auto"
    fusion: Fusion = "signals"
    rrf_k: int = 15
    min_relevance: float = 0.0
    few: int = 0
    few_relevance: float = 0.0
    neighbours: int = 0
    dedupe: bool = False
    explain: bool = False
    now: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHit:
    """A record that was found.

    Attributes:
        slot: Its slot.
        owner: Id of its owner object.
        key: Its id within the owner.
        kind: Its kind.
        text: Its text.
        caption: Text of its attachments.
        score: What it was ranked by; comparable within one answer only.
        relevance: Calibrated share of such hits that answer the question, 0 to 1.
        matched_by: Channels that found it, of ``lexical`` and ``vector``.
        signals: Each signal's part of the score, if asked for.
        role: Role of the message it came from.
        speaker: Who said it.
        session: Its session, if it was given one.
        sequence: Sequence of the event it came from.
        occurred_at: When it was said, seconds since the epoch, UTC.
        ref: Document it was cut from.
        metadata: The user's JSON object, as stored.
        payload: An adapter's own JSON, as stored.
        neighbours: Records around it, by rising slot, if asked for.
    """

    slot: int
    owner: int
    key: str
    kind: str
    text: str
    caption: str | None = None
    score: float = 0.0
    relevance: float = 0.0
    matched_by: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    role: str | None = None
    speaker: str | None = None
    session: str | None = None
    sequence: int | None = None
    occurred_at: float | None = None
    ref: str | None = None
    metadata: str | None = None
    payload: str | None = None
    neighbours: tuple["RecordHit", ...] = ()
