"""``ModelBroker``: the commands of the engine, as the model carries them out.

Each method answers with the words the broker must say, in any order but the promised ones.
"""

from __future__ import annotations

from typing import cast

from tests.tmqp_server.engine.model.desk import Settings
from tests.tmqp_server.engine.model.routers import Routers
from tests.tmqp_server.engine.model.things import BROADCAST, Client, Letter, Line, Word
from tmqp.constants import PUT_BACK_START
from tmqp_server.engine import commands
from tmqp_server.engine.books import DEFERRAL_BYTES, MESSAGE_OVERHEAD_BYTES, listening_bytes
from tmqp_server.engine.events import event_name
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE
from tmqp_server.engine.records import Record, field_names

__all__ = ["ModelBroker"]

#: The words for refused pushes (F81 leaves them to the applications; ours name the code).
REASONS = {401: "unauthorized", 404: "not-found", 482: "limit-exceeded", 503: "busy"}
#: What a deferred message takes beside its own bytes.
DEFERRED_BYTES = MESSAGE_OVERHEAD_BYTES + DEFERRAL_BYTES
REASONS |= {400: "bad-request", 406: "unacceptable"}


def options_of(changes: Record | None) -> dict[str, object] | None:
    """Changes as a dict."""
    if changes is None:
        return None
    return {name: getattr(changes, name) for name in field_names(type(changes))}


