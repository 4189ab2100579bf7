"""How the model serves operations on channels, queues, connections (F48-F64, F101, F102)."""

from __future__ import annotations

import math

from tests.tmqp_server.engine.model.delivering import Delivering
from tests.tmqp_server.engine.model.memory import channel_cost, line_cost
from tests.tmqp_server.engine.model.policies import POLICIES
from tests.tmqp_server.engine.model.things import (
    BROADCAST,
    CACHE,
    DEFAULTS,
    PULL,
    STOPPED,
    Asked,
    Channel,
    Client,
    Letter,
    Line,
    Member,
)
from tmqp_server.engine import books
from tmqp_server.engine.model.terms import Terms
from tmqp_server.engine.options import NOWHERE

__all__ = ["Operating"]

CHANNEL_DEFAULTS: dict[str, object] = {
    "allow_multiple_queues": True,
    "allowed_queues": None,
    "client_limit": 0,
    "queue_limit": 0,
    "destroy_when_empty": False,
    "lifetime": "",
    "idle_timeout_ms": 0,
    "owner_only": False,
    "single_consumer": False,
}
FORBIDDEN = "@ ;*"
#: What looking for a message takes for each that is there.
PLACE_BYTES = 8


def given(changes: dict[str, object] | None) -> dict[str, object]:
    """The options that are really given."""
    return {name: value for name, value in (changes or {}).items() if value is not None}


def changed(options: dict[str, object], changes: dict[str, object] | None) -> dict[str, object]:
    """Options of a queue after changes; where its dead letters go nowhere, it names no queue."""
    found = options | given(changes)
    if found["dead_letter"] == NOWHERE:
        found["dead_letter"] = None
    return found


