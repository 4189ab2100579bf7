"""The native door: turns TMQP messages into commands, and effects into TMQP messages.

Theory of operation.  A :class:`NativeSession` drives one :class:`tmqp.Connection`; each of its
events becomes commands, chosen by the event's type.  A command that can be answered carries the
request's frame as its token, so an answer knows its id and flags.  A pushed frame travels through
the engine as the message's ``wire``, and :meth:`NativeDoor.encode_delivery` rewrites only its first
two bytes; the frame is rebuilt only if a name or a header must be hidden or changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tmqp.connection import Connection
from tmqp.constants import (
    OP_DECISION_OVER_NODE,
    TYPE_DIRECT_MESSAGE,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
)
from tmqp.errors import RemoteProtocolError
from tmqp.events import (
    AcknowledgeReceived,
    ConnectionClosed,
    CustomMessageReceived,
    DirectMessageReceived,
    Event,
    EventSubscriptionReceived,
    HandshakeReceived,
    PullRequestReceived,
    QueueMessageReceived,
    ResponseReceived,
    RouterMessageReceived,
    RunReceived,
    ServerMessageReceived,
)
from tmqp.extensions import HEADER_PUT_BACK
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp.names import EXACT_MARK
from tmqp.runs import FrameRun
from tmqp.state import Role
from tmqp_server.doors.answers import RunChoice
from tmqp_server.doors.bodies import KeptFrames
from tmqp_server.doors.letter import Letter
from tmqp_server.doors.letter_frames import letter_of_frame
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.native.answering import AnsweringSession
from tmqp_server.doors.native.answers import ConfirmWriter, forwarded, lapsed_frame
from tmqp_server.doors.native.clients import (
    answer_command,
    connect_command,
    direct_command,
    publish_command,
    subscription_command,
)
from tmqp_server.doors.native.copies import add_copies, copy_addresses
from tmqp_server.doors.native.filters import FILTERED
from tmqp_server.doors.native.information import event_frame
from tmqp_server.doors.native.nodes import decision_of, passed_on
from tmqp_server.doors.native.operations import PUSH_HEADERS, command_of, push_extras
from tmqp_server.doors.native.parameters import BadRequestError
from tmqp_server.doors.native.pulls import (
    end_of_pull,
    problem_of_id,
    pull_of,
)
from tmqp_server.doors.native.rewriting import without_ours
from tmqp_server.doors.native.runs import NativeRun, run_bytes, run_command
from tmqp_server.doors.native.terms import release_of
from tmqp_server.doors.native.transactions import (
    TRANSACTION_OPERATIONS,
    transaction_command,
    unpacked,
)
from tmqp_server.doors.port import Door, IdSource
from tmqp_server.doors.rewriting import exact_target, without_exact_name
from tmqp_server.doors.selecting import read_by
from tmqp_server.engine.commands import (
    Acknowledge,
    Command,
    Decline,
    Disconnect,
    ListCommand,
    Push,
    PushExtras,
    ReadIndex,
    ReadRange,
    SendCustom,
)
from tmqp_server.engine.effects import (
    Accept,
    AnswerPull,
    AnswerRouted,
    CloseSession,
    Confirm,
    ConfirmRun,
    Deliver,
    DeliverPulled,
    DeliverRun,
    Effect,
    EndPull,
    EventsEnded,
    Forward,
    ForwardRun,
    Inform,
    Lapsed,
    Left,
    Refuse,
    Reply,
)
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE

__all__ = ["NativeDoor", "NativeSession"]

_NOTHING: tuple[Command, ...] = ()
#: Bytes of connection information without properties and token, and of each property.
_HELLO_BYTES = 2_048
_PROPERTY_BYTES = 256
#: Bytes of a JSON body that are read for one unit of work.
_BODY_BYTES_PER_UNIT = 16


class NativeDoor(Door):
    """TMQP/2.0.

    :param new_id: makes ids for messages and clients without one (F30, F41).
    :param limits: the limits of one peer.
    :param wall_clock_offset_s: seconds to add to the engine's time for Unix time.
    :param letters: reads messages that arrived through doors of other protocols.
    """

    name = "tmqp"
    number = 1

    def __init__(
        self,
        new_id: IdSource,
        limits: Limits,
        wall_clock_offset_s: float = 0.0,
        letters: Letters | None = None,
    ) -> None:
        self.letters = Letters() if letters is None else letters
        self.new_id = new_id
        self.limits = limits
        self.wall_clock_offset_s = wall_clock_offset_s
        self.confirms = ConfirmWriter()
        self._kept = KeptFrames()

    def open(self, session: int, now: float) -> NativeSession:
        """Open a session for a new connection."""
        return NativeSession(self, session, now)

    def encode_delivery(self, effect: Deliver) -> bytes:
        """The bytes of a delivery: the received frame with other flags and time to live, or, for
        another door's message, the frame of its letter."""
        message = effect.message
        frame = message.wire
        if not isinstance(frame, Frame):
            frame = self.letters.frame_of(message, effect.channel)
        ttl = frame.ttl - 1  # one hop less than received, however often it is sent (F11, F12)
        if frame.has_header:
            frame = without_ours(frame, is_dead_letter=message.is_dead_letter)
        if effect.hide_source or message.readdressed:
            frame = frame.replace(
                source="" if effect.hide_source else None,
                target=message.channel if message.readdressed else None,
                content_type=message.queue_id if message.readdressed else None,
            )
        return frame.forwarded(effect.first_acquirer, effect.wants_acknowledge, ttl)

    def encode_run(self, effect: DeliverRun) -> bytes:
        """The bytes of a run's deliveries: the received frames with other flags and time to live,
        or with the address of copies."""
        wire = effect.run.wire
        if effect.run.copied or not isinstance(wire, NativeRun):
            return b"".join([self.encode_delivery(each) for each in effect.deliveries()])
        return run_bytes(effect, wire)

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        """The frame as it was received."""
        frame = message.wire
        assert isinstance(frame, Frame), "this door keeps what it received"
        size = frame.payload_size
        return frame.raw, len(frame.raw) - size, size

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        """The staged frames as from :meth:`stored`, each with whether it has high priority.

        :raises ValueError: when the bytes are not whole frames.
        """
        return unpacked(data)

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        """Decode a stored frame; see ``Door.restored``.

        :raises ValueError: when the bytes are not one frame.
        """
        return self._kept.restored(body)

    def letter(self, wire: object) -> Letter:
        """The letter of a frame."""
        assert isinstance(wire, Frame), "this door receives frames"
        return letter_of_frame(wire)

    def encode_forward(self, effect: Forward) -> bytes:
        """The bytes of another client's message: those received, with one hop less to live
        (F114)."""
        return forwarded(self.letters.frame_forwarded(effect))

    def encode_forward_run(self, effect: ForwardRun) -> bytes:
        """The bytes of consecutive messages; in one piece if the other client also speaks TMQP."""
        wire = effect.wire
        if isinstance(wire, NativeRun):
            return wire.frames.passed_on(effect.start, effect.stop)
        return super().encode_forward_run(effect)

    def encode_for_node(self, command: Command) -> bytes | None:
        """A client's message for another server, with one hop less to live (F133)."""
        return passed_on(command)

    def encode_event(self, effect: Inform) -> bytes:
        """The bytes of an event (F129)."""
        return event_frame(effect).raw