class ModelBroker(Routers):
    """What a broker must do."""

    def __init__(
        self, settings: Settings | None = None, defaults: dict[str, object] | None = None
    ) -> None:
        super().__init__(settings or Settings())
        self.defaults = {**self.defaults, **(defaults or {})}
        self.orphans = []
        self.saves = {}
        self.ended = []
        self.routers = {}

    # --- Steps -----------------------------------------------------------------------------------

    def step(self, command: commands.Command, now: float) -> list[Word]:
        """Carry a command out, and everything that follows from it at once."""
        self.now = now
        self.said = []
        self.obey(command)
        self.follow()
        self.tell_receivers()
        self.serve_time()
        self.destroy_emptied()
        return self.said

    def pass_time(self, now: float) -> list[Word]:
        """Do what is due."""
        self.now = now
        self.said = []
        self.serve_time()
        self.destroy_emptied()
        return self.said

    def serve_time(self) -> None:
        """What is due in each queue, then what follows; an option may have made something due."""
        for line in self.lines():
            self.due(line)
        self.look_at_channels()
        self.follow()

    def follow(self) -> None:
        """What can go on goes on; pulls of queues that are gone end when they can be told."""
        self.settle_down()
        for pull in list(self.orphans):
            if not pull.client.alive or not pull.client.blocked:
                self.orphans.remove(pull)
            if pull.client.alive and not pull.client.blocked:
                word = "End" if pull.sent else "Empty"
                self.say("end", pull.client.number, pull.request, word)

    def obey(self, command: commands.Command) -> None:
        """One command."""
        if isinstance(command, commands.Connect):
            names = (command.client_id, command.name, command.client_type)
            self.connect(command.session, command.request, *names, command.take_over)
            if command.session in self.clients:
                self.clients[command.session].hears = command.hears_lapses
            return
        if isinstance(command, commands.Synced):
            raise TypeError("the model is told of the storage by ``synced``")
        assert isinstance(command, commands.SessionCommand)
        client = self.clients.get(command.session)
        if client is not None:
            self.serve(command, client)

    def serve(self, command: commands.SessionCommand, client: Client) -> None:
        """One command of a client that is connected: connections, then what has a request."""
        if isinstance(command, commands.Disconnect):
            self.disconnect(client)
        elif isinstance(command, commands.Block):
            client.blocked = True
        elif isinstance(command, commands.Unblock):
            client.blocked = False
        elif isinstance(command, commands.Grant):
            self.grant(client, command.channel, command.credit)
        elif isinstance(command, commands.Push):
            self.push(client, command)
        elif isinstance(command, commands.Acknowledge):
            self.acknowledge(client, command)
        elif isinstance(command, commands.Release):
            self.give_back(client, command)
        elif isinstance(command, commands.Browse):
            self.browse(client, command)
        elif isinstance(command, commands.SendDirect):
            self.send_direct(client, command)
        elif isinstance(command, commands.PassAnswer):
            self.pass_answer(
                command.client_id, command.message_id, client.number, command.kind, command.wire
            )
        elif isinstance(command, commands.SubscribeEvent):
            self.subscribe(client, command)
        elif isinstance(command, commands.Publish):
            self.publish(client, command)
        elif not self.operate_on_routers(command, client):
            self.operate(command, client)

    def operate(self, command: commands.SessionCommand, client: Client) -> None:
        """An operation on a channel or queue."""
        given = {name: getattr(command, name) for name in field_names(type(command))}
        del given["session"]
        request = given.pop("request")
        name = given.pop("channel")
        if "changes" in given:
            given["changes"] = options_of(cast("Record | None", given["changes"]))
        if isinstance(command, commands.CreateQueue):
            self.create_queue(client, request, name, given["queue_id"], given["changes"])
        elif isinstance(command, commands.UpdateQueue):
            self.update_queue(client, request, name, given["queue_id"], given["changes"] or {})
        elif isinstance(command, commands.ClearMessages):
            which = (command.high_priority, command.regular, command.in_flight)
            self.clear_messages(client, request, name, command.queue_id, *which)
        elif isinstance(command, commands.CancelMessage):
            self.cancel_message(client, request, name, command.queue_id, command.message_id)
        elif isinstance(command, commands.RemoveMessage):
            self.remove_message(client, request, name, command.queue_id, command.message_id)
        elif isinstance(command, commands.RemoveQueue):
            self.remove_queue(client, request, name, command.queue_id)
        elif isinstance(command, commands.DescribeQueue):
            self.describe_queue(client, request, name, command.queue_id)
        elif isinstance(command, commands.DescribeChannel):
            self.describe_channel(client, request, name)
        elif isinstance(command, commands.CreateChannel):
            self.create_channel(client, request, name, given["changes"])
        elif isinstance(command, commands.RemoveChannel):
            self.remove_channel(client, request, name)
        elif isinstance(command, commands.Join):
            joined = self.join(client, request, name, command.credit, command.terms)
            client.hears = client.hears or (joined and command.hears_lapses)
        elif isinstance(command, commands.SetTerms):
            self.set_terms(client, request, name, command.terms)
        elif isinstance(command, commands.Extend):
            place = (name, command.queue_id)
            self.extend(client, request, place, command.message_id, command.timeout_ms)
        elif isinstance(command, commands.Leave):
            self.leave(client, request, name)
        else:
            assert isinstance(command, commands.Pull), command
            self.pull(client, request, name, **given)

    # --- Messages --------------------------------------------------------------------------------

    def push(self, client: Client, command: commands.Push) -> None:
        """F74, F75."""
        extras = command.extras
        line = self.line(command.channel, command.queue_id)
        code = 0
        if line is None:
            changes = None if extras is None else options_of(extras.changes)
            code = self.make_line(command.channel, command.queue_id, changes)
            line = self.line(command.channel, command.queue_id)
        if line is not None:
            later = extras is not None and extras.delay_ms > 0
            code = self.make_room(line, command.size, later)
            if later and not code and not self.has_room(command.size + DEFERRED_BYTES):
                code = 503
            if code:
                line.counts["refused"] += 1
        letter = self.letter_of(client, command, line)
        if code or line is None:
            self.refuse(letter, code, extras is not None and extras.silent)
        else:
            delay_s = 0.0 if extras is None else extras.delay_ms / 1_000
            if extras is not None and extras.counts_receivers:
                letter.receivers = 0
                self.counting = letter
            self.take_in(line, letter, delay_s)

    def tell_receivers(self) -> None:
        """Most producers are told before their message is sent: complete what they are told."""
        letter, self.counting = self.counting, None
        if letter is None:
            return
        if letter.promise:
            letter.promise = (*letter.promise[:-1], letter.receivers)
        for at, word in enumerate(self.said):
            if word[:3] == ("confirm", letter.producer.number, letter.message_id):
                self.said[at] = (*word[:-1], letter.receivers)

    def letter_of(self, client: Client, command: commands.Push, line: Line | None) -> Letter:
        """The message that is pushed."""
        extras = command.extras
        wait_ms = 0 if extras is None else extras.expires_in_ms
        if line is None or line.options["status"] == BROADCAST:
            wait_ms = 0  # F97
        elif not wait_ms:
            wait_ms = line.amount("message_timeout_ms")
        names = (command.message_id, client, command.channel, command.queue_id)
        flags = (command.high_priority, command.wants_confirm, command.size, command.wire)
        letter = Letter(*names, *flags, 0)
        if wait_ms:
            letter.expires = self.now + wait_ms / 1_000
        return letter

    def refuse(self, letter: Letter, code: int, silent: bool) -> None:
        """A push that fails is answered twice (contradiction 22)."""
        if silent:
            return
        self.reply(letter.producer, letter.wire, code)
        if letter.wants:
            word = (letter.message_id, letter.spelling, letter.queue_id, False, REASONS[code])
            self.say("confirm", letter.producer.number, *word, True, "", None, -1)

    def acknowledge(self, client: Client, command: commands.Acknowledge) -> None:
        """F95, F116."""
        if self.channel(command.channel) is None:
            answer = (command.channel, command.message_id, client.number)
            kind = ASKS_ACKNOWLEDGE
            if command.wire is None or not self.pass_answer(*answer, kind, command.wire):
                client.unknown_acks += 1
            return
        line = self.line(command.channel, command.queue_id)
        letters = [] if line is None else line.flights
        for letter in letters:
            if letter.message_id == command.message_id and client in letter.holders:
                assert line is not None
                said = (command.positive, command.reason, command.wire)
                self.answer(line, letter, client, *said)
                return
        client.unknown_acks += 1
        if line is not None:
            line.counts["unknown_acks"] += 1
            line.counts["acks" if command.positive else "negative_acks"] += 1

    def extend(
        self,
        client: Client,
        request: object,
        place: tuple[str, int],
        message_id: str,
        timeout_ms: int,
    ) -> None:
        """A consumer wants another time to answer."""
        line = self.line(*place)
        letters = [] if line is None else line.flights
        known = [letter for letter in letters if letter.message_id == message_id]
        own = [letter for letter in known if client in letter.holders]
        code = 0 if own else 403 if known else 404
        if timeout_ms < 1 or timeout_ms > self.settings.acknowledge_timeout_ms:
            code = 400 if timeout_ms < 1 else 482
        elif own:
            own[0].dues[client] = self.now + timeout_ms / 1_000
        else:
            client.unknown_acks += line is not None
            if line is not None:
                line.counts["unknown_acks"] += 1
        self.reply(client, request, code)

    def give_back(self, client: Client, command: commands.Release) -> None:
        """A consumer gives a message back; it is told when it has none of that id."""
        line = self.line(command.channel, command.queue_id)
        letters = [] if line is None else line.flights
        known = [letter for letter in letters if letter.message_id == command.message_id]
        for letter in known:
            if client in letter.holders:
                assert line is not None
                where = "start" if command.put_back == PUT_BACK_START else "end"
                self.hand_back(
                    line, letter, client, where, command.delay_ms / 1_000, command.counted
                )
                return
        client.unknown_acks += 1
        if line is not None:
            line.counts["unknown_acks"] += 1
        if command.request is not None:
            self.reply(client, command.request, 403 if known else 404)

    def synced(self, ticket: str, ok: bool, now: float) -> list[Word]:
        """The storage has answered (rule 1)."""
        self.now = now
        self.said = []
        self.release(*self.saves.pop(ticket), ok)
        return self.said

    def release(self, letter: Letter, line: Line, ok: bool) -> None:
        """A message is safe, or cannot be saved."""
        letter.saving = False
        line.counts["saved_messages"] += ok and not letter.saved
        ok = ok or letter.saved  # an older copy is there still
        letter.saved = ok
        letter.ticket = letter.ticket if ok else ""
        if letter.untold:
            letter.untold = False
            self.tell_letter(line, letter)
        if letter.promise and letter.producer.alive:
            word = (
                letter.promise if ok else (*letter.promise[:3], False, "error", *letter.promise[5:])
            )
            self.say("confirm", letter.producer.number, *word)
        letter.promise = ()

    # --- Events ----------------------------------------------------------------------------------

    def subscribe(self, client: Client, command: commands.SubscribeEvent) -> None:
        """F127, F128."""
        event = event_name(command.event)
        of_server = event in {
            "ClientConnected",
            "ClientDisconnected",
            "ChannelCreated",
            "ChannelRemoved",
        }
        of_queue = event == "MessageProduced"
        key = "" if of_server else command.channel.lower()
        queue_id = command.queue_id if of_queue else None
        missing = not of_server and key not in self.channels
        if of_queue and not missing:
            missing = queue_id not in self.channels[key].queues
        if not missing:
            spellings = self.listeners.setdefault((event, key, queue_id), {})
            spelling = "" if of_server else command.channel
            size = listening_bytes(spelling)
            if command.wanted and client.number not in spellings and not self.has_room(size):
                self.reply(client, command.request, 503)
                return
            if command.wanted:
                spellings[client.number] = "" if of_server else command.channel
            else:
                spellings.pop(client.number, None)
        self.reply(client, command.request, 1 if missing else 0)
