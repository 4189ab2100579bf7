"""Asks a lookupd by HTTP for the channels of a new topic (N143).

A new topic keeps its messages until it has a channel.  While the channels that the lookupd names
are created, the topic is paused, so that each of them gets all these messages.

The request is HTTP/1.0, so its answer ends with the connection.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_OK, STATUS_PAUSED, STATUS_PUSH
from tmqp.hello import ConnectionInformation
from tmqp_server.doors.nsq_world import TopicShapes
from tmqp_server.doors.port import DoorSession, IdSource, QueuesOnly
from tmqp_server.engine.commands import Command, Connect, DescribeQueue, Disconnect, UpdateQueue
from tmqp_server.engine.effects import CloseSession, Effect, Refuse, Reply
from tmqp_server.engine.model.snapshots import QueueSnapshot
from tmqp_server.engine.options import QueueChanges
from tmqp_wires.nsq.names import is_ephemeral, is_name

__all__ = ["AskDoor", "AskSession", "channels_in"]

_NAME: Final = "nsq-asking"
#: Seconds in which a lookupd answers.
_TIMEOUT_S: Final = 5.0
_MAX_ANSWER_BYTES: Final = 1_048_576
#: Channels that are made at most for one topic.
_MAX_CHANNELS: Final = 1_000
_QUEUE: Final = 0


def channels_in(answer: bytes) -> list[bytes] | None:
    """The channels that an answer names, without ephemeral ones; None if the answer is invalid."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    line = head.partition(b"\r\n")[0].split(b" ", 2)
    if not blank or len(line) < 2 or not line[0].startswith(b"HTTP/1.") or line[1] != b"200":
        return None
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        return None
    named = given.get("channels") if isinstance(given, dict) else None
    if not isinstance(named, list):
        return None
    names = [each.encode("utf-8", "replace") for each in named if isinstance(each, str)]
    good = [each for each in names if is_name(each) and not is_ephemeral(each)]
    return list(dict.fromkeys(good))[:_MAX_CHANNELS]


@final
class AskSession(DoorSession):
    """One request to a lookupd, as a session of the server itself."""

    def __init__(
        self,
        number: int,
        topic: bytes,
        shapes: TopicShapes,
        new_id: IdSource,
        now: float,
    ) -> None:
        super().__init__()
        self.trusted = True
        self._number = number
        self._topic = topic
        self._shapes = shapes
        self._new_id = new_id
        self._asked = False
        self._connected = False
        self._due = now
        self._answer = b""
        self._channels: list[bytes] = []
        self._out = b""

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Collect the answer."""
        if self.closed:
            return ()
        self._answer += data
        if len(self._answer) > _MAX_ANSWER_BYTES:
            return self._end(f"the answer has more than {_MAX_ANSWER_BYTES} bytes")
        return ()

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The answer is complete: ask the broker whether the topic still exists."""
        if self.closed:
            return ()
        found = channels_in(self._answer)
        self._answer = b""
        if not found:
            return self._end("the lookupd gave no answer" if found is None else "no channels")
        self._channels = found
        self._connected = True
        number = self._number
        who = ConnectionInformation("", "", _NAME, "", {})
        return [
            Connect(number, None, self._new_id(), None, _NAME, _NAME, who),
            DescribeQueue(number, self, self._shapes.names.topic(self._topic), _QUEUE),
        ]

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side."""
        return () if self.closed else self._end(reason)

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called."""
        return None if self.closed else self._due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send the request; give up a lookupd that does not answer."""
        if self.closed or now < self._due:
            return ()
        if self._asked:
            return self._end("the lookupd did not answer in time")
        self._asked = True
        self._due = now + _TIMEOUT_S
        topic = self._topic.replace(b"#", b"%23")
        self._out = (
            b"GET /channels?topic=%b HTTP/1.0\r\nHost: %b\r\n"
            b"Accept: application/vnd.nsq; version=1.0\r\n\r\n" % (topic, self.peer.encode())
        )
        self.outbound_bytes = len(self._out)
        return ()

    # -- the broker -----------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Create the channels."""
        if self.closed:
            return ()
        if isinstance(effect, (CloseSession, Refuse)):
            self._connected = False
            return self._end("the broker refused the session")
        if not isinstance(effect, Reply) or effect.request is not self:
            return ()
        queue = effect.body
        if effect.code != RESULT_OK or not isinstance(queue, QueueSnapshot):
            return self._end("the topic no longer exists")
        if queue.options.status not in (STATUS_PUSH, STATUS_PAUSED):
            return self._end("the channel is no topic")
        commands: list[Command] = []
        number, topic = self._number, self._shapes.names.topic(self._topic)
        pauses = queue.options.status == STATUS_PUSH
        if pauses:
            changes = QueueChanges(status=STATUS_PAUSED)
            commands.append(UpdateQueue(number, None, topic, _QUEUE, changes))
        for each in self._channels:
            commands += self._shapes.create_channel(number, self._topic, each)
        if pauses:
            changes = QueueChanges(status=STATUS_PUSH)
            commands.append(UpdateQueue(number, None, topic, _QUEUE, changes))
        return [*commands, *self._end("the channels are made")]

    def _end(self, reason: str) -> Sequence[Command]:
        self.closed = True
        self.close_reason = reason
        if not self._connected:
            return ()
        self._connected = False
        return [Disconnect(self._number)]

    def deliver(self, data: bytes) -> None:
        """Nothing: the session does not join channels."""

    def held_bytes(self) -> int:
        """The size of the received part of the answer."""
        return len(self._answer)

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data, self._out = self._out, b""
        self.outbound_bytes = 0
        return data


@final
class AskDoor(QueuesOnly):
    """Opens the session of one request."""

    def __init__(self, topic: bytes, shapes: TopicShapes, new_id: IdSource) -> None:
        super().__init__()
        self.name = _NAME
        self._topic = topic
        self._shapes = shapes
        self._new_id = new_id

    def open(self, session: int, now: float) -> AskSession:
        """Open a session for a new connection."""
        return AskSession(session, self._topic, self._shapes, self._new_id, now)
