"""The grammar of STOMP for the wire fuzzer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tmqp.testing import Seeded
from tmqp_conformance.packs.grammar import ID_MARK, PackGrammar, choice, of_size
from tmqp_conformance.packs.stomp.words import CONNECT, frame
from tmqp_conformance.packs.units import Unit
from tmqp_wires.stomp import FrameLimits, ServerConnection, StompFrame
from tmqp_wires.stomp.codec import OF_CLIENTS
from tmqp_wires.stomp.connection import HeartBeat

__all__ = ["StompGrammar"]

_MOST_BYTES: Final = 16_777_216
#: More than this is not judged: how long frames may be is the server's to say.
_SURE_BYTES: Final = 8_192
_SURE_HEADERS: Final = 50
_SMALL: Final = 100
_LIMITS: Final = FrameLimits(
    max_head_bytes=_MOST_BYTES, max_headers=100_000, max_body_bytes=_MOST_BYTES
)
#: Of what the codec says about a violation: the rule that the specification has about it.  Of
#: other violations it says nothing, or leaves a choice.
_RULES: Final = {
    "there is no command": "unknown-command",
    "escape": "escape",
    "came before CONNECT": "connect-first",
    "none of the client's versions": "version",
    "no NUL follows": "length",
}
_COMMANDS: Final = tuple(sorted(each.encode() for each in OF_CLIENTS))
_DESTINATIONS: Final = (
    *(b"/queue/$qq_____", b"/queue/$rr_____", b"/topic/$tt_____", b"/temp-queue/x"),
    *(b"/queue/", b"/queue/a,b", b"/topic/a.>", b"/queue/a?b=c", b"/nowhere/x", b"", b"plain"),
    *(b"/queue/\xc3\xa4", b"/queue/" + b"x" * 300, b"/remote-temp-queue/x/y", b"/queue/\xff"),
)
_MODES: Final = (b"auto", b"client", b"client-individual", b"never", b"")
_BODIES: Final = (b"", b"x", b'{"id":1}', b"a\nb\n\n", b"\n", b"0" * 5_000)
_VERSIONS: Final = (b"1.2", b"1.1", b"1.0", b"1.0,1.1,1.2", b"9.9", b"", b"1.2 , 1.1")
_VALUES: Final = (
    *(b"", b"1", b"t", ID_MARK, b"-1", b"9" * 30, rb"a\cb", rb"\n", rb"\r\\", rb"\t", b"\\"),
    *(b" x ", b"\xc3\xa4", b"\xff", b"y" * 200, b"true", b"color = 'red'", b"a:b", b"1\r"),
)
_NAMES: Final = (
    *(b"id", b"receipt", b"transaction", b"ack", b"selector", b"x-a", b"priority", b"expires"),
    *(b"message-id", b"subscription", b"browser", b"activemq.prefetchSize", b"reply-to", b""),
    *(b"persistent", b"AMQ_SCHEDULED_DELAY", b"content-type", b"heart-beat", b"login", rb"a\cb"),
)
_PAIRS: Final = re.compile(rb"\n([^\n:]*):([^\n]*)")
_HEAD: Final = re.compile(rb"\n\r?\n")
_LENGTH: Final = re.compile(rb"\ncontent-length:(\d{1,9})\r?\n")
_FEEDS: Final = b"\r\n"
_RECEIPT: Final = "fence-"


class _Reader:
    """The codec's own connection."""

    illegible = False

    def __init__(self) -> None:
        self.rule = ""
        self.state = "new"
        self.doubtful = False
        self._stomp = ServerConnection(limits=_LIMITS)

    @property
    def inside(self) -> bool:
        """See :class:`tmqp_conformance.packs.grammar.Reader`: no CONNECT, no answers."""
        return self._stomp.held_bytes > 0 or not self._stomp.agreed

    def read(self, data: bytes) -> None:
        """See :class:`tmqp_conformance.packs.grammar.Reader`."""
        is_whole = data.rstrip(_FEEDS)[-1:] == b"\0"
        for event in self._stomp.receive(data, 0.0):
            if not isinstance(event, StompFrame):
                # A server may wait for the end of a frame before it looks at it.
                found = [rule for text, rule in _RULES.items() if text in event.text and is_whole]
                self.rule = found[0] if found else ""
                self.doubtful = self.doubtful or not found
                return
            self._note(event)
            if self.rule:
                return
        if self._stomp.held_bytes > _SURE_BYTES:
            self.doubtful = True

    def _note(self, event: StompFrame) -> None:
        """What a frame means for the connection."""
        if event.encoded_size > _SURE_BYTES or len(event.headers) > _SURE_HEADERS:
            self.doubtful = True
        if event.command in ("CONNECT", "STOMP"):
            self.state = "connected"
            beat = event.find("heart-beat")
            # Who promises heart-beats and sends none may be given up.
            self.doubtful = self.doubtful or bool(beat and HeartBeat.read(beat).sends_ms)
        elif event.command == "DISCONNECT":
            # A server may close, or wait until the client does.
            self.state = "leaving"
            self.doubtful = True
        elif event.command == "SUBSCRIBE":
            self.state = "subscribed"
        elif event.command == "BEGIN":
            self.state = "transaction"


