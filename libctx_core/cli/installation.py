"""Checks of the installation: binding, extension, vocabularies, embedder, plugins, one whole turn."""

import time

from libctx_core.cli.finding import Finding, attempted, judged, well
from libctx_core.plugins import Plugins

OLDEST_SQLITE = (3, 51, 3)
"""Releases before it can corrupt a write-ahead log."""

_REINSTALL = "install libctx-core again"


def installation_findings() -> list[Finding]:
    """Look at everything that does not need a library file."""
    return [
        attempted("binding", _binding, "install apsw again; it brings its own SQLite"),
        attempted("extension", _extension, "install sqlite-vec again, or use the numpy vector index"),
        attempted(
            "vocabularies", _vocabularies, f"{_REINSTALL}; until then tokens are over-counted, never under-counted"
        ),
        attempted("embedder", _embedder, f"{_REINSTALL}; until then search works by words alone"),
        *plugin_findings(Plugins.load()),
        attempted("one turn", _one_turn, "run the command again with LIBCTX_DEBUG=1 and report what it prints"),
    ]


def plugin_findings(plugins: Plugins) -> list[Finding]:
    """Return one finding for every plugin that is not built in."""
    findings = []
    for status in plugins.statuses:
        if status.origin == "built-in":
            continue
        found = f"{status.state}, {status.package}" if status.package else status.state
        if status.state == "failed":
            advice = "mend or uninstall it, or name the plugins to load in LIBCTX_PLUGINS"
            findings.append(Finding(f"plugin {status.name}", "warning", f"{found}: {status.error}", advice))
        else:
            findings.append(well(f"plugin {status.name}", found))
    return findings


def _binding() -> Finding:
    import apsw

    version = apsw.sqlite_lib_version()
    current = tuple(int(part) for part in version.split(".")[:3]) >= OLDEST_SQLITE
    advice = f"upgrade apsw: SQLite before {'.'.join(map(str, OLDEST_SQLITE))} can corrupt a write-ahead log"
    return judged("binding", f"apsw {apsw.apsw_version()} with SQLite {version}", good=current, advice=advice)


def _extension() -> Finding:
    from libctx_core.store.connection import MEMORY, connect, load_vector_extension

    connection = connect(MEMORY, writable=True)
    try:
        version = load_vector_extension(connection)
    finally:
        connection.close()
    return judged(
        "extension",
        f"sqlite-vec {version}" if version else "sqlite-vec cannot be loaded",
        good=version is not None,
        advice="vectors are searched with numpy instead, which needs nothing; install sqlite-vec for its own index",
        otherwise="warning",
    )


def _vocabularies() -> Finding:
    from libctx_core.tokens import TokenCounter

    counters = [TokenCounter.for_encoding(name) for name in ("cl100k_base", "o200k_base")]
    counts = [counter.count("Counted without a network: größer, 数える.") for counter in counters]
    return judged(
        "vocabularies",
        ", ".join(f"{counter.name} ({count})" for counter, count in zip(counters, counts, strict=True)),
        good=all(counter.exact for counter in counters) and min(counts) > 0,
        advice=f"{_REINSTALL}: a vocabulary is missing, and bytes are counted instead",
    )


def _embedder() -> Finding:
    import numpy as np

    from libctx_core.embedding import StaticEmbedder

    embedder = StaticEmbedder()
    near, far = embedder.embed_documents(["The boat needs a new engine.", "Counting sheep helps one sleep."])
    question = embedder.embed_query("Which motor does the ship want?")
    good = bool(np.isclose(np.linalg.norm(near), 1.0, atol=1e-3) and question @ near > question @ far)
    return judged("embedder", embedder.profile_id, good=good, advice=_REINSTALL)


def _one_turn() -> Finding:
    from libctx_core.library import LibraryOfContext

    started = time.perf_counter()
    with LibraryOfContext(":memory:", plugins=()) as library:
        governor = library.open_context_governor("doctor", token_budget=400)
        governor.prepare("The spare key hangs behind the blue door.")
        governor.commit("Noted.")
        indexed = governor.flush(10.0)
        hits = governor.recall("Where is the spare key?", 1)
        prompt = governor.prepare("Where is the spare key?")
    took = (time.perf_counter() - started) * 1000
    good = indexed and bool(hits) and "blue door" in hits[0].text and prompt.token_count <= prompt.token_budget
    return judged(
        "one turn",
        f"stored, indexed, found again and governed in {took:.0f} ms" if good else "what was stored was not found",
        good=good,
        advice="run the command again with LIBCTX_DEBUG=1 and report what it prints",
    )
