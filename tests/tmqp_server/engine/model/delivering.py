"""How the model moves messages: who gets what and when, and what becomes of it afterwards.

Written from the rules (F76-F112) alone.  ``settle_down`` is the whole scheduler: it goes over all
queues again and again until nothing moves any more.
"""

from __future__ import annotations

import math

from tests.tmqp_server.engine.model.memory import OVERHEAD, Counting
from tests.tmqp_server.engine.model.policies import POLICIES, Policy
from tests.tmqp_server.engine.model.things import (
    BROADCAST,
    CACHE,
    PULL,
    ROUND_ROBIN,
    SENDING,
    STOPPED,
    Asked,
    Client,
    Letter,
    Line,
    Member,
)

__all__ = ["Delivering"]

#: Seconds: a message that is too old is taken away at the end of its tick (C8).
TICK_S = 0.125


class Delivering(Counting):
    """Sends, waits for answers, puts back, gives up."""

    #: What the storage was asked to keep and has not answered for.
    saves: dict[str, tuple[Letter, Line]]
    #: The queues in which a message has come to its end in this step.
    ended: list[Line]
    #: The message whose producer wants to know to how many it goes in this step.
    counting: Letter | None = None

    def policy(self, line: Line) -> Policy:
        """The queue's delivery handler."""
        return POLICIES[str(line.options["delivery_handler"])]

    # --- Sending ---------------------------------------------------------------------------------

    def settle_down(self) -> None:
        """Move whatever can move."""
        moving = True
        while moving:
            moving = False
            for line in self.lines():
                moving = self.send_next(line) or moving
            for line in self.lines():
                for pull in list(line.pulls):
                    while pull in line.pulls and self.pull_next(pull):
                        moving = True

    def send_next(self, line: Line) -> bool:
        """Send the next message, if there is one and it can be sent; whether anything changed."""
        if line.options["status"] not in SENDING or line.held is not None:
            return False
        if not line.waiting() or not self.audience_can(line):
            return False
        letter = line.waiting()[0]
        if self.too_old(letter):
            self.expire(line, letter)
            return True
        line.take(letter)
        self.send(line, letter)
        return True

    def audience_can(self, line: Line) -> bool:
        """Stored messages wait until all consumers can take them, or one if one gets them (C65)."""
        able = [member.can_take() for member in line.takers()]
        one_will_do = line.only_one() or line.is_on("skip_slow_consumers")
        return any(able) if one_will_do else bool(able) and all(able)

    def chosen(self, line: Line) -> list[Member]:
        """Who gets the next message (F86-F90)."""
        members = line.channel.members
        if line.options["status"] == ROUND_ROBIN:
            start = line.turn if line.turn < len(members) else 0
            turns = [(start + step) % len(members) for step in range(len(members))]
            able = [turn for turn in turns if members[turn].can_take()]
            able = [turn for turn in able if members[turn] in line.takers()]
            able.sort(key=lambda turn: -members[turn].priority)
            if able:
                line.turn = able[0] + 1
            return [members[turn] for turn in able[:1]]
        able_members = [member for member in line.takers() if member.can_take()]
        if line.only_one():
            able_members.sort(key=lambda member: -member.priority)
            return able_members[:1]
        return able_members

    def send(self, line: Line, letter: Letter) -> None:
        """Send a message that waits no more to those whose it is now."""
        members = self.chosen(line)
        for position, member in enumerate(members):
            first = position == 0 and letter.attempts == 0
            self.say(
                "deliver",
                member.client.number,
                line.place,
                letter.spelling,
                letter.message_id,
                first,
                line.is_on("request_acknowledge"),
                letter.attempts > 0,
                line.is_on("hide_client_names"),
            )
            if member.credit > 0:
                member.credit -= 1
        self.sent(line, letter, [member.client for member in members])

    def sent(self, line: Line, letter: Letter, clients: list[Client]) -> None:
        """Book a sending, which may have reached nobody."""
        line.counts["removed_messages"] += 1
        if not clients:
            self.end(line, letter, "dropped")
            return
        letter.attempts += 1
        if letter is self.counting:
            letter.receivers += len(clients)
        line.counts["sent_messages"] += 1
        line.counts["deliveries"] += len(clients)
        if line.is_on("request_acknowledge"):
            letter.holders = list(clients)
            letter.sent_to = len(clients)
            letter.sent_at = self.now
            letter.answered = letter.failed = letter.silent = False
            letter.back = ""
            letter.dues = {}
            for client in clients:
                self.hold(line, letter, client)
            line.flights.append(letter)
            if self.one_at_a_time(line):
                line.held = letter
        if self.policy(line).sent:
            self.confirm(line, letter)
        if not line.is_on("request_acknowledge"):
            self.end(line, letter, "done")

    def hold(self, line: Line, letter: Letter, client: Client) -> None:
        """Note a message with the terms of one who has it."""
        member = line.channel.member(client)
        if member is not None and member.holds is not None:
            member.holds.append((line, letter))
            if member.wait_s:
                letter.dues[client] = self.now + member.wait_s

    def drop(self, line: Line, letter: Letter, client: Client) -> None:
        """Somebody has a message no longer."""
        letter.holders.remove(client)
        member = line.channel.member(client)
        if member is not None:
            member.drop(letter)

    def take_away(self, line: Line, letter: Letter, client: Client, why: str) -> None:
        """Somebody has a message no longer, without having answered for it."""
        self.drop(line, letter, client)
        if client.hears and client.alive:
            self.say("lapsed", client.number, line.place, letter.message_id, why)

    def one_at_a_time(self, line: Line) -> bool:
        """Whether the next message waits for an answer (F96); a broadcast cannot wait (F86)."""
        waits = line.is_on("wait_for_acknowledge") and line.is_on("request_acknowledge")
        return waits and line.options["status"] != BROADCAST

    # --- Confirms and ends -----------------------------------------------------------------------

    def confirm(
        self,
        line: Line,
        letter: Letter,
        reason: str = "",
        source: str = "",
        wire: object = None,
    ) -> None:
        """Tell the producer, once, if it is there (F77-F80); what is being saved is told later."""
        if letter.told or not letter.producer.alive:
            return
        letter.told = True
        first = letter.attempts == 0
        positive = not reason
        word = (letter.message_id, letter.spelling, line.queue_id, positive, reason, first)
        if positive and letter.saving:
            letter.promise = (*word, source, wire, letter.receivers)
        else:
            self.say("confirm", letter.producer.number, *word, source, wire, letter.receivers)

    def end(self, line: Line, letter: Letter, how: str) -> None:
        """A message is no more: *how* is what the books call it."""
        line.counts[how] += 1
        if line.options["status"] != BROADCAST or letter.attempts or how != "dropped":
            self.ended.append(line)
        if line.held is letter:
            line.held = None
        if letter.ticket:
            self.say("erase", letter.ticket)
            letter.ticket = ""

    def too_old(self, letter: Letter) -> bool:
        """Whether a message may be sent no more (F97)."""
        return letter.expires is not None and letter.expires <= self.now

    def expire(self, line: Line, letter: Letter) -> None:
        """A message waited too long."""
        line.take(letter)
        self.end_expired(line, letter)

    def end_expired(self, line: Line, letter: Letter) -> None:
        """A message that waited too long, and waits no more."""
        if line.is_on("expired_to_dead_letter"):
            self.give_up(line, letter)
        else:
            self.end(line, letter, "expired")

    # --- Answers ---------------------------------------------------------------------------------

    def answer(
        self,
        line: Line,
        letter: Letter,
        client: Client,
        positive: bool,
        reason: str,
        wire: object,
    ) -> None:
        """A consumer that has the message says something (F95, F96, F98)."""
        policy = self.policy(line)
        self.drop(line, letter, client)
        letter.answered = True
        line.counts["acks" if positive else "negative_acks"] += 1
        if policy.passes:
            source = "" if line.is_on("hide_client_names") else client.client_id
            self.confirm(line, letter, "" if positive else reason, source, wire)
        if not positive and policy.refused_back:
            self.want_back(letter, policy.refused_back)
        if line.held is letter and not letter.back:
            line.held = None
        if not letter.holders:
            self.close(line, letter)

    def want_back(self, letter: Letter, where: str, counted: bool = True) -> None:
        """It goes back when the last one is done with it; the front goes before the end."""
        letter.uncounted = not counted and (letter.uncounted or not letter.back)
        if letter.back != "start":
            letter.back = where

    def hand_back(
        self, line: Line, letter: Letter, client: Client, where: str, delay_s: float, counted: bool
    ) -> None:
        """A consumer gives the message back: nobody is asked."""
        line.counts["released"] += 1
        self.drop(line, letter, client)
        self.want_back(letter, where, counted)
        if delay_s:
            letter.due = max(letter.due, self.now + delay_s)
        if not letter.holders:
            self.close(line, letter)

    def time_out(self, line: Line, letter: Letter) -> None:
        """Nobody who still has the message answered in time (F94, F99)."""
        policy = self.policy(line)
        late = [each for each in letter.holders if self.due_of(line, letter, each) <= self.now]
        for client in late:
            line.counts["negative_acks"] += 1
            line.counts["ack_timeouts"] += 1
            letter.silent = letter.silent or client.alive
            if policy.silent_back and (letter.wants or not policy.silent_asked):
                self.want_back(letter, policy.silent_back)
            if policy.silent_nack:
                self.confirm(line, letter, "timeout")
                letter.failed = True
        for client in late:
            self.take_away(line, letter, client, "timed-out")
        if letter.holders:  # who have their own time
            if line.held is letter and not letter.back:
                line.held = None
            return
        if not (letter.answered or letter.silent or letter.back or letter.failed):
            letter.back = "start"
        self.close(line, letter)

    def wait_s(self, line: Line) -> float:
        """The queue's timeout."""
        timeout_ms = line.amount("acknowledge_timeout_ms")
        return (timeout_ms or self.settings.acknowledge_timeout_ms) / 1_000

    def due_of(self, line: Line, letter: Letter, client: Client) -> float:
        """When somebody who has a message must have answered."""
        return letter.dues.get(client, letter.sent_at + self.wait_s(line))

    def next_time(self, line: Line, letter: Letter) -> float:
        """The same of all who have it."""
        return min(self.due_of(line, letter, client) for client in letter.holders)

    def take_back(self, member: Member) -> None:
        """One has left: what it has goes back at once, or times out."""
        holds = member.holds or []
        client = member.client
        member.holds = None
        for line, letter in holds[::-1] if member.returns == "start" else holds:
            if member.returns:
                self.hand_back(line, letter, client, member.returns, 0.0, True)
            elif letter.dues.get(client) == math.inf:
                letter.dues[client] = self.now + self.wait_s(line)

    def close(self, line: Line, letter: Letter) -> None:
        """The last one has answered, or nobody will."""
        line.flights.remove(letter)
        if line.held is letter:
            line.held = None
        if letter.back:
            self.put_back(line, letter, letter.back)
        else:
            self.end(line, letter, "done" if letter.answered else "dropped")

    def put_back(self, line: Line, letter: Letter, where: str) -> None:
        """Let a message wait again, unless that happened too often (F98)."""
        if line.options["status"] == BROADCAST:
            self.end(line, letter, "done" if letter.answered else "dropped")
            return
        limit = line.amount("put_back_limit") or self.settings.put_backs
        counts = not letter.uncounted
        letter.uncounted = False
        if counts and 0 <= limit <= letter.put_backs:
            self.give_up(line, letter)
            return
        if line.options["status"] == CACHE:
            newer = [other for other in line.waiting() if other.number > letter.number]
            if newer:
                self.end(line, letter, "cleared")
                return
            self.make_way(line)
        letter.put_backs += counts
        line.counts["requeued"] += 1
        waiting = line.high if letter.high else line.regular
        later = letter.due > self.now
        if later:
            letter.back = where
            line.deferred.append((letter.due, letter))
        else:
            waiting.insert(0 if where == "start" else len(waiting), letter)
        if (where == "end" or later) and (letter.saving or letter.saved):
            # What is kept must stand at the end as well.
            if letter.saving:
                self.say("erase", letter.ticket)
            self.save(line, letter)

    def give_up(self, line: Line, letter: Letter) -> None:
        """Move a message to the dead letters, or drop it."""
        if letter.wants:
            self.confirm(line, letter, "error")
        self.moving = letter.size + OVERHEAD
        grave = self.grave(line, letter)
        self.moving = 0
        if grave is None or (letter.ticket and not grave.has_disk_for(letter)):
            self.end(line, letter, "dropped")
            return
        copy = Letter(
            letter.message_id,
            letter.producer,
            grave.channel.name,
            grave.queue_id,
            letter.high,
            letter.wants,
            letter.size,
            letter.wire,
            0,
            hops=letter.hops + 1,
            told=True,
        )
        self.admit(grave, copy)
        if letter.ticket:
            self.save(grave, copy)
        self.end(line, letter, "dead")
        self.arrive(grave, copy)

    def grave(self, line: Line, letter: Letter) -> Line | None:
        """The queue that takes this dead letter."""
        address = line.options["dead_letter"]
        if not isinstance(address, tuple) or letter.hops >= self.settings.hops:
            return None
        name, queue_id = address
        self.make_line(name, queue_id, None)
        grave = self.line(name, queue_id)
        if grave is None or grave is line or grave.options["status"] == BROADCAST:
            return None
        # It moves: the memory it takes is taken already.
        return None if self.problem_of_line(grave, letter.size, False) else grave

    # --- Taking in -------------------------------------------------------------------------------

    def make_line(self, name: str, queue_id: int, changes: dict[str, object] | None) -> int:
        """Create a queue if it is missing; why that cannot be, or 0."""
        raise NotImplementedError

    def replaced(self, line: Line, later: bool) -> list[Letter]:
        """What makes way for the next message of a cache, unless that waits for its time."""
        waiting = line.waiting()
        makes_way = line.options["status"] == CACHE and len(waiting) == 1 and not later
        return waiting if makes_way else []

    def problem_of_push(self, line: Line, size: int, later: bool) -> int:
        """Why a queue takes no message of that size (F64, F75); 0 if it does."""
        freed = sum(letter.size + OVERHEAD for letter in self.replaced(line, later))
        full = 0 if self.has_room(size + OVERHEAD - freed) else 503
        return self.problem_of_line(line, size, later) or full

    def make_room(self, line: Line, size: int, later: bool) -> int:
        """The same, after what has waited longest has made way if the queue wants that."""
        limits = [line.amount("bytes_limit"), self.settings.queue_bytes]
        most = min([limit for limit in limits if limit])
        while (
            (problem := self.problem_of_push(line, size, later)) == 482
            and line.options["when_full"] != "refuse"
            and line.waiting()
            and size <= min(line.amount("message_size_limit") or size, self.settings.message_bytes)
            and size <= most
        ):
            letter = (line.regular or line.high)[0]
            line.take(letter)
            line.counts["displaced"] += 1
            if line.options["when_full"] == "dead-letter":
                self.give_up(line, letter)
                continue
            if letter.wants:
                self.confirm(line, letter, "limit-exceeded")
            self.end(line, letter, "dropped")
        return problem

    def problem_of_line(self, line: Line, size: int, later: bool) -> int:
        """The same, whatever the other queues hold."""
        replaced = self.replaced(line, later)
        live = [letter for letter in line.live() if letter not in replaced]
        limits = self.settings
        if line.options["status"] == STOPPED:
            return 401
        size_limit = line.amount("message_size_limit")
        if size > limits.message_bytes or 0 < size_limit < size:
            return 482
        if line.options["status"] != CACHE and 0 < line.amount("message_limit") <= len(
            line.waiting() + line.deferred
        ):
            return 482
        if len(live) >= limits.messages:
            return 482
        held = sum(letter.size for letter in live) + size
        if held > limits.queue_bytes or 0 < line.amount("bytes_limit") < held:
            return 482
        return 0

    def admit(self, line: Line, letter: Letter) -> None:
        """Open the books on a message."""
        line.letters += 1
        line.channel.used = True
        letter.number = line.letters
        line.counts["accepted"] += 1

    def save(self, line: Line, letter: Letter) -> None:
        """Ask the storage to keep it."""
        letter.ticket = f"{letter.message_id} in {line.place}"
        letter.saving = True
        self.saves[letter.ticket] = (letter, line)
        self.say("append", letter.ticket)

    def arrive(self, line: Line, letter: Letter) -> None:
        """A message that was taken in waits, or passes through (F86)."""
        passing = line.options["status"] == BROADCAST and line.held is None
        if passing and not line.waiting():
            self.send(line, letter)
            return
        if line.options["status"] == CACHE:
            self.make_way(line)
        (line.high if letter.high else line.regular).append(letter)

    def make_way(self, line: Line) -> None:
        """A cache keeps the latest message only (contradiction 28)."""
        for letter in line.waiting():
            line.take(letter)
            self.end(line, letter, "cleared")

    # --- Pulls -----------------------------------------------------------------------------------

    def pull_next(self, pull: Asked) -> bool:
        """Let a pull go one message further; whether anything changed (F104-F110)."""
        line = pull.line
        if pull.client.blocked:
            return False
        if line.options["status"] != PULL or pull.sent == pull.count:
            self.end_pull(pull)
            return True
        if line.held is not None:
            if pull not in line.parked:
                line.parked.append(pull)
            return False
        if line.parked and line.parked[0] is not pull:
            return False
        if not line.waiting():
            self.end_pull(pull)
            return True
        letters = line.high or line.regular
        letter = letters[-1 if pull.newest_first else 0]
        if self.too_old(letter):
            self.expire(line, letter)
            return True
        line.take(letter)
        pull.sent += 1
        left = (len(line.high), len(line.regular)) if pull.info else (-1, -1)
        place = (letter.spelling, line.queue_id)
        word = (pull.client.number, pull.request, place, letter.message_id, pull.sent)
        flags = (letter.attempts == 0, line.is_on("request_acknowledge"))
        self.say("pulled", *word, pull.count, *flags, line.is_on("hide_client_names"), *left)
        self.sent(line, letter, [pull.client])
        return True

    def end_pull(self, pull: Asked) -> None:
        """A pull is over."""
        line = pull.line
        self.drop_pull(pull)
        self.say("end", pull.client.number, pull.request, "End" if pull.sent else "Empty")
        if line.options["status"] != PULL:
            return
        self.clear_after(pull)

    def clear_after(self, pull: Asked) -> None:
        """What a pull wants cleared, as the operation clears it (F58, F110)."""
        self.clear(pull.line, pull.clear_high, pull.clear_regular, False)

    def drop_pull(self, pull: Asked) -> None:
        """What it had reserved is there for others."""
        pull.line.pulls.remove(pull)
        if pull in pull.line.parked:
            pull.line.parked.remove(pull)

    # --- Clearing and time -----------------------------------------------------------------------

    def clear(self, line: Line, high: bool, regular: bool, flights: bool) -> None:
        """Remove messages (F58, F92)."""
        gone = [letter for letter in line.waiting() if (high if letter.high else regular)]
        for letter in gone:
            line.take(letter)
        for entry in list(line.deferred):
            if high if entry[1].high else regular:
                line.deferred.remove(entry)
                gone.append(entry[1])
        if flights:
            gone += line.flights
            for letter in line.flights:
                for client in list(letter.holders):
                    self.take_away(line, letter, client, "removed")
            line.flights = []
            line.held = None
        for letter in gone:
            self.end(line, letter, "cleared")

    def due(self, line: Line) -> None:
        """Do what has become due in a queue: answers that did not come, late messages, old ones."""
        # Those with times of their own come after the others.
        late = [letter for letter in line.flights if not letter.dues]
        timed = [letter for letter in line.flights if letter.dues]
        timed.sort(key=lambda letter: (self.next_time(line, letter), letter.number))
        for letter in late + timed:
            if self.next_time(line, letter) <= self.now:
                self.time_out(line, letter)
        for when, letter in sorted(line.deferred, key=lambda entry: (entry[0], entry[1].number)):
            if when <= self.now:
                line.deferred.remove((when, letter))
                letter.due = 0.0
                if letter.back == "start" and line.options["status"] != BROADCAST:
                    if line.options["status"] == CACHE:
                        self.make_way(line)
                    (line.high if letter.high else line.regular).insert(0, letter)
                else:
                    self.arrive(line, letter)
                letter.back = ""
                while self.send_next(line):
                    pass
        for letter in line.waiting():
            if letter.expires is not None and self.end_of_tick(letter.expires) <= self.now:
                self.expire(line, letter)

    def end_of_tick(self, moment: float) -> float:
        """When a message of that expiry is taken away at the latest."""
        return (math.floor(moment / TICK_S) + 1) * TICK_S

    def next_due(self, line: Line) -> float | None:
        """When the next thing happens in a queue by itself."""
        moments = [self.next_time(line, letter) for letter in line.flights]
        moments = [moment for moment in moments if moment != math.inf]
        moments += [when for when, _ in line.deferred]
        expiries = [letter.expires for letter in line.waiting() if letter.expires is not None]
        moments += [self.end_of_tick(moment) for moment in expiries]
        return min(moments, default=None)
