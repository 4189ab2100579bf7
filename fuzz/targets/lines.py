"""The fuzz targets of the protocols that speak in lines: Simple MQ and goMS."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from targets.talking import cut, speak
from tmqp.testing import Seeded
from tmqp_server.doors.goms.door import GomsDoor
from tmqp_server.doors.goms.options import GomsLimits, GomsOptions
from tmqp_server.doors.port import IdSource
from tmqp_server.doors.smq.door import SmqDoor
from tmqp_server.doors.smq.options import SmqLimits
from tmqp_wires.goms import Dialect, ObjectDecoder
from tmqp_wires.goms.codec import request_line
from tmqp_wires.smq import LineDecoder, LineReader
from tmqp_wires.smq.codec import consume_line, done_line, publish_line, stats_line
from tmqp_wires.smq.events import Event, Publish

__all__ = ["LINE_TARGETS", "good_lines"]

#: The longest line of Simple MQ, and the largest object of goMS.
_MOST: Final = 200
_TOPICS: Final = ("a", "b", "news")


def smq(data: bytes) -> None:
    """Simple MQ's codec in both roles, and hub, door and broker together: any bytes, cut in any
    way; no more is held than is allowed."""
    chunks, whole = cut(data)
    decoder, at_once = LineDecoder(_MOST), LineDecoder(_MOST)
    found: list[str] = []
    for chunk in chunks:
        found += _told(decoder.receive(chunk, 0.0))
        assert decoder.held_bytes <= _MOST, "something is kept beyond its limit"
    expected = _told(at_once.receive(whole, 0.0))
    assert found == expected, "how it is cut changes it"
    assert decoder.next_deadline() == at_once.next_deadline()
    assert list(map(repr, decoder.on_deadline(1.0))) == list(map(repr, at_once.on_deadline(1.0)))
    with suppress(ValueError):
        LineReader(_MOST).receive(whole)

    # What is counted as done before it has come is not, so how it is cut changes the answers.
    limits = SmqLimits(max_line_bytes=_MOST, max_queues=3, max_in_hand=5)
    speak(SmqDoor(_ids(), limits), chunks)


def _told(events: list[Event]) -> list[str]:
    """What lines have said, message by message, for a row is one event as far as its chunk goes."""
    found: list[str] = []
    for event in events:
        if isinstance(event, Publish):
            found += [f"{event.queue!r}: {body!r}" for body in event.bodies]
        else:
            found.append(repr(event))
    return found


def goms(data: bytes) -> None:
    """The codec of goMS in both dialects, and hub, door and broker together: any bytes, cut in any
    way; no more is held than is allowed."""
    chunks, whole = cut(data)
    decoder, at_once = ObjectDecoder(_MOST), ObjectDecoder(_MOST)
    found: list[object] = []
    for chunk in chunks:
        found += decoder.receive(chunk)
        assert decoder.held_bytes <= _MOST, "something is kept beyond its limit"
    assert list(map(repr, found)) == list(map(repr, at_once.receive(whole))), "cutting changes it"
    assert len(ObjectDecoder(_MOST).receive_datagram(whole)) <= 1

    def door() -> GomsDoor:
        limits = GomsLimits(max_message_bytes=_MOST, max_topics=2)
        return GomsDoor(_ids(), limits, GomsOptions(topics=_TOPICS))

    assert speak(door(), chunks) == speak(door(), [whole] if whole else [])


def _ids() -> IdSource:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


#: The targets by name.
LINE_TARGETS: Final[dict[str, Callable[[bytes], None]]] = {"smq": smq, "goms": goms}


def good_lines(name: str, draw: Seeded) -> bytes:
    """What a client may say."""
    line = _smq_line if name == "smq" else _goms_line
    return b"".join([line(draw) for _ in range(1 + draw.below(6))])


def _smq_line(draw: Seeded) -> bytes:
    queue = b"q%d" % draw.below(4)
    choices = (
        publish_line(queue, draw.some_bytes(draw.below(60)).replace(b"\n", b"")),
        consume_line(queue),
        done_line(queue, draw.below(4)),
        stats_line(),
        b"S",
        b"X:%b\n" % queue,
    )
    return choices[draw.below(len(choices))]


def _goms_line(draw: Seeded) -> bytes:
    dialect = (Dialect.TYPE, Dialect.MESSAGETYPE)[draw.below(2)]
    topics = [(*_TOPICS, "nope")[draw.below(4)] for _ in range(draw.below(3))]
    kind = ("register", "send", "send", "logout", "close")[draw.below(5)]
    data = "x" * draw.below(60) if kind == "send" else None
    line = request_line(dialect, kind, topics, data)
    return line.replace(b",", b",\n") if draw.one_in(4) else line
