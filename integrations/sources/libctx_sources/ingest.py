"""``libctx ingest``: take files, directories, repositories and chat exports into a library."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from libctx_core.cli.files import AsJson, opened
from libctx_core.cli.output import complain, emit_json, emit_table, notice, progress
from libctx_core.errors import SourceError

Paths = Annotated[
    list[Path], typer.Argument(metavar="PATH...", help="Files, directories, or a git repository with --commit.")
]
Library = Annotated[Path, typer.Option("--library", "-l", help="The library file; made if there is none.")]


def command(
    paths: Paths,
    *,
    library: Library = Path("library.db"),
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="The collection to take it into.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="Take in the files of git repositories at this commit.")
    ] = None,
    reference: Annotated[
        bool, typer.Option("--reference", help="Leave plain files where they are and keep fingerprints only.")
    ] = False,
    hidden: Annotated[bool, typer.Option("--hidden", help="Also files whose name starts with a dot.")] = False,
    json: AsJson = False,
) -> None:
    """Take sources into a library: stored, cut at their seams, searchable, each chunk with its exact place."""
    from libctx_sources.ingestion import Ingested, Ingestion

    done: list[Ingested] = []
    with opened(library, read_only=False, create=True) as opening:
        ingestion = Ingestion.into(opening, collection)
        found = list(_inputs(paths, commit=commit, capture=not reference, hidden=hidden))
        with progress("taking in", quiet=json) as advance:
            for number, (origin, value) in enumerate(found, start=1):
                if isinstance(value, SourceError):
                    done.append(Ingested(origin, error=value))
                else:
                    done.extend(ingestion.ingest_all([value], origins=[origin]))
                advance(number, len(found))
    _report(done, as_json=json)
    if done and all(item.error is not None for item in done):
        raise typer.Exit(1)


def _inputs(paths: list[Path], *, commit: str | None, capture: bool, hidden: bool) -> Iterator[tuple[str, Any]]:
    """Yield what stands at each path as an input, or the error that refuses it."""
    from libctx_sources.choosing import input_for
    from libctx_sources.directories import walk
    from libctx_sources.git import git_files

    for path in paths:
        try:
            if commit is not None:
                for value in git_files(path, commit, capture=capture):
                    yield f"{value.repository}/{value.path}", value
                continue
            files = list(walk(path, hidden=hidden)) if path.is_dir() else [path]
        except SourceError as error:
            yield str(path), error
            continue
        for file in files:
            try:
                yield str(file), input_for(file, capture=capture)
            except SourceError as error:
                yield str(file), error


def _report(done: list[Any], *, as_json: bool) -> None:
    """Print what became of every input: a table, and each refusal on a line of its own."""
    taken = [item for item in done if item.error is None]
    refused = [item for item in done if item.error is not None]
    if as_json:
        emit_json(
            {
                "sources": [
                    {
                        "origin": item.origin,
                        "source_type": item.ref.source_type,
                        "source_id": item.ref.source_id,
                        "chunks": item.chunks,
                        "known": item.known,
                        "superseded": item.superseded,
                    }
                    for item in taken
                ],
                "refused": [
                    {"origin": item.origin, "code": item.error.code, "reason": str(item.error)} for item in refused
                ],
            }
        )
        return
    for item in refused:
        complain(item.error.code, str(item.error))
    rows = [
        {
            "source": item.origin,
            "kind": item.ref.source_type,
            "chunks": item.chunks,
            "": "known" if item.known else "newer version" if item.superseded else "",
        }
        for item in taken
    ]
    emit_table("taken in", rows, empty="nothing")
    chunks = sum(item.chunks for item in taken)
    notice(f"{len(taken)} sources, {chunks} new chunks, {len(refused)} refused")
