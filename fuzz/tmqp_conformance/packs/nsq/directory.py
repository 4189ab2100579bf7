"""NSQ, nsqlookupd by TCP and HTTP: producers announce themselves, consumers look them up."""

from __future__ import annotations

import json
from typing import Any, Final

from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import Matcher, Names, Properties
from tmqp.testing.conformance.steps import Close, Open, Say
from tmqp_conformance.packs.nsq.words import error, get, http, post, request
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import closes, dial, hear, pack_case, say, sized
from tmqp_wires.nsq.lookup import MAGIC

__all__ = ["CASES"]

_OK: Final = Expect("answer", data=b"OK")
_ABOUT: Final = {
    "broadcast_address": "127.0.0.1",
    "hostname": "here",
    "tcp_port": 4150,
    "http_port": 4151,
    "version": "1.3.0",
}
_IDENTIFY: Final = sized(b"IDENTIFY", json.dumps(_ABOUT).encode())


class _Entry(Matcher):
    """JSON with a list of which one entry is, or is not, of a kind."""

    def __init__(self, name: str, entry: object, *, there: bool = True) -> None:
        self.name = name
        self.entry = entry
        self.there = there

    def matches(self, value: object, names: Names, sent: object) -> bool:
        try:
            entries = json.loads(value)[self.name] if isinstance(value, bytes) else None
        except (ValueError, KeyError, TypeError):
            return False
        if not isinstance(entries, list):
            return False
        wanted = self.entry
        if isinstance(wanted, str):
            return (names.text(wanted) in entries) is self.there
        assert isinstance(wanted, dict)
        return any(isinstance(each, dict) and wanted.items() <= each.items() for each in entries)

    def describe(self) -> str:
        return f"JSON: {self.name} {'with' if self.there else 'without'} {self.entry!r}"


def _connect(line: str) -> list[Open | Say]:
    return [dial(line, "lookup"), say(line, MAGIC)]


def _producer(line: str) -> list[Any]:
    """A producer that has told who it is."""
    told = Expect("answer", data=Properties({"tcp_port": _Port(), "version": _Words()}))
    return [*_connect(line), say(line, _IDENTIFY), hear(line, told)]


class _Port(Matcher):
    def matches(self, value: object, names: Names, sent: object) -> bool:
        return isinstance(value, int) and 0 < value < 65_536

    def describe(self) -> str:
        return "a port"


class _Words(Matcher):
    def matches(self, value: object, names: Names, sent: object) -> bool:
        return isinstance(value, str) and bool(value)

    def describe(self) -> str:
        return "a text"


def _refused(
    name: str, title: str, why: str, facts: str, code: bytes, *said: object, known: bool = False
) -> Case:
    return pack_case(
        f"server.nsq-lookup.{name}",
        title,
        why,
        facts,
        _producer("a") if known else _connect("a"),
        say("a", *said),
        closes("a", error(code)),
    )


