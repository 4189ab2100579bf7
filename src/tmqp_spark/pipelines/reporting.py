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
#: Of what Spark says, which may be a page.
_LONGEST: Final = 500


class Reporter:
    """Writes progress to a stream, by default standard error.

    :param as_json: a JSON object a line, with ``at``, ``event`` and the fields, instead of text.
    :param quiet: nothing but warnings.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, stream: TextIO | None = None
    ) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._stream = stream
        self._began = time.monotonic()

    def say(self, event: str, text: str, **fields: Any) -> None:
        """Tell what happened.

        :param event: its name, for programs: ``batch``.
        :param text: the same for people.
        :param fields: what programs may want to know of it.
        """
        if not self._quiet:
            self._write("info", event, text, fields)

    def warn(self, event: str, text: str, **fields: Any) -> None:
        """Tell what somebody should look at; not even ``quiet`` keeps it back."""
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
            # Nobody listens any more, which is no reason to leave work half done.
            self._quiet = True


def plain_number(number: float) -> str:
    """A number with its thousands set apart: ``1,234,567``."""
    return f"{number:,.0f}"


def explain(error: BaseException) -> tuple[str, str]:
    """Which of our errors it is (a name of :mod:`tmqp_spark.errors`, or empty), and what it says.

    An error in a task reaches the driver as the text of a Python traceback inside that of Java's:
    the last line that names one of our errors says what happened.
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
