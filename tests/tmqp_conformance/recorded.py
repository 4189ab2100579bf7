"""The original server as it was recorded, replayed as a server for the cases of the suite.

A :class:`RecordedServer` follows one recorded exchange.  What a case says must be what the recorded
client said, up to names: message ids, client ids, names of channels and routers, queue numbers and
the contents of messages may differ, if equal ones stay equal and different ones different.  Then
the server answers what the original answered.  Parts that are about other names may be left out.
As soon as a case says something else, or waits longer than was recorded, it has no
counterpart in this exchange (``lost``).  Only pings that were not recorded are answered by rule:
they are the tool's fences, and the original answers every ping (probe-015).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from tests.support import load_exchanges
from tmqp import Frame, FrameDecoder, Limits, LocalProtocolError
from tmqp.constants import (
    PONG_BYTES,
    SERVER_HELLO,
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_PING,
    TYPE_PULL_REQUEST,
    TYPE_QUEUE_MESSAGE,
    TYPE_ROUTER,
    TYPE_SERVER,
)
from tmqp.testing.conformance import Case, MemoryStage, Patience, Result, UnreachableError, play
from tmqp.testing.vectors import CLIENT_TO_SERVER, Exchange, split_step

__all__ = ["Counterpart", "RecordedServer", "counterparts", "matches"]

_LIMITS: Final = Limits(max_payload_bytes=1 << 40)
#: Frames whose content type is the number of a queue, and whose contents are the client's own.
_ABOUT_QUEUES: Final = (TYPE_QUEUE_MESSAGE, TYPE_ACKNOWLEDGE, TYPE_PULL_REQUEST)
_CONTENTS: Final = (TYPE_QUEUE_MESSAGE, TYPE_DIRECT_MESSAGE, TYPE_ROUTER)
_PREFIXES: Final = ("@name:", "@type:")
#: Answers later than this came because of a time, not because of a request.
_AT_ONCE_S: Final = 0.1
_CLOSED: Final = "closed by the server"
_PREAMBLE_BYTES: Final = 8
_END: Final = object()
_NAMED: Final = ("Client-Id", "Client-Name", "Client-Type")
#: A recording tells of silence for a third of a second or longer.
_PATIENCE: Final = Patience(answer_s=0.25, quiet_s=0.05, close_s=0.25)
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LETTERS: Final = re.compile(r"[a-z]+")
#: Queue numbers that stand for each other, and lengths of contents that do: the shortest form.
_QUEUES: Final = range(1, 10_000)
_SHORT: Final = range(1, 253)
#: Recorded with a server that was set up for one purpose: limits of 1, routers that exist.
_SPECIAL: Final = tuple(f"probe-{number:03}" for number in (46, *range(50, 56)))


class _Names:
    """Which name of a case stands for which recorded one."""

    def __init__(self) -> None:
        self._live: dict[object, object] = {}
        self._recorded: dict[object, object] = {}

    def agree(self, recorded: object, live: object) -> bool:
        """Whether one may stand for the other; it does from then on."""
        if isinstance(recorded, str) and isinstance(live, str):
            if not recorded or not live:
                return recorded == live
            for prefix in _PREFIXES:
                if recorded.startswith(prefix) or live.startswith(prefix):
                    cut = len(prefix)
                    same = recorded[:cut] == live[:cut]
                    return same and self.agree(recorded[cut:], live[cut:])
            # Special letters and great lengths have a meaning, so they must be the same.
            if recorded != live and _outline(recorded) != _outline(live):
                return False
            # Names are the same in any case, but not where they are compared exactly.
            folded = (recorded.lower(), 0), (live.lower(), 0)
            if not self._pair(*folded):
                return False
        return self._pair(recorded, live)

    def _pair(self, recorded: object, live: object) -> bool:
        known = self._live.setdefault(recorded, live), self._recorded.setdefault(live, recorded)
        return known == (live, recorded)

    def text(self, recorded: str) -> str:
        """What the case calls this."""
        for prefix in _PREFIXES:
            if recorded.startswith(prefix):
                return prefix + self.text(recorded[len(prefix) :])
        return str(self._live.get(recorded, recorded))

    def data(self, recorded: bytes) -> bytes:
        """The contents that stand for these."""
        found = self._live.get(recorded, recorded)
        return found if isinstance(found, bytes) else recorded

    def queue(self, recorded: int) -> int:
        """The queue that stands for this one."""
        found = self._live.get(recorded, recorded)
        return found if isinstance(found, int) else recorded


class _Step:
    """One recorded frame or preamble; None: the end, or silence if it is said by nobody."""

    def __init__(self, conn: int, at_s: float, item: Frame | bytes | object, *, said: bool) -> None:
        self.conn = conn
        self.at_s = at_s
        self.item = item
        self.said = said


@cache
def _steps(exchange: Exchange) -> list[_Step]:
    found = []
    for step in exchange.steps:
        said = step.direction == CLIENT_TO_SERVER
        at_s = step.at_s or 0.0
        parts = split_step(step)
        items: list[object] = [parts.preamble] if parts.preamble else []
        items += parts.frames
        if parts.rest:
            items.append(parts.rest)
        if not step.data:
            items.append(_END if step.note == _CLOSED else None)
        found += [_Step(step.connection, at_s, item, said=said) for item in items]
    return found


class RecordedServer:
    """The recorded side of an exchange; :class:`tmqp.testing.conformance.Machine`.

    ``lost``: the case has no counterpart here.

    :param start: the case begins with this connection, counted from 0.
    """

    def __init__(self, exchange: Exchange, start: int = 0) -> None:
        self.lost = False
        self._steps = _steps(exchange)
        self._names = _Names()
        self._conns = list(dict.fromkeys(step.conn for step in self._steps))[start:]
        self._place = next(
            place for place, step in enumerate(self._steps) if step.conn == self._conns[0]
        )
        #: What the case leaves out is about these, and what it says about those.
        self._left_out = {_subject(step.item) for step in self._steps[: self._place]}
        self._about: set[str] = set()
        self._known_until = 0.0
        self._greeted: set[int] = set()
        self._lines: dict[int, int] = {}
        self._held: dict[int, bytes] = {}
        self._decoders: dict[int, FrameDecoder] = {}
        self._out: dict[int, bytes] = {}
        self._closed: set[int] = set()
        self._due: list[tuple[float, _Step]] = []

    def open(self, case: Case, now: float) -> int:
        """A new connection: the next recorded one."""
        number = len(self._lines)
        if number >= len(self._conns):
            self.lost = True
            raise UnreachableError("not recorded")
        self._lines[number] = self._conns[number]
        self._held[number] = b""
        self._decoders[number] = FrameDecoder(_LIMITS)
        self._out[number] = b""
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        if len(self._held[number]) < _PREAMBLE_BYTES:
            begin = self._held[number] + data
            self._held[number] = begin[:_PREAMBLE_BYTES]
            data = begin[_PREAMBLE_BYTES:]
            if len(begin) < _PREAMBLE_BYTES:
                self.lost = True  # what the original makes of a part is not asked here
                raise UnreachableError("not recorded")
            self._hear(number, self._held[number], now)
        for frame in self._decoders[number].feed(data):
            self._hear(number, frame, now)
        self.lost |= self._decoders[number].error is not None
        if self.lost:
            raise UnreachableError("not recorded")

    def take(self, number: int) -> bytes:
        """What the original sent."""
        data, self._out[number] = self._out[number], b""
        return data

    def is_closed(self, number: int) -> bool:
        """Whether the original closed."""
        return number in self._closed

    def end(self, number: int, now: float) -> None:
        """The case sends no more."""

    def lose(self, number: int, now: float) -> None:
        """The connection is gone."""

    def next_deadline(self) -> float | None:
        """When the original sent something because of a time."""
        dues = [due for due, _ in self._due]
        return min(dues) if dues else self._known_until or None

    def on_deadline(self, now: float) -> None:
        """Send it."""
        for due, step in [*self._due]:
            if due <= now:
                self._due.remove((due, step))
                self._say(step)
        if now >= self._known_until and not self._due:
            self._known_until = 0.0
            self.lost |= len(self._closed) < len(self._lines)

    @property
    def unfinished(self) -> bool:
        """Whether the case has said something that is not whole, or nothing at all."""
        held = any(each.buffered for each in self._decoders.values())
        return held or not all(self._held.values())

    # -- what was recorded ----------------------------------------------------------------------

    def _hear(self, number: int, item: Frame | bytes, now: float) -> None:
        place = self._next(self._place)
        if isinstance(item, Frame) and item.type == TYPE_PING:
            said = self._steps[place].item if place < len(self._steps) else None
            if number in self._greeted and (not isinstance(said, Frame) or said.type != TYPE_PING):
                self._out[number] += PONG_BYTES
                return
        while place < len(self._steps):
            step = self._steps[place]
            if step.conn == self._lines[number] and self._same(step.item, item):
                break
            if _greets(step.item) and step.conn in self._lines.values():
                place = len(self._steps)
                break
            self._left_out.add(_subject(step.item))
            place = self._next(place + 1)
        if place >= len(self._steps):
            self.lost = True
            return
        if isinstance(item, Frame) and _greets(item):
            self._greeted.add(number)
        self._about.add(_subject(self._steps[place].item))
        self.lost |= bool((self._about & self._left_out) - {""})
        self._answer(place, now)

    def _next(self, place: int) -> int:
        """The next place at which the recorded client says something."""
        while place < len(self._steps) and not self._steps[place].said:
            place += 1
        return place

    def _answer(self, place: int, now: float) -> None:
        """Say what the original said to what is there."""
        began_s = self._steps[place].at_s
        self._place = self._next(place + 1)
        for answer in self._steps[place + 1 : self._place]:
            after_s = answer.at_s - began_s
            if after_s > _AT_ONCE_S:
                self._due.append((now + after_s, answer))
            else:
                self._say(answer)
        following = self._steps[place + 1 : self._place + 1]
        watched_s = max([step.at_s - began_s for step in following], default=0.0)
        self._known_until = now + watched_s + 0.001

    def _say(self, step: _Step) -> None:
        numbers = [number for number, conn in self._lines.items() if conn == step.conn]
        if not numbers or step.item is None:
            return
        if step.item is _END:
            self._closed.add(numbers[0])
        else:
            item = step.item
            assert isinstance(item, Frame | bytes)
            try:
                self._out[numbers[0]] += item if isinstance(item, bytes) else self._told(item)
            except LocalProtocolError:
                self.lost = True  # the case's name is longer than any that the original echoed

    def _told(self, frame: Frame) -> bytes:
        """A recorded answer with the case's names."""
        names = self._names
        headers = [(key, names.text(value)) for key, value in frame.headers]
        queue = frame.type in _ABOUT_QUEUES
        return Frame.build(
            frame.type,
            names.text(frame.target),
            names.queue(frame.content_type) if queue else frame.content_type,
            names.data(frame.payload),
            message_id=names.text(frame.message_id),
            source=names.text(frame.source),
            headers=headers,
            ttl=frame.ttl,
            first_acquirer=frame.first_acquirer,
            high_priority=frame.high_priority,
            pending_response=frame.pending_response,
            pending_acknowledge=frame.pending_acknowledge,
        ).raw

    def _same(self, recorded: object, live: Frame | bytes) -> bool:
        """Whether the case says what the recorded client said."""
        if not isinstance(recorded, Frame) or not isinstance(live, Frame):
            return recorded == live
        plain = ("type", "ttl", "first_acquirer", "high_priority", "pending_response")
        if any(getattr(recorded, name) != getattr(live, name) for name in plain):
            return False
        if recorded.pending_acknowledge != live.pending_acknowledge:
            return False
        if recorded.type == TYPE_SERVER and recorded.content_type == SERVER_HELLO:
            return live.content_type == SERVER_HELLO and self._same_hello(recorded, live)
        agree = self._names.agree
        numbers = recorded.content_type, live.content_type
        if numbers[0] != numbers[1] and not (
            recorded.type in _ABOUT_QUEUES and self._same_queue(*numbers)
        ):
            return False
        for name in ("message_id", "source", "target"):
            if not agree(getattr(recorded, name), getattr(live, name)):
                return False
        if [key for key, _ in recorded.headers] != [key for key, _ in live.headers]:
            return False
        for (key, old), (_, new) in zip(recorded.headers, live.headers, strict=True):
            if key == "Queue-Id":
                digits = old.isdigit() and new.isdigit()
                words = _LETTERS.fullmatch(old) and _LETTERS.fullmatch(new)
                same = self._same_queue(int(old), int(new)) if digits else words
                if old != new and not same:
                    return False
            elif old != new and not (key.endswith(("-Name", "-Id")) and agree(old, new)):
                return False
        if _form(recorded) != _form(live):
            return False
        lengths = len(recorded.payload), len(live.payload)
        if recorded.type in _CONTENTS and all(length in _SHORT for length in lengths):
            return agree(recorded.payload, live.payload)
        return recorded.payload == live.payload

    def _same_queue(self, recorded: int, live: int) -> bool:
        return recorded in _QUEUES and live in _QUEUES and self._names.agree(recorded, live)

    def _same_hello(self, recorded: Frame, live: Frame) -> bool:
        """Whether both hellos are the same but for the values of id, name and type.

        The recorded one names its client as source, too, which means nothing (F26).
        """
        if _form(recorded) != _form(live) or recorded.headers != live.headers:
            return False
        if not all(
            self._names.agree(getattr(recorded, name), getattr(live, name))
            for name in ("message_id", "target")
        ):
            return False
        old = recorded.payload.decode("utf-8", "replace").split("\r\n")
        new = live.payload.decode("utf-8", "replace").split("\r\n")
        if len(old) != len(new):
            return False
        for one, other in zip(old, new, strict=True):
            (key, sign, value), (key2, sign2, value2) = one.partition(": "), other.partition(": ")
            named = key in _NAMED and self._names.agree(value, value2)
            if (key, sign) != (key2, sign2) or not (value == value2 or named):
                return False
        return True


