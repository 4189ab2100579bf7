"""One connection of this server to a lookupd, as a pure session (N142).

The session identifies this server to the lookupd.  After the lookupd's answer, it asks the broker
for the existing channels, and for events about new and removed ones.  It registers each as the
topic or the channel that it is in NSQ.  Pings tell the lookupd that this server is alive.

The session is the server's own, so its rights are not checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_OK
from tmqp.hello import ConnectionInformation
from tmqp_server.doors.nsq_announce.links import Announcer
from tmqp_server.doors.nsq_world import NsqWorld
from tmqp_server.doors.port import DoorSession, IdSource, QueuesOnly
from tmqp_server.engine.commands import (
    Command,
    Connect,
    Disconnect,
    ListChannels,
    SubscribeEvent,
)
from tmqp_server.engine.effects import CloseSession, Effect, Inform, Refuse, Reply
from tmqp_server.engine.events import CHANNEL_CREATED, CHANNEL_REMOVED, ChannelFact
from tmqp_server.engine.model.snapshots import ChannelSnapshot
from tmqp_wires.nsq.lookup import MAGIC, PING, AnswerDecoder, announce, register, unregister

__all__ = ["DOOR_NAME", "AnnounceDoor", "AnnounceSession"]

DOOR_NAME: Final = "nsq-announce"
#: Seconds between two pings (N142).
_PING_INTERVAL_S: Final = 15.0
#: Seconds in which a lookupd answers.
_ANSWER_TIMEOUT_S: Final = 5.0

#: IDENTIFY was not sent yet; was sent; was answered.
_NEW: Final = 0
_ASKED: Final = 1
_KNOWN: Final = 2
#: Words of a REGISTER without a channel.
_TOPIC_ONLY: Final = 2


@final
class AnnounceSession(DoorSession):
    """One connection; see the module."""

    def __init__(
        self,
        number: int,
        world: NsqWorld,
        announcer: Announcer,
        new_id: IdSource,
        now: float,
    ) -> None:
        super().__init__()
        self.trusted = True
        #: Where the lookupd answers by HTTP; empty if it does not say so.
        self._http = ""
        self._number = number
        self._world = world
        self._announcer = announcer
        self._new_id = new_id
        self._decoder = AnswerDecoder()
        self._state = _NEW
        self._connected = False
        self._unanswered = 0
        self._out: list[bytes] = []
        #: When to send something, or to give up waiting for an answer.
        self._due = now
        self._answer_due = math.inf

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Read the lookupd's answers."""
        commands: list[Command] = []
        if self.closed:
            return commands
        for answer in self._decoder.feed(data):
            if answer.startswith(b"E_"):
                return self._end(f"the lookupd answered {answer[:200].decode('utf-8', 'replace')}")
            if not self._unanswered:
                return self._end("the lookupd sent an unexpected answer")
            self._unanswered -= 1
            self._answer_due = now + _ANSWER_TIMEOUT_S if self._unanswered else math.inf
            if self._state == _ASKED:
                self._state = _KNOWN
                self._announcer.accepted(self.peer)
                self._http = _http_address(answer)
                commands += self._ask()
        if self._decoder.error:
            return self._end(f"the lookupd sends {self._decoder.error}")
        return commands

    def _ask(self) -> list[Command]:
        """Ask the broker for all channels, and for events about changes."""
        number = self._number
        who = ConnectionInformation("", "", DOOR_NAME, "", {})
        self._connected = True
        return [
            Connect(number, None, self._new_id(), None, DOOR_NAME, DOOR_NAME, who),
            SubscribeEvent(number, None, CHANNEL_CREATED),
            SubscribeEvent(number, None, CHANNEL_REMOVED),
            ListChannels(number, self),
        ]

    def _registered(self, channel: str) -> bytes:
        names = self._world.names.of(channel)
        return b"" if names is None else register(*names)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The lookupd will send no more."""
        return () if self.closed else self._end("the lookupd closed the connection")

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side: the lookupd forgets what was registered."""
        return () if self.closed else self._end(reason)

    def next_deadline(self) -> float | None:
        """When :meth:`on_deadline` wants to be called."""
        return None if self.closed else min(self._due, self._answer_due)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send IDENTIFY or PING; give up a lookupd that does not answer."""
        if self.closed:
            return ()
        if now >= self._answer_due:
            return self._end(f"the lookupd did not answer for {_ANSWER_TIMEOUT_S:g} seconds")
        if now >= self._due:
            if self._state == _NEW:
                self._state = _ASKED
                self._send(MAGIC + announce(self._world.announced), 1)
            else:
                self._send(PING, 1)
            self._due = now + _PING_INTERVAL_S
            self._answer_due = min(self._answer_due, now + _ANSWER_TIMEOUT_S)
        return ()

    # -- the broker -----------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Register the channels that the broker reports."""
        if self.closed:
            return ()
        if isinstance(effect, (CloseSession, Refuse)):
            self._connected = False
            reason = effect.reason if isinstance(effect, CloseSession) else "the broker is full"
            return self._end(reason)
        if isinstance(effect, Reply) and effect.request is self:
            if effect.code != RESULT_OK:
                return self._end(f"the broker lists no channels: result {effect.code}")
            channels = effect.body
            assert isinstance(channels, list), "channels were asked for"
            for each in channels:
                assert isinstance(each, ChannelSnapshot), "channels were asked for"
                self._tell(self._registered(each.name))
            if self._unanswered:
                self._answer_due = min(self._answer_due, now + _ANSWER_TIMEOUT_S)
                self.hurried = True
        return ()

    def deliver(self, data: bytes) -> None:
        """Send the command that the door made from an event; ask about a new topic."""
        self._tell(data)
        words = data.split()
        if self._http and words[:1] == [b"REGISTER"] and len(words) == _TOPIC_ONLY:
            self._announcer.ask(self._http, words[1])

    def _tell(self, command: bytes) -> None:
        if command and not self.closed:
            self._send(command, 1)

    def _send(self, data: bytes, answers: int) -> None:
        self._out.append(data)
        self._unanswered += answers
        self.outbound_bytes += len(data)

    def _end(self, reason: str) -> Sequence[Command]:
        self.closed = True
        self.close_reason = self.close_reason or reason
        if not self._connected:
            return ()
        self._connected = False
        return [Disconnect(self._number)]

    def data_to_send(self) -> bytes:
        """Everything queued since the last call."""
        data = b"".join(self._out)
        self._out.clear()
        self.outbound_bytes = 0
        return data


