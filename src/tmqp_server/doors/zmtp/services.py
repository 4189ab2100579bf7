"""Requests and replies: the roles of a session for REQ and DEALER, and for REP and ROUTER sockets.

Theory of operation.  A request is a message in the queue of a service.  Its envelope, the parts up
to the first empty one, is kept by the asking session.  A worker gets one request at a time (a
ROUTER socket several) with an envelope made here, which it sends back.  Its reply is sent to the
asking client as a direct message, and acknowledges the request.  If a worker disconnects, its
requests go to other workers: each is processed at least once.

A client of another protocol that consumes the queue replies with a direct message to the
``Reply-To`` of the request, with the request's id as ``Correlation-Id``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tmqp.constants import RESULT_BAD_REQUEST, RESULT_BUSY, RESULT_OK
from tmqp_server.doors.zmtp.context import ZmtpContext
from tmqp_server.doors.zmtp.message import QUEUE, ZmtpReply, ZmtpRequest, size_of
from tmqp_server.doors.zmtp.options import FIRST_FRAME
from tmqp_server.doors.zmtp.roles import (
    NamedSubscribingRole,
    PairRole,
    Peer,
    PublishingRole,
    PullRole,
    PushRole,
    SocketRole,
    SubscribingRole,
)
from tmqp_server.doors.zmtp.routing import Routes, Target
from tmqp_server.engine.commands import (
    BY_ID,
    Acknowledge,
    Command,
    CreateQueue,
    Join,
    Push,
    SendDirect,
)
from tmqp_server.engine.effects import Confirm, Deliver, Reply
from tmqp_wires.zmtp.events import PeerReady
from tmqp_wires.zmtp.frames import message_frames, more_frames, parts_of

__all__ = ["AskingRole", "WorkingRole", "role_of"]

_NOTHING: Final[Sequence[Command]] = ()
#: The envelope of a socket that has added none.
_NO_ENVELOPE: Final = more_frames((b"",))
#: The beginning of the one part of a reply that reports a failed request.
_ERROR: Final = b"TMQP-ERROR "
_TOKEN_BYTES: Final = 5
_FIRST_TOKEN: Final = 1 << 32


def _divided(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """The envelope of a message (its parts up to the first empty one), and the rest.  Without an
    empty part, there is no envelope."""
    parts = parts_of(raw)
    if b"" not in parts:
        return [], parts
    at = parts.index(b"") + 1
    return parts[:at], parts[at:]


class AskingRole(SocketRole):
    """A REQ or a DEALER socket: its messages are requests to a service.

    :param routes: finds the service, if each request names it.
    """

    def __init__(
        self,
        context: ZmtpContext,
        number: int,
        peer: Peer,
        channel: str,
        routes: Routes | None = None,
    ) -> None:
        super().__init__(context, number, peer, channel)
        self._routes = routes
        self._target = Target(channel, QUEUE)
        #: The envelopes of requests that were not replied to, by the ids of these.
        self._envelopes: dict[str, bytes] = {}

    def begin(self) -> Sequence[Command]:
        """Create the queue, unless each request names one."""
        if self._routes is not None:
            return _NOTHING
        changes = self._context.of_queue
        return [CreateQueue(self._number, None, self._channel, QUEUE, changes)]

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Push the requests."""
        context = self._context
        commands: list[Command] = []
        for raw, name in zip(raws, context.ids.several(len(raws)), strict=True):
            envelope, parts = _divided(raw)
            if not parts:
                continue  # PROBE_ROUTER: only there to be seen
            target: Target | None = self._target
            if self._routes is not None:
                target = self._routes.find(parts.pop(0))
                if target is None or not parts:
                    context.refused += 1
                    self._refuse(more_frames(envelope), RESULT_BAD_REQUEST)
                    continue
            assert target is not None, "without routes it is always the same"
            if len(self._envelopes) >= context.limits.max_open_requests:
                del self._envelopes[next(iter(self._envelopes))]
            self._envelopes[name] = more_frames(envelope)
            wire = ZmtpRequest(name, self.client_id, message_frames(parts))
            size = size_of(wire.raw)
            # It wants a confirm, to learn if a request could not be stored and is lost.
            commands.append(
                Push(
                    self._number,
                    name,
                    target.channel,
                    target.queue_id,
                    False,
                    True,
                    size,
                    wire,
                    context.waiting,
                )
            )
        return commands

    def hear(self, data: bytes) -> None:
        """Queue a reply with the envelope of its request.

        A reply that names no request is taken for one to the oldest.  A reply to an unknown
        request, because the socket has reconnected since, gets the usual envelope.
        """
        begin = 2 + int.from_bytes(data[:2], "big")
        asked = data[2:begin].decode("utf-8", "replace")
        envelopes = self._envelopes
        if not asked and envelopes:
            asked = next(iter(envelopes))
        self._peer.say(envelopes.pop(asked, _NO_ENVELOPE) + data[begin:])

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Nothing: the role has joined no channel."""

    def replied(self, effect: Reply) -> None:
        """Reply to a refused request, because its socket would wait forever."""
        super().replied(effect)
        request = effect.request
        if isinstance(request, ZmtpRequest) and effect.code != RESULT_OK:
            envelope = self._envelopes.pop(request.message_id, _NO_ENVELOPE)
            self._refuse(envelope, effect.code)

    def confirmed(self, effect: Confirm) -> None:
        """Reply to a request that was accepted and then lost as to a refused one."""
        envelope = None if effect.positive else self._envelopes.pop(effect.message_id, None)
        if envelope is not None:
            self._context.refused += 1
            self._refuse(envelope, RESULT_BUSY)

    def _refuse(self, envelope: bytes, code: int) -> None:
        """Queue an error as the reply to a request."""
        self._peer.say(envelope + message_frames((_ERROR + str(code).encode(),)))


class WorkingRole(SocketRole):
    """A REP or a ROUTER socket: it gets requests, and sends replies.

    :param window: the number of requests that it may have at a time.
    """

    def __init__(
        self, context: ZmtpContext, number: int, peer: Peer, channel: str, window: int
    ) -> None:
        super().__init__(context, number, peer, channel)
        self._window = window
        self._next = _FIRST_TOKEN
        #: By the token in the envelope: the request's id and queue, the client that asked, and the
        #: id that the reply must name.
        self._open: dict[bytes, tuple[str, int, str, str]] = {}

    def begin(self) -> Sequence[Command]:
        """Create the queue, and join it."""
        context = self._context
        terms = context.terms(self._window)
        channel = self._channel
        return [
            CreateQueue(self._number, None, channel, QUEUE, context.of_queue),
            Join(self._number, None, channel, terms=terms),
        ]

    def deliver(self, effect: Deliver, shared: bytes) -> None:
        """Queue a request with an envelope whose token identifies it."""
        message = effect.message
        wire = message.wire
        name = message.message_id
        who, asked = message.source, name
        if not isinstance(wire, ZmtpRequest):
            letter = self._context.letters.of(message)
            who = letter.reply_to or who
            asked = letter.correlation_id or name
        token = self._next.to_bytes(_TOKEN_BYTES, "big")
        self._next += 1
        if effect.wants_acknowledge:
            self._open[token] = (name, message.queue_id, who, asked)
        self._peer.say(more_frames((token, b"")) + shared)

    def take(self, raws: list[bytes]) -> Sequence[Command]:
        """Send each reply to the client that asked, and acknowledge its request."""
        commands: list[Command] = []
        for raw in raws:
            envelope, parts = _divided(raw)
            found = self._open.pop(envelope[0], None) if envelope else None
            if found is None:
                self._context.refused += 1  # to nothing that it has
                continue
            name, queue_id, who, asked = found
            wire = ZmtpReply(asked, message_frames(parts or (b"",)))
            commands.append(SendDirect(self._number, BY_ID, who, False, size_of(wire.raw), wire))
            commands.append(Acknowledge(self._number, name, self._channel, queue_id))
        return commands


def role_of(context: ZmtpContext, number: int, peer: Peer, ready: PeerReady) -> SocketRole:
    """The role for a peer, after its handshake.

    The channel is that of the option for its type, or the one that its metadata name as
    ``X-Channel``.  With ``route = "first-frame"``, sent messages and subscriptions name it.
    """
    kind = ready.socket_type
    options = context.options
    named = ready.properties.get("x-channel", b"").decode("utf-8", "replace")
    routes = Routes(context) if options.route == FIRST_FRAME else None
    if kind in ("PUSH", "PULL"):
        channel = context.channel(named or options.queue_channel)
        if kind == "PUSH":
            return PushRole(context, number, peer, channel, routes)
        return PullRole(context, number, peer, channel)
    if kind == "PAIR":
        return PairRole(context, number, peer, context.channel(options.pair_channel))
    if kind in ("PUB", "XPUB"):
        channel = context.channel(named or options.topic_channel)
        return PublishingRole(context, number, peer, channel, routes)
    if kind in ("SUB", "XSUB"):
        if routes is not None:
            return NamedSubscribingRole(context, number, peer, routes)
        channel = context.channel(named or options.topic_channel)
        return SubscribingRole(context, number, peer, channel)
    channel = context.channel(named or options.service_channel)
    if kind in ("REQ", "DEALER"):
        return AskingRole(context, number, peer, channel, routes)
    window = 1 if kind == "REP" else context.limits.high_water_mark
    return WorkingRole(context, number, peer, channel, window)
