"""The cases about Throttr."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance import Case, Level
from tmqp.testing.conformance.patterns import Bind
from tmqp.testing.conformance.steps import Wait
from tmqp_conformance.packs.throttr.words import (
    NEWER,
    UNKNOWN,
    AtLeast,
    Has,
    Left,
    Said,
    no,
    push,
    said,
    yes,
)
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import closes, dial, hear, nothing, pack_case, say
from tmqp_wires.throttr import Request, words
from tmqp_wires.throttr.words import (
    ATTRIBUTE_QUOTA,
    ATTRIBUTE_TTL,
    BUFFER,
    CHANGE_DECREASE,
    CHANGE_INCREASE,
    CHANGE_PATCH,
    COUNTER,
    TTL_MILLISECONDS,
    TTL_SECONDS,
)

__all__ = ["CASES", "PROBE"]

KEY: Final = b"$k"
BUFFER_KEY: Final = b"$v"
CHANNEL: Final = b"$c"
_LONG: Final = b"0123456789" * 30
#: So many requests in one segment; an original answers a thousand, others some hundred.
_MANY: Final = 250


def _insert(key: bytes = KEY, quota: int = 7, ttl: int = 60, ttl_type: int = TTL_SECONDS) -> Said:
    return said(words.INSERT, key, amount=quota, ttl_type=ttl_type, ttl=ttl)


def _set(value: bytes, ttl: int = 60, ttl_type: int = TTL_SECONDS) -> Said:
    return said(words.SET, BUFFER_KEY, value, ttl_type=ttl_type, ttl=ttl)


def _query(key: bytes = KEY) -> Said:
    return said(words.QUERY, key)


def _get(key: bytes = BUFFER_KEY) -> Said:
    return said(words.GET, key)


def _update(change: int, amount: int, attribute: int = ATTRIBUTE_QUOTA) -> Said:
    return said(words.UPDATE, KEY, amount=amount, attribute=attribute, change=change)


def _subscribe(channel: bytes = CHANNEL) -> Said:
    return said(words.SUBSCRIBE, channel)


def _unsubscribe(channel: bytes = CHANNEL) -> Said:
    return said(words.UNSUBSCRIBE, channel)


def _publish(payload: bytes, channel: bytes = CHANNEL) -> Said:
    return said(words.PUBLISH, channel, payload)


def _counter(quota: int) -> Expect:
    return yes(words.QUERY, amount=quota)


def _case(
    name: str,
    title: str,
    why: str,
    facts: str,
    *script: object,
    level: Level = Level.MUST,
    group: str = "throttr",
) -> Case:
    return pack_case(f"server.{group}.{name}", title, why, facts, *script, level=level)


def _newer(name: str, title: str, why: str, facts: str, *script: object) -> Case:
    return _case(name, title, why, facts, *script, group="throttr-7-3")


CASES: Final[tuple[Case, ...]] = (
    _case(
        "insert",
        "INSERT makes a counter, and does not change a live one",
        "Who comes second must not reset a limit.",
        "T1 T2",
        dial("a"),
        say("a", _insert()),
        hear("a", yes(words.INSERT)),
        say("a", _insert(quota=9, ttl=5), _query()),
        hear(
            "a",
            no(words.INSERT),
            yes(words.QUERY, amount=7, ttl_type=TTL_SECONDS, ttl=Left(60)),
        ),
    ),
    _case(
        "update-quota",
        "UPDATE sets, adds and takes off, but never more than there is",
        "A rate limiter rests on the refusal.",
        "T3",
        dial("a"),
        say("a", _insert(), _update(CHANGE_DECREASE, 7), _update(CHANGE_DECREASE, 1), _query()),
        hear("a", yes(words.INSERT), yes(words.UPDATE), no(words.UPDATE), _counter(0)),
        say("a", _update(CHANGE_PATCH, 300), _update(CHANGE_INCREASE, 5), _query()),
        hear("a", yes(words.UPDATE), yes(words.UPDATE), _counter(305)),
    ),
    _case(
        "update-ttl",
        "UPDATE of the time to live is in the key's own unit",
        "A session is prolonged this way.",
        "T4",
        dial("a"),
        say("a", _insert(), _update(CHANGE_INCREASE, 60, ATTRIBUTE_TTL), _query()),
        hear(
            "a",
            yes(words.INSERT),
            yes(words.UPDATE),
            yes(words.QUERY, amount=7, ttl_type=TTL_SECONDS, ttl=Left(120)),
        ),
    ),
    _case(
        "set",
        "SET keeps a value of some hundred bytes, which GET reads",
        "The document gives its size one byte, servers and clients as many as quotas have.",
        "T5",
        dial("a"),
        say("a", _set(_LONG), _get()),
        hear(
            "a",
            yes(words.SET),
            yes(words.GET, value=_LONG, ttl_type=TTL_SECONDS, ttl=Left(60)),
        ),
    ),
    _case(
        "set-overwrites",
        "SET of an existing buffer overwrites value and time to live",
        "A cache is filled again before its values end; the first servers refuse it.",
        "T6",
        dial("a"),
        say("a", _set(b"old"), _set(b"new", 30), _get()),
        hear(
            "a",
            yes(words.SET),
            yes(words.SET),
            yes(words.GET, value=b"new", ttl=Left(30)),
        ),
        level=Level.SHOULD,
    ),
    _case(
        "purge",
        "PURGE removes a key, once",
        "The answer tells whether there was something to remove.",
        "T7",
        dial("a"),
        say("a", _insert(), said(words.PURGE, KEY), _query(), said(words.PURGE, KEY)),
        hear("a", yes(words.INSERT), yes(words.PURGE), no(words.QUERY), no(words.PURGE)),
    ),
    _case(
        "kinds-apart",
        "GET of a counter and QUERY of a buffer find nothing",
        "Servers answer with contents that differ from version to version.",
        "T8",
        dial("a"),
        say("a", _insert(), _set(b"x"), _get(KEY), _query(BUFFER_KEY)),
        hear("a", yes(words.INSERT), yes(words.SET), no(words.GET), no(words.QUERY)),
        level=Level.SHOULD,
    ),
    _case(
        "expires",
        "A key ends at its deadline, and is free at once",
        "Servers read it longer and block it for ten seconds more.",
        "T9",
        dial("a"),
        say("a", _insert(ttl=300, ttl_type=TTL_MILLISECONDS)),
        hear("a", yes(words.INSERT)),
        Wait(0.4),
        say("a", _query(), _insert()),
        hear("a", no(words.QUERY), yes(words.INSERT)),
        level=Level.SHOULD,
    ),
    _case(
        "no-such-words",
        "An unknown unit, attribute or change is refused",
        "Servers take any unit for seconds and do nothing for an unknown change.",
        "T10",
        dial("a"),
        say("a", _set(b"x", ttl_type=9), _insert(), _update(9, 1), _update(CHANGE_PATCH, 1, 9)),
        hear("a", no(words.SET), yes(words.INSERT), no(words.UPDATE), no(words.UPDATE)),
        level=Level.SHOULD,
    ),
    _case(
        "one-segment",
        "All requests of one segment are answered, in order",
        "Clients pipeline; servers lose what is beyond their first read.",
        "T11",
        dial("a"),
        say(
            "a",
            *[
                each
                for n in range(_MANY)
                for each in (_insert(b"$k%d" % n, n), _query(b"$k%d" % n))
            ],
        ),
        hear("a", *[each for n in range(_MANY) for each in (yes(words.INSERT), _counter(n))]),
    ),
    _case(
        "byte-by-byte",
        "A request may come byte by byte",
        "TCP keeps no borders.",
        "T11",
        dial("a"),
        say("a", _set(b"in pieces"), _get(), chop=1),
        hear("a", yes(words.SET), yes(words.GET, value=b"in pieces")),
    ),
    _case(
        "any-bytes",
        "Keys are any bytes",
        "Clients use addresses and digests as keys.",
        "T12",
        dial("a"),
        say(
            "a",
            _insert(b"\xff\xfe$k\x00", 1),
            _insert(b"\xff\xfd$k\x00", 2),
            _query(b"\xff\xfe$k\x00"),
        ),
        hear("a", yes(words.INSERT), yes(words.INSERT), _counter(1)),
    ),
    _case(
        "unknown-request",
        "An unknown request is answered with 0x00 and ends the connection",
        "Servers hang or crash; it is unknown where the next request begins.",
        "T13",
        dial("a"),
        say("a", said(words.WHOAMI), b"\x0a"),
        closes("a", yes(words.WHOAMI), Expect("no", to=UNKNOWN)),
        level=Level.SHOULD,
    ),
    _case(
        "publish",
        "A message goes to who is on its channel, but not to its publisher",
        "This is what channels are for.",
        "T14 T16 T17",
        dial("a"),
        say("a", _subscribe()),
        hear("a", yes(words.SUBSCRIBE)),
        dial("p"),
        say("p", _publish(b"x", b"$d"), _subscribe(), _publish(b"hi"), _publish(b"")),
        hear(
            "p",
            no(words.PUBLISH),
            yes(words.SUBSCRIBE),
            yes(words.PUBLISH),
            yes(words.PUBLISH),
        ),
        hear("a", push(b"hi"), push(b"")),
        nothing("p"),
    ),
    _case(
        "subscribe-twice",
        "Who subscribes twice gets a message once",
        "Servers send it twice.",
        "T14",
        dial("a"),
        say("a", _subscribe(), _subscribe()),
        hear("a", yes(words.SUBSCRIBE), yes(words.SUBSCRIBE)),
        dial("p"),
        say("p", _publish(b"hi")),
        hear("p", yes(words.PUBLISH)),
        hear("a", push(b"hi")),
        level=Level.SHOULD,
    ),
    _case(
        "unsubscribe",
        "UNSUBSCRIBE leaves a channel, once",
        "The answer tells whether there was something to leave.",
        "T15 T16",
        dial("a"),
        say("a", _subscribe(), _unsubscribe(), _unsubscribe()),
        hear("a", yes(words.SUBSCRIBE), yes(words.UNSUBSCRIBE), no(words.UNSUBSCRIBE)),
        dial("p"),
        say("p", _publish(b"hi")),
        hear("p", no(words.PUBLISH)),
        nothing("a"),
    ),
    _case(
        "whoami",
        "WHOAMI tells the id by which CONNECTION knows the connection",
        "Document and servers differ about the form of both.",
        "T19 T20",
        dial("a"),
        say("a", said(words.WHOAMI)),
        hear("a", yes(words.WHOAMI, id=Bind("me"))),
        say("a", said(words.CONNECTION, b"$me"), said(words.CONNECTION, b"nobody")),
        hear("a", yes(words.CONNECTION, items=Has(b"$me")), no(words.CONNECTION)),
    ),
    _case(
        "info",
        "INFO is answered with 433 bytes, in which the time is not 0",
        "The document's own table has more than its sum.",
        "T21",
        dial("a"),
        say("a", said(words.INFO), _query()),
        hear("a", yes(words.INFO, info=Has(b"", timestamp=AtLeast(1))), no(words.QUERY)),
    ),
    _case(
        "list",
        "LIST has every key with its kind, unit and size",
        "The document leaves out the status.",
        "T22",
        dial("a"),
        say("a", _insert(), _set(b"EHLO"), said(words.LIST), _query()),
        hear(
            "a",
            yes(words.INSERT),
            yes(words.SET),
            yes(words.LIST, items=Has(BUFFER_KEY, kind=BUFFER, ttl_type=TTL_SECONDS, bytes=4)),
            _counter(7),
        ),
        say("a", said(words.LIST)),
        hear("a", yes(words.LIST, items=Has(KEY, kind=COUNTER, ttl_type=TTL_SECONDS, bytes=2))),
    ),
    _case(
        "stat",
        "STAT is answered with four numbers, of an unknown key with one byte",
        "The first servers send a second byte, which is taken for the next reply.",
        "T23",
        dial("a"),
        say("a", said(words.STAT, KEY), _insert(), said(words.STAT, KEY), _query()),
        hear(
            "a",
            no(words.STAT),
            yes(words.INSERT),
            yes(words.STAT, reads=AtLeast(0), writes=AtLeast(0)),
            _counter(7),
        ),
    ),
    _case(
        "channels",
        "CHANNELS has the channel, and CHANNEL its subscriber",
        "The document counts both too short.",
        "T22 T24",
        dial("a"),
        say("a", said(words.WHOAMI), _subscribe()),
        hear("a", yes(words.WHOAMI, id=Bind("me")), yes(words.SUBSCRIBE)),
        say("a", said(words.CHANNELS), said(words.CHANNEL, CHANNEL), said(words.CHANNEL, b"$d")),
        hear(
            "a",
            yes(words.CHANNELS, items=Has(CHANNEL, subscribers=1)),
            yes(words.CHANNEL, items=Has(b"$me", subscribed_at=AtLeast(1))),
            no(words.CHANNEL),
        ),
    ),
    _newer(
        "push",
        "A push names its channel, and comes to its publisher before the status",
        "A published client takes a push behind a status for garbage.",
        "T16 T18",
        dial("a", NEWER),
        say("a", _subscribe()),
        hear("a", yes(words.SUBSCRIBE)),
        dial("p", NEWER),
        say("p", _subscribe()),
        hear("p", yes(words.SUBSCRIBE)),
        say("p", _publish(b"hi")),
        hear("p", push(b"hi", CHANNEL), yes(words.PUBLISH)),
        hear("a", push(b"hi", CHANNEL)),
    ),
    _newer(
        "everybody",
        "A connection is on the channel * from the beginning, and may leave it",
        "A message published there reaches every client.",
        "T15 T25",
        dial("a", NEWER),
        say("a", _unsubscribe(b"*"), _unsubscribe(b"*")),
        hear("a", yes(words.UNSUBSCRIBE), no(words.UNSUBSCRIBE)),
    ),
    _newer(
        "own-channel",
        "A connection is on the channel that its id names",
        "Clients answer each other there.",
        "T18 T19 T25",
        dial("a", NEWER),
        say("a", said(words.WHOAMI)),
        hear("a", yes(words.WHOAMI, id=Bind("me"))),
        dial("p", NEWER),
        say("p", _publish(b"hi", b"$me")),
        hear("p", yes(words.PUBLISH)),
        hear("a", push(b"hi", b"$me")),
    ),
    _newer(
        "event",
        "EVENT carries out the request in it",
        "Servers of a cluster speak this way.",
        "T26",
        dial("a", NEWER),
        say("a", Said(Request(words.EVENT, CHANNEL), _insert()), _query()),
        hear("a", yes(words.EVENT), yes(words.INSERT), _counter(7)),
    ),
    _newer(
        "connection",
        "The entry of a connection has its type and kind, 237 bytes in all",
        "The document of 7.1 has 235.",
        "T19 T20",
        dial("a", NEWER),
        say("a", said(words.WHOAMI)),
        hear("a", yes(words.WHOAMI, id=Bind("me"))),
        say("a", said(words.CONNECTION, b"$me"), _query()),
        hear("a", yes(words.CONNECTION, items=Has(b"$me", type=0)), no(words.QUERY)),
    ),
)

PROBE: Final = _case(
    "probe",
    "Answers a new client",
    "A server that does not answer a new client has crashed.",
    "T7",
    dial("probe"),
    say("probe", _query(b"$probe")),
    hear("probe", no(words.QUERY)),
)
