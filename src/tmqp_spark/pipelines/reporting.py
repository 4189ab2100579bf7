"""Reports the progress of a pipeline: human-readable lines, or one JSON object per line."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from tmqp_spark.errors import SparkError

__all__ = ["Reporter", "explain", "plain_number"]

_OURS: Final = "tmqp_spark."
#: The longest text of an error of Spark, which may be a page.
_LONGEST: Final = 500


class Reporter:
    """Writes progress to a stream, by default standard error.

    :param as_json: write one JSON object per line, with ``at``, ``event`` and the fields, instead
        of text.
    :param quiet: write only warnings.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, stream: TextIO | None = None
    ) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._stream = stream
        self._began = time.monotonic()

    def say(self, event: str, text: str, **fields: Any) -> None:
        """Report an event.

        :param event: the name of the event, for programs: ``batch``.
        :param text: the same for people.
        :param fields: the details, for programs.
        """
        if not self._quiet:
            self._write("info", event, text, fields)

    def warn(self, event: str, text: str, **fields: Any) -> None:
        """Report a warning, even if ``quiet`` is set."""
        self._write("warning", event, text, fields)

    def _write(self, level: str, event: str, text: str, fields: dict[str, Any]) -> None:
        stream = self._stream or sys.stderr
        if self._as_json:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            told = {"at": now, "level": level, "event": event, "text": text, **fields}
            line = json.dumps(told, default=str)
        else:
            line = f"{time.monotonic() - self._began:8.1f} s  {text}"
        try:
            print(line, file=stream, flush=True)
        except BrokenPipeError:
            # The reader of the output has gone, which is no reason to stop the work.
            self._quiet = True


def plain_number(number: float) -> str:
    """Format a number with thousands separators: ``1,234,567``."""
    return f"{number:,.0f}"


def explain(error: BaseException) -> tuple[str, str]:
    """Return the class name of our error (of :mod:`tmqp_spark.errors`, or empty) and its text.

    An error in a task reaches the driver as the text of a Python traceback inside that of Java's:
    the last line that names one of our errors is used.
    """
    if isinstance(error, SparkError):
        return type(error).__name__, str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    for line in reversed(lines):
        name, colon, rest = line.partition(": ")
        if colon and name.startswith(_OURS) and " " not in name:
            return name.rpartition(".")[2], rest
    first = next((line for line in lines if line), type(error).__name__)
    return "", first[:_LONGEST]
