"""How the log is written."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from tmqp_server.settings.log import LogSettings
from tmqp_server.wiring.logs import LOG_LINES, JsonFormatter, PlainFormatter, set_up_log


def record(text: str, *arguments: Any, error: Exception | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("tmqp_server.x", logging.WARNING, "f", 1, text, arguments, info)


def test_a_line_of_json() -> None:
    made = json.loads(JsonFormatter().format(record("refused %r", "a\n\u2028\x1b")))
    assert made["level"] == "warning"
    assert made["logger"] == "tmqp_server.x"
    assert made["message"] == "refused 'a\\n\\u2028\\x1b'"
    assert made["ts"].endswith("Z")
    assert "exception" not in made


def test_json_is_one_line_whatever_is_in_it() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        line = JsonFormatter().format(record("a\nb", error=error))
    assert "\n" not in line
    assert "two\nlines" in json.loads(line)["exception"]


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\x1b[31m", "\x9b", "a\u2028b"])
def test_a_peer_cannot_begin_a_line_of_its_own(text: str) -> None:
    line = PlainFormatter().format(record("closed: %s", text))
    assert len(line.splitlines()) == 1
    assert not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in line)


def test_the_log_can_be_set_up_again() -> None:
    root = logging.getLogger()
    before = len(root.handlers)
    set_up_log(LogSettings(level="error"))
    set_up_log(LogSettings(level="debug", format="json"))
    (ours,) = root.handlers[before:]
    assert isinstance(ours.formatter, JsonFormatter)
    assert isinstance(ours, logging.StreamHandler)
    assert ours.stream is sys.stderr
    assert root.level == logging.DEBUG


def test_lines_of_the_log_are_counted_by_their_level(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_log(LogSettings(level="info"))
    before = dict(LOG_LINES)
    log = logging.getLogger("tmqp_server.test")
    log.warning("one")
    log.warning("two")
    log.debug("not written")
    assert LOG_LINES.get("warning", 0) - before.get("warning", 0) == 2
    assert LOG_LINES.get("debug", 0) == before.get("debug", 0)
    assert capsys.readouterr().err.count("\n") == 2
