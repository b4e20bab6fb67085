"""What any vector index must do: a suite to subclass.

```python
class TestMyIndex(VectorIndexSuite):
    def make_index(self):
        return MyIndex()
```
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from libctx_core.errors import EmbeddingDimensionError, InvalidInputError
from libctx_core.search.index import SearchIndex
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.slots import SlotSet, slot_array
from libctx_core.store.database import Database
from libctx_core.store.owners import VECTOR_COLLECTION, get_or_create_owner
from libctx_core.store.records import slot_of
from libctx_core.store.vectors import clear_vectors, fix_profile, pack_vectors, put_vectors, remove_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOLERANCE = 2e-6
"""Cosines of float32 vectors may differ by this much between two ways to compute them."""


class VectorLibrary:
    """A library file with vectors at chosen positions.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        SearchIndex(self.database)

    def owner(self, name: str = "owner") -> int:
        """Return the id of an owner, creating it where it is missing."""
        return self.database.write(lambda c: get_or_create_owner(c, VECTOR_COLLECTION, "suite", name).id)

    def put(self, owner: int, vectors: "Mapping[int, Sequence[float] | NDArray[np.float32]]") -> None:
        """Store vectors by position."""
        rows = pack_vectors(list(vectors.values()))
        slotted = sorted((slot_of(owner, position), row) for position, row in zip(vectors, rows, strict=True))

        def work(connection: Any) -> None:
            fix_profile(connection, owner, "suite", len(rows[0]) // 4)
            put_vectors(connection, owner, slotted)

        self.database.write(work)

    def remove(self, owner: int, *positions: int) -> None:
        """Delete the vectors at some positions."""
        self.database.write(lambda c: remove_vectors(c, owner, [slot_of(owner, at) for at in positions]))

    def clear(self, owner: int) -> None:
        """Delete all vectors of an owner."""
        self.database.write(lambda c: clear_vectors(c, owner))

    def nearest(
        self, index: VectorSearch, owner: int, query: "Sequence[float] | NDArray[np.float32]", k: int, **allowed: Any
    ) -> list[tuple[int, float]]:
        """Return positions and cosines, closest first; ``only=`` or ``but=`` name permitted positions."""
        permitted = None
        for name, positions in allowed.items():
            slots = slot_array(slot_of(owner, at) for at in positions)
            permitted = {owner: SlotSet(slots, negated=name == "but")}
        with self.database.read() as connection:
            found = index.top_k(connection, [owner], query, k, allowed=permitted)
        return [(one.slot - slot_of(owner, 0), one.similarity) for one in found]


class VectorIndexSuite:
    """Tests of a vector index; subclass it and say how one is made."""

    def make_index(self) -> VectorSearch:
        """Return a new index with nothing cached."""
        raise NotImplementedError

    @pytest.fixture
    def library(self, tmp_path: Path) -> VectorLibrary:
        """Return an empty library."""
        return VectorLibrary(tmp_path / "vectors.sqlite")

    def test_closest_first_with_cosines(self, library: VectorLibrary) -> None:
        """The cosine of whatever length of vector, highest first."""
        owner = library.owner()
        library.put(owner, {0: [0, 3], 1: [5, 0], 2: [-1, 0], 3: [2, 2]})
        found = library.nearest(self.make_index(), owner, [10, 0], 4)
        assert [at for at, _ in found] == [1, 3, 0, 2]
        assert [score for _, score in found] == pytest.approx([1, 0.5**0.5, 0, -1], abs=TOLERANCE)

    def test_equal_vectors_by_position(self, library: VectorLibrary) -> None:
        """Ties are broken by position, so an answer is always the same."""
        owner = library.owner()
        library.put(owner, {at: [1, 2, 3] for at in range(50)})
        assert [at for at, _ in library.nearest(self.make_index(), owner, [1, 2, 3], 7)] == list(range(7))

    def test_fewer_than_asked_for(self, library: VectorLibrary) -> None:
        """A `k` beyond the number of vectors returns each once."""
        owner = library.owner()
        library.put(owner, {3: [1, 0], 9: [0, 1]})
        assert [at for at, _ in library.nearest(self.make_index(), owner, [1, 0], 100)] == [3, 9]

    def test_nothing_there(self, library: VectorLibrary) -> None:
        """An owner without vectors answers with nothing."""
        assert library.nearest(self.make_index(), library.owner(), [1, 0], 5) == []

    def test_only_what_is_permitted(self, library: VectorLibrary) -> None:
        """The best of the permitted ones, even where all closer ones are not."""
        owner = library.owner()
        library.put(owner, {at: [1, at] for at in range(200)})
        index = self.make_index()
        for _ in range(3):
            assert [at for at, _ in library.nearest(index, owner, [1, 0], 2, only=[150, 199, 90])] == [90, 150]
            assert [at for at, _ in library.nearest(index, owner, [1, 0], 2, but=range(198))] == [198, 199]
            assert library.nearest(index, owner, [1, 0], 2, only=[]) == []
            assert len(library.nearest(index, owner, [1, 0], 200, but=[])) == 200

    def test_random_vectors_exactly(self, library: VectorLibrary) -> None:
        """The same answers as plain float64 arithmetic, filtered and not."""
        import numpy as np

        random = np.random.default_rng(7)
        vectors = random.standard_normal((600, 24)).astype(np.float32)
        owner = library.owner()
        library.put(owner, dict(enumerate(vectors)))
        index = self.make_index()
        exact = vectors.astype(np.float64)
        exact /= np.linalg.norm(exact, axis=1, keepdims=True)
        for size in (3, 60, 599):
            only = np.sort(random.choice(600, size, replace=False))
            query = random.standard_normal(24)
            scores = exact[only] @ (query / np.linalg.norm(query))
            found = library.nearest(index, owner, query.astype(np.float32), 10, only=only.tolist())
            assert [score for _, score in found] == pytest.approx(sorted(scores, reverse=True)[:10], abs=TOLERANCE)
            assert {at for at, _ in found} <= set(only.tolist())

    def test_changes_are_seen(self, library: VectorLibrary) -> None:
        """Appended, replaced, late and removed vectors, after the index was used."""
        owner = library.owner()
        library.put(owner, {0: [1, 0], 1: [0, 1], 5: [1, 1]})
        index = self.make_index()
        library.nearest(index, owner, [1, 0], 5)
        library.put(owner, {6: [-1, 0]})
        assert [at for at, _ in library.nearest(index, owner, [-1, 0], 1)] == [6]
        library.put(owner, {1: [-2, 0.1], 3: [-1, -0.2]})
        assert [at for at, _ in library.nearest(index, owner, [-1, 0], 3)] == [6, 1, 3]
        library.remove(owner, 6, 0)
        assert sorted(at for at, _ in library.nearest(index, owner, [-1, 0], 9)) == [1, 3, 5]

    def test_another_process_is_seen(self, library: VectorLibrary) -> None:
        """Writes through another connection need no message."""
        owner = library.owner()
        library.put(owner, {0: [1, 0]})
        index = self.make_index()
        library.nearest(index, owner, [1, 0], 5)
        other = VectorLibrary(Path(library.database.path))
        other.put(owner, {1: [0, 1]})
        other.remove(owner, 0)
        assert [at for at, _ in library.nearest(index, owner, [0, 1], 5)] == [1]

    def test_a_snapshot_keeps_what_it_saw(self, library: VectorLibrary) -> None:
        """An older snapshot is answered from what it sees, whatever was cached since."""
        owner = library.owner()
        library.put(owner, {0: [1, 0], 1: [0, 1]})
        index = self.make_index()
        with library.database.read() as old:
            assert len(index.top_k(old, [owner], [1, 0], 9)) == 2
            other = VectorLibrary(Path(library.database.path))
            other.put(owner, {2: [1, 0.1]})
            assert len(other.nearest(index, owner, [1, 0], 9)) == 3
            assert len(index.top_k(old, [owner], [1, 0], 9)) == 2
            other.remove(owner, 1)
            assert len(other.nearest(index, owner, [1, 0], 9)) == 2
            assert len(index.top_k(old, [owner], [1, 0], 9)) == 2

    def test_cleared_and_filled_anew(self, library: VectorLibrary) -> None:
        """After clearing, vectors of another length are welcome."""
        owner = library.owner()
        library.put(owner, {0: [1, 0], 1: [0, 1]})
        index = self.make_index()
        library.nearest(index, owner, [1, 0], 5)
        library.clear(owner)
        assert library.nearest(index, owner, [1, 0], 5) == []
        library.put(owner, {0: [1, 0, 0]})
        assert [at for at, _ in library.nearest(index, owner, [1, 0, 0], 5)] == [0]

    def test_zero_vectors_are_like_nothing(self, library: VectorLibrary) -> None:
        """A zero vector, stored or asked with, has cosine 0."""
        owner = library.owner()
        library.put(owner, {0: [0, 0], 1: [1, 1]})
        index = self.make_index()
        assert dict(library.nearest(index, owner, [1, 1], 2))[0] == 0.0
        assert [score for _, score in library.nearest(index, owner, [0, 0], 2)] == [0.0, 0.0]

    def test_owners_are_apart(self, library: VectorLibrary) -> None:
        """Only the named owners are searched, and together they are ranked as one."""
        one, two, three = (library.owner(name) for name in ("one", "two", "three"))
        library.put(one, {0: [1, 0.2]})
        library.put(two, {0: [1, 0.1]})
        library.put(three, {0: [1, 0]})
        index = self.make_index()
        with library.database.read() as connection:
            found = index.top_k(connection, [one, two], [1, 0], 5)
        assert [neighbour.slot for neighbour in found] == [slot_of(two, 0), slot_of(one, 0)]

    def test_another_dimension_is_refused(self, library: VectorLibrary) -> None:
        """The error names both lengths."""
        owner = library.owner()
        library.put(owner, {0: [1, 0]})
        with pytest.raises(EmbeddingDimensionError) as caught:
            library.nearest(self.make_index(), owner, [1, 0, 0], 5)
        assert (caught.value.expected, caught.value.found) == (2, 3)

    @pytest.mark.parametrize("query", [[float("nan"), 1], [float("inf"), 1], [], ["a", 1], [[1, 0]], [1e30, 1e30]])
    def test_no_vector_at_all_is_refused(self, library: VectorLibrary, query: Any) -> None:
        """What has no finite length cannot be asked with."""
        owner = library.owner()
        library.put(owner, {0: [1, 0]})
        with pytest.raises(InvalidInputError):
            library.nearest(self.make_index(), owner, query, 5)

    def test_similarities_by_position(self, library: VectorLibrary) -> None:
        """One cosine per position, NaN where there is no vector."""
        import numpy as np

        owner, empty = library.owner(), library.owner("empty")
        library.put(owner, {1: [1, 0], 2: [0, 1], 4: [-3, 0]})
        library.remove(owner, 2)
        with library.database.read() as connection:
            found = self.make_index().similarities(connection, [owner, empty], [2, 0])
        assert list(found) == [owner]
        assert found[owner].dtype == np.float32
        assert np.isnan(found[owner]).tolist() == [True, False, True, True, False]
        assert found[owner][[1, 4]] == pytest.approx([1, -1], abs=TOLERANCE)
