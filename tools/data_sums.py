"""The checksum list beside the package data, which the library verifies before it uses a file."""

import hashlib
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "libctx_core" / "data"


def record_sum(file: Path) -> str:
    """Write the SHA-256 of `file` into ``SHA256SUMS`` and return it."""
    sums = DATA / "SHA256SUMS"
    lines = sums.read_text("utf-8").splitlines() if sums.exists() else []
    known = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    known[file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(known.items()))
    sums.write_text(text, "utf-8", newline="\n")
    return known[file.name]
