"""A connection of the WebSocket subprotocol ``tmqp.json.v1``: one JSON object per text message.

The client has logged in with the request that opened the WebSocket.  ``json_requests.py`` has its
requests; it receives ``message``, ``confirm``, ``reply``, ``event``, ``left``, ``lapsed``,
``unfollowed`` and ``problem``.  A request without a ``ref`` is answered only if it fails, or is a
push that is confirmed.

The output has one line per message, because JSON needs no line ends: so deliveries that are shared
with other clients can be joined into one bytes object and separated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_FORBIDDEN, RESULT_NOT_FOUND, RESULT_OK
from tmqp.frames import Frame
from tmqp_server.doors.http.json_requests import (
    Behind,
    RefusedRequest,
    SocketRequest,
    push_of,
    read_request,
)
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import BadRequest, as_json
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.port import SERVER_STOPS, DoorSession, IdSource
from tmqp_server.engine.commands import Command, Disconnect, Join, Leave
from tmqp_server.engine.effects import (
    CloseSession,
    Confirm,
    ConfirmRun,
    Effect,
    EventsEnded,
    Lapsed,
    Left,
    Reply,
)
from tmqp_server.engine.events import event_name

__all__ = ["JsonSession", "line"]

_NOTHING: Final[tuple[Command, ...]] = ()

#: Close codes of the WebSocket.
_GOING_AWAY: Final = 1001
_POLICY: Final = 1008
_RESTARTS: Final = 1012

#: Details for result codes of the broker, unless there is a better one.
_WORDS: Final = {
    1: "this event needs a channel or a queue, or a right",
    400: "the broker does not accept the request",
    401: "you have no right to do this",
    404: "it does not exist",
    406: "its state does not allow this",
    481: "it already exists",
    482: "a limit is reached",
    503: "the server is busy, or cannot save",
}


def line(op: str, **members: object) -> bytes:
    """Encode a message to a client."""
    return as_json({"op": op, **members}) + b"\n"


@final
class JsonSession(DoorSession):
    """One connection.

    Attributes: ``close_code``, that of the WebSocket if the server closes it; ``unconfirmed``, the
    pushes that wait for their confirms, by message id.
    """

    def __init__(
        self, limits: HttpLimits, new_id: IdSource, letters: Letters, number: int, client_id: str
    ) -> None:
        super().__init__()
        self.close_code = 1000
        self.unconfirmed: dict[str, SocketRequest] = {}
        self._limits = limits
        self._new_id = new_id
        self._letters = letters
        self._number = number
        self._client_id = client_id
        #: The channels that it has joined or has asked to join, in lower case.
        self._joined: dict[str, None] = {}
        self._out: list[bytes] = []

    # -- what is asked --------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Carry out the request in a text message."""
        if self.closed:
            return _NOTHING
        try:
            request = read_request(data, self._number)
        except RefusedRequest as refused:
            self._complain(refused.op, refused.ref, 400, refused.detail)
            return _NOTHING
        try:
            return self._commands(request)
        except BadRequest as error:
            self._complain(request.operation.name, request.ref, error.status, error.detail)
            return _NOTHING

    def _commands(self, request: SocketRequest) -> Sequence[Command]:
        make = request.operation.make
        if make is None:
            return [self._push(request)]
        commands = make(request, self._letters)
        for command in commands:
            if isinstance(command, Join):
                self._note_join(command.channel)
            elif isinstance(command, Leave):
                self._joined.pop(command.channel.lower(), None)
        return commands

    def _note_join(self, channel: str) -> None:
        joined = self._joined
        most = self._limits.max_websocket_joins
        if channel.lower() not in joined and len(joined) >= most:
            raise BadRequest(429, f"a connection joins at most {most} channels: leave one")
        joined[channel.lower()] = None

    def _push(self, request: SocketRequest) -> Command:
        name = request.name("id") or self._new_id()
        confirms = request.flag("confirm", default=True)
        if confirms and name in self.unconfirmed:
            raise BadRequest(409, "a message with this id is not confirmed yet")
        push = push_of(request, request.place, name, self._client_id, confirms=confirms)
        if confirms:
            self.unconfirmed[name] = request
            self._look_at_pushes()
        return push

    def _look_at_pushes(self) -> None:
        """Pause reading while too many pushes wait for their confirms."""
        self.reads = len(self.unconfirmed) < self._limits.max_websocket_unconfirmed

    # -- what is answered -----------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Report an effect to the client."""
        if self.closed:
            return _NOTHING
        if isinstance(effect, Confirm):
            self._confirmed(effect)
        elif isinstance(effect, ConfirmRun):
            for each in effect.confirms():
                self._confirmed(each)
        elif isinstance(effect, Reply):
            self._replied(effect)
        elif isinstance(effect, Left):
            self._joined.pop(effect.channel.lower(), None)
            self._say(line("left", channel=effect.channel))
        elif isinstance(effect, Lapsed):
            self._say(
                line(
                    "lapsed",
                    channel=effect.channel,
                    queue=effect.queue_id,
                    id=effect.message_id,
                    reason=effect.reason,
                )
            )
        elif isinstance(effect, EventsEnded):
            event = event_name(effect.event)
            self._say(line("unfollowed", event=event, channel=effect.channel))
        elif isinstance(effect, CloseSession):
            self.close_code = _POLICY
            self._end(effect.reason)
        return _NOTHING

    def _confirmed(self, effect: Confirm) -> None:
        request = self.unconfirmed.pop(effect.message_id, None)
        if request is None:
            return  # it was refused, and the client knows
        self._look_at_pushes()
        if effect.positive:
            self._answer("confirm", request.ref, id=effect.message_id)
        else:
            words = f"the message was not accepted: {effect.reason}"
            self._complain("push", request.ref, 409, words, effect.message_id)

    def _replied(self, effect: Reply) -> None:
        """Handle the answer to a request, or the refusal of a push."""
        asked = effect.request
        code = effect.code
        if isinstance(asked, Frame):
            request = self.unconfirmed.pop(asked.message_id, None)
            self._look_at_pushes()
            ref = None if request is None else request.ref
            self._complain("push", ref, code, "", asked.message_id)
        elif isinstance(asked, Behind):
            if not asked.request.failed:
                self._answer("reply", asked.request.ref)
        elif isinstance(asked, SocketRequest):
            name = asked.operation.name
            if name == "unsubscribe":
                code = RESULT_OK  # whoever asks learns nothing about what is not there
            elif code == RESULT_FORBIDDEN:
                code = RESULT_NOT_FOUND  # nor that somebody else has a message
            if code != RESULT_OK:
                asked.failed = True
                if name == "join":
                    self._joined.pop(asked.name("channel").lower(), None)
                self._complain(name, asked.ref, code)
            elif asked.ref is not None:
                self._answer("reply", asked.ref)

    def _answer(self, op: str, ref: str | int | None, **more: object) -> None:
        named: dict[str, object] = {} if ref is None else {"ref": ref}
        self._say(line(op, **named, **more))

    def _complain(
        self, to: str, ref: str | int | None, code: int, detail: str = "", message_id: str = ""
    ) -> None:
        """Send a ``problem``."""
        said: dict[str, object] = {"code": code}
        if to:
            said["to"] = to
        if message_id:
            said["id"] = message_id
        said["detail"] = detail or _WORDS.get(code, "the broker refused it")
        self._answer("problem", ref, **said)

    def deliver(self, data: bytes) -> None:
        """Queue lines that the door has encoded."""
        if not self.closed:
            self._say(data)

    def _say(self, data: bytes) -> None:
        self._out.append(data)
        self.outbound_bytes += len(data)

    def data_to_send(self) -> bytes:
        """All lines since the last call."""
        data = b"".join(self._out)
        self._out.clear()
        self.outbound_bytes = 0
        return data

    # -- the end --------------------------------------------------------------------------------

    def receive_eof(self, now: float) -> Sequence[Command]:
        """The peer has disconnected: its unacknowledged messages are put back."""
        if self.closed:
            return _NOTHING
        self._end("the peer closed the connection")
        return [Disconnect(self._number)]

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side."""
        if self.closed:
            return _NOTHING
        self.close_code = _RESTARTS if reason == SERVER_STOPS else _GOING_AWAY
        self._end(reason)
        return [Disconnect(self._number)]

    def _end(self, reason: str) -> None:
        self.closed = True
        self.close_reason = reason
        self.unconfirmed.clear()
        self._joined.clear()

    def next_deadline(self) -> float | None:
        """None: the WebSocket around the session detects dead peers."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Nothing is ever due."""
        return _NOTHING
