"""What was redacted is in no byte of the file, wherever its row had been before."""

import pytest

from libctx_core import LibraryOfContext


@pytest.mark.parametrize("later", [0, 60, 600])
@pytest.mark.parametrize("how", ["redact", "delete"])
def test_no_byte_of_a_removed_event_remains(tmp_path, later, how):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path) as library:
        governor = library.open_context_governor("s", token_budget=700)
        governor.prepare("The gate opens with 471-987-22.", event_id="gate", metadata={"code": "471-987-22"})
        governor.amend("gate", "The gate opens with 471-987-22, twice.")
        # later events split the page the row was on, and move it
        governor.record_many({"role": "user", "content": f"Entry {n}: wind"} for n in range(later))
        assert governor.flush(60)
        if how == "redact":
            governor.redact("gate")
        else:
            governor.delete()
        wal = path.with_name(path.name + "-wal")
        assert b"471-987-22" not in path.read_bytes()
        assert b"471-987-22" not in (wal.read_bytes() if wal.exists() else b"")
