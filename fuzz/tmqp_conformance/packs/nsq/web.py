"""NSQ, nsqd by HTTP: publishing, administration, statistics."""

from __future__ import annotations

import json
from typing import Final

from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import ANY, Matcher, Names, Properties
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear
from tmqp_conformance.packs.nsq.words import (
    consumer,
    get,
    http,
    message,
    post,
    request,
)
from tmqp_conformance.packs.words import Request, dial, hear, nothing, pack_case, say

__all__ = ["CASES"]

_T: Final = b"$t%23ephemeral"
_JSON: Final = "application/json; charset=utf-8"
_GONE: Final = Hear("a", Answer(end=End.CLOSED), fence=Fence.END)


class _Counts(Matcher):
    """Statistics of one topic with two messages and one channel, which has one consumer."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        try:
            (topic,) = json.loads(value if isinstance(value, bytes) else b"")["topics"]
            (channel,) = topic["channels"]
            counts = topic["message_count"], channel["depth"], channel["client_count"]
        except (ValueError, KeyError, TypeError):
            return False
        known = {"backend_depth", "paused", "e2e_processing_latency"} <= {*topic}
        return known and counts == (2, 2, 1)

    def describe(self) -> str:
        return "JSON: one topic with message_count 2, one channel with depth 2 and client_count 1"


def _asked(
    name: str,
    title: str,
    why: str,
    facts: str,
    what: Request,
    code: int,
    body: object = None,
    **fields: object,
) -> Case:
    """A case of one request and its answer."""
    return pack_case(
        f"server.nsq-http.{name}",
        title,
        why,
        facts,
        dial("w", "http"),
        request("w", what, http(code, body, **fields)),
    )


#: Every case of this interface.
CASES: Final[tuple[Case, ...]] = (
    _asked(
        "ping",
        "GET /ping is answered with OK",
        "Every monitor and every client suite asks this first.",
        "N112",
        get(b"/ping"),
        200,
        b"OK",
    ),
    _asked(
        "info",
        "GET /info tells the version and the addresses",
        "Administration finds the other port by it.",
        "N113",
        get(b"/info"),
        200,
        Properties({"tcp_port": ANY, "http_port": ANY, "version": ANY, "start_time": ANY}),
        content_type=_JSON,
    ),
    _asked(
        "unknown-path",
        "An unknown path is answered with 404 and JSON",
        "Programs read errors as JSON.",
        "N109 N110",
        get(b"/nope"),
        404,
        b'{"message":"NOT_FOUND"}',
        content_type=_JSON,
    ),
    _asked(
        "wrong-method",
        "A wrong method is answered with 405 and the right ones",
        "A client learns what is allowed.",
        "N110",
        get(b"/pub?topic=$t"),
        405,
        b'{"message":"METHOD_NOT_ALLOWED"}',
        allow=ANY,
    ),
    pack_case(
        "server.nsq-http.pub",
        "POST /pub publishes its body",
        "Programs without a client publish so.",
        "N114",
        consumer("a", 1),
        dial("w", "http"),
        request("w", post(b"/pub?topic=" + _T, b"by http"), http(200, b"OK")),
        hear("a", message(b"by http")),
    ),
    _asked(
        "pub-empty",
        "POST /pub of an empty body is refused",
        "A message has a body.",
        "N114",
        post(b"/pub?topic=" + _T),
        400,
        b'{"message":"MSG_EMPTY"}',
    ),
    _asked(
        "pub-without-topic",
        "POST /pub without a topic is refused",
        "The error names what is missing.",
        "N114",
        post(b"/pub", b"x"),
        400,
        b'{"message":"MISSING_ARG_TOPIC"}',
    ),
    _asked(
        "pub-bad-topic",
        "POST /pub to an invalid topic is refused",
        "Names are the same by HTTP and by TCP.",
        "N114 N120",
        post(b"/pub?topic=a!b", b"x"),
        400,
        b'{"message":"INVALID_TOPIC"}',
    ),
    pack_case(
        "server.nsq-http.mpub",
        "POST /mpub publishes each line that is not empty",
        "Batches make publishing fast.",
        "N115",
        consumer("a", 5),
        dial("w", "http"),
        request("w", post(b"/mpub?topic=" + _T, b"1\n2\r\n\n3"), http(200, b"OK")),
        hear("a", message(b"1"), message(b"2\r"), message(b"3")),
    ),
    pack_case(
        "server.nsq-http.topic-life",
        "A topic is created, again without an error, and deleted once",
        "Scripts that set up a system are run more than once.",
        "N117 N118",
        dial("w", "http"),
        request("w", post(b"/topic/create?topic=$t"), http(200, b"")),
        request("w", post(b"/topic/create?topic=$t"), http(200, b"")),
        request("w", post(b"/topic/delete?topic=$t"), http(200, b"")),
        request("w", post(b"/topic/delete?topic=$t"), http(404, b'{"message":"TOPIC_NOT_FOUND"}')),
    ),
    _asked(
        "channel-of-unknown-topic",
        "A channel of an unknown topic is not created",
        "A misspelt topic must not become one.",
        "N119",
        post(b"/channel/create?topic=$t&channel=c"),
        404,
        b'{"message":"TOPIC_NOT_FOUND"}',
    ),
    _asked(
        "channel-bad-topic",
        "An invalid topic has another error where a channel is meant",
        "Programs compare these words.",
        "N120",
        post(b"/channel/create?topic=a!b&channel=c"),
        400,
        b'{"message":"INVALID_ARG_TOPIC"}',
    ),
    pack_case(
        "server.nsq-http.pause",
        "A paused channel delivers nothing until it is unpaused",
        "Operators stop consumers without losing messages.",
        "N70",
        consumer("a", 1),
        dial("w", "http"),
        request(
            "w", post(b"/channel/pause?topic=" + _T + b"&channel=c%23ephemeral"), http(200, b"")
        ),
        request("w", post(b"/pub?topic=" + _T, b"x"), http(200, b"OK")),
        nothing("a"),
        request(
            "w", post(b"/channel/unpause?topic=" + _T + b"&channel=c%23ephemeral"), http(200, b"")
        ),
        hear("a", message(b"x")),
    ),
    pack_case(
        "server.nsq-http.empty",
        "Emptying a channel drops what waits",
        "Operators clear an obsolete backlog.",
        "N72",
        consumer("a"),
        dial("w", "http"),
        request("w", post(b"/mpub?topic=" + _T, b"1\n2\n3"), http(200, b"OK")),
        nothing("a"),
        request(
            "w", post(b"/channel/empty?topic=" + _T + b"&channel=c%23ephemeral"), http(200, b"")
        ),
        say("a", b"RDY 5\n"),
        nothing("a"),
    ),
    pack_case(
        "server.nsq-http.delete-channel",
        "Deleting a channel ends the connections of its consumers",
        "A consumer must notice that its channel was removed.",
        "N71",
        consumer("a"),
        dial("w", "http"),
        request(
            "w", post(b"/channel/delete?topic=" + _T + b"&channel=c%23ephemeral"), http(200, b"")
        ),
        _GONE,
    ),
    pack_case(
        "server.nsq-http.stats",
        "The statistics of a topic count its messages and its consumers",
        "Administration and monitors show them.",
        "N122 N123",
        consumer("a"),
        dial("w", "http"),
        request("w", post(b"/mpub?topic=" + _T, b"1\n2"), http(200, b"OK")),
        nothing("a"),
        request("w", get(b"/stats?format=json&topic=" + _T), http(200, _Counts())),
    ),
)
