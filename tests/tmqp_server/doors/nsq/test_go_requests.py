"""Requests that Go's HTTP library reads in its own way; the answers were recorded from nsqd 1.3.0.

But for a query with more than 64 parameters, which the original reads.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.tmqp_server.doors.nsq.stage import Stage
from tmqp_server.doors.http.manner import MOST_DROPPED_BYTES

#: Another request on the same connection.
_NEXT: Final = b"GET /ping HTTP/1.1\r\nHost: y\r\n\r\n"


def said(method: str, target: str, body: bytes = b"") -> bytes:
    """A request with a body, which may be empty."""
    head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def answers(door: str, request: bytes) -> list[str]:
    """The status and the end of each answer to a request and to the next on its connection."""
    data = Stage().dial(door, request + _NEXT).take().decode()
    found: list[str] = []
    for each in data.split("HTTP/1.1 ")[1:]:
        head, _, body = each.partition("\r\n\r\n")
        found.append(head[:3] + " " + body.partition('{"message":"')[2].partition('"')[0])
    return [each.strip() for each in found]


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        ("GET", "/ping", "200"),
        ("GET", "/info", "200"),
        ("GET", "/stats?format=json", "200"),
        ("GET", "/config/log_level", "200"),
        ("OPTIONS", "/ping", "200"),
        ("GET", "/nope", "404 NOT_FOUND"),
        ("GET", "/pub?topic=t", "405 METHOD_NOT_ALLOWED"),
        ("PUT", "/pub?topic=t", "405 METHOD_NOT_ALLOWED"),
        ("DELETE", "/ping", "405 METHOD_NOT_ALLOWED"),
        ("HEAD", "/ping", "405"),
    ],
)
@pytest.mark.parametrize("size", [5, MOST_DROPPED_BYTES])
def test_a_body_that_nobody_wants_was_refused(
    method: str, target: str, answer: str, size: int
) -> None:
    assert answers("nsqd-http", said(method, target, b"x" * size)) == [answer, "200"]


def test_a_body_in_chunks_that_nobody_wants_is_dropped() -> None:
    head = b"GET /ping HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert answers("nsqd-http", head + b"5\r\nhello\r\n0\r\n\r\n") == ["200", "200"]


@pytest.mark.parametrize("target", ["/ping", "/nope"])
def test_no_more_of_an_unwanted_body_is_read_than_go_reads(target: str) -> None:
    """Go answers and closes the connection; this server refuses the request."""
    request = said("GET", target, b"x" * (MOST_DROPPED_BYTES + 1))
    assert answers("nsqd-http", request) == ["413 BODY_TOO_BIG"]


@pytest.mark.parametrize(
    "query", ["%", "topic=t&%", "topic=%zz", "topic=t;x=1", "&".join("x" * 65)]
)
@pytest.mark.parametrize(
    ("method", "path", "body", "answer"),
    [
        ("GET", "/ping", b"", "200"),
        ("GET", "/info", b"", "200"),
        ("GET", "/config/log_level", b"", "200"),
        ("GET", "/nope", b"", "404 NOT_FOUND"),
        ("GET", "/pub", b"", "405 METHOD_NOT_ALLOWED"),
        ("GET", "/stats", b"", "400 INVALID_REQUEST"),
        ("POST", "/pub", b"", "400 MSG_EMPTY"),
        ("POST", "/pub", b"m", "400 INVALID_REQUEST"),
        ("POST", "/mpub", b"m", "400 INVALID_REQUEST"),
        ("POST", "/topic/create", b"", "400 INVALID_REQUEST"),
        ("POST", "/topic/delete", b"", "400 INVALID_REQUEST"),
        ("POST", "/topic/empty", b"", "400 INVALID_REQUEST"),
        ("POST", "/topic/pause", b"", "400 INVALID_REQUEST"),
        ("POST", "/channel/create", b"", "400 INVALID_REQUEST"),
        ("POST", "/channel/delete", b"", "400 INVALID_REQUEST"),
        ("POST", "/channel/pause", b"", "400 INVALID_REQUEST"),
    ],
)
def test_a_bad_query_matters_only_to_who_reads_it(
    query: str, method: str, path: str, body: bytes, answer: str
) -> None:
    assert answers("nsqd-http", said(method, f"{path}?{query}", body)) == [answer, "200"]


@pytest.mark.parametrize("query", ["topic=%ff", "topic=a%00", "topic=a+b", "topic"])
def test_what_is_no_name_is_no_topic(query: str) -> None:
    assert answers("nsqd-http", said("POST", f"/pub?{query}", b"m")) == ["400 INVALID_TOPIC", "200"]


def test_the_first_of_equal_parameters_counts() -> None:
    stage = Stage()
    stage.dial("nsqd-http", said("POST", "/topic/create?topic=a&topic=b"))
    assert len(stage.broker.queues()) == 1
    assert "a" in stage.broker.queues()[0].channel_name


@pytest.mark.parametrize(
    ("target", "answer"),
    [("/topics?%", "200"), ("/nodes?%", "200"), ("/lookup?%", "400 INVALID_REQUEST")],
)
def test_a_lookupd_reads_requests_so_too(target: str, answer: str) -> None:
    assert answers("nsqlookupd-http", said("GET", target, b"body")) == [answer, "200"]