class StompGrammar(PackGrammar):
    """Frames of clients."""

    greeting = CONNECT
    states: tuple[str, ...] = (
        *("new", "connected", "subscribed", "transaction", "leaving", "closed"),
    )
    kinds: tuple[str, ...] = (*(each.decode() for each in _COMMANDS), "other")
    fields: tuple[str, ...] = (
        *("body=0", "body=some", "body=long"),
        *("length=none", "length=right"),
        *("lines=lf", "lines=crlf"),
        *("headers=0", "headers=some", "headers=repeated"),
        *("escapes=none", "escapes=some"),
        *("destination=queue", "destination=topic", "destination=temporary", "destination=other"),
        *(f"ack={mode.decode()}" for mode in _MODES[:3]),
        "ack=other",
        *("version=one", "version=several", "version=none"),
        *("receipt=yes", "receipt=no", "transaction=yes", "transaction=no"),
    )

    def reader(self) -> _Reader:
        """See :class:`PackGrammar`."""
        return _Reader()

    def split(self, data: bytes) -> tuple[bytes, list[bytes], bytes]:
        """See :class:`Grammar`; line feeds before a frame belong to it."""
        messages: list[bytes] = []
        at = 0
        while (end := _frame_end(data, at)) > 0:
            messages.append(data[at:end])
            at = end
        return b"", messages, data[at:]

    def kind_of(self, message: bytes) -> str:
        """See :class:`PackGrammar`."""
        command = message.lstrip(_FEEDS).split(b"\n")[0].removesuffix(b"\r")
        return command.decode() if command in _COMMANDS else "other"

    def fields_of(self, message: bytes) -> Iterable[str]:
        """See :class:`PackGrammar`."""
        head, body = _opened(message)
        pairs = _PAIRS.findall(head)
        values = {name: value.removesuffix(b"\r") for name, value in reversed(pairs)}
        kind = self.kind_of(message)
        yield "lines=crlf" if head.endswith(b"\r") else "lines=lf"
        yield f"headers={'0' if not pairs else 'some' if len(values) == len(pairs) else 'repeated'}"
        yield "escapes=some" if b"\\" in head else "escapes=none"
        yield f"receipt={'yes' if b'receipt' in values else 'no'}"
        if kind == "SEND":
            yield f"body={of_size(len(body), _SMALL, most=_MOST_BYTES)}"
            yield f"length={'right' if b'content-length' in values else 'none'}"
        if kind in ("SEND", "SUBSCRIBE"):
            yield f"destination={_destination_class(values.get(b'destination', b''))}"
        if kind in ("SEND", "ACK", "NACK"):
            yield f"transaction={'yes' if b'transaction' in values else 'no'}"
        if kind == "SUBSCRIBE":
            mode = values.get(b"ack", b"auto")
            yield f"ack={mode.decode() if mode in _MODES[:3] else 'other'}"
        if kind in ("CONNECT", "STOMP"):
            version = values.get(b"accept-version")
            several = version is not None and b"," in version
            yield f"version={'none' if version is None else 'several' if several else 'one'}"

    def changed(self, draw: Seeded, message: bytes) -> bytes:
        """See :class:`Grammar`."""
        head, body = _opened(message)
        command, *lines = head.lstrip(_FEEDS).split(b"\n")
        lines = [line for line in lines if line.strip(b"\r")]
        what = draw.below(8)
        place = draw.below(len(lines)) if lines else 0
        end = b"\n"
        if what == 0:
            command = choice(draw, (*_COMMANDS, b"CONNECTED", b"PUBLISH", b"send", b""))
        elif what == 1 and lines:
            del lines[place]
        elif what == 2 and lines:
            lines.append(lines[place])
        elif what == 3 and lines:
            name = lines[place].partition(b":")[0]
            lines[place] = name + b":" + choice(draw, _values_of(name))
        elif what == 4:
            lines.insert(place, choice(draw, _NAMES) + b":" + choice(draw, _VALUES))
        elif what == 5:
            body = choice(draw, _BODIES)
        elif what == 6:
            lines.append(b"content-length:%d" % (len(body) + draw.below(3) - draw.below(3)))
        else:
            end = b"\r\n"
        return frame(command, *lines, body=body, end=end)

    def plain(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        destination = b"destination:" + choice(draw, _DESTINATIONS[:4])
        body = choice(draw, _BODIES)
        ack = b"ack:" + choice(draw, _MODES[:3])
        id_ = b"id:%d" % draw.below(3)
        asked = [b"receipt:%d" % draw.below(9)] if draw.one_in(2) else []
        within = [b"transaction:t"] if draw.one_in(3) else []
        sized = [b"content-length:%d" % len(body)] if draw.one_in(2) else []
        frames = (
            frame(b"SEND", destination, *asked, *within, *sized, body=body),
            frame(b"SUBSCRIBE", id_, destination, ack, *asked),
            frame(b"UNSUBSCRIBE", id_, *asked),
            frame(choice(draw, (b"ACK", b"NACK")), b"id:" + ID_MARK, *asked, *within),
            frame(choice(draw, (b"BEGIN", b"COMMIT", b"ABORT")), b"transaction:t", *asked),
        )
        return choice(draw, frames)

    def odd(self, draw: Seeded) -> bytes:
        """See :class:`Grammar`."""
        kind = draw.below(6)
        if kind == 0:
            version = choice(draw, _VERSIONS)
            beat = choice(draw, (b"0,0", b"0,100", b"x", b"1000,1000"))
            command = choice(draw, (b"CONNECT", b"STOMP"))
            return frame(command, b"accept-version:" + version, b"heart-beat:" + beat)
        if kind == 1:
            return choice(draw, (b"\n", b"\r\n", b"\0", b"\n\n\0", b"GET / HTTP/1.1\r\n\r\n"))
        if kind == 2:
            return draw.some_bytes(draw.below(40))
        lines = [choice(draw, _NAMES) + b":" + choice(draw, _VALUES) for _ in range(draw.below(4))]
        lines.append(b"destination:" + choice(draw, _DESTINATIONS))
        # What has most fields comes more often.
        command = choice(draw, (*_COMMANDS, *(b"SEND", b"SUBSCRIBE", b"SUBSCRIBE") * 4))
        if command == b"SUBSCRIBE":
            lines.append(b"ack:" + choice(draw, _MODES))
        return frame(command, *lines, body=choice(draw, _BODIES))

    def fence(self, name: str) -> bytes:
        """A message to a topic, whose receipt comes behind all that was sent before."""
        receipt = b"receipt:" + (_RECEIPT + name).encode()
        return frame(b"SEND", b"destination:/topic/fence", receipt)

    def passes(self, unit: object, name: str) -> bool:
        """See :class:`PackGrammar`."""
        if not isinstance(unit, Unit) or unit.kind != "receipt":
            return False
        return unit.fields.get("receipt_id") == _RECEIPT + name

    def refuses(self, unit: object) -> bool:
        """ERROR: what a frame asks for is not possible, and the server closes behind it."""
        return isinstance(unit, Unit) and unit.kind == "error"

    def newest_id(self, units: Sequence[object]) -> bytes:
        """What ACK names: the header ``ack``, and before 1.2 ``message-id``."""
        for unit in reversed(units):
            if isinstance(unit, Unit) and unit.kind == "message":
                found = unit.fields.get("ack", unit.fields.get("message_id"))
                return str(found).encode()
        return b""


def _frame_end(data: bytes, at: int) -> int:
    """Where the frame ends that begins there; 0 if it is not whole."""
    start = at
    while data[start : start + 1] in (b"\n", b"\r"):
        start += 1
    head = _HEAD.search(data, start)
    nul = data.find(b"\0", start)
    if head is None or 0 <= nul < head.start():
        return nul + 1
    length = _LENGTH.search(data, start, head.start() + 1)
    if length is not None:
        end = head.end() + int(length[1])
        return end + 1 if end < len(data) and data[end] == 0 else 0
    return data.find(b"\0", head.end()) + 1


def _opened(message: bytes) -> tuple[bytes, bytes]:
    """The head and the body of a whole frame."""
    start = len(message) - len(message.lstrip(_FEEDS))
    found = _HEAD.search(message, start)
    if found is None:
        return message[:-1], b""
    return message[: found.start()], message[found.end() : -1]


def _values_of(name: bytes) -> tuple[bytes, ...]:
    """Values for a header."""
    known = {b"destination": _DESTINATIONS, b"ack": _MODES, b"accept-version": _VERSIONS}
    return known.get(name, _VALUES)


def _destination_class(destination: bytes) -> str:
    """The class of a destination."""
    for prefix, name in ((b"/queue/", "queue"), (b"/topic/", "topic"), (b"/temp-", "temporary")):
        if destination.startswith(prefix):
            return name
    return "other"
