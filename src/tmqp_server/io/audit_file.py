"""Writes the audit: to memory, a file, or the log.

A line is small, and is passed to the operating system immediately, as lines of the log are.  If it
cannot be written, it waits in memory, where at most 1,000 lines wait, and is written first when
writing works again.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from tmqp_server.access.auditing import AuditLog, AuditRecord

__all__ = ["AuditFile"]

logger = logging.getLogger("tmqp_server.audit")

#: Records that are kept in memory.
_KEPT: Final = 1_000


class AuditFile(AuditLog):
    """Keeps records.

    :param offset_s: Unix time minus the engine's time, in seconds.

    Attributes: ``ring``, the last 1,000 records as they are written, the latest last; ``failing``,
    why the file cannot be written, empty while it can; ``lost``, records that found no room.
    """

    def __init__(self, offset_s: float) -> None:
        self.ring: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.failing = ""
        self.lost = 0
        self._offset_s = offset_s
        self._path = ""
        self._logs = False
        self._file = -1
        self._waiting: deque[bytes] = deque()
        #: How many bytes of the first waiting line are written already.
        self._written = 0

    def use(self, path: str, *, logs: bool) -> None:
        """Write to this file from now on, after opening it again; to none if the path is empty.

        :raises OSError: if it cannot be opened; then nothing changes.
        """
        file = -1
        if path:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
            file = os.open(path, flags, 0o600)
        self.close()
        self._path, self._file, self._logs = path, file, logs
        if not path:
            self._waiting.clear()
            self.failing = ""

    def close(self) -> None:
        """Close the file."""
        self._path = ""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, record: AuditRecord) -> None:
        """Keep a record."""
        line = self._line_of(record)
        self.ring.append(line)
        if self._logs:
            words = f"{line['who'] or '-'}: {line['action']} {line['subject']}: {line['code']}"
            logger.info("%s", words, extra={"fields": {"audit": line}})
        if self._path:
            if len(self._waiting) >= _KEPT:
                self.lost += 1
                return
            self._waiting.append(json.dumps(line, ensure_ascii=True, default=str).encode() + b"\n")
            self._flush()

    def is_ready(self) -> bool:
        """Whether all records are written; tries again to write those that are not."""
        if self._waiting:
            self._flush()
        return not self._waiting

    def _flush(self) -> None:
        try:
            while self._waiting:
                line = self._waiting[0][self._written :]
                self._written += _write(self._file, line)
                if self._written >= len(self._waiting[0]):
                    self._waiting.popleft()
                    self._written = 0
        except OSError as error:
            if not self.failing:
                logger.error("the audit file cannot be written: %s: %s", self._path, error.strerror)
            self.failing = error.strerror or str(error)
        else:
            if self.failing:
                logger.warning("the audit can be written again")
            self.failing = ""

    def _line_of(self, record: AuditRecord) -> dict[str, Any]:
        when = datetime.fromtimestamp(record.at + self._offset_s, UTC)
        line: dict[str, Any] = {
            "ts": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "who": record.who,
            "address": record.address,
            "door": record.door,
            "session": record.session,
            "action": record.action,
            "subject": record.subject,
            "code": record.code or None,
        }
        if record.before:
            line["before"] = dict(record.before)
        if record.after:
            line["after"] = dict(record.after)
        return line


#: Tests make it fail.
_write: Callable[[int, bytes], int] = os.write
