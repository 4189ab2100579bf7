"""The words for what the engine says, and the comparison with what the model says.

Order is compared where order is promised: of what one queue sends, of what one client is answered,
told of one kind of event, confirmed, forwarded; of what one pull brings.  What different queues
send to different clients in one step may come in any order.
"""

from __future__ import annotations

from collections import Counter

from tests.tmqp_server.engine.model.things import COUNTS, DEFAULTS, Word
from tmqp_server.engine import effects as told
from tmqp_server.engine.events import event_name
from tmqp_server.engine.model.snapshots import (
    BrowsedMessage,
    BrowseSnapshot,
    ChannelSnapshot,
    QueueSnapshot,
)
from tmqp_server.engine.records import Record, field_names

__all__ = ["Translator", "differences", "queue_shown"]

WAITING = (
    "priority_messages",
    "messages",
    "deferred",
    "in_flight",
    "timeout_messages",
    "disk_bytes",
)


def queue_shown(snapshot: QueueSnapshot) -> dict[str, object]:
    """The counters of a snapshot that the model knows."""
    return {name: getattr(snapshot, name) for name in (*COUNTS, *WAITING)}


def body_of(body: object) -> object:
    """The body of a reply, as the model writes it."""
    if isinstance(body, QueueSnapshot):
        options = {name: getattr(body.options, name) for name in DEFAULTS}
        return queue_shown(body) | options
    if isinstance(body, BrowseSnapshot):
        return (body.hide_source, tuple([_shown(item) for item in body.items]))
    if isinstance(body, ChannelSnapshot):
        return (body.name, body.queues, body.active_clients)
    if isinstance(body, list):
        return [getattr(each, "name", each) for each in body]
    return body


def _shown(item: BrowsedMessage) -> Word:
    """A message as somebody sees it, without its number, which the model does not know."""
    marks = (item.high_priority, item.wants_confirm, item.kept, item.state)
    counts = (item.attempts, item.put_backs, item.expires_s, item.due_s)
    return (item.message_id, item.source, item.size, *marks, *counts)


def fields(record: Record) -> Word:
    """What a record holds, in order."""
    return tuple([getattr(record, name) for name in field_names(type(record))])


