"""The decoder of a server: decodes and checks the commands of clients of the TCP protocol V2.

Theory of operation.  ``CommandDecoder`` gets bytes, divided in any way, and returns events.  It
knows the state of the connection as far as commands determine it (subscribed, closing, identified),
so it also detects commands that are not allowed in this state; the first error is the last event.
Sizes are checked in the heads of bodies, before anything of a body is buffered.  The number of
missing bytes at the end of a chunk is known, so the parts of a large body are joined once.

An IDENTIFY that leads to TLS or compression pauses the decoder, because what follows is in another
form; bytes that came before the answer are refused, where the original loses them (N42).
"""

from __future__ import annotations

from typing import Final, final

from tmqp_wires.nsq.events import (
    Authenticate,
    Close,
    Event,
    Finish,
    Identify,
    Nop,
    Publish,
    PublishDeferred,
    PublishMany,
    Ready,
    Requeue,
    Subscribe,
    Touch,
    Violation,
)
from tmqp_wires.nsq.identify import IdentifyError, ServerTerms, negotiate
from tmqp_wires.nsq.names import is_name, quoted
from tmqp_wires.nsq.writing import MAGIC, error_frame

__all__ = ["CommandDecoder"]

_INITIAL: Final = 0
_SUBSCRIBED: Final = 1
_CLOSING: Final = 2

_ID_BYTES: Final = 16
_FIN_LINE: Final = 4 + _ID_BYTES
_NEW_LINE: Final = 10
_RETURN: Final = 13
_BLANK: Final = 32
#: A number with more digits is invalid, because Go's would overflow.
_MAX_DIGITS: Final = 18
#: The number of valid names that are remembered.
_MAX_KNOWN: Final = 256
#: The least bytes of a message of an MPUB, including its size.
_LEAST_MESSAGE: Final = 5
_ANSWERS: Final = frozenset((b"FIN", b"REQ", b"TOUCH"))


def _number(text: bytes) -> int:
    """A decimal number without a sign, the empty one being 0 (N11); -1 when it is not one."""
    if not text:
        return 0
    if len(text) > _MAX_DIGITS or not text.isdigit():
        return -1
    return int(text)


def _int32(data: bytes, at: int) -> int:
    value = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3]
    return value if value < 0x80000000 else value - 0x100000000


