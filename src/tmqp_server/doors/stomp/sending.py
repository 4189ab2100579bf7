"""SEND and transactions of a session of STOMP.

A transaction is kept here until it is committed as one batch: all of its messages and answers take
effect, or none does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_DUPLICATE, RESULT_OK
from tmqp_server.doors.bodies import bytes_around
from tmqp_server.doors.letter import REGULAR_PRIORITY, TOP_PRIORITY
from tmqp_server.doors.stomp.context import StompContext
from tmqp_server.doors.stomp.message import OF_DELIVERIES, QUEUE, StompMessage, number_of
from tmqp_server.doors.stomp.places import Place, places_of, seen_by_others
from tmqp_server.doors.stomp.writing import AskedFrame, FrameError, ReceiptSession, words_of
from tmqp_server.doors.waiting import NOTHING
from tmqp_server.engine.commands import Batch, Command, CreateQueue, Push, PushExtras
from tmqp_server.engine.effects import Confirm, Reply
from tmqp_wires.stomp import StompFrame
from tmqp_wires.stomp.frames import V1_2, header_lines

__all__ = ["ANSWER_BYTES", "MadeTemporary", "SendingSession", "StagedFrames"]

_DELAY: Final = "AMQ_SCHEDULED_DELAY"
#: Headers of SEND that are not kept.
_STRIPPED: Final = OF_DELIVERIES | {"receipt", "transaction", "JMSXUserID", _DELAY}
_SCHEDULED: Final = ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")
#: What an answer in a transaction counts, in bytes.
ANSWER_BYTES: Final = 200
_MOST_PLACES: Final = 1_000


@final
class MadeTemporary:
    """The token of the command that creates a temporary destination."""

    __slots__ = ("asked",)

    def __init__(self, asked: AskedFrame) -> None:
        self.asked = asked


@final
class StagedFrames:
    """An open transaction: its commands in order, and their size."""

    __slots__ = ("commands", "size")

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.size = 0


class SendingSession(ReceiptSession):
    """The part of a session that sends messages and keeps transactions."""

    def __init__(self, context: StompContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        self._places: dict[str, list[Place]] = {}
        self._temporary: set[str] = set()
        #: Of messages that are not confirmed: their frames.
        self._unconfirmed: dict[str, AskedFrame] = {}
        self._transactions: dict[str, StagedFrames] = {}
        self._transactions_bytes = 0
        self._measured = ""
        self._around = 0

    # -- destinations ---------------------------------------------------------------------------

    def _places_of(self, destination: str) -> list[Place]:
        """The places of a destination; usually one.

        :raises FrameError: when the destination is not supported.
        """
        found = self._places.get(destination)
        if found is None:
            try:
                found = places_of(destination, self._name, self._context.names)
            except ValueError as error:
                raise FrameError(str(error)) from None
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places[destination] = found
        return found

    def _make_own(self, place: Place, asked: AskedFrame, commands: list[Command]) -> None:
        """Create a temporary destination of the client, unless it was created.

        :raises FrameError: when the client has too many.
        """
        if not (place.is_temporary and place.own) or place.channel in self._temporary:
            return
        context = self._context
        if len(self._temporary) >= context.limits.max_temporary:
            most = context.limits.max_temporary
            raise FrameError(f"a connection has at most {most} temporary destinations")
        self._temporary.add(place.channel)
        commands.append(
            CreateQueue(
                self._number,
                MadeTemporary(asked),
                place.channel,
                QUEUE,
                context.shape(place),
                context.shapes.of_temporary,
            )
        )

    def _made(self, effect: Reply, made: MadeTemporary) -> Sequence[Command]:
        if effect.code in (RESULT_OK, RESULT_DUPLICATE):
            return NOTHING
        return self._fail(made.asked, words_of(effect.code))

    # -- SEND -----------------------------------------------------------------------------------

    def _send(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        destination = frame.get("destination")
        asked = self._asked(f"SEND to {destination[:64]!r}", frame)
        try:
            pushes = self._pushes_of(frame, destination, asked, commands, now)
        except FrameError as error:
            commands += self._fail(asked, str(error))
            return
        name = frame.find("transaction")
        if name is not None:
            transaction = self._transactions.get(name)
            if transaction is None:
                commands += self._fail(asked, f"there is no transaction {name[:64]!r}")
                return
            for push in pushes:
                if not self._add(transaction, push, push.size, asked, commands):
                    return
            commands += self._settle(asked)
        elif not pushes:
            commands += self._settle(asked)
        else:
            asked.left = len(pushes)
            for push in pushes:
                if asked.slot is not None:
                    push.wants_confirm = True
                    self._unconfirmed[push.message_id] = asked
                commands.append(push)

    def _pushes_of(
        self,
        frame: StompFrame,
        destination: str,
        asked: AskedFrame,
        commands: list[Command],
        now: float,
    ) -> list[Push]:
        """The pushes for a SEND, one for each place of its destination; none for a message that has
        already expired.

        :raises FrameError: when the message cannot be sent.
        """
        context = self._context
        places = self._places_of(destination)
        for place in places:
            if place.pattern:
                raise FrameError("a message cannot be sent to wildcards")
            self._make_own(place, asked, commands)
        kept, priority, expires_ms, delay_ms = self._headers_of(frame, asked, commands)
        came_ms = context.unix_ms(now)
        expires_in_ms = 0
        if expires_ms:
            expires_in_ms = expires_ms - came_ms
            if expires_in_ms <= 0:
                return []
        lines = header_lines(kept, V1_2)
        high = priority > REGULAR_PRIORITY
        pushes: list[Push] = []
        for place in places:
            wire = self._message_to(place.channel, came_ms, lines, frame.body)
            extras: PushExtras = context.extras(place, expires_in_ms, delay_ms)
            name, channel = wire.message_id, wire.channel
            pushes.append(
                Push(self._number, name, channel, QUEUE, high, False, wire.size, wire, extras)
            )
        return pushes

    def _message_to(self, channel: str, came_ms: int, lines: bytes, body: bytes) -> StompMessage:
        """The wire form of a message."""
        if channel != self._measured:
            self._measured = channel
            self._around = bytes_around(self._client_id, channel)
        return StompMessage(self._context.ids.new(), channel, came_ms, lines, body, self._around)

    def _headers_of(
        self, frame: StompFrame, asked: AskedFrame, commands: list[Command]
    ) -> tuple[list[tuple[str, str]], int, int, int]:
        """The headers to keep, the priority, the expiry in milliseconds since 1970 (0 for none),
        and the delay in milliseconds.

        :raises FrameError: for an invalid value.
        """
        kept: list[tuple[str, str]] = []
        priority = REGULAR_PRIORITY
        expires_ms = 0
        delay_ms = 0
        read: set[str] = set()
        for name, value in frame.headers:
            if name == _DELAY and name not in read:
                delay_ms = number_of(value)
                if delay_ms < 0:
                    raise FrameError(f"{_DELAY} is not a number of milliseconds: {value[:32]!r}")
            elif name in _STRIPPED:
                continue
            elif name in _SCHEDULED:
                raise FrameError(f"{name} is not served: a message is delayed once")
            elif name == "priority" and name not in read:
                priority = min(number_of(value), TOP_PRIORITY)
                if priority < 0:
                    raise FrameError(f"priority is a number from 0 to 9, not {value[:32]!r}")
                if priority != REGULAR_PRIORITY:
                    kept.append((name, str(priority)))
            elif name == "expires" and name not in read:
                expires_ms = number_of(value)
                if expires_ms < 0:
                    raise FrameError(f"expires is not a time in milliseconds: {value[:32]!r}")
                if expires_ms:
                    kept.append((name, str(expires_ms)))
            elif name == "reply-to" and name not in read:
                if value.startswith("/temp-"):
                    for place in self._places_of(value):
                        self._make_own(place, asked, commands)
                kept.append((name, seen_by_others(value, self._name)))
            else:
                kept.append((name, value))
            read.add(name)
        return kept, priority, expires_ms, delay_ms

    def _not_sent(self, wire: StompMessage, code: int) -> Sequence[Command]:
        """Report that a message was refused."""
        asked = self._unconfirmed.pop(wire.message_id, None)
        if asked is None:
            name = self._context.names.foreign_name(wire.channel).decode("utf-8", "replace")
            asked = AskedFrame(f"SEND to {name[:64]!r}", None, None)
        return self._fail(asked, words_of(code))

    def _confirmed(self, effect: Confirm) -> Sequence[Command]:
        asked = self._unconfirmed.pop(effect.message_id, None)
        if effect.positive or asked is None:
            return self._sent(asked)
        return self._fail(asked, f"not accepted: {effect.reason or 'refused'}")

    def _sent(self, asked: AskedFrame | None) -> Sequence[Command]:
        """Note that one destination of a SEND has its message; the last one completes the SEND."""
        if asked is not None:
            asked.left -= 1
            if asked.left > 0:
                return NOTHING
        return self._settle(asked)

    # -- transactions ---------------------------------------------------------------------------

    def _add(
        self,
        transaction: StagedFrames,
        command: Command,
        size: int,
        asked: AskedFrame,
        commands: list[Command],
    ) -> bool:
        """Add a command to a transaction; False, and the connection ends, if a limit is
        exceeded."""
        limits = self._context.limits
        transaction.commands.append(command)
        transaction.size += size
        self._transactions_bytes += size
        if len(transaction.commands) > limits.max_transaction_frames:
            most = limits.max_transaction_frames
            commands += self._fail(asked, f"a transaction has at most {most} frames")
            return False
        if self._transactions_bytes > limits.max_transaction_bytes:
            most = limits.max_transaction_bytes
            commands += self._fail(asked, f"transactions have at most {most} bytes")
            return False
        return True

    def _begin_transaction(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        name = frame.get("transaction")
        asked = self._asked(f"BEGIN of {name[:64]!r}", frame)
        most = self._context.limits.max_transactions
        if not name:
            commands += self._fail(asked, "the header transaction is missing")
        elif name in self._transactions:
            commands += self._fail(asked, "the transaction has begun already")
        elif len(self._transactions) >= most:
            commands += self._fail(asked, f"a connection has at most {most} open transactions")
        else:
            self._transactions[name] = StagedFrames()
            commands += self._settle(asked)

    def _take_transaction(self, name: str) -> StagedFrames | None:
        """Remove a transaction; None if it does not exist."""
        transaction = self._transactions.pop(name, None)
        if transaction is not None:
            self._transactions_bytes -= transaction.size
        return transaction

    def _commit(self, frame: StompFrame, commands: list[Command], now: float) -> None:
        name = frame.get("transaction")
        asked = self._asked(f"COMMIT of {name[:64]!r}", frame)
        transaction = self._take_transaction(name)
        if transaction is None:
            commands += self._fail(asked, "there is no such transaction")
            return
        try:
            parts = self._parts_of(name, transaction)
        except FrameError as error:
            commands += self._fail(asked, str(error))
            return
        if parts:
            commands.append(Batch(self._number, asked, parts))
        else:
            commands += self._settle(asked)

    def _parts_of(self, name: str, transaction: StagedFrames) -> list[Command]:
        """The commands of a transaction that is committed.

        :raises FrameError: when it cannot be committed.
        """
        return transaction.commands

    def held_bytes(self) -> int:
        """Bytes of an incomplete frame, of input that waits for the decision about the client, and
        of open transactions."""
        return self._stomp.held_bytes + super().held_bytes() + self._transactions_bytes
