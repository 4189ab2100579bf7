"""Replays recorded exchanges: sends the recorded client's messages, and compares the answers.

The player has no I/O: it reaches the server through :class:`Link`, one for each recorded
connection, so the same exchange runs over a socket or in memory.  Ids that the recorded server
generated are replaced by those of the live one (:class:`tmqp.testing.compare.Correspondence`)::

    player = Player(open_link)
    outcome = player.play(parse_exchange("name", text))
    print(outcome.differences or "matched")

Exchanges that continue one another (connections opened in an earlier one) are played in their
order by one player.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    ACCEPTED_PREAMBLES,
    PING_BYTES,
    SERVER_ACCEPTED,
    TYPE_PONG,
    TYPE_SERVER,
)
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.testing.compare import Correspondence, compare
from tmqp.testing.vectors import CLIENT_TO_SERVER, Exchange, Step, split_step

__all__ = ["Link", "Outcome", "Player"]

_PREAMBLE_BYTES = 8
#: The most unexpected pieces that are read, because a server may never stop sending.
_MAX_STRAY_READS = 1_000
#: What a recorded server may answer with is never larger.
_MAX_PAYLOAD_BYTES = 16_777_216


class Link(Protocol):
    """One connection to the server under test."""

    def send(self, data: bytes) -> None:
        """Send bytes in one write."""

    def receive(self) -> bytes:
        """Return the next bytes; empty if none arrive within the link's timeout, or the server has
        closed."""

    @property
    def closed(self) -> bool:
        """Whether the server has closed the connection."""

    def close(self) -> None:
        """Close the connection from this side."""


class Outcome:
    """The result of one exchange: the number of ``compared`` answers, and a sentence for each
    difference."""

    __slots__ = ("compared", "differences", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.compared = 0
        self.differences: list[str] = []

    @property
    def matched(self) -> bool:
        """Whether every answer was as recorded."""
        return not self.differences

    def __repr__(self) -> str:
        return f"<Outcome {self.name} compared={self.compared} {self.differences!r}>"


class _Side:
    """The received messages of one link that are not compared yet."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.decoder = FrameDecoder(Limits(max_payload_bytes=_MAX_PAYLOAD_BYTES))
        self.frames: deque[Frame] = deque()
        self.bytes = b""
        self.preamble_expected = False
        self.accepted = False
        self.told = False

    def fetch(self) -> bool:
        """Receive once; return False if nothing arrived, or invalid bytes have ended decoding."""
        if self.decoder.error is not None:
            return False
        data = self.link.receive()
        if not data:
            return False
        if self.preamble_expected:
            self.bytes += data
            if len(self.bytes) < _PREAMBLE_BYTES:
                return True
            data = self.bytes[_PREAMBLE_BYTES:]
            self.bytes = self.bytes[:_PREAMBLE_BYTES]
            self.preamble_expected = False
        self.frames.extend(self.decoder.feed(data))
        return True

    def take_preamble(self) -> bytes:
        while self.preamble_expected and self.fetch():
            pass
        taken, self.bytes = self.bytes[:_PREAMBLE_BYTES], b""
        # Bytes after an incomplete preamble are not its rest.
        self.preamble_expected = False
        return taken

    def take_frame(self) -> Frame | None:
        while not self.frames and self.fetch():
            pass
        if not self.frames:
            return None
        frame = self.frames.popleft()
        if frame.type == TYPE_SERVER and frame.content_type == SERVER_ACCEPTED:
            self.accepted = True
        return frame

    def take_rest(self) -> list[Frame]:
        """Return all remaining messages.

        If the connection is open, a ping is the fence: once its pong has arrived, so has everything
        that was sent before, and there is no need to wait for silence.
        """
        fenced = self.accepted and not self.link.closed
        if fenced:
            self.link.send(PING_BYTES)
        for _ in range(_MAX_STRAY_READS):
            if fenced and any(frame.type == TYPE_PONG for frame in self.frames):
                break
            if not self.fetch():
                break
        rest = [frame for frame in self.frames if frame.type != TYPE_PONG]
        self.frames.clear()
        return rest

    def take_complaint(self) -> str:
        """Return a description of invalid bytes; empty if there are none."""
        error = self.decoder.error
        stray = len(self.bytes) + self.decoder.buffered
        if self.told or (error is None and not stray):
            return ""
        self.told = True
        if error is not None:
            return f"the server broke the protocol: {error}"
        return f"not recorded: {stray} bytes of no whole message"


