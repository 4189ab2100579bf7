"""Keeps the last lines of the log, and sets the log level, for remote operators."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Final, final

__all__ = ["LogLines", "log_level", "set_log_level"]

#: How many lines are kept, and the most characters of a line.
_KEPT: Final = 1_000
_CHARACTERS: Final = 2_000
_LOGGER: Final = "tmqp_server"
#: The log levels, from most to least.
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


@final
class LogLines(logging.Handler):
    """Keeps the last lines; they are numbered consecutively."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self._count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            text = str(record.msg)
        line: dict[str, Any] = {
            "number": self._count + 1,
            "at_ms": int(record.created * 1_000),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": text[:_CHARACTERS],
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        self._count += 1
        self._lines.append(line)

    def last(self) -> Sequence[dict[str, Any]]:
        """The kept lines, the oldest first."""
        return list(self._lines)

    def begin(self) -> None:
        """Begin to keep lines."""
        logging.getLogger(_LOGGER).addHandler(self)

    def end(self) -> None:
        """Stop keeping lines."""
        logging.getLogger(_LOGGER).removeHandler(self)


def log_level() -> str:
    """The lowest level that is logged."""
    level = logging.getLogger(_LOGGER).getEffectiveLevel()
    return next((word for word, number in _LEVELS.items() if level <= number), "error")


def set_log_level(word: str) -> None:
    """Set the log level, until the configuration is reloaded."""
    logging.getLogger(_LOGGER).setLevel(_LEVELS[word])
