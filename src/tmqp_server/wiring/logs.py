"""Writes the log: plain lines for people, or one JSON object per line.

Lines contain texts that peers choose (names, ids, reasons).  In a plain line, control characters
are escaped, so no peer can begin a line of its own.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from tmqp_server.settings.log import LogSettings

__all__ = ["LOG_LINES", "JsonFormatter", "PlainFormatter", "set_up_log"]

#: Lines that were written to the log since the process began, by their level in lower case.
LOG_LINES: Final[dict[str, int]] = {}

_PLAIN: Final = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
#: Characters that are escaped: control characters, and those that end a line elsewhere.
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class PlainFormatter(logging.Formatter):
    """A line for people; a traceback follows on lines of its own."""

    def __init__(self) -> None:
        super().__init__(_PLAIN)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """The line, without the traceback after it."""
        record.message = record.message.translate(_ESCAPES)
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ``ts`` in UTC, ``level``, ``logger``, ``message``, and
    ``exception``, a traceback, if there is one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "ts": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class _Counting(logging.StreamHandler):  # type: ignore[type-arg]  # of a text stream
    """Writes lines to standard error, and counts them in ``LOG_LINES``."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        level = record.levelname.lower()
        LOG_LINES[level] = LOG_LINES.get(level, 0) + 1
        super().emit(record)


def set_up_log(settings: LogSettings) -> None:
    """Write the log to standard error, with these settings from now on; may be called again."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, _Counting):
            root.removeHandler(handler)
    handler = _Counting()
    handler.setFormatter(JsonFormatter() if settings.format == "json" else PlainFormatter())
    root.addHandler(handler)
    root.setLevel(settings.level.upper())
    logging.getLogger("tmqp_server").setLevel(logging.NOTSET)  # what an operator has set is over
    for name in ("httpx", "httpcore"):  # they log whole URLs; what fails is told by ours
        logging.getLogger(name).setLevel(logging.WARNING)
