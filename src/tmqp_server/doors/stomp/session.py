"""One connection of STOMP: turns frames into commands, and effects into frames.

Theory of operation.  With CONNECT, the session asks the broker to accept the client; further frames
wait for the answer.  Then each frame is carried out when it arrives.  A frame is answered by a
receipt, if the client wants one, or by ERROR, after which the connection is closed, as STOMP
demands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from tmqp.constants import RESULT_BUSY
from tmqp.greetings import FirstBytes
from tmqp_server.doors.port import SERVER_STOPS, SYNTAX
from tmqp_server.doors.stomp.browsing import Browser
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import DOOR, StompMessage
from tmqp_server.doors.stomp.sending import MadeTemporary
from tmqp_server.doors.stomp.subscribing import Joined, Looked
from tmqp_server.doors.stomp.wildcards import ListedChannels, WildcardSession
from tmqp_server.doors.stomp.writing import AskedFrame, words_of
from tmqp_server.doors.waiting import NOTHING, STRANGER
from tmqp_server.engine.commands import Command, Connect, Credentials
from tmqp_server.engine.effects import (
    BranchClosed,
    CloseSession,
    Confirm,
    ConfirmRun,
    Effect,
    Lapsed,
    Left,
    Refuse,
    Reply,
)
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.codec import Event
from tmqp_wires.stomp.frames import Violation

__all__ = ["StompSession"]

_NEVER: Final = float("inf")
_SERVER: Final = "tmqp"


@final
class StompSession(WildcardSession):
    """One connection.

    :param context: what all connections share.
    """

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._first = FirstBytes()
        self._connect_due = now + context.limits.connect_s
        self._hello = StompFrame("")

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed or self._ending:
            return NOTHING
        self._first.take(data)
        return self.take(self._stomp.receive(data, now), now)

    def close(self, reason: str, now: float) -> Sequence[Command]:
        """Close from this side, with an ERROR that gives the reason.  There is no ERROR when the
        server stops, because clients reconnect only without one."""
        if reason == SERVER_STOPS:
            return self.end(reason)
        return [*self._fail(None, reason), *self.end(reason)]

    def fault_of(self, event: Event) -> str:
        """Why the connection ends, if the peer begins with anything but CONNECT, or with an
        unsupported version."""
        if not isinstance(event, Violation):
            return ""
        self._connect_due = _NEVER
        self.close_reason = f"{self._first.sent()}: {event.text}"
        self._fail(None, event.text, event.detail)
        return self.close_reason

    def begin(self, event: Event) -> None:
        """Note the client's CONNECT."""
        assert isinstance(event, StompFrame), "anything else is a fault"
        self._connect_due = _NEVER
        self._hello = event

    def introduction(self) -> Connect:
        """Ask the broker to accept the client, with its login, and with its client-id if it has
        one."""
        hello = self._hello
        self._chosen_id = hello.get("client-id")
        self._client_id = self.own_id()
        if self._chosen_id:
            name = self._context.names.channel_of(self._chosen_id.encode("utf-8", "replace"))
            self._client_id = f"jms:{name}"
        login, passcode = hello.find("login"), hello.find("passcode")
        credentials: Credentials | None = None
        if login is not None or passcode is not None:
            credentials = Credentials("password", passcode or "", login or "")
        return Connect(
            self._number,
            None,
            self._client_id,
            None,
            None,
            DOOR,
            credentials=credentials,
            hears_lapses=True,
        )

    def commands_of(self, events: list[Event], now: float) -> Sequence[Command]:
        """The commands for frames."""
        commands: list[Command] = []
        for event in events:
            if self.closed or self._ending:
                break
            if isinstance(event, Violation):
                self.violation = SYNTAX
                commands += self._fail(None, event.text, event.detail)
                continue
            handle = _HANDLERS.get(event.command)
            if handle is not None:
                handle(self, event, commands, now)
        return self._rows.joined(commands)

    def _connected(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        """Answer CONNECT, the first frame that is carried out once the client is accepted."""
        self._hello = StompFrame("")
        self._stomp.send_connected(now, [("server", _SERVER), ("session", self._name)])
        self.hurried = True

    def _disconnect(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        """Send the receipt after all earlier answers; then end the connection."""
        asked = self._asked("DISCONNECT", frame)
        self._begin_end("the client has disconnected")
        commands += self._settle(asked) or self._after_answer()

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return NOTHING
        if isinstance(effect, Refuse):
            self._refused(effect.code)
        elif isinstance(effect, CloseSession):
            # The broker has already removed the session.
            self._standing = STRANGER
            self._fail(None, effect.reason)
        decided = self.decided(effect, now)
        if decided is not None:
            return decided
        if isinstance(effect, Confirm):
            return self._confirmed(effect)
        if isinstance(effect, ConfirmRun):
            commands: list[Command] = []
            for confirm in effect.confirms():
                commands += self._confirmed(confirm)
            return commands
        if isinstance(effect, Reply):
            return self._replied(effect)
        if isinstance(effect, BranchClosed):
            asked = effect.request
            return self._settle(asked) if isinstance(asked, AskedFrame) else NOTHING
        if isinstance(effect, Lapsed):
            self._forget_lapsed(effect)
        if isinstance(effect, Left):
            return self._left(effect)
        return NOTHING

    def _refused(self, code: int) -> None:
        text = words_of(code)
        if code == RESULT_BUSY and self._chosen_id:
            text = f"the client-id {self._chosen_id[:64]!r} is in use"
        self._fail(AskedFrame("CONNECT", self._hello.find("receipt"), None), text)

    def _replied(self, effect: Reply) -> Sequence[Command]:
        request = effect.request
        if isinstance(request, StompMessage):
            return self._not_sent(request, effect.code)
        if isinstance(request, MadeTemporary):
            return self._made(effect, request)
        if isinstance(request, Joined):
            return self._subscribed(effect, request)
        if isinstance(request, Looked):
            return self._looked(effect, request)
        if isinstance(request, ListedChannels):
            return self._listed(effect, request)
        if isinstance(request, Browser):
            return self._browsed(effect, request)
        if isinstance(request, AskedFrame):
            if effect.code:
                return self._fail(request, f"nothing was done: {words_of(effect.code)}")
            return self._settle(request)
        return NOTHING

    # -- time -----------------------------------------------------------------------------------

    def excuse_silence(self, now: float) -> None:
        """Count the peer as heard now, because it was not read from."""
        self._stomp.excuse_silence(now)

    def next_deadline(self) -> float | None:
        """When CONNECT must have arrived, or a heart-beat is due."""
        if self.closed:
            return None
        due = self._stomp.next_deadline()
        if due is None or self._connect_due < due:
            due = self._connect_due
        return None if due == _NEVER else due

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Send a heart-beat, or give up the peer."""
        if self.closed:
            return NOTHING
        if now >= self._connect_due:
            self._connect_due = _NEVER
            return self.close("no CONNECT came in time", now)
        events = self._stomp.on_deadline(now)
        self.outbound_bytes += 1
        if events and isinstance(events[0], Violation):
            return self.close(events[0].text, now)
        return NOTHING


_Handler = Callable[[StompSession, StompFrame, list[Command], float], None]
_HANDLERS: Final[dict[str, _Handler]] = {
    "CONNECT": StompSession._connected,
    "STOMP": StompSession._connected,
    "SEND": StompSession._send,
    "SUBSCRIBE": StompSession._subscribe,
    "UNSUBSCRIBE": StompSession._unsubscribe,
    "ACK": StompSession._answer,
    "NACK": StompSession._answer,
    "BEGIN": StompSession._begin_transaction,
    "COMMIT": StompSession._commit,
    "ABORT": StompSession._abort,
    "DISCONNECT": StompSession._disconnect,
}
