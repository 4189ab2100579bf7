"""The door of NSQ's TCP protocol V2."""

from __future__ import annotations

from typing import Final

from tmqp_server.doors.letters import Letter, Letters
from tmqp_server.doors.nsq.compression import Compression
from tmqp_server.doors.nsq.message import DOOR, NUMBER, NsqBodies, NsqIds, NsqRun
from tmqp_server.doors.nsq.options import NsqLimits, NsqOptions, terms_of
from tmqp_server.doors.nsq.session import NsqSession
from tmqp_server.doors.nsq.topics import Shapes
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.engine.effects import Deliver, DeliverRun, Forward, Inform
from tmqp_server.engine.model.message import Message
from tmqp_wires.nsq.writing import message_frame, retried

__all__ = ["NsqDoor"]

_NS_PER_MS: Final = 1_000_000
_NS_PER_S: Final = 1_000_000_000


class NsqDoor(Door):
    """NSQ, TCP.

    :param new_id: draws what is unique about this door.
    :param has_tls: whether connections can change to TLS.
    :param durable: whether topics and channels are kept on disk.

    ``identities`` may be filled by whoever decides about a client's AUTH, with what the answer
    tells of it: its identity, a URL and the number of its permissions, by the session's number.
    ``time_s`` is the monotonic time that a session last heard of.
    """

    name = DOOR
    number = NUMBER

    def __init__(
        self,
        new_id: IdSource,
        limits: NsqLimits,
        options: NsqOptions,
        wall_clock_offset_s: float = 0.0,
        letters: Letters | None = None,
        *,
        has_tls: bool = False,
        durable: bool = False,
    ) -> None:
        self.letters = Letters() if letters is None else letters
        self.limits = limits
        self.options = options
        self.compression = Compression()
        self.terms = terms_of(
            limits, options, has_tls=has_tls, has_snappy=self.compression.has_snappy
        )
        self.shapes = Shapes(options, durable=durable and options.durable)
        self.wall_clock_offset_s = wall_clock_offset_s
        self.new_id = new_id
        self.ids = NsqIds(new_id(), wall_clock_offset_s)
        self.identities: dict[int, tuple[str, str, int]] = {}
        self.time_s = 0.0
        self._bodies = NsqBodies()
        #: The ids of messages of other protocols in flight, by channel and the id they have here.
        self._foreign: dict[str, str] = {}

    def open(self, session: int, now: float) -> NsqSession:
        """A new connection."""
        self.time_s = now
        return NsqSession(self, session, now)

    def unix_ns(self, now: float) -> int:
        """The time, in nanoseconds since 1970."""
        return int((now + self.wall_clock_offset_s) * _NS_PER_S)

    # -- ids of other protocols' messages -------------------------------------------------------

    def message_id(self, channel: str, name: bytes) -> str:
        """The id of the message that has this id at the clients of a channel."""
        text = name.decode("latin-1")
        if name[0] != 48:  # no digit 0: an id of our own
            return text
        return self._foreign.get(channel + text, text)

    def forget_foreign(self, channel: str, name: bytes) -> None:
        """It is answered."""
        self._foreign.pop(channel + name.decode("latin-1"), None)

    # -- messages -------------------------------------------------------------------------------

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The frame of the message, with the number of this attempt; of another protocol's message
        that of its letter."""
        message = effect.message
        wire = message.wire
        attempts = message.attempts
        if isinstance(wire, bytes) and message.producer.door == DOOR:
            return wire if attempts <= 1 else retried(wire, attempts)
        letter = self.letters.of(message, effect.channel)
        name = "%016x" % message.sequence  # noqa: UP031 - compiled it is the quickest
        foreign = self._foreign
        if len(foreign) >= self.limits.max_foreign_in_flight:
            del foreign[next(iter(foreign))]
        foreign[effect.channel + name] = message.message_id
        timestamp_ns = letter.timestamp_ms * _NS_PER_MS or self.unix_ns(self.time_s)
        return message_frame(timestamp_ns, max(attempts, 1), name.encode("ascii"), letter.body)

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The frames of a run."""
        run = effect.run.wire
        if not isinstance(run, NsqRun):
            return b"".join([self.encode_delivery(each) for each in effect.deliveries()])
        if effect.is_whole():
            return b"".join(run.frames)
        return b"".join(run.frames[effect.start : effect.stop : effect.step])

    def encode_forward(self, effect: Forward) -> bytes:
        """NSQ's clients say nothing to each other."""
        return b""

    def encode_event(self, effect: Inform) -> bytes:
        """NSQ's clients are told of no events."""
        return b""

    def letter(self, wire: object) -> Letter:
        """What a message says."""
        return self._bodies.letter(wire)

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        """Messages of NSQ have no headers."""
        return wire, 0

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """What is kept of a message."""
        return self._bodies.stored(message)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """NSQ has no message sets."""
        return self._bodies.unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """A kept message again."""
        return self._bodies.restored(body)