class NativeSession(AnsweringSession):
    """One TMQP connection."""

    def __init__(self, door: NativeDoor, number: int, now: float) -> None:
        super().__init__(
            Connection(Role.SERVER, door.limits, now=now), door.wall_clock_offset_s, door.letters
        )
        self._door = door
        self._number = number
        self._connected = False
        self._now = now
        self._forged = False
        #: The peer is a slave of this server (F133).
        self._node = False
        self._runs = RunChoice()

    # -- bytes and time in ----------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        runs = self._runs
        if runs.is_limited():
            self._connection.makes_runs = not runs.begin_chunk()
            self._connection.mix_runs(runs.unmixed_for == 0)
        return self._commands(self._connection.receive(data, now), now)

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer will send no more."""
        return self._commands(self._connection.receive_eof(now), now)

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, announcing it (F40)."""
        self.close_reason = self.close_reason or reason
        return self._commands(self._connection.close(), now)

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send a ping, or give up the peer."""
        return self._commands(self._connection.on_deadline(now), now)

    def held_bytes(self) -> int:
        """Bytes of incomplete input, and of the connection information until the broker has
        decided."""
        held = self._connection.buffered
        who = self._connection.information
        if who is not None:
            held += _HELLO_BYTES + 2 * len(who.token)
            for key, value in who.properties.items():
                held += _PROPERTY_BYTES + 2 * (len(key) + len(value))
        return held

    def forget_hello(self) -> None:
        """Drop what was received from a client that will be refused."""
        self._connection.forget()
        self._connection.information = None

    # -- events to commands ---------------------------------------------------------------------

    def _commands(self, events: Sequence[Event], now: float) -> list[Command]:
        self._now = now
        commands: list[Command] = []
        if events and type(events[-1]) is ConnectionClosed:
            self.closed = True  # although messages stand before it, nothing can be sent any more
        for event in events:
            kind = type(event)
            if kind is QueueMessageReceived:
                assert isinstance(event, QueueMessageReceived)
                self._push(event.frame, commands)
            elif kind is AcknowledgeReceived:
                assert isinstance(event, AcknowledgeReceived)
                self._acknowledge(event.frame, commands)
            elif kind is RunReceived:
                assert isinstance(event, RunReceived)
                self._run(event.run, commands)
            elif kind is DirectMessageReceived:
                assert isinstance(event, DirectMessageReceived)
                self._direct(event.frame, commands)
            elif kind is ResponseReceived:
                assert isinstance(event, ResponseReceived)
                self._response(event.frame, commands)
            else:
                handle = _HANDLERS.get(kind)
                if handle is not None:
                    handle(self, event, commands)
            if self._forged:
                # After a forged source, nothing more is read, not even the rest of the chunk,
                # although it may contain the end of the connection.
                if not self.close_reason:
                    self._closed(events[-1], commands)
                break
        return commands

    def _own(self, frame: Frame, commands: list[Command]) -> Frame | None:
        """The frame with its sender's id as source; None if it was refused because it has another
        source (F42) or an invalid target.

        A node forwards messages of its clients with their ids (F133).
        """
        source = frame.source
        client_id = self._connection.client_id
        if frame.target.startswith(EXACT_MARK):
            self._refuse_name(frame)
            return None
        if source == client_id or (self._node and source):
            return frame
        if source:
            error = RemoteProtocolError(
                "source", "the source of a message must be the sender's own id"
            )
            commands.extend(self._commands(self._connection.reject(error), self._now))
            self._forged = True
            return None
        return frame.replace(source=client_id)

    def _push(self, frame: Frame, commands: list[Command]) -> None:
        own = self._own(frame, commands)
        if own is None:
            return
        message_id = own.message_id
        nameless: Frame | None = None
        if not message_id:
            # Nobody can wait for the answer to a message without an id (F41).
            nameless = own.replace(pending_response=False) if own.pending_response else own
            message_id = self._door.new_id()
            own = nameless.replace(message_id=message_id)
        extras = None
        copies = None
        if own.has_header:
            try:
                extras = push_extras(own, self._now + self._door.wall_clock_offset_s)
                # A node forwards the copies that it has made itself, because they must have the
                # same ids everywhere.
                copies = None if self._node else copy_addresses(own)
            except BadRequestError as error:
                self._refuse_push(own, error.code)
                return
        if nameless is not None:
            if extras is None:
                extras = PushExtras()
            extras.nameless = nameless  # whether it keeps its id its queue decides
        channel = exact_target(own) if self._node else own.target
        if self._node:
            own = without_exact_name(own)
        commands.append(
            Push(
                self._number,
                message_id,
                channel,
                own.content_type,
                own.high_priority,
                own.pending_acknowledge,
                len(own.raw),
                own,
                extras,
            )
        )
        if copies:
            add_copies(self._number, own, copies, self._door.new_id, commands, extras)

    def _run(self, run: FrameRun, commands: list[Command]) -> None:
        """Pass on a run as one command if its source is the sender's own id; else message by
        message."""
        first = run.first
        if first.source == self._connection.client_id and first.target[:1] != EXACT_MARK:
            commands.append(run_command(self._number, run, self._runs))
            return
        self._runs.divided = True
        kind = first.type
        for frame in run.frames():
            if kind == TYPE_QUEUE_MESSAGE:
                self._push(frame, commands)
            elif kind == TYPE_DIRECT_MESSAGE:
                self._direct(frame, commands)
            elif kind == TYPE_RESPONSE:
                self._response(frame, commands)
            else:
                self._acknowledge(frame, commands)
            if self._forged:
                return

    def _acknowledge(self, received: Frame, commands: list[Command]) -> None:
        frame = self._own(received, commands)
        if frame is None:
            return
        if frame.high_priority:  # marks the acknowledgement of a direct message (F116)
            commands.append(answer_command(self._number, frame, ASKS_ACKNOWLEDGE))
            return
        reason = frame.header("Nack-Reason") if frame.has_header else None
        if reason is not None and frame.header(HEADER_PUT_BACK) is not None:
            self._release(frame, commands)
            return
        commands.append(
            Acknowledge(
                self._number,
                frame.message_id,
                frame.target,
                frame.content_type,
                reason is None,
                reason or "",
                frame,
                len(frame.raw),
                frame if frame.pending_response else None,
            )
        )

    def _release(self, frame: Frame, commands: list[Command]) -> None:
        """Put back a delivery; if the request is invalid, the delivery remains in flight."""
        try:
            commands.append(release_of(self._number, frame))
        except BadRequestError as error:
            self._reply(frame, error.code, b"")

    def _handshake(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, HandshakeReceived)
        who = event.information
        client_id = who.client_id or self._door.new_id()
        commands.append(connect_command(self._number, who, client_id, self._door.name))

    def _operation(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, ServerMessageReceived)
        frame = self._own(event.frame, commands)
        if frame is None:
            return
        try:
            if frame.content_type == OP_DECISION_OVER_NODE and self._node:
                commands.append(decision_of(frame))
            elif frame.content_type in TRANSACTION_OPERATIONS:
                commands.append(self._transaction(frame))
            else:
                if frame.payload_size:
                    self.work += 1 + frame.payload_size // _BODY_BYTES_PER_UNIT
                command = command_of(self._number, frame)
                if type(command) is ReadRange or type(command) is ReadIndex:
                    assert isinstance(command, ReadRange)
                    # A client that has the same limit as this server, and does not give another,
                    # could not read a larger answer.
                    if not command.max_bytes:
                        command.max_bytes = self._door.limits.max_payload_bytes
                elif isinstance(command, ListCommand):
                    from tmqp_server.doors.native.listing import most_items  # noqa: PLC0415 - rare

                    most_bytes = self._door.limits.max_payload_bytes
                    command.most_items = most_items(type(command), most_bytes)
                elif isinstance(command, FILTERED):
                    read_by(command.filter, self._door.letters)
                commands.append(command)
        except BadRequestError as error:
            commands.append(Decline(self._number, frame, error.code, error.told))

    def _transaction(self, frame: Frame) -> Command:
        door = self._door
        client_id = self._connection.client_id
        unix_s = self._now + door.wall_clock_offset_s
        return transaction_command(
            self._number, frame, client_id, door.name, door.new_id, door.limits, unix_s
        )

    def _direct(self, received: Frame, commands: list[Command]) -> None:
        frame = self._own(received, commands)
        if frame is not None:
            commands.append(direct_command(self._number, frame, self._named(frame)))

    def _named(self, frame: Frame) -> Frame:
        """The frame with an id.  If it had none, no answer is wanted, because none could be matched
        (F41)."""
        if frame.message_id:
            return frame
        return frame.replace(message_id=self._door.new_id(), pending_response=False)

    def _response(self, received: Frame, commands: list[Command]) -> None:
        frame = self._own(received, commands)
        if frame is not None:
            commands.append(answer_command(self._number, frame, ASKS_RESPONSE))

    def _subscription(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, EventSubscriptionReceived)
        frame = self._own(event.frame, commands)
        if frame is None:
            return
        try:
            commands.append(subscription_command(self._number, frame))
        except BadRequestError as error:
            self._reply(frame, error.code, b"")

    def _custom(self, event: Event, commands: list[Command]) -> None:
        """A message for code that extends the server; its source is checked as in others (F17,
        F42)."""
        assert isinstance(event, CustomMessageReceived)
        frame = self._own(event.frame, commands)
        if frame is not None:
            commands.append(SendCustom(self._number, self._named(frame)))

    def _router(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, RouterMessageReceived)
        frame = self._own(event.frame, commands)
        if frame is not None:
            named = self._named(frame)
            commands.append(publish_command(self._number, frame, named, self._door.new_id))

    def _pull(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, PullRequestReceived)
        frame = self._own(event.frame, commands)
        if frame is None:
            return
        reason = problem_of_id(frame)
        if reason:
            self._send(end_of_pull(frame, reason).raw)
        else:
            commands.append(pull_of(self._number, frame))

    def _closed(self, event: Event, commands: list[Command]) -> None:
        assert isinstance(event, ConnectionClosed)
        error = self._connection.error
        if error is not None:
            self.violation = error.rule
        if not self.close_reason:
            self.close_reason = event.reason if error is None else f"{event.reason}: {error}"
        if self._connected:
            self._connected = False
            commands.append(Disconnect(self._number))

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return _NOTHING
        if self._node and self._answers_message(effect):
            return _NOTHING
        if isinstance(effect, Confirm):
            self._send(self._door.confirms.write(effect))
        elif isinstance(effect, ConfirmRun):
            self._send(self._door.confirms.write_run(effect))
        elif isinstance(effect, (DeliverPulled, EndPull, AnswerPull)):
            self._answer_pull(effect)
        elif isinstance(effect, Reply):
            self._answer(effect)
        elif isinstance(effect, AnswerRouted):
            self._answer_routed(effect)
        elif isinstance(effect, Accept):
            self._connected = True
            self._node = effect.node
            self._connection.information = None
            events = self._connection.accept(effect.client_id, self._door.new_id())
            # A node's messages are forwarded one by one, and so are early messages.
            self._connection.makes_runs = not effect.node
            self._connection.mix_runs(True)
            self._connection.read_headers(PUSH_HEADERS)
            return self._commands(events, now)
        elif isinstance(effect, Refuse):
            self._connection.information = None
            message_id = self._door.new_id()
            events = self._connection.refuse(effect.code, message_id, effect.address)
            return self._commands(events, now)
        elif isinstance(effect, Lapsed):
            self._send(lapsed_frame(effect))
        elif not isinstance(effect, (Left, EventsEnded)):  # TMQP has no words for these (F51)
            assert isinstance(effect, CloseSession), f"no session carries out {effect!r}"
            self._connected = False
            return self.close(effect.reason, now)
        return _NOTHING


_Handler = Callable[[NativeSession, Event, list[Command]], None]

_HANDLERS: dict[type[Event], _Handler] = {
    HandshakeReceived: NativeSession._handshake,
    ServerMessageReceived: NativeSession._operation,
    EventSubscriptionReceived: NativeSession._subscription,
    RouterMessageReceived: NativeSession._router,
    PullRequestReceived: NativeSession._pull,
    CustomMessageReceived: NativeSession._custom,
    ConnectionClosed: NativeSession._closed,
}
