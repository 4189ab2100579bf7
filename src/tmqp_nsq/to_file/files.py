"""The file of a topic: opened, written, synced, rotated, moved when it is finished (N160, N161)."""

from __future__ import annotations

import contextlib
import gzip
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from tmqp_nsq.to_file.names import FileSettings

__all__ = ["TopicFile"]

logger = logging.getLogger("tmqp_nsq")


class TopicFile:
    """The file that is being written; its methods block and raise OSError."""

    def __init__(self, settings: FileSettings, template: str) -> None:
        self._settings = settings
        self._template = template
        self._file: BinaryIO | None = None
        self._gzip: gzip.GzipFile | None = None
        self._name = ""
        self._revision = 0
        self._size = 0
        self._opened_at = 0.0

    def needs_rotation(self, now_s: float) -> bool:
        """Whether the next message belongs into another file."""
        settings = self._settings
        if self._file is None or settings.name(self._template, now_s) != self._name:
            return True
        if settings.rotate_interval_s and now_s - self._opened_at > settings.rotate_interval_s:
            return True
        return bool(settings.rotate_size) and self._size > settings.rotate_size

    def rotate(self, now_s: float) -> None:
        """Close the file and open the next one."""
        self.close()
        name = self._settings.name(self._template, now_s)
        self._revision = self._revision + 1 if name == self._name else 0
        self._name = name
        self._opened_at = now_s
        while not self._open():
            self._revision += 1

    def _open(self) -> bool:
        """Open the file of the current revision, unless it exists, or is large enough already."""
        settings = self._settings
        relative = self._relative(self._revision)
        path = Path(settings.work_dir, relative)
        path.parent.mkdir(parents=True, exist_ok=True)
        if settings.moves and Path(settings.output_dir, relative).exists():
            logger.warning("output file already exists: %s", relative)
            return False
        try:
            self._file = path.open("xb" if settings.is_exclusive else "ab", buffering=0)
        except FileExistsError:
            logger.warning("working file already exists: %s", path)
            return False
        self._size = os.fstat(self._file.fileno()).st_size
        if settings.rotate_size and self._size > settings.rotate_size:
            logger.info("%s has %d bytes already, rotating", path, self._size)
            self._file.close()
            self._file = None
            return False
        logger.info("opened %s", path)
        self._begin_member()
        return True

    def _relative(self, revision: int) -> str:
        return self._name.replace("<REV>", f"-{revision:06d}")

    def _begin_member(self) -> None:
        if self._settings.gzip_level and self._file is not None:
            self._gzip = gzip.GzipFile("", "wb", self._settings.gzip_level, self._file)

    def write(self, bodies: Sequence[bytes], now_s: float) -> None:
        """Write each body as a line; a new file begins where it is time for one."""
        if not self._settings.rotate_size:
            self._write_lines(bodies, now_s)
            return
        for body in bodies:
            self._write_lines((body,), now_s)
            if self._file is not None:
                self._size = os.fstat(self._file.fileno()).st_size

    def _write_lines(self, bodies: Sequence[bytes], now_s: float) -> None:
        if self.needs_rotation(now_s):
            self.rotate(now_s)
        data = b"".join([body + b"\n" for body in bodies])
        if self._gzip is not None:
            self._gzip.write(data)
        else:
            self._file_write(data)

    def _file_write(self, data: bytes) -> None:
        """Write all: an unbuffered file may take less than it is given."""
        assert self._file is not None
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]

    def sync(self) -> None:
        """Have everything on disk; a gzip member ends, so that the file is whole up to here."""
        if self._file is None:
            return
        if self._gzip is not None:
            self._gzip.close()
            self._gzip = None
        os.fsync(self._file.fileno())
        self._size = os.fstat(self._file.fileno()).st_size
        self._begin_member()

    def close(self) -> None:
        """Sync and close the file, and move it to the output directory."""
        if self._file is None:
            return
        if self._gzip is not None:
            self._gzip.close()
            self._gzip = None
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        if self._settings.moves:
            self._move()

    def abandon(self) -> None:
        """Close the file as it is, after a failure: it is neither synced nor moved."""
        compressed, file = self._gzip, self._file
        self._gzip = self._file = None
        with contextlib.suppress(OSError):
            if compressed is not None:
                compressed.close()
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()

    def _move(self) -> None:
        """Move the file, never over another one: then the next free revision is taken."""
        source = Path(self._settings.work_dir, self._relative(self._revision))
        revision = self._revision
        while True:
            target = Path(self._settings.output_dir, self._relative(revision))
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(source)
            except FileExistsError:
                logger.warning("destination file already exists: %s", target)
                revision += 1
                continue
            source.unlink()
            logger.info("moved %s to %s", source, target)
            return
