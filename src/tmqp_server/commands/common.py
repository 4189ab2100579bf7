"""Shared parts of the commands about a data directory: opening it, progress, and errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from tmqp_server.storage.port import StoreError
from tmqp_server.storage.sqlite import DATABASE_NAME, FILES_BESIDE, SqliteStore

__all__ = ["DIRECTORY", "Progress", "existing_store", "failing_politely", "number_of", "progress"]

#: The argument that names a data directory.
DIRECTORY: Final = click.Path(file_okay=False, path_type=Path)


@contextmanager
def failing_politely() -> Iterator[None]:
    """Report an error of the store in one sentence, and exit with status 2."""
    try:
        yield
    except BrokenPipeError:
        raise  # who read has gone; click ends without a word
    except (StoreError, OSError) as error:
        click.echo(f"tmqp-server: {error}", err=True)
        sys.exit(2)


@contextmanager
def existing_store(directory: Path, *, skip_damage: bool = False) -> Iterator[SqliteStore]:
    """Open the existing store of a directory for reading; it is not changed.

    :raises StoreError: when there is none, or a server uses it.
    """
    if not any((directory / name).is_file() for name in (DATABASE_NAME, *FILES_BESIDE)):
        raise StoreError(f"there is no store in {directory}")
    try:
        store = SqliteStore(directory, floor_bytes=0, skip_damage=skip_damage)
    except StoreError as error:
        if "in use by" in str(error):
            raise StoreError(
                f"{error}; make a copy first (tmqp-server backup {directory} COPY) and look at that"
            ) from error
        raise
    try:
        yield store
    finally:
        store.close(clean=False)


class Progress:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._done = 0

    def reach(self, done: int, total: int | None = None) -> None:
        """Show that *done* of *whole* is done."""
        if self._bar is not None:
            if total is not None:
                self._bar.length = total
            self._bar.update(done - self._done)
            self._done = done


@contextmanager
def progress(label: str, total: int) -> Iterator[Progress]:
    """Show a progress bar on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield Progress(None)
        return
    with click.progressbar(
        length=max(total, 1), label=label, file=sys.stderr, width=30, show_pos=True
    ) as bar:
        yield Progress(bar)


def number_of(count: int, word: str) -> str:
    """A number with its noun: ``1 queue``, ``2,000 queues``."""
    return f"{count:,} {word}" + ("" if count == 1 else "s")