#: Every case of the directory.
CASES: Final[tuple[Case, ...]] = (
    pack_case(
        "server.nsq-lookup.magic-wrong",
        "A greeting of nsqd's clients is refused",
        "A client must learn that it is at the wrong port.",
        "N136",
        dial("a", "lookup"),
        say("a", b"  V2"),
        closes("a", error(b"E_BAD_PROTOCOL")),
    ),
    pack_case(
        "server.nsq-lookup.ping",
        "PING is answered with OK, also before IDENTIFY",
        "nsqd pings every 15 seconds.",
        "N138",
        _connect("a"),
        say("a", b"PING\n"),
        hear("a", _OK),
    ),
    pack_case(
        "server.nsq-lookup.identify",
        "IDENTIFY is answered with the directory's own addresses",
        "nsqd asks the directory by HTTP, too.",
        "N138",
        _producer("a"),
        say("a", b"PING\n"),
        hear("a", _OK),
    ),
    _refused(
        "identify-fields",
        "IDENTIFY without addresses is refused",
        "A producer without an address cannot be reached.",
        "N138",
        b"E_BAD_BODY",
        sized(b"IDENTIFY", b"{}"),
    ),
    _refused(
        "identify-twice",
        "A second IDENTIFY is refused",
        "A connection is one producer.",
        "N138",
        b"E_INVALID",
        _IDENTIFY,
        known=True,
    ),
    _refused(
        "unknown-command",
        "An unknown command is refused",
        "The error tells what the server does not know.",
        "N137",
        b"E_INVALID",
        b"FOO\n",
    ),
    _refused(
        "register-unknown-producer",
        "REGISTER before IDENTIFY is refused",
        "No broker could be reached at such an entry.",
        "N139",
        b"E_INVALID",
        b"REGISTER $t c\n",
    ),
    _refused(
        "register-bad-topic",
        "REGISTER of an invalid topic is refused",
        "Names are the same everywhere.",
        "N139",
        b"E_BAD_TOPIC",
        b"REGISTER a! c\n",
        known=True,
    ),
    pack_case(
        "server.nsq-lookup.register",
        "A registered topic and channel are found by HTTP",
        "Consumers find producers this way.",
        "N139 N144",
        _producer("a"),
        say("a", b"REGISTER $t c\n"),
        hear("a", _OK),
        dial("w", "lookup-http"),
        request("w", get(b"/topics"), http(200, _Entry("topics", "$t"))),
        request("w", get(b"/channels?topic=$t"), http(200, _Entry("channels", "c"))),
        request(
            "w",
            get(b"/lookup?topic=$t"),
            http(200, _Entry("producers", {"broadcast_address": "127.0.0.1", "tcp_port": 4150})),
        ),
        request("w", get(b"/nodes"), http(200, _Entry("producers", {"hostname": "here"}))),
    ),
    pack_case(
        "server.nsq-lookup.unregister",
        "UNREGISTER removes the producer, and the topic stays",
        "Consumers of the topic wait for its next producer.",
        "N140",
        _producer("a"),
        say("a", b"REGISTER $t\n"),
        hear("a", _OK),
        say("a", b"UNREGISTER $t\n"),
        hear("a", _OK),
        dial("w", "lookup-http"),
        request("w", get(b"/lookup?topic=$t"), http(200, Properties({"producers": []}))),
        request("w", get(b"/topics"), http(200, _Entry("topics", "$t"))),
    ),
    pack_case(
        "server.nsq-lookup.leaves",
        "A producer that leaves is no longer found",
        "Consumers must not dial a broker that has disconnected.",
        "N141",
        _producer("a"),
        say("a", b"REGISTER $t\n"),
        hear("a", _OK),
        Close("a"),
        _producer("b"),
        dial("w", "lookup-http"),
        request("w", get(b"/lookup?topic=$t"), http(200, Properties({"producers": []}))),
    ),
    pack_case(
        "server.nsq-lookup.tombstone",
        "A tombstone hides the producer of a topic",
        "An operator deletes a topic on one node this way.",
        "N147",
        _producer("a"),
        say("a", b"REGISTER $t\n"),
        hear("a", _OK),
        dial("w", "lookup-http"),
        request("w", post(b"/topic/tombstone?topic=$t&node=127.0.0.1:4151"), http(200)),
        request("w", get(b"/lookup?topic=$t"), http(200, Properties({"producers": []}))),
    ),
    pack_case(
        "server.nsq-lookup.unknown-topic",
        "An unknown topic is not found by /lookup and has no channels",
        "A consumer goes on asking.",
        "N144",
        dial("w", "lookup-http"),
        request("w", get(b"/lookup?topic=$t"), http(404, b'{"message":"TOPIC_NOT_FOUND"}')),
        request("w", get(b"/channels?topic=$t"), http(200, b'{"channels":[]}')),
    ),
    pack_case(
        "server.nsq-lookup.create-channel",
        "POST /channel/create creates the topic, too",
        "Channels are made before their first message so that it is kept.",
        "N146",
        dial("w", "lookup-http"),
        request("w", post(b"/channel/create?topic=$t&channel=c"), http(200)),
        request("w", get(b"/topics"), http(200, _Entry("topics", "$t"))),
        request("w", post(b"/channel/delete?topic=$t&channel=c"), http(200)),
        request(
            "w",
            post(b"/channel/delete?topic=$t&channel=c"),
            http(404, b'{"message":"CHANNEL_NOT_FOUND"}'),
        ),
        request("w", post(b"/topic/delete?topic=$t"), http(200)),
    ),
    pack_case(
        "server.nsq-lookup.without-topic",
        "A request without a topic is refused",
        "The error names what is missing.",
        "N144 N146",
        dial("w", "lookup-http"),
        request("w", get(b"/lookup"), http(400, b'{"message":"MISSING_ARG_TOPIC"}')),
        request(
            "w", post(b"/topic/create?topic=a!"), http(400, b'{"message":"INVALID_ARG_TOPIC"}')
        ),
    ),
)