def _http_address(answer: bytes) -> str:
    """The HTTP address of a lookupd, from its answer to IDENTIFY; empty if the answer has none."""
    try:
        given = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(given, dict):
        return ""
    host, port = given.get("broadcast_address"), given.get("http_port")
    if not isinstance(host, str) or not host or not isinstance(port, int) or not port:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@final
class AnnounceDoor(QueuesOnly):
    """Opens sessions for connections that this server makes itself.

    :param announcer: is notified which lookupds have answered.
    """

    def __init__(self, world: NsqWorld, announcer: Announcer, new_id: IdSource) -> None:
        super().__init__()
        self.name = DOOR_NAME
        self._world = world
        self._announcer = announcer
        self._new_id = new_id

    def open(self, session: int, now: float) -> AnnounceSession:
        """Open a session for a new connection."""
        return AnnounceSession(session, self._world, self._announcer, self._new_id, now)

    def encode_event(self, effect: Inform) -> bytes:
        """REGISTER for a new channel, UNREGISTER for one that was removed; the same for all
        lookupds."""
        fact = effect.fact
        names = self._world.names.of(fact.name) if isinstance(fact, ChannelFact) else None
        if names is None:
            return b""
        return register(*names) if effect.event == CHANNEL_CREATED else unregister(*names)
