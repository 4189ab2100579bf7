"""Recorded answers of the original programs: what is compared, line by line.

A line of HTTP is ``GET /ping (-) -> 200 b'OK' {...}``: method, target, bytes of the request's body,
status, at most 400 bytes of the answer's body, the fields but the date.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

__all__ = ["DATA", "Line", "http_lines", "tcp_lines"]

DATA = Path(__file__).parents[3] / "data" / "nsq"
_HTTP = re.compile(r"(GET|POST|PUT|HEAD) (\S+) \((\S+)\) -> (\d+) (b'.*'|b\".*\") (\{.*\})$")


class Line:
    """One recorded exchange by HTTP."""

    def __init__(self, match: re.Match[str]) -> None:
        self.method, self.target, size = match[1], match[2], match[3]
        self.size = None if size == "-" else int(size)
        self.status = int(match[4])
        self.body: bytes = ast.literal_eval(match[5])
        self.fields: dict[str, str] = ast.literal_eval(match[6])

    def __repr__(self) -> str:
        return f"{self.method} {self.target} ({self.size})"


def http_lines(name: str) -> list[Line]:
    """The exchanges by HTTP that a file records, in order."""
    found = []
    for text in (DATA / name).read_text().splitlines():
        match = _HTTP.match(text)
        if match:
            found.append(Line(match))
    return found


def tcp_lines(name: str) -> dict[str, Any]:
    """The exchanges by TCP that a file records, by their names."""
    found = {}
    for text in (DATA / name).read_text().splitlines():
        title, arrow, answer = text.partition(" -> ")
        if arrow and not _HTTP.match(text):
            found[title.strip()] = ast.literal_eval(answer)
    return found