class Player:
    """Plays exchanges, in order, against one server.

    :param open_link: opens a new connection to the server for a recorded connection's number.
    :param advance: called before each step with its time (seconds since the recording began), for
        servers whose clock the caller controls.
    """

    def __init__(
        self, open_link: Callable[[int], Link], advance: Callable[[float], None] | None = None
    ) -> None:
        self._open_link = open_link
        self._advance = advance
        self._context = Correspondence()
        self._sides: dict[int, _Side] = {}

    def play(self, exchange: Exchange) -> Outcome:
        """Play one exchange to its end, whatever differs.

        :raises ValueError: if client frames of the exchange were not recorded completely.
        """
        outcome = Outcome(exchange.name)
        for step in exchange.steps:
            if self._advance is not None and step.at_s is not None:
                self._advance(step.at_s)
            if step.direction == CLIENT_TO_SERVER:
                self._say(step)
            else:
                self._hear(step, outcome)
        for number, side in self._sides.items():
            for frame in side.take_rest():
                outcome.differences.append(f"connection {number}: not recorded: {frame!r}")
            complaint = side.take_complaint()
            if complaint:
                outcome.differences.append(f"connection {number}: {complaint}")
        return outcome

    def close(self) -> None:
        """Close all connections."""
        for side in self._sides.values():
            side.link.close()
        self._sides.clear()

    def _say(self, step: Step) -> None:
        if step.closes:
            side = self._sides.pop(step.connection, None)
            if side is not None:
                side.link.close()
            return
        parts = split_step(step)
        if parts.rest and step.truncated:
            raise ValueError(f"the recording has only a part of the client's bytes: {step!r}")
        side = self._sides.get(step.connection)
        if side is None or parts.preamble:
            side = self._sides[step.connection] = _Side(self._open_link(step.connection))
        if parts.preamble in ACCEPTED_PREAMBLES:
            side.preamble_expected = True
        frames = b"".join(self._context.translate(frame).raw for frame in parts.frames)
        side.link.send(parts.preamble + frames + parts.rest)

    def _hear(self, step: Step, outcome: Outcome) -> None:
        side = self._sides.get(step.connection)
        if side is None:
            if not step.closes:
                outcome.differences.append(f"connection {step.connection} was never opened")
            return
        where = f"connection {step.connection}"
        if step.closes:
            for _ in range(_MAX_STRAY_READS):
                if not side.fetch():
                    break
            if not side.link.closed:
                outcome.differences.append(f"{where}: the recorded server closed it")
            return
        if step.silent:
            said = [repr(frame) for frame in side.take_rest()]
            if side.bytes:
                said.append(f"preamble {side.bytes!r}")
            for text in said:
                outcome.differences.append(f"{where}: the recorded server said nothing, not {text}")
            return
        parts = split_step(step)
        if parts.preamble:
            outcome.compared += 1
            preamble = side.take_preamble()
            if preamble != parts.preamble:
                outcome.differences.append(f"{where}: preamble {preamble!r}")
        for expected in parts.frames:
            outcome.compared += 1
            actual = side.take_frame()
            if actual is None:
                outcome.differences.append(f"{where}: missing {expected!r}")
                continue
            found = compare(expected, actual, self._context)
            outcome.differences.extend(f"{where}: {difference}" for difference in found)
        if parts.rest and side.take_frame() is None:
            outcome.differences.append(f"{where}: a long message is missing")