class Operating(Delivering):
    """Creates, changes, removes; lets clients in and out."""

    defaults: dict[str, object] = DEFAULTS

    def reply(self, client: Client, request: object, code: int, body: object = None) -> None:
        """Answer an operation, if anybody waits for it (F44)."""
        if request is not None:
            self.say("reply", client.number, request, code, body)

    # --- Connections -----------------------------------------------------------------------------

    def connect(
        self,
        number: int,
        request: object,
        client_id: str,
        name: str | None,
        kind: str | None,
        take_over: bool,
    ) -> None:
        """Let a client in (F30-F36)."""
        old = self.by_id(client_id)
        if old is not None and not take_over:
            self.say("refuse", number, request, 503)
            return
        size = books.session_bytes(client_id, name, kind, None)
        full = len(self.clients) >= self.settings.sessions or not self.has_room_for_client(size)
        if old is None and full:
            self.say("refuse", number, request, 482)
            return
        if old is not None:
            self.disconnect(old)
            self.say("close", old.number)
        client = Client(number, client_id, name, kind)
        self.tell_client("ClientConnected", client)
        self.clients[number] = client
        self.say("accept", number, request, client_id)

    def disconnect(self, client: Client) -> None:
        """A client has gone; what it has in its hands stays there (F99, F102)."""
        client.alive = False
        del self.clients[client.number]
        self.forget_listeners(client.number)
        for line in self.lines():
            for pull in [pull for pull in line.pulls if pull.client is client]:
                self.drop_pull(pull)
        for channel in list(self.channels.values()):
            self.part(channel, client)
        for channel in list(self.channels.values()):
            if channel.owner is client:
                self.discard(channel)
        self.tell_client("ClientDisconnected", client)

    # --- Channels --------------------------------------------------------------------------------

    def new_channel(
        self, name: str, changes: dict[str, object] | None, creator: Client | None = None
    ) -> Channel | int:
        """Create a channel, or say why not (F47, F50, F64)."""
        options = {**CHANNEL_DEFAULTS, **self.defaults, **given(changes)}
        problem = self.problem_of_channel(name, options)
        if problem:
            return problem
        channel = self.channels[name.lower()] = Channel(name, options)
        if options["lifetime"] == "owner":
            channel.owner = creator
        channel.look_again(self.now)
        self.tell_channel("ChannelCreated", channel)
        return channel

    def problem_of_channel(self, name: str, options: dict[str, object]) -> int:
        """Why no channel of that name can be created (F47, F50, F64); 0 if one can."""
        if name.lower() in self.channels:
            return 481
        if not name or len(name) > 255 or any(letter in FORBIDDEN for letter in name):
            return 400
        if options["owner_only"] and options["lifetime"] != "owner":
            return 400
        if len(self.channels) >= self.settings.channels:
            return 482
        return 0 if self.has_room(channel_cost(name, options)) else 503

    def opened(self, name: str) -> Channel | int:
        """A channel, created if it is missing (F48)."""
        return self.channel(name) or self.new_channel(name, None)

    def create_channel(
        self, client: Client, request: object, name: str, changes: dict[str, object] | None
    ) -> None:
        """F50."""
        made = self.new_channel(name, changes, client)
        self.reply(client, request, made if isinstance(made, int) else 0)

    def remove_channel(self, client: Client, request: object, name: str) -> None:
        """F51."""
        channel = self.channel(name)
        if channel is not None:
            self.discard(channel)
        self.reply(client, request, 404 if channel is None else 0)

    def discard(self, channel: Channel) -> None:
        """Remove a channel with all it holds."""
        for line in list(channel.queues.values()):
            self.discard_line(line)
        self.tell_channel("ChannelRemoved", channel)
        self.forget_listeners(None, channel.name)
        del self.channels[channel.name.lower()]
        for member in channel.members:
            self.say("left", member.client.number, channel.name)
        channel.members = []

    def look_at_channels(self) -> None:
        """Remove the channels that nobody has used for their time."""
        for channel in list(self.channels.values()):
            if channel.look_at is not None and channel.look_at <= self.now:
                if channel.used or channel.members:
                    channel.look_again(self.now)
                else:
                    self.discard(channel)

    def join(
        self, client: Client, request: object, name: str, credit: int, terms: Terms | None = None
    ) -> bool:
        """F48; whether the client has joined."""
        if terms is not None and self.problem_of_terms(terms):
            self.reply(client, request, self.problem_of_terms(terms))
            return False
        channel = self.opened(name)
        if isinstance(channel, int):
            self.reply(client, request, channel)
            return False
        if channel.options["owner_only"] and channel.owner is not client:
            self.reply(client, request, 403)
            return False
        member = channel.member(client)
        limit = channel.options["client_limit"]
        assert isinstance(limit, int)
        if member is not None:
            member.credit = credit
        elif 0 < limit <= len(channel.members):
            self.reply(client, request, 482)
            return False
        elif not self.has_room_for_client(books.SUBSCRIPTION_BYTES):
            self.reply(client, request, 503)
            return False
        else:
            member = Member(client, credit)
            channel.members.append(member)
            channel.used = True
            self.tell_member("ClientJoined", channel, client)
        if terms is not None:
            self.accept(member, terms)
        self.reply(client, request, 0)
        return True

    def problem_of_terms(self, terms: Terms) -> int:
        """Why nobody can have these terms; 0 if one can."""
        wait_ms = 0 if terms.ack_timeout_ms is None else terms.ack_timeout_ms
        if wait_ms < -1 or (terms.window is not None and terms.window < -1):
            return 400
        return 482 if wait_ms > self.settings.acknowledge_timeout_ms else 0

    def accept(self, member: Member, terms: Terms) -> None:
        """Let terms hold from now on."""
        if member.holds is None:
            member.holds = []
        if terms.window is not None:
            member.window = terms.window
        if terms.ack_timeout_ms is not None:
            wait_ms = terms.ack_timeout_ms
            member.wait_s = math.inf if wait_ms < 0 else wait_ms / 1_000
        if terms.returns is not None:
            member.returns = ("", "start", "end")[terms.returns]
        if terms.priority is not None:
            member.priority = terms.priority
        if terms.exclusive is not None:
            member.exclusive = terms.exclusive

    def set_terms(self, client: Client, request: object, name: str, terms: Terms) -> None:
        """Change the terms of a membership."""
        channel = self.channel(name)
        member = None if channel is None else channel.member(client)
        code = 404 if member is None else self.problem_of_terms(terms)
        if member is not None and not code:
            self.accept(member, terms)
        self.reply(client, request, code)

    def leave(self, client: Client, request: object, name: str) -> None:
        """F49."""
        channel = self.channel(name)
        left = channel is not None and self.part(channel, client)
        self.reply(client, request, 0 if left else 404)

    def part(self, channel: Channel, client: Client) -> bool:
        """A client consumes a channel no more; whether it did (F101)."""
        member = channel.member(client)
        if member is None:
            return False
        channel.members.remove(member)
        channel.used = True
        self.tell_member("ClientLeft", channel, client)
        self.take_back(member)
        if channel.members:
            return True
        if channel.options["lifetime"] == "consumers":
            self.discard(channel)
        elif channel.options["destroy_when_empty"]:
            for line in list(channel.queues.values()):
                if not line.live():
                    self.discard_line(line)
            if not channel.queues:
                self.discard(channel)
        return True

    def destroy_emptied(self) -> None:
        """Queues in which a message came to its end, and their channels, if nobody is there and
        nothing is left (F101)."""
        ended, self.ended = self.ended, []
        for line in ended:
            channel = line.channel
            if (
                self.channels.get(channel.name.lower()) is not channel
                or channel.members
                or not channel.options["destroy_when_empty"]
            ):
                continue
            if not any(each.live() for each in channel.queues.values()):
                self.discard(channel)
            elif not line.live() and channel.queues.get(line.queue_id) is line:
                self.discard_line(line)

    def grant(self, client: Client, name: str, credit: int) -> None:
        """Set what a membership may still be sent."""
        channel = self.channel(name)
        member = None if channel is None else channel.member(client)
        if member is not None:
            member.credit = credit

    # --- Queues ----------------------------------------------------------------------------------

    def problem_of_options(self, options: dict[str, object]) -> int:
        """Why no queue can have these options (F56); 0 if one can."""
        wanted = options["expired_to_dead_letter"] or options["when_full"] == "dead-letter"
        if wanted and options["dead_letter"] is None:
            return 400
        timeout_ms = options["acknowledge_timeout_ms"]
        assert isinstance(timeout_ms, int)
        if timeout_ms > self.settings.acknowledge_timeout_ms:
            return 482
        return 0 if options["delivery_handler"] in POLICIES else 406

    def new_line(
        self, channel: Channel, queue_id: int, changes: dict[str, object] | None
    ) -> Line | int:
        """Create a queue, or say why not (F54, F64)."""
        allowed = channel.options["allowed_queues"]
        limit = channel.options["queue_limit"]
        assert isinstance(limit, int)
        if queue_id in channel.queues:
            return 481
        if isinstance(allowed, tuple) and allowed and queue_id not in allowed:
            return 406
        if channel.queues and not channel.options["allow_multiple_queues"]:
            return 482
        if 0 < limit <= len(channel.queues) or len(channel.queues) >= self.settings.queues:
            return 482
        options = changed({name: channel.options[name] for name in DEFAULTS}, changes)
        problem = self.problem_of_options(options)
        if problem:
            return problem
        if not self.has_room(line_cost(options)):
            return 503
        line = channel.queues[queue_id] = Line(channel, queue_id, options)
        channel.used = True
        self.tell_line("QueueCreated", line, options["status"])
        return line

    def create_queue(
        self,
        client: Client,
        request: object,
        name: str,
        queue_id: int,
        changes: dict[str, object] | None,
    ) -> None:
        """F54."""
        self.reply(client, request, self.make_line(name, queue_id, changes))

    def make_line(self, name: str, queue_id: int, changes: dict[str, object] | None) -> int:
        """A queue and, if need be, its channel; both or none."""
        channel = self.channel(name)
        if channel is None:
            options = changed({**DEFAULTS, **self.defaults}, changes)
            plain = {**CHANNEL_DEFAULTS, **self.defaults}
            problem = self.problem_of_channel(name, plain) or self.problem_of_options(options)
            if problem:
                return problem
            if not self.has_room(channel_cost(name, plain) + line_cost(options)):
                return 503
            made = self.new_channel(name, None)
            if isinstance(made, int):
                return made
            channel = made
        line = self.new_line(channel, queue_id, changes)
        return line if isinstance(line, int) else 0

    def update_queue(
        self,
        client: Client,
        request: object,
        name: str,
        queue_id: int,
        changes: dict[str, object],
    ) -> None:
        """F56, F92."""
        line = self.line(name, queue_id)
        if line is None:
            self.reply(client, request, 404)
            return
        options = changed(line.options, changes)
        problem = self.problem_of_options(options)
        more = line_cost(options) - line_cost(line.options)
        if not problem and more > 0 and not self.has_room(more):
            problem = 503
        if not problem:
            was = line.options["status"]
            line.options = options
            self.tell_line("QueueUpdated", line, options["status"])
            self.changed(line, was)
        self.reply(client, request, problem)

    def changed(self, line: Line, was: object) -> None:
        """What changed options do to what is there (F92)."""
        status = line.options["status"]
        if status == STOPPED and was != STOPPED:
            self.clear(line, True, True, True)
        if status == CACHE and was != CACHE and line.waiting():
            latest = max(line.waiting(), key=lambda letter: letter.number)
            for letter in line.waiting():
                if letter is not latest:
                    line.take(letter)
                    self.end(line, letter, "cleared")
        if not self.one_at_a_time(line):
            line.held = None

    def remove_queue(self, client: Client, request: object, name: str, queue_id: int) -> None:
        """F57, F93."""
        line = self.line(name, queue_id)
        if line is not None:
            self.discard_line(line)
        self.reply(client, request, 404 if line is None else 0)

    def discard_line(self, line: Line) -> None:
        """Stop a queue, then remove it; the storage forgets it as a whole."""
        for letter in line.live():
            letter.ticket = ""
        self.clear(line, True, True, True)
        for pull in list(line.pulls):
            self.drop_pull(pull)
            self.orphans.append(pull)
        del line.channel.queues[line.queue_id]
        line.channel.used = True
        self.tell_line("QueueRemoved", line, STOPPED)
        self.forget_listeners(None, line.channel.name, line.queue_id)

    def clear_messages(
        self,
        client: Client,
        request: object,
        name: str,
        queue_id: int,
        high: bool,
        regular: bool,
        in_flight: bool,
    ) -> None:
        """F58; what is in flight goes if that is wanted, too."""
        line = self.line(name, queue_id)
        if line is not None:
            self.clear(line, high, regular, in_flight)
        self.reply(client, request, 404 if line is None else 0)

    def cancel_message(
        self, client: Client, request: object, name: str, queue_id: int, message_id: str
    ) -> None:
        """Remove what is deferred under an id, high priority first, in the order of coming."""
        line = self.line(name, queue_id)
        found = (
            []
            if line is None
            else [each for each in line.deferred if each[1].message_id == message_id]
        )
        for entry in sorted(found, key=lambda each: (not each[1].high, each[1].number)):
            assert line is not None, "something was found in it"
            line.deferred.remove(entry)
            if entry[1].wants:
                self.confirm(line, entry[1], "cancelled")
            self.end(line, entry[1], "cleared")
        self.reply(client, request, 0 if found else 404)

    def remove_message(
        self, client: Client, request: object, name: str, queue_id: int, message_id: str
    ) -> None:
        """Remove the first that waits under an id, high priority first."""
        line = self.line(name, queue_id)
        if line is None:
            self.reply(client, request, 404)
            return
        channel = line.channel
        if channel.options["owner_only"] and channel.owner is not client:
            self.reply(client, request, 403)
            return
        channel.used = True
        if not self.has_room(books.BROWSE_BYTES + PLACE_BYTES * len(line.live())):
            self.reply(client, request, 503)
            return
        found = [letter for letter in line.waiting() if letter.message_id == message_id]
        for letter in found[:1]:
            line.take(letter)
            line.counts["removed_messages"] += 1
            if letter.wants:
                self.confirm(line, letter, "cancelled")
            self.end(line, letter, "cleared")
        self.reply(client, request, 0 if found else 404)

    # --- Questions -------------------------------------------------------------------------------

    def describe_queue(self, client: Client, request: object, name: str, queue_id: int) -> None:
        """F57, F68."""
        line = self.line(name, queue_id)
        if line is None:
            self.reply(client, request, 404)
        else:
            self.reply(client, request, 0, line.snapshot() | line.options)

    def describe_channel(self, client: Client, request: object, name: str) -> None:
        """F52, F67."""
        channel = self.channel(name)
        if channel is None:
            self.reply(client, request, 404)
            return
        body = (channel.name, tuple(channel.queues), len(channel.members))
        self.reply(client, request, 0, body)

    # --- Pulls -----------------------------------------------------------------------------------

    def pull(
        self,
        client: Client,
        request: object,
        name: str,
        queue_id: int,
        count: int,
        newest_first: bool,
        clear_high: bool,
        clear_regular: bool,
        info: bool,
        size: int,
    ) -> None:
        """F104-F106, F112."""
        channel = self.channel(name)
        line = self.line(name, queue_id)
        if channel is not None and line is not None:
            channel.used = True
        joined = channel is not None and channel.member(client) is not None
        if line is not None and line.options["status"] == CACHE:
            self.read_cache(line, client, request, joined)
            return
        if channel is None or line is None:
            self.say("end", client.number, request, "No-Queue" if channel else "No-Channel")
            return
        pull = Asked(client, request, line, 0, newest_first, clear_high, clear_regular, info)
        promised = sum(other.count - other.sent for other in line.pulls)
        pull.count = min(count, len(line.waiting()) - promised)
        pending = [each for every in self.lines() for each in every.pulls if each.client is client]
        pending += [each for each in self.orphans if each.client is client]
        in_bounds = 0 < count <= self.settings.pull_count
        pulls = line.options["status"] == PULL
        if pulls and not joined:
            self.say("end", client.number, request, "Unauthorized")
        elif not pulls or not in_bounds:
            self.say("end", client.number, request, "Unacceptable")
        elif pull.count <= 0:
            self.say("end", client.number, request, "Empty")
        elif len(pending) >= self.settings.pulls or not self.has_room_for_client(
            books.PULL_BYTES + size
        ):
            self.say("end", client.number, request, "Unacceptable")
        else:
            line.pulls.append(pull)

    def read_cache(self, line: Line, client: Client, request: object, joined: bool) -> None:
        """F112."""
        for letter in line.waiting():
            if self.too_old(letter):
                self.expire(line, letter)
        if not joined:
            self.reply(client, request, 401)
        elif not line.waiting():
            self.reply(client, request, 404)
        else:
            letter = line.waiting()[0]
            self.say("answer", client.number, request, letter.message_id)
            letter.attempts += 1
            line.counts["sent_messages"] += 1
            line.counts["deliveries"] += 1
            if self.policy(line).sent:
                self.confirm(line, letter)

    # --- Pushes ----------------------------------------------------------------------------------

    def take_in(self, line: Line, letter: Letter, delay_s: float) -> None:
        """A message that the queue has room for (F103)."""
        policy = self.policy(line)
        line.channel.used = True
        if not policy.takes:
            if policy.receipt == "refused":
                self.confirm(line, letter, "none")
            for count in ("received_messages", "refused", "removed_messages"):
                line.counts[count] += 1
            return
        self.admit(line, letter)
        line.counts["received_messages"] += 1
        if policy.receipt == "saved" and line.options["status"] != BROADCAST:
            if line.has_disk_for(letter):
                self.save(line, letter)
            else:
                self.confirm(line, letter, "storage")
        asked = policy.receipt == "asked" and letter.wants
        if asked or letter.saving or policy.receipt == "always":
            self.confirm(line, letter)
        self.tell_letter(line, letter)
        if delay_s:
            line.deferred.append((self.now + delay_s, letter))
        else:
            self.arrive(line, letter)