def _form(frame: Frame) -> tuple[bool, bool]:
    """Whether there is a header block, and whether lengths are written in the shortest form."""
    return frame.has_header, len(frame.raw) == len(frame.replace(ttl=frame.ttl).raw)


def _outline(name: str) -> str:
    """A name with its plain parts left out."""
    return _PLAIN.sub("x", name)


def _greets(item: object) -> bool:
    """Whether this is a preamble or a hello, which no case may leave out."""
    if isinstance(item, Frame):
        return item.type == TYPE_SERVER and item.content_type == SERVER_HELLO
    return isinstance(item, bytes)


def _subject(item: object) -> str:
    """What a frame is about: the channel, router or client that it names."""
    return item.target.lower() if isinstance(item, Frame) else ""


class Counterpart:
    """A case that was played against an exchange which has all that it says."""

    def __init__(self, case: Case, exchange: Exchange, result: Result) -> None:
        self.case = case
        self.exchange = exchange
        self.result = result


def counterparts(cases: Iterable[Case]) -> list[Counterpart]:
    """The cases with a recorded counterpart, in order; each against the first exchange that fits.

    Exchanges that continue earlier ones are left out: they begin in a state that no case knows.
    """
    exchanges = [
        each
        for each in load_exchanges()
        if each.name.startswith("probe-") and not each.name.startswith(_SPECIAL)
    ]
    found = (next(matches(case, exchanges), None) for case in cases)
    return [each for each in found if each is not None]


def matches(case: Case, exchanges: Iterable[Exchange]) -> Iterator[Counterpart]:
    """What comes of a case with each of these exchanges that has all that it says.

    Cases about time and speed have no counterpart: the recordings have neither.
    """
    if case.group in ("perf", "keepalive") or "restart-hook" in case.needs:
        return
    for exchange in exchanges:
        for start in range(len({step.connection for step in exchange.steps})):
            server = RecordedServer(exchange, start)
            result = play(case, MemoryStage(server), "r1", _PATIENCE)
            if not server.lost and not server.unfinished:
                yield Counterpart(case, exchange, result)