@final
class CommandDecoder:
    """The commands of one client.

    :param terms: what the server offers and allows.

    Set ``secure`` when the connection is encrypted.  ``paused`` says that an IDENTIFY waits for its
    layers: call :meth:`resume` when they are in use.
    """

    __slots__ = (
        "_asks_auth",
        "_asks_tls",
        "_authenticated",
        "_eof_text",
        "_greeted",
        "_has_heartbeats",
        "_held",
        "_is_compressed",
        "_known",
        "_line_bytes",
        "_many",
        "_many_bytes",
        "_many_left",
        "_message_bytes",
        "_need",
        "_over",
        "_parts",
        "_state",
        "_terms",
        "paused",
        "secure",
    )

    def __init__(self, terms: ServerTerms) -> None:
        self._terms = terms
        # Terms that are needed for each command are copied once.
        self._line_bytes: int = terms.max_line_bytes
        self._message_bytes: int = terms.max_msg_size
        self._asks_auth: bool = terms.auth_required
        self._asks_tls: bool = terms.tls_required
        self.secure = False
        self.paused = False
        self._greeted = False
        self._over = False
        self._authenticated = False
        self._has_heartbeats = True
        self._is_compressed = False
        self._state = _INITIAL
        self._known: set[bytes] = set()
        self._many: PublishMany | None = None
        self._many_left = 0
        self._many_bytes = 0
        self._parts: list[bytes] = []
        self._held = 0
        self._need = 0
        self._eof_text = b""

    @property
    def held_bytes(self) -> int:
        """Bytes that were received and are not an event yet."""
        return self._held + self._many_bytes

    def forget(self) -> None:
        """Drop incomplete input, and read nothing more."""
        self._over = True
        self._clear()

    def resume(self) -> None:
        """Continue after an IDENTIFY: the next bytes have passed the new layers."""
        self.paused = False

    def feed(self, data: bytes) -> list[Event]:
        """The commands in the bytes; nothing after a violation."""
        events: list[Event] = []
        if self._over or not data:
            return events
        if self._held:
            self._parts.append(data)
            self._held += len(data)
            if self._held < self._need:
                return events
            data = b"".join(self._parts)
            self._parts = []
            self._held = 0
        at = 0
        size = len(data)
        while at < size and not self._over:
            if self.paused:
                self._fail(b"E_INVALID data behind IDENTIFY, before its answer", events)
                break
            after = self._next(data, at, events)
            if after < 0:
                break
            at = after
        if at < size and not self._over:
            self._parts.append(data[at:] if at else data)
            self._held = size - at
        return events

    def feed_eof(self) -> list[Event]:
        """The client sends no more: an error if it stopped in the middle of a body."""
        events: list[Event] = []
        if not self._over and self._eof_text and (self._held or self._many is not None):
            self._fail(self._eof_text, events)
        self.forget()
        return events

    # -- one step -------------------------------------------------------------------------------

    def _next(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read the next complete element; returns where it ends, or -1 if nothing is complete."""
        if self._many is not None:
            return self._message_of_many(data, at, events)
        if not self._greeted:
            return self._greeting(data, at, events)
        most = self._line_bytes
        behind = at + _FIN_LINE
        if (
            behind < len(data)
            and data[behind] == _NEW_LINE
            and data[at : at + 4] == b"FIN "
            and self._state != _INITIAL
            and most > _FIN_LINE
        ):
            name = data[at + 4 : behind]
            # Searching for numbers is faster than searching for bytes.
            if name[_ID_BYTES - 1] != _RETURN and _NEW_LINE not in name and _BLANK not in name:
                events.append(Finish(name))
                return behind + 1
        end = data.find(b"\n", at)
        if end < 0:
            if len(data) - at >= most:
                return self._drop(b"a line of more than %d bytes" % most, events)
            return self._short(len(data) - at + 1, b"")
        if end - at >= most:
            return self._drop(b"a line of more than %d bytes" % most, events)
        if data[at : at + 4] == b"PUB ":
            topic = data[at + 4 : end]
            if topic in self._known and self._may_publish():
                return self._publish(data, at, end + 1, topic, events)
        line = data[at : end - 1] if end > at and data[end - 1] == _RETURN else data[at:end]
        return self._command(line.split(b" "), data, at, end + 1, events)

    def _greeting(self, data: bytes, at: int, events: list[Event]) -> int:
        size = len(MAGIC)
        if len(data) - at < size:
            return self._short(size, b"")
        if data[at : at + size] != MAGIC:
            return self._fail(b"E_BAD_PROTOCOL", events)
        self._greeted = True
        return at + size

    def _command(
        self, words: list[bytes], data: bytes, at: int, head: int, events: list[Event]
    ) -> int:
        """Read a command whose line begins at *at*; the bytes after the line begin at *head*."""
        word = words[0]
        if word == b"IDENTIFY":
            return self._identify(data, at, head, events)
        if self._asks_tls and not self.secure:
            return self._fail(b"E_INVALID cannot %s in current state (TLS required)" % word, events)
        if word in _ANSWERS:
            return self._answer(word, words, head, events)
        if word == b"RDY":
            return self._ready(words, head, events)
        if word == b"PUB" or word == b"DPUB":
            return self._publication(word, words, data, at, head, events)
        if word == b"MPUB":
            return self._many_head(words, data, at, head, events)
        if word == b"NOP":
            events.append(Nop())
            return head
        if word == b"SUB":
            return self._subscribe(words, head, events)
        if word == b"CLS":
            if self._state != _SUBSCRIBED:
                return self._fail(b"E_INVALID cannot CLS in current state", events)
            self._state = _CLOSING
            events.append(Close())
            return head
        if word == b"AUTH":
            return self._authenticate(words, data, at, head, events)
        return self._fail(b"E_INVALID invalid command " + word, events)

    # -- who it is ------------------------------------------------------------------------------

    def _identify(self, data: bytes, at: int, head: int, events: list[Event]) -> int:
        if self._state != _INITIAL:
            return self._fail(b"E_INVALID cannot IDENTIFY in current state", events)
        after = self._whole_body(b"IDENTIFY", data, at, head, events)
        if after < 0:
            return after
        terms = self._terms
        try:
            negotiated, answer = negotiate(
                data[head + 4 : after], terms, self.secure, self._is_compressed
            )
        except IdentifyError as error:
            return self._fail(str(error).encode(), events)
        self._has_heartbeats = negotiated.heartbeat_interval_ms > 0
        self.paused = negotiated.changes_stream
        self._is_compressed = self._is_compressed or negotiated.snappy or negotiated.deflate
        events.append(Identify(negotiated, answer))
        return after

    def _authenticate(
        self, words: list[bytes], data: bytes, at: int, head: int, events: list[Event]
    ) -> int:
        if self._state != _INITIAL:
            return self._fail(b"E_INVALID cannot AUTH in current state", events)
        if len(words) != 1:
            return self._fail(b"E_INVALID AUTH invalid number of parameters", events)
        after = self._whole_body(b"AUTH", data, at, head, events)
        if after < 0:
            return after
        if self._authenticated:
            return self._fail(b"E_INVALID AUTH already set", events)
        if not self._asks_auth:
            return self._fail(b"E_AUTH_DISABLED AUTH disabled", events)
        self._authenticated = True
        events.append(Authenticate(data[head + 4 : after]))
        return after

    def _whole_body(self, word: bytes, data: bytes, at: int, head: int, events: list[Event]) -> int:
        """Where the body of an IDENTIFY or AUTH ends, or -1."""
        if len(data) - head < 4:
            return self._short(head + 4 - at, b"E_BAD_BODY %s failed to read body size" % word)
        terms = self._terms
        size = _int32(data, head)
        most = terms.max_body_size
        if size <= most:
            most = min(most, terms.max_identify_bytes)
        if size > most:
            text = b"E_BAD_BODY %s body too big %d > %d" % (word, size, most)
            return self._fail(text, events)
        if size <= 0:
            return self._fail(b"E_BAD_BODY %s invalid body size %d" % (word, size), events)
        after = head + 4 + size
        if len(data) < after:
            return self._short(after - at, b"E_BAD_BODY %s failed to read body" % word)
        return after

    # -- publishing -----------------------------------------------------------------------------

    def _may_publish(self) -> bool:
        return (self._authenticated or not self._asks_auth) and (self.secure or not self._asks_tls)

    def _topic(self, word: bytes, topic: bytes, code: bytes, events: list[Event]) -> bool:
        """Check and remember the name of a topic."""
        if topic in self._known:
            return True
        if not is_name(topic):
            text = b"%s %s topic name %s is not valid" % (code, word, quoted(topic))
            self._fail(text, events)
            return False
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known.add(topic)
        return True

    def _publication(
        self,
        word: bytes,
        words: list[bytes],
        data: bytes,
        at: int,
        head: int,
        events: list[Event],
    ) -> int:
        """PUB and DPUB."""
        deferred = word == b"DPUB"
        if len(words) < (3 if deferred else 2):
            return self._fail(b"E_INVALID %s insufficient number of parameters" % word, events)
        topic = words[1]
        if not self._topic(word, topic, b"E_BAD_TOPIC", events):
            return -1
        delay_ms = -1
        if deferred:
            most = self._terms.max_req_timeout_ms
            delay_ms = _number(words[2])
            if delay_ms < 0:
                return self._fail(b"E_INVALID DPUB could not parse timeout " + words[2], events)
            if delay_ms > most:
                text = b"E_INVALID DPUB timeout %d out of range 0-%d" % (delay_ms, most)
                return self._fail(text, events)
        return self._publish(data, at, head, topic, events, word, delay_ms)

    def _publish(
        self,
        data: bytes,
        at: int,
        head: int,
        topic: bytes,
        events: list[Event],
        word: bytes = b"PUB",
        delay_ms: int = -1,
    ) -> int:
        """The body of a PUB, or of a DPUB if there is a delay."""
        if len(data) - head < 4:
            return self._short(
                head + 4 - at, b"E_BAD_MESSAGE %s failed to read message body size" % word
            )
        size = _int32(data, head)
        most = self._message_bytes
        if size <= 0:
            return self._fail(
                b"E_BAD_MESSAGE %s invalid message body size %d" % (word, size), events
            )
        if size > most:
            text = b"E_BAD_MESSAGE %s message too big %d > %d" % (word, size, most)
            return self._fail(text, events)
        if self._asks_auth and not self._authenticated:
            return self._fail(b"E_AUTH_FIRST AUTH required before " + word, events)
        start = head + 4
        after = start + size
        if len(data) < after:
            return self._short(after - at, b"E_BAD_MESSAGE %s failed to read message body" % word)
        if delay_ms < 0:
            events.append(Publish(topic, data[start:after]))
        else:
            events.append(PublishDeferred(topic, data[start:after], delay_ms))
        return after

    def _many_head(
        self, words: list[bytes], data: bytes, at: int, head: int, events: list[Event]
    ) -> int:
        """MPUB up to its first message (N57, N60)."""
        if len(words) < 2:
            return self._fail(b"E_INVALID MPUB insufficient number of parameters", events)
        topic = words[1]
        if not self._topic(b"MPUB", topic, b"E_BAD_TOPIC E_BAD_TOPIC", events):
            return -1
        if self._asks_auth and not self._authenticated:
            return self._fail(b"E_AUTH_FIRST AUTH required before MPUB", events)
        if len(data) - head < 4:
            return self._short(head + 4 - at, b"E_BAD_BODY MPUB failed to read body size")
        size = _int32(data, head)
        most = self._terms.max_body_size
        if size <= 0:
            return self._fail(b"E_BAD_BODY MPUB invalid body size %d" % size, events)
        if size > most:
            return self._fail(b"E_BAD_BODY MPUB body too big %d > %d" % (size, most), events)
        if len(data) - head < 8:
            return self._short(head + 8 - at, b"E_BAD_BODY MPUB failed to read message count")
        count = _int32(data, head + 4)
        if not 0 < count <= (most - 4) // _LEAST_MESSAGE:
            return self._fail(b"E_BAD_BODY MPUB invalid message count %d" % count, events)
        self._many = PublishMany(topic, [])
        self._many_left = count
        self._many_bytes = 4
        self._eof_text = b"E_BAD_MESSAGE MPUB failed to read message(0) body size"
        return head + 8

    def _message_of_many(self, data: bytes, at: int, events: list[Event]) -> int:
        """Read the complete messages of an MPUB; the sizes of messages count, not that of the body
        (N59)."""
        many = self._many
        assert many is not None
        bodies = many.bodies
        most = self._message_bytes
        limit = len(data)
        room = self._terms.max_body_size - self._many_bytes
        left = self._many_left
        begun = room
        while left and limit - at >= 4:
            size = _int32(data, at)
            if size <= 0:
                text = b"E_BAD_MESSAGE MPUB invalid message(%d) body size %d"
                return self._fail(text % (len(bodies), size), events)
            if size > most:
                text = b"E_BAD_MESSAGE MPUB message too big %d > %d"
                return self._fail(text % (size, most), events)
            if size + 4 > room:
                most = self._terms.max_body_size
                text = b"E_BAD_BODY MPUB body too big %d > %d"
                return self._fail(text % (most - room + size + 4, most), events)
            after = at + 4 + size
            if after > limit:
                break
            bodies.append(data[at + 4 : after])
            room -= size + 4
            left -= 1
            at = after
        self._many_bytes += begun - room
        self._many_left = left
        if not left:
            events.append(many)
            self._many = None
            self._many_bytes = 0
            self._eof_text = b""
            return at
        if begun != room:  # something was taken: what is missing is counted from there
            self._eof_text = b"E_BAD_MESSAGE MPUB failed to read message(%d) body size" % len(
                bodies
            )
            return at
        if limit - at < 4:
            return self._short(
                4, b"E_BAD_MESSAGE MPUB failed to read message(%d) body size" % len(bodies)
            )
        return self._short(4 + _int32(data, at), b"E_BAD_MESSAGE MPUB failed to read message body")

    # -- consuming ------------------------------------------------------------------------------

    def _subscribe(self, words: list[bytes], head: int, events: list[Event]) -> int:
        if self._state != _INITIAL:
            return self._fail(b"E_INVALID cannot SUB in current state", events)
        if not self._has_heartbeats:
            return self._fail(b"E_INVALID cannot SUB with heartbeats disabled", events)
        if len(words) < 3:
            return self._fail(b"E_INVALID SUB insufficient number of parameters", events)
        topic, channel = words[1], words[2]
        if not self._topic(b"SUB", topic, b"E_BAD_TOPIC", events):
            return -1
        if not is_name(channel):
            text = b"E_BAD_CHANNEL SUB channel name %s is not valid" % quoted(channel)
            return self._fail(text, events)
        if self._asks_auth and not self._authenticated:
            return self._fail(b"E_AUTH_FIRST AUTH required before SUB", events)
        self._state = _SUBSCRIBED
        events.append(Subscribe(topic, channel))
        return head

    def _ready(self, words: list[bytes], head: int, events: list[Event]) -> int:
        if self._state == _CLOSING:
            events.append(Nop())
            return head
        if self._state != _SUBSCRIBED:
            return self._fail(b"E_INVALID cannot RDY in current state", events)
        count = 1
        if len(words) > 1:
            most = self._terms.max_rdy_count
            count = _number(words[1])
            if count < 0:
                return self._fail(b"E_INVALID RDY could not parse count " + words[1], events)
            if count > most:
                text = b"E_INVALID RDY count %d out of range 0-%d" % (count, most)
                return self._fail(text, events)
        events.append(Ready(count))
        return head

    def _answer(self, word: bytes, words: list[bytes], head: int, events: list[Event]) -> int:
        """FIN, REQ and TOUCH."""
        if self._state == _INITIAL:
            return self._fail(b"E_INVALID cannot %s in current state" % word, events)
        if len(words) < (3 if word == b"REQ" else 2):
            return self._fail(b"E_INVALID %s insufficient number of params" % word, events)
        name = words[1]
        if len(name) != _ID_BYTES:
            return self._fail(b"E_INVALID invalid message ID", events)
        if word == b"FIN":
            events.append(Finish(name))
        elif word == b"TOUCH":
            events.append(Touch(name))
        else:
            delay_ms = _number(words[2])
            if delay_ms < 0:
                return self._fail(b"E_INVALID REQ could not parse timeout " + words[2], events)
            events.append(Requeue(name, min(delay_ms, self._terms.max_req_timeout_ms)))
        return head

    # -- ends -----------------------------------------------------------------------------------

    def _short(self, need: int, eof_text: bytes) -> int:
        """Note that this step needs *need* bytes from its beginning."""
        self._need = need
        self._eof_text = eof_text
        return -1

    def _fail(self, text: bytes, events: list[Event]) -> int:
        events.append(Violation(error_frame(text), text))
        self.forget()
        return -1

    def _drop(self, why: bytes, events: list[Event]) -> int:
        """End with a violation without an answer, because the original closes silently (N9)."""
        events.append(Violation(b"", why))
        self.forget()
        return -1

    def _clear(self) -> None:
        self._parts = []
        self._held = 0
        self._many = None
        self._many_bytes = 0
