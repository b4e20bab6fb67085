"""Bit codes: a first look at very many vectors, before the promising ones are measured exactly.

Codes are held column by column, so that comparing a question with a million of them is a
handful of passes over plain integers. The nearest codes name the candidates, whose float32
vectors are then read from the file and measured. How many candidates are enough is found
out when the codes are built, against exact answers to sample questions; where no number
is, the owner is searched exactly.
"""

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import apsw

from libctx_core.search.bitcodes import BitEncoder, agreement, hamming, words_for
from libctx_core.search.calibration import Calibration, Sample, pick, shortlist
from libctx_core.search.matrix import unit_rows
from libctx_core.search.slots import contained, slot_array
from libctx_core.store.records import slot_of, slot_range
from libctx_core.store.vector_codes import BLOCK, CodeHeader, read_codes, read_header, write_codes
from libctx_core.store.vectors import VectorState, changed_slots, read_some_vectors, read_vectors, vector_state

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from libctx_core.search.calibration import Picker

FORMAT = 1
"""Grows when codes or calibrations come to mean something else; older ones are built anew."""

NEVER = 0xFFFF
"""Distance of a code that must not be found; real ones are at most the dimension."""

_SPARE = 8
"""Buffers hold one code in this many more than needed; a table is copied when as many are dead."""

_FEW_DEAD = 1_024
"""Dead codes that are never worth a copy."""

_SAMPLE = 4_096
"""Vectors the centre is the mean of."""


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The codes of one owner in one state.

    Attributes:
        owner: The owner's id.
        state: The state of the vectors they stand for.
        encoder: What the codes were made with.
        slots: Slot of each code, ascending, shape ``(n,)``.
        words: The codes, shape ``(words, n)``, 64 bits to a word.
        dead: Indexes of codes whose vector is gone.
        calibration: How many candidates are enough.
        saved: Number of codes that the file holds.
    """

    owner: int
    state: VectorState
    encoder: BitEncoder
    slots: "NDArray[np.int64]"
    words: "NDArray[np.uint64]"
    dead: "NDArray[np.intp]"
    calibration: Calibration
    saved: int

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = self.words.base if self.words.base is not None else self.words
        return int(held.nbytes + self.slots.nbytes)

    @property
    def is_worth_saving(self) -> bool:
        """Whether a good part of the codes is not in the file yet."""
        return len(self.slots) - self.saved > len(self.slots) // 4

    def as_of(self, state: VectorState) -> "CodeTable":
        """Return the table for an older snapshot, to which removed vectors may still exist."""
        return self if state.changes >= self.state.changes else replace(self, dead=self.dead[:0])

    def distances(self, unit: "NDArray[np.float32]") -> "NDArray[np.uint16]":
        """Return for each code in how many bits it differs from the question's, `NEVER` if its vector is gone."""
        found = hamming(self.words, self.encoder.encode(unit.reshape(1, -1))[:, 0])
        found[self.dead] = NEVER
        return found

    def estimates(self, distances: "NDArray[np.uint16]") -> "NDArray[np.float32]":
        """Return the cosine that each distance suggests."""
        import numpy as np

        line = self.calibration.intercept + self.calibration.slope * np.arange(int(distances.max()) + 1)
        return line.astype(np.float32)[distances]

    def nearest(
        self, unit: "NDArray[np.float32]", distances: "NDArray[np.uint16]", candidates: int
    ) -> "NDArray[np.int64]":
        """Return the slots of the likeliest neighbours, ascending."""
        return slot_array(self.slots[self.pick(unit, distances, candidates)].tolist())

    def pick(self, unit: "NDArray[np.float32]", distances: "NDArray[np.uint16]", candidates: int) -> "NDArray[np.intp]":
        """Return the indexes of the likeliest neighbours, in no particular order."""
        rows = shortlist(distances, candidates, NEVER)
        return pick(rows, agreement(self.words[:, rows], self.encoder.project(unit.reshape(1, -1))[0]), candidates)


