"""One connection of Throttr: requests into commands, replies in their order, and pushes.

Theory of operation.  With the first request, the session asks the broker to accept the client;
further requests wait for the answer.  Requests are carried out in order, up to ``max_unanswered``
of them before the first is answered, but the requests after a list wait until the list is complete.
The client is not read while requests wait, so its memory is bounded, and none of its requests is
lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, final

from tmqp.constants import RESULT_LIMIT_EXCEEDED, RESULT_OK
from tmqp.greetings import FirstBytes
from tmqp_server.doors.ordered import Slot
from tmqp_server.doors.port import SYNTAX
from tmqp_server.doors.throttr.context import (
    EVERYBODY,
    ThrottrContext,
    to_ns,
)
from tmqp_server.doors.throttr.keys import cell_command, cell_reply
from tmqp_server.doors.throttr.listings import Listing, connection_of_client, subscribers
from tmqp_server.doors.throttr.message import QUEUE, FromOthers, ThrottrMessage
from tmqp_server.doors.throttr.writing import ThrottrWriter
from tmqp_server.doors.waiting import NOTHING
from tmqp_server.engine.commands import (
    BY_ID,
    CellPortion,
    CellSnapshot,
    Command,
    Decline,
    DescribeCell,
    DescribeChannel,
    Join,
    Leave,
    ListCells,
    ListClients,
    ListConsumers,
    Push,
    PushExtras,
    SendDirect,
)
from tmqp_server.engine.effects import Confirm, Effect, Left, Reply
from tmqp_wires.throttr import words
from tmqp_wires.throttr.replies import (
    info_reply,
    whoami_reply,
)
from tmqp_wires.throttr.requests import (
    Event,
    Request,
    RequestDecoder,
    Violation,
    inner_request,
)

__all__ = ["ThrottrSession"]

_REQUEST_BYTES: Final = 200
#: The keys or clients in a portion of a list.
_PORTION: Final = 250
#: A filter that matches no client: the list is requested only to check the right to it.
_NOBODY: Final = "@nobody"


@final
class _Asked:
    """The token of a command: the client's request, and the place of its reply, None for the door's
    own commands.

    ``failed`` says that a part of it has failed; ``listing`` is the list that it is for; ``size``
    is that of a published payload.
    """

    __slots__ = ("code", "failed", "key", "listing", "size", "slot")

    def __init__(self, code: int, key: bytes, slot: Slot | None) -> None:
        self.code = code
        self.key = key
        self.slot = slot
        self.size = 0
        self.failed = False
        self.listing: Listing | None = None


@final
class _First:
    """The token of the first of two commands of one request, which is answered only if it fails."""

    __slots__ = ("asked",)

    def __init__(self, asked: _Asked) -> None:
        self.asked = asked


@final
class _Seen:
    """The token of the command that finds out whether a channel of a list may be seen."""

    __slots__ = ("asked", "channel", "listing")

    def __init__(self, asked: _Asked, listing: Listing, channel: bytes) -> None:
        self.asked = asked
        self.listing = listing
        self.channel = channel


@final
class ThrottrSession(ThrottrWriter):
    """One connection.

    :param context: what all connections share.
    :param now: when it was opened, in seconds.
    """

    def __init__(self, context: ThrottrContext, number: int, now: float) -> None:
        super().__init__(context, number, now)
        most = context.limits.max_request_bytes
        self._decoder = RequestDecoder(context.dialect, context.width, most)
        self._first = FirstBytes()
        self._has_come = False
        self._pending: deque[Event] = deque()
        self._pending_bytes = 0
        #: The list that is being made; later requests wait.
        self._listing: _Asked | None = None
        #: Messages that were published and are not confirmed, by id.
        self._published: dict[str, _Asked] = {}
        #: Why the connection ends once all earlier requests are answered; empty if it does not.
        self._ending = ""

    def waits_for_replies(self) -> bool:
        """Whether requests wait, or the end of the connection."""
        return bool(self._pending or self._ending)

    # -- bytes in -------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> Sequence[Command]:
        """Turn bytes into commands."""
        if self.closed:
            return NOTHING
        self._first.take(data)
        self._client.read_bytes += len(data)
        self._context.now_ns = to_ns(now)
        self._context.read.add(len(data), self._context.now_ns)
        return self.take(self._decoder.receive(data), now)

    def fault_of(self, event: Event) -> str:
        """Answer an invalid request once, and end the connection, because it is unknown where the
        next request would begin."""
        if not isinstance(event, Violation):
            return ""
        self._finish(self._answers.open(), words.NO)
        return self._fault(event)

    def _fault(self, event: Violation) -> str:
        self.violation = SYNTAX
        return f"{self._first.sent()}: {event.text}"

    def text_bytes_of(self, event: Event) -> int:
        """The size of a request's key and value."""
        return len(event.key) + len(event.value) if isinstance(event, Request) else 0

    def forget_input(self) -> None:
        """Drop an incomplete request."""
        self._decoder.forget()

    def last_commands(self) -> list[Command]:
        """The commands of complete requests that still wait: they are carried out without a
        reply."""
        commands: list[Command] = []
        for event in self._pending:
            if isinstance(event, Request) and event.code <= words.PUBLISH:
                asked = _Asked(event.code, event.key, None)
                if event.code == words.PUBLISH:
                    self._publish(event, asked, commands)
                elif event.code <= words.GET:
                    command = cell_command(self._context, self._number, event, asked)
                    if command is not None:
                        commands.append(command)
        self._pending.clear()
        self._pending_bytes = 0
        return commands

    def end(self, reason: str) -> Sequence[Command]:
        """End the session, and remove the client."""
        if self._has_come:
            self._has_come = False
            self._context.go(self._client)
        return super().end(reason)

    def held_bytes(self) -> int:
        """Bytes of an incomplete request, and of requests that wait."""
        return self._decoder.held_bytes + self._pending_bytes + super().held_bytes()

    def commands_of(self, events: list[Event], now: float) -> Sequence[Command]:
        """The commands for requests."""
        commands: list[Command] = []
        if not self._has_come:
            self._come(now, commands)
        for event in events:
            self._pending.append(event)
            self._pending_bytes += _REQUEST_BYTES + self.text_bytes_of(event)
        self._go_on(now, commands)
        return commands

    def _come(self, now: float, commands: list[Command]) -> None:
        """Add the client; in the dialect 7.3, it is subscribed to two channels from the
        beginning."""
        context, client = self._context, self._client
        self._has_come = True
        client.client_id = self._client_id
        client.peer = self.peer
        context.come(client)
        if context.serves_publishers:
            context.subscribe(client, client.own_channel, now)
            self._subscribe(_Asked(words.SUBSCRIBE, EVERYBODY, None), commands)

    def _go_on(self, now: float, commands: list[Command]) -> None:
        """Carry out as many of the waiting requests as possible."""
        pending = self._pending
        most = self._context.limits.max_unanswered
        now_ns = to_ns(now)
        while pending and self._listing is None and len(self._answers) < most and not self.closed:
            event = pending.popleft()
            self._pending_bytes -= _REQUEST_BYTES + self.text_bytes_of(event)
            if isinstance(event, Violation):
                self._finish(self._answers.open(), words.NO)
                self._ending = self._fault(event)
            else:
                self._carry_out(event, now, now_ns, commands)
        if self._ending and not len(self._answers):
            commands.extend(self.end(self._ending))
        reads = not pending
        if reads != self.reads:
            self.reads = reads
            self.hurried = True

    def _carry_out(
        self, request: Request, now: float, now_ns: int, commands: list[Command]
    ) -> None:
        code = request.code
        self._context.count_request(self._client, code, now_ns)
        asked = _Asked(code, request.key, self._answers.open())
        if code <= words.GET:
            command = cell_command(self._context, self._number, request, asked)
            if command is None:
                self._finish(asked.slot, words.NO)
            else:
                commands.append(command)
        elif code == words.PUBLISH:
            self._publish(request, asked, commands)
        elif code == words.EVENT:
            self._finish(asked.slot, words.YES)
            inner = inner_request(request, self._context.width)
            if inner is None:
                self._finish(self._answers.open(), words.NO)
            else:
                self._carry_out(inner, now, now_ns, commands)
        else:
            self._look(asked, now, commands)

    # -- channels -------------------------------------------------------------------------------

    def _look(self, asked: _Asked, now: float, commands: list[Command]) -> None:
        """Carry out a request about subscriptions, connections or figures, or one for a list."""
        context, number = self._context, self._number
        code = asked.code
        if code == words.SUBSCRIBE:
            if context.serves_publishers and asked.key == self._client.own_channel:
                context.subscribe(self._client, asked.key, now)
                self._finish(asked.slot, words.YES)
            else:
                self._subscribe(asked, commands)
        elif code == words.UNSUBSCRIBE:
            self._unsubscribe(asked, commands)
        elif code == words.WHOAMI:
            self._finish(asked.slot, whoami_reply(self._client.identity))
        elif code == words.STAT:
            commands.append(DescribeCell(number, asked, context.space, asked.key))
        elif code == words.INFO:
            commands.append(ListCells(number, asked, context.space, 0, 0))
        elif code == words.CONNECTION:
            commands.append(ListClients(number, asked, _NOBODY))
        elif code == words.CHANNEL:
            commands.append(self._right_to_see(asked))
        else:
            asked.listing = Listing(context, code)
            self._listing = asked
            commands.extend(self._next_portion(asked, asked.listing, 0))

    def _channel_of(self, name: bytes) -> str:
        return self._context.names.exact_channel(name)

    def _is_own(self, name: bytes) -> bool:
        """Whether a channel is a connected client's own."""
        context = self._context
        if not context.serves_publishers or len(name) != 2 * words.ID_BYTES:
            return False
        try:
            return bytes.fromhex(name.decode("ascii")) in context.clients
        except ValueError:
            return False

    def _right_to_see(self, asked: _Asked) -> Command:
        """A command that succeeds only with the right to see the subscribers of a channel."""
        if self._is_own(asked.key):
            return ListClients(self._number, asked, _NOBODY)
        command = ListConsumers(self._number, asked, self._channel_of(asked.key))
        command.most_items = 1
        return command

    def _subscribe(self, asked: _Asked, commands: list[Command]) -> None:
        context = self._context
        channel = self._channel_of(asked.key)
        chosen = None if context.serves_publishers else FromOthers(self._client_id)
        commands.append(context.opening(self._number, channel))
        commands.append(Join(self._number, asked, channel, filter=chosen))

    def _unsubscribe(self, asked: _Asked, commands: list[Command]) -> None:
        context, client = self._context, self._client
        if context.serves_publishers and asked.key == client.own_channel:
            self._finish(asked.slot, words.YES if self._has_left(asked.key) else words.NO)
        else:
            # Earlier commands may not have been carried out yet, so the answer is not known.
            commands.append(Leave(self._number, asked, self._channel_of(asked.key)))

    def _has_left(self, name: bytes) -> bool:
        """Unsubscribe this client from a channel; False if it was not subscribed."""
        if name not in self._client.subscriptions:
            return False
        self._forget_channel(name)
        self._context.unsubscribe(self._client, name)
        return True

    def _publish(self, request: Request, asked: _Asked, commands: list[Command]) -> None:
        context, client = self._context, self._client
        name = request.key
        wire = ThrottrMessage(context.new_id(), self._client_id, name, request.value)
        if self._is_own(name):
            self._publish_to_one(wire, asked, commands)
            return
        channel = self._channel_of(name)
        if name not in client.subscriptions:
            commands.append(context.opening(self._number, channel))
        self._published[wire.message_id] = asked
        asked.size = len(wire.payload)
        client.published_bytes += asked.size
        extras = PushExtras(counts_receivers=True)
        commands.append(
            Push(
                self._number,
                wire.message_id,
                channel,
                QUEUE,
                False,
                True,
                wire.size,
                wire,
                extras,
            )
        )

    def _publish_to_one(self, wire: ThrottrMessage, asked: _Asked, commands: list[Command]) -> None:
        """Send a message to one client.  If the first command has not failed when the second is
        answered, the message was sent."""
        other = self._context.clients[bytes.fromhex(wire.channel.decode("ascii"))]
        if wire.channel not in other.subscriptions:
            self._finish(asked.slot, words.NO)
            return
        first = _First(asked)
        who, size = other.client_id, wire.size
        self._client.published_bytes += len(wire.payload)
        commands.append(SendDirect(self._number, BY_ID, who, False, size, wire, first))
        commands.append(Decline(self._number, asked, RESULT_OK))

    # -- listings -------------------------------------------------------------------------------

    def _next_portion(self, asked: _Asked, listing: Listing, following: int) -> list[Command]:
        """The commands for the next portion of a list."""
        number, space = self._number, self._context.space
        commands: list[Command] = []
        if asked.code == words.CHANNELS:
            for name in listing.take_channels(_PORTION):
                if not self._is_own(name):
                    about = _Seen(asked, listing, name)
                    commands.append(DescribeChannel(number, about, self._channel_of(name)))
        elif asked.code != words.CONNECTIONS:
            figures = asked.code == words.STATS
            commands.append(ListCells(number, asked, space, following, _PORTION, figures))
        if not commands:
            commands.append(ListClients(number, asked, _NOBODY))
        listing.waits_for = len(commands)
        return commands

    def _go_on_listing(self, asked: _Asked, listing: Listing, effect: Reply) -> Sequence[Command]:
        """Add a portion, or a part of one; returns the next commands."""
        body = effect.body
        is_ok = effect.code == RESULT_OK
        listing.waits_for -= 1
        # Only now, because earlier commands may have changed who is connected.
        if listing.begin():
            listing.shows_clients = is_ok
        following = 0
        if asked.code == words.CHANNELS:
            if not listing.waits_for:
                listing.add_channels(self._is_own)
                following = len(listing.channels)
        elif not is_ok:
            asked.failed = True
        elif asked.code == words.CONNECTIONS:
            listing.add_clients(_PORTION)
            following = len(listing.clients)
        else:
            assert isinstance(body, CellPortion), "that is what was asked for"
            if asked.code == words.STATS:
                listing.add_figures(body)
            else:
                listing.add_keys(body)
            following = body.following
        if listing.size > self._context.limits.max_listing_bytes:
            asked.failed = True
        if asked.failed or not following:
            return NOTHING
        return self._next_portion(asked, listing, following)

    # -- effects --------------------------------------------------------------------------------

    def apply(self, effect: Effect, now: float) -> Sequence[Command]:
        """Carry out an effect meant for this session."""
        if self.closed:
            return NOTHING
        self._context.now_ns = to_ns(now)
        decided = self.decided(effect, now)
        if decided is not None:
            return decided
        if isinstance(effect, Reply):
            request = effect.request
            if isinstance(request, _Seen):
                if effect.code == RESULT_OK:
                    request.listing.see(request.channel)
                request = request.asked
            if isinstance(request, _Asked):
                commands = self._replied(request, effect, now)
                if commands:
                    return commands
            elif isinstance(request, _First):
                request.asked.failed = True
        elif isinstance(effect, Confirm):
            asked = self._published.pop(effect.message_id, None)
            if asked is not None:
                self._confirmed(asked, effect)
        elif isinstance(effect, Left):
            name = self._context.names.foreign_name(effect.channel)
            self._forget_channel(name)
            self._context.unsubscribe(self._client, name)
        return self._more(now)

    def _confirmed(self, asked: _Asked, effect: Confirm) -> None:
        data = words.YES if effect.positive and effect.receivers > 0 else words.NO
        mine = self._client.subscriptions.get(asked.key)
        if mine is not None:
            mine.write_bytes += asked.size
        if self._context.serves_publishers and mine is not None:
            self._late.append((asked.slot, data))
        else:
            self._finish(asked.slot, data)

    def _more(self, now: float) -> Sequence[Command]:
        """Carry out waiting requests once all earlier ones are answered.  An answer may lead to
        further commands, which must precede those of later requests."""
        if len(self._answers):
            return NOTHING
        if self._ending:
            return self.end(self._ending)
        if not self._pending:
            return NOTHING
        commands: list[Command] = []
        self._go_on(now, commands)
        return commands

    def _replied(self, asked: _Asked, effect: Reply, now: float) -> Sequence[Command]:
        """Answer a request, or ask for the next portion of its reply."""
        code = asked.code
        is_ok = effect.code == RESULT_OK and not asked.failed
        listing = asked.listing
        if listing is not None:
            commands = self._go_on_listing(asked, listing, effect)
            if commands or listing.waits_for:
                return commands
            self._listing = None
            data = words.NO if asked.failed else listing.reply()
        elif isinstance(effect.body, CellSnapshot) and is_ok:
            data = cell_reply(self._context, code, effect.body)
        elif code == words.CHANNEL:
            may = effect.code in (RESULT_OK, RESULT_LIMIT_EXCEEDED)
            data = (subscribers(self._context, asked.key) if may else b"") or words.NO
        elif code == words.UNSUBSCRIBE:
            data = words.YES if self._has_left(asked.key) else words.NO
        elif not is_ok:
            data = words.NO
        elif code == words.INFO:
            assert isinstance(effect.body, CellPortion), "that is what was asked for"
            context = self._context
            data = info_reply(context.info(effect.body, now), context.version)
        elif code == words.CONNECTION:
            client = self._context.clients.get(asked.key)
            found = None if client is None else connection_of_client(self._context, client)
            data = words.NO if found is None else words.YES + found
        else:
            if code == words.SUBSCRIBE:
                self._context.subscribe(self._client, asked.key, now)
            data = words.YES
        self._finish(asked.slot, data)
        return NOTHING

    def written(self, now: float) -> Sequence[Command]:
        """Acknowledge the deliveries that the kernel has taken."""
        commands = self._acknowledges
        self._acknowledges = []
        commands.extend(self._more(now))
        return commands

    # -- time -----------------------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """None: the protocol has no timeouts."""
        return None

    def on_deadline(self, now: float) -> Sequence[Command]:
        """Nothing is ever due."""
        return NOTHING
