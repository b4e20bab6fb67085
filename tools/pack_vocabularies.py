"""Pack the byte-pair vocabularies of tiktoken into package data.

    uv run python tools/pack_vocabularies.py [FOLDER]

Reads the two published vocabulary files from FOLDER, or from the copy that llama-index-core
carries, checks them against the hashes that tiktoken pins, and writes one packed file for each:
all token lengths (one byte each, in rank order), then all token bytes, compressed with xz. The
rank of a token is its position, so nothing else is stored. The output is reproducible.
"""

import base64
import hashlib
import importlib.util
import lzma
import sys
from pathlib import Path

from data_sums import DATA, record_sum

SOURCES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Encoding to (name in a tiktoken cache folder, SHA-256 that tiktoken pins)."""

# Four literal context bits and no position bits fit short byte strings best.
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


def cache_folder() -> Path:
    """Return the tiktoken cache that the installed llama-index-core carries."""
    spec = importlib.util.find_spec("llama_index")
    if spec is not None:
        for root in spec.submodule_search_locations or ():
            folder = Path(root) / "core" / "_static" / "tiktoken_cache"
            if folder.is_dir():
                return folder
    sys.exit("llama-index-core is not installed; name a folder that holds the vocabulary files")


def tokens_of(source: bytes) -> list[bytes]:
    """Return the tokens of a ``.tiktoken`` file in rank order."""
    tokens = []
    for line in source.splitlines():
        token, rank = line.split()
        if int(rank) != len(tokens):
            raise ValueError(f"rank {int(rank)} where {len(tokens)} was expected")
        tokens.append(base64.b64decode(token))
    return tokens


def pack(tokens: list[bytes]) -> bytes:
    """Return the packed form of `tokens`."""
    plain = bytes(map(len, tokens)) + b"".join(tokens)
    return lzma.compress(plain, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=FILTERS)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else cache_folder()
    for name, (file, digest) in SOURCES.items():
        source = (folder / file).read_bytes()
        if hashlib.sha256(source).hexdigest() != digest:
            sys.exit(f"{folder / file}: not the published {name} vocabulary")
        tokens = tokens_of(source)
        packed = pack(tokens)
        target = DATA / f"{name}.vocab.xz"
        target.write_bytes(packed)
        record_sum(target)
        print(f"{target.name}: {len(tokens):,} tokens, {len(source):,} -> {len(packed):,} bytes")


if __name__ == "__main__":
    main()
