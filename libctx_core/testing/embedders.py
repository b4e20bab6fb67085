"""What any embedder must do: a suite to subclass.

```python
class TestMyEmbedder(EmbedderSuite):
    def make_embedder(self):
        return MyEmbedder()
```
"""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from libctx_core.ports import Embedder
from libctx_core.testing.texts import AWKWARD_TEXTS, ORDINARY_TEXTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LENGTH_TOLERANCE = 1e-3
"""How far the length of a vector may be from one."""


class EmbedderSuite:
    """Tests of an embedder; subclass it and say how one is made."""

    def make_embedder(self) -> Embedder:
        """Return a new embedder."""
        raise NotImplementedError

    def test_has_the_port(self) -> None:
        """Both methods, a name of its profile, and a dimension above zero."""
        embedder = self.make_embedder()
        assert isinstance(embedder, Embedder)
        assert isinstance(embedder.profile_id, str)
        assert embedder.profile_id.strip() == embedder.profile_id != ""
        assert type(embedder.dimension) is int
        assert embedder.dimension > 0

    def test_one_row_per_text(self) -> None:
        """float32, of the promised shape, also for no texts at all."""
        import numpy as np

        embedder = self.make_embedder()
        for texts in ([], ORDINARY_TEXTS[:1], ORDINARY_TEXTS):
            rows = embedder.embed_documents(texts)
            assert rows.shape == (len(texts), embedder.dimension)
            assert rows.dtype == np.float32
        assert embedder.embed_query(ORDINARY_TEXTS[0]).shape == (embedder.dimension,)

    def test_unit_length_or_zero(self) -> None:
        """Cosine is a dot product, so every vector is of length one, or zero."""
        embedder = self.make_embedder()
        rows = [*embedder.embed_documents(ORDINARY_TEXTS), *map(embedder.embed_query, ORDINARY_TEXTS)]
        for row in rows:
            assert _is_unit_or_zero(row)

    def test_ordinary_texts_differ(self) -> None:
        """Different things said in plain words have different vectors, none of them zero."""
        rows = self.make_embedder().embed_documents(ORDINARY_TEXTS)
        assert len({row.tobytes() for row in rows}) == len(ORDINARY_TEXTS)
        assert all(row.any() for row in rows)

    def test_any_text_at_all(self) -> None:
        """Blank, huge, or not even valid Unicode: finite vectors, and no exception."""
        import numpy as np

        embedder = self.make_embedder()
        for text in AWKWARD_TEXTS:
            (row,) = embedder.embed_documents([text])
            assert np.isfinite(row).all()
            assert _is_unit_or_zero(row)
            assert _is_unit_or_zero(embedder.embed_query(text))

    def test_a_vector_depends_on_its_text_alone(self) -> None:
        """Not on its neighbours in a batch, their order, or what was embedded before."""
        embedder = self.make_embedder()
        together = embedder.embed_documents(ORDINARY_TEXTS)
        backwards = embedder.embed_documents(ORDINARY_TEXTS[::-1])[::-1]
        alone = [embedder.embed_documents([text])[0] for text in ORDINARY_TEXTS]
        fresh = self.make_embedder().embed_documents(ORDINARY_TEXTS)
        for row, others in zip(together, zip(backwards, alone, fresh, strict=True), strict=True):
            assert all(row.tobytes() == other.tobytes() for other in others)

    def test_threads_may_share_it(self) -> None:
        """Eight threads at once get what one gets."""
        embedder = self.make_embedder()
        expected = [row.tobytes() for row in embedder.embed_documents(ORDINARY_TEXTS)]
        shared = self.make_embedder()
        with ThreadPoolExecutor(8) as pool:
            for rows in pool.map(lambda _: shared.embed_documents(ORDINARY_TEXTS), range(8)):
                assert [row.tobytes() for row in rows] == expected

    def test_two_of_a_kind_have_one_profile(self) -> None:
        """The profile names the method, not the object."""
        first, second = self.make_embedder(), self.make_embedder()
        assert (first.profile_id, first.dimension) == (second.profile_id, second.dimension)


def _is_unit_or_zero(row: "NDArray[np.float32]") -> bool:
    import numpy as np

    length = float(np.linalg.norm(row))
    return length == 0.0 or abs(length - 1.0) <= LENGTH_TOLERANCE