def build(connection: apsw.Connection, owner: int, state: VectorState) -> CodeTable:
    """Encode an owner's vectors in one pass over the file, and calibrate on the way."""
    import numpy as np

    probes = _some_units(connection, owner, state)
    encoder = BitEncoder.of(probes)
    sample = Sample(probes)
    slots = np.empty(state.count, np.int64)
    words = np.empty((words_for(state.dimension), state.count + state.count // _SPARE), np.uint64)
    filled = 0
    for block, rows in read_vectors(connection, *slot_range(owner), state.dimension):
        units = unit_rows(rows)
        end = filled + len(block)
        slots[filled:end] = block
        words[:, filled:end] = encoder.encode(units)
        sample.measure(units, filled)
        filled = end
    table = CodeTable(
        owner, state, encoder, slots[:filled], words[:, :filled], np.empty(0, np.intp), Calibration(0, 0.0, 0.0, 0.0), 0
    )

    def look(question: int) -> "tuple[NDArray[np.uint16], Picker]":
        unit = sample.questions[question]
        distances = table.distances(unit)
        return distances, lambda candidates: table.pick(unit, distances, candidates)

    return replace(table, calibration=sample.calibrate(look))


def load(connection: apsw.Connection, owner: int, state: VectorState) -> CodeTable | None:
    """Read an owner's codes from the file and bring them up to date; None if they must be built."""
    import numpy as np

    header = read_header(connection, owner)
    if header is None or header.epoch != state.epoch:
        return None
    settings = json.loads(header.settings)
    if settings.pop("format", None) != FORMAT:
        return None
    slots = np.empty(header.count, np.int64)
    words = np.empty((words_for(state.dimension), header.count + header.count // _SPARE), np.uint64)
    filled = 0
    for members, codes in read_codes(connection, owner):
        block = np.frombuffer(members, "<i8")
        end = filled + len(block)
        slots[filled:end] = block
        words[:, filled:end] = np.frombuffer(codes, "<u8").reshape(len(block), -1).T
        filled = end
    saved = replace(state, changes=header.changes, tail=header.tail)
    table = CodeTable(
        owner,
        saved,
        BitEncoder.from_bytes(header.encoder, state.dimension),
        slots,
        words[:, :filled],
        np.empty(0, np.intp),
        Calibration(**settings),
        filled,
    )
    return refresh(connection, table, state)


def save(connection: apsw.Connection, table: CodeTable) -> None:
    """Write a table to the file, unless the vectors have changed since; needs a write transaction."""
    import numpy as np

    state = vector_state(connection, table.owner)
    if state is None or state.epoch != table.state.epoch or state.changes != table.state.changes:
        return
    keep = np.ones(len(table.slots), np.bool_)
    keep[table.dead] = False
    slots, codes = table.slots[keep], np.ascontiguousarray(table.words[:, keep].T)
    header = CodeHeader(
        table.state.epoch,
        table.state.changes,
        table.state.tail,
        len(slots),
        json.dumps({"format": FORMAT, **asdict(table.calibration)}),
        table.encoder.to_bytes(),
    )
    starts = range(0, len(slots), BLOCK)
    blocks = [(slots[at : at + BLOCK].tobytes(), codes[at : at + BLOCK].tobytes()) for at in starts]
    write_codes(connection, table.owner, header, blocks)


def _some_units(connection: apsw.Connection, owner: int, state: VectorState) -> "NDArray[np.float32]":
    """Return unit vectors from all over an owner."""
    import numpy as np

    first = slot_of(owner, 0)
    spread = slot_array(np.linspace(first, state.tail - 1, _SAMPLE).astype(np.int64).tolist())
    _, rows = read_some_vectors(connection, spread, state.dimension)
    if len(rows) * 16 < _SAMPLE:
        # most positions are empty: take the oldest vectors there are
        _, rows = next(read_vectors(connection, *slot_range(owner), state.dimension))
    return unit_rows(rows)


def refresh(connection: apsw.Connection, known: CodeTable, state: VectorState) -> CodeTable | None:
    """Return `known` brought to `state`; None if it must be built again.

    A table that is newer than the connection's snapshot is returned as it is: candidates
    the snapshot does not see are dropped when their vectors are read.
    """
    old = known.state
    if old.epoch != state.epoch:
        return None
    if old.changes >= state.changes and old.tail >= state.tail:
        return known
    return _append(connection, _rewrite(connection, known, state), state)


def _rewrite(connection: apsw.Connection, known: CodeTable, state: VectorState) -> CodeTable:
    """Return `known` with changed slots gone or encoded anew, leaving its own arrays as they are."""
    import numpy as np

    changed = changed_slots(connection, known.owner, known.state.changes)
    touched = slot_array(slot for slot in changed if slot < known.state.tail)
    gone = np.flatnonzero(contained(known.slots, touched)) if len(touched) else np.empty(0, np.intp)
    dead = np.concatenate([known.dead, gone])
    found, rows = read_some_vectors(connection, touched, state.dimension)
    if not len(found) and len(dead) <= max(_FEW_DEAD, len(known.slots) // _SPARE):
        return replace(known, dead=dead)
    keep = np.ones(len(known.slots), np.bool_)
    keep[dead] = False
    slots = np.concatenate([known.slots[keep], found])
    order = np.argsort(slots, kind="stable")
    codes = np.concatenate([known.words[:, keep], known.encoder.encode(unit_rows(rows))], axis=1)
    words = np.empty((len(codes), len(order) + len(order) // _SPARE), np.uint64)
    words[:, : len(order)] = codes[:, order]
    return replace(known, slots=slots[order], words=words[:, : len(order)], dead=np.empty(0, np.intp))


def _append(connection: apsw.Connection, known: CodeTable, state: VectorState) -> CodeTable:
    """Return `known` with the codes of what lies behind its tail, put into the spare part of its buffer."""
    import numpy as np

    _, last = slot_range(known.owner)
    blocks = list(read_vectors(connection, known.state.tail, last, state.dimension))
    slots = np.concatenate([known.slots, *(block for block, _ in blocks)])
    filled = len(known.slots)
    buffer = known.words.base if known.words.base is not None else known.words
    if buffer.shape[1] < len(slots):
        buffer = np.empty((len(known.words), len(slots) + len(slots) // _SPARE), np.uint64)
        buffer[:, :filled] = known.words
    for block, rows in blocks:
        buffer[:, filled : filled + len(block)] = known.encoder.encode(unit_rows(rows))
        filled += len(block)
    return replace(known, state=state, slots=slots, words=buffer[:, :filled])
