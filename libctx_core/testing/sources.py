"""What any source adapter must do: a suite to subclass.

```python
class TestMyAdapter(SourceAdapterSuite):
    def make_adapter(self):
        return MyAdapter()

    def make_inputs(self, folder):
        (folder / "a.txt").write_text("one")
        (folder / "b.txt").write_text("two")
        return [MyInput(folder / "a.txt"), MyInput(folder / "b.txt")]

    def destroy(self, folder):
        for path in folder.iterdir():
            path.unlink()
```
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from libctx_core.errors import SourceChangedError, SourceVanishedError
from libctx_core.sources import AnySourceAdapter, ContentAdapter, Source, SourceMaterialization, SourceShelf
from libctx_core.sources.adapters import check_adapter
from libctx_core.store.database import Database


class SourceAdapterSuite:
    """Tests of a source adapter; subclass it and say how one, and inputs for it, are made."""

    def make_adapter(self) -> AnySourceAdapter:
        """Return a new adapter."""
        raise NotImplementedError

    def make_inputs(self, folder: Path) -> Sequence[Any]:
        """Return at least two inputs that stand for different material; files go into `folder`."""
        raise NotImplementedError

    def destroy(self, folder: Path) -> None:
        """Remove the material the inputs stand for, where it lies outside the inputs."""

    # -- helpers --------------------------------------------------------------

    def resolve(self, adapter: AnySourceAdapter, value: Any) -> Source:
        """Resolve one input."""
        source: Source = asyncio.run(_awaited(adapter.resolve(value)))
        return source

    def read(self, adapter: AnySourceAdapter, source: Source) -> Any:
        """Read one source."""
        return asyncio.run(_awaited(adapter.read(source)))

    # -- tests ----------------------------------------------------------------

    def test_has_the_parts(self, tmp_path: Path) -> None:
        """An input class, a name, a source class, and both operations."""
        check_adapter(self.make_adapter())

    def test_resolves_to_its_own_class(self, tmp_path: Path) -> None:
        """Exactly the declared class, with a reference a catalog accepts."""
        adapter = self.make_adapter()
        shelf = _shelf(adapter)
        for value in self.make_inputs(tmp_path):
            assert type(value) is adapter.input_class
            source = self.resolve(adapter, value)
            assert type(source) is adapter.source_class
            ref = shelf.router.as_ref(source)
            assert (ref.source_type, ref.source_id) == (adapter.name, source.name)

    def test_resolving_twice_gives_equal_sources(self, tmp_path: Path) -> None:
        """Unchanged material has one identity and one description."""
        adapter = self.make_adapter()
        for value in self.make_inputs(tmp_path):
            assert self.resolve(adapter, value) == self.resolve(adapter, value)

    def test_different_material_has_different_identities(self, tmp_path: Path) -> None:
        """No two inputs resolve to the same name."""
        adapter = self.make_adapter()
        names = [self.resolve(adapter, value).name for value in self.make_inputs(tmp_path)]
        assert len(names) >= 2
        assert len(set(names)) == len(names)

    def test_survives_being_stored(self, tmp_path: Path) -> None:
        """What comes out of a library equals what went in, and reads the same."""
        adapter = self.make_adapter()
        shelf = _shelf(adapter)
        for value in self.make_inputs(tmp_path):
            entry = shelf.capture(value)
            stored = shelf.get(entry.ref).source
            assert stored == entry.source
            assert self.read(adapter, stored) == self.read(adapter, entry.source)
            assert shelf.capture(value).position == entry.position

    def test_reading_does_not_change_what_is_read(self, tmp_path: Path) -> None:
        """A second reading gives what the first one gave."""
        adapter = self.make_adapter()
        for value in self.make_inputs(tmp_path):
            source = self.resolve(adapter, value)
            assert self.read(adapter, source) == self.read(adapter, source)

    def test_captured_outlives_its_origin_and_referenced_says_it_is_gone(self, tmp_path: Path) -> None:
        """After the material is gone, a captured source reads; a referenced one says so."""
        adapter = self.make_adapter()
        sources = [self.resolve(adapter, value) for value in self.make_inputs(tmp_path)]
        before = [self.read(adapter, source) for source in sources]
        self.destroy(tmp_path)
        for source, value in zip(sources, before, strict=True):
            try:
                after = self.read(adapter, source)
            except (SourceVanishedError, SourceChangedError):
                assert source.materialization is SourceMaterialization.REFERENCED
            else:
                assert after == value


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _shelf(adapter: AnySourceAdapter) -> SourceShelf:
    given = () if isinstance(adapter, ContentAdapter) else (adapter,)
    return SourceShelf(Database(":memory:"), "suite", given)