class Translator:
    """Turns effects into words; remembers which message each ticket stands for."""

    def __init__(self) -> None:
        self.tickets: dict[int, str] = {}
        #: The same by where the storage has it: the key of the queue, and the sequence.
        self.places: dict[tuple[int, int], str] = {}
        self.newest: dict[str, tuple[int, int]] = {}
        #: Tickets the storage has not answered for.
        self.open: dict[int, str] = {}
        #: The sequences of what was shown last to somebody who looked into a queue.
        self.shown: list[int] = []

    def words(self, effects: list[told.Effect]) -> list[Word]:
        """All words for these effects; a delivery is a word for each who gets it.

        A message that was saved again has two copies, and the model knows of one: that they are
        erased together is said once.
        """
        tickets = dict(self.tickets)
        tickets.update(
            {each.ticket: _name(each) for each in effects if isinstance(each, told.Append)}
        )
        named = {
            tickets[effect.ticket]
            for effect in effects
            if isinstance(effect, told.Erase) and effect.ticket in tickets
        }
        found: list[Word] = []
        for effect in effects:
            if isinstance(effect, told.Erase) and not effect.ticket:
                place = (effect.key, effect.sequence)
                name = self.places[place]
                is_older = effect.depends and self.newest[name] != place
                if name not in named and not is_older:
                    found.append(("erase", name))
            else:
                found += self._words(effect)
        return found

    def _words(self, effect: told.Effect) -> list[Word]:
        if isinstance(effect, told.Deliver):
            return self._delivery(effect)
        if isinstance(effect, told.Forward):
            return [("forward", number, effect.wire) for number in effect.sessions]
        if isinstance(effect, told.Inform):
            fact = fields(effect.fact)
            event = event_name(effect.event)
            return [("inform", each, event, effect.channel, fact) for each in effect.sessions]
        if isinstance(effect, told.Append):
            ticket = _name(effect)
            for older in [each for each, name in self.open.items() if name == ticket]:
                del self.open[older]  # asked for anew: that answer will say nothing
            self.tickets[effect.ticket] = self.open[effect.ticket] = ticket
            self.places[effect.key, effect.sequence] = ticket
            self.newest[ticket] = (effect.key, effect.sequence)
            if effect.old and effect.old_key != effect.key:
                # A dead letter: its message is erased with it.
                return [("append", ticket), ("erase", self.places[effect.old_key, effect.old])]
            return [("append", ticket)]
        if isinstance(effect, told.Erase):
            return [("erase", self.tickets[effect.ticket])]
        if isinstance(effect, told.CloseSession):
            return [("close", effect.session)]
        if isinstance(effect, told.DeliverPulled):
            return [self._pulled(effect)]
        if isinstance(effect, told.AnswerPull):
            return [("answer", effect.session, effect.request, effect.message.message_id)]
        if isinstance(effect, told.Reply):
            if isinstance(effect.body, BrowseSnapshot):
                self.shown = [item.sequence for item in effect.body.items]
            body = body_of(effect.body)
            return [("reply", effect.session, effect.request, effect.code, body)]
        if isinstance(effect, told.Accept):
            return [("accept", effect.session, effect.request, effect.client_id)]
        if isinstance(effect, told.EventsEnded):
            return [("ended", effect.session, event_name(effect.event), effect.channel)]
        if isinstance(effect, told.Lapsed):
            place = (effect.channel, effect.queue_id)
            return [("lapsed", effect.session, place, effect.message_id, effect.reason)]
        if isinstance(effect, told.Refuse):  # whom, is for the log
            return [("refuse", effect.session, effect.request, effect.code)]
        kinds = {told.Confirm: "confirm", told.EndPull: "end"}
        kinds[told.Left] = "left"
        return [(kinds[type(effect)], *fields(effect))]

    def _delivery(self, effect: told.Deliver) -> list[Word]:
        message = effect.message
        words: list[Word] = []
        for position, number in enumerate(effect.sessions):
            assert position == 0 or not effect.first_acquirer
            place = (effect.channel, message.queue_id)
            flags = (effect.first_acquirer, effect.wants_acknowledge, effect.redelivered)
            names = (message.channel, message.message_id)
            word = ("deliver", number, place, *names, *flags, effect.hide_source)
            words.append(word)
        return words

    def _pulled(self, effect: told.DeliverPulled) -> Word:
        message = effect.message
        word = (effect.session, effect.request, (message.channel, message.queue_id))
        flags = (effect.first_acquirer, effect.wants_acknowledge, effect.hide_source)
        left = (effect.high_left, effect.regular_left)
        return ("pulled", *word, message.message_id, effect.index, effect.count, *flags, *left)


def lane(word: Word, at_time: bool) -> Word:
    """The line in which a word has its place; words of one line come in one order.

    What becomes due in two queues at one moment may come in any order, and a dead letter of one may
    meet what comes again in the other: at such a moment the two are looked at apart.
    """
    kind = word[0]
    if kind == "deliver":
        return ("queue", word[2], at_time and word[7])
    if kind in {"pulled", "end", "answer"}:
        return ("pull", word[1], word[2])
    if kind == "confirm":
        return ("confirm", word[1], str(word[3]).lower(), word[4])
    if kind == "inform":
        return ("inform", word[1], word[2], word[3])
    if kind in {"append", "erase", "lapsed"}:
        return word
    return (kind, word[1])


def _name(effect: told.Append) -> str:
    """How the model calls a message that is saved."""
    return f"{effect.message.message_id} in {(effect.channel, effect.queue_id)}"


def differences(expected: list[Word], said: list[Word], at_time: bool) -> list[str]:
    """What was expected and not said, or said and not expected, or said in another order."""
    found = [f"missing: {word}" for word in _without(expected, said)]
    found += [f"too much: {word}" for word in _without(said, expected)]
    if found:
        return found
    for each in dict.fromkeys(lane(word, at_time) for word in expected):
        one = [word for word in expected if lane(word, at_time) == each]
        other = [word for word in said if lane(word, at_time) == each]
        if one != other:
            found.append(f"order in {each}: expected {one}, said {other}")
    return found


def _without(words: list[Word], others: list[Word]) -> list[Word]:
    """The words that are not among the others, each as often as it is missing."""
    left = Counter(repr(word) for word in others)
    missing = []
    for word in words:
        if left[repr(word)]:
            left[repr(word)] -= 1
        else:
            missing.append(word)
    return missing
