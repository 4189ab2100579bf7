"""``Message``: one message in the engine, from push to settlement.

The engine never reads the contents of a message.  ``wire`` is an object of the door that received
it, usually the received bytes, which the door gets back when the message is delivered, so that
nothing is encoded twice.

Every push creates a message, so it has few fields: yes/no facts share one integer of marks, and
properties that only some messages have (an expiry, a count of put-backs, a saved copy) are in a
``Rare`` record that is created on demand.

A message is always in exactly one place: waiting in its queue, deferred, withheld until its batch
or commit is saved, in flight to one or several consumers, or settled.  The code that moves it
updates the queue's counters (``queues.py``).
"""

from __future__ import annotations

from typing import Final

from tmqp._compat import mypyc_attr
from tmqp_server.engine.model.client import Client, Origin
from tmqp_server.engine.model.times import AT_ONCE, NEVER
from tmqp_server.engine.records import Record

__all__ = [
    "MARK_ANSWERED",
    "MARK_AWAITS",
    "MARK_AWAY",
    "MARK_BACK",
    "MARK_BACK_END",
    "MARK_BACK_START",
    "MARK_CONFIRMED",
    "MARK_COPY",
    "MARK_DECIDED",
    "MARK_DONE_CONFIRMS",
    "MARK_DUPLICATE",
    "MARK_FAILED",
    "MARK_FED",
    "MARK_GONE",
    "MARK_HIGH",
    "MARK_KEYED",
    "MARK_NEGATIVE",
    "MARK_OWED",
    "MARK_SAVED",
    "MARK_SAVING",
    "MARK_SHARED",
    "MARK_SILENT",
    "MARK_TIMED",
    "MARK_TOGETHER",
    "MARK_UNCOUNTED",
    "MARK_UNTOLD",
    "MARK_WANTS",
    "Message",
    "Rare",
    "SubscriptionFilter",
    "Timing",
    "Wires",
    "verdict",
]

#: It is in the high-priority list (F85).
MARK_HIGH: Final = 1
#: Its producer requested a confirm.
MARK_WANTS: Final = 2
#: Its producer got a confirm, or will get the one that waits for the storage (F77).
MARK_CONFIRMED: Final = 4
#: The storage has saved it.
MARK_SAVED: Final = 8
#: The storage was asked to save it and has not answered.
MARK_SAVING: Final = 16
#: A consumer has answered it since it was last sent.
MARK_ANSWERED: Final = 32
#: It is put back to the front, or the end, when its last delivery is closed.
MARK_BACK_START: Final = 64
MARK_BACK_END: Final = 128
MARK_BACK: Final = 192
#: It is settled, and a tombstone if it is still in a list.
MARK_GONE: Final = 256
#: Another message with the same id was in flight in its queue when it was sent.
MARK_DUPLICATE: Final = 512
#: Other nodes have it, too, and are notified when this queue has settled it; it is in
#: ``Queue.shared``.
MARK_SHARED: Final = 1_024
#: Another node has settled it, so it is not sent again.
MARK_DECIDED: Final = 2_048
#: A consumer has refused it since it was last sent (only for shared messages).
MARK_NEGATIVE: Final = 4_096
#: It could not be saved although its queue is durable; it will be dropped.
MARK_FAILED: Final = 8_192
#: Its confirm waits for the storage's answer together with those of its run.
MARK_TOGETHER: Final = 16_384
#: It is in flight, or will be, to consumers that have their own times; see ``timed.py``.
MARK_TIMED: Final = 32_768
#: Such a consumer did not answer although it is connected, or the producer was notified of that.
MARK_SILENT: Final = 65_536
#: Its put-back does not count, because whoever released it said so.
MARK_UNCOUNTED: Final = 131_072
#: Other messages of its key or bucket may wait for it; it has a grip in ``Queue.keys``.
MARK_KEYED: Final = 262_144
#: A feed copied it from another queue, which ``wire`` names.
MARK_COPY: Final = 524_288
#: The feeds of its queue have it, so only consumers still get it.
MARK_FED: Final = 1_048_576
#: Its queue is durable, and nothing else has it: if it cannot be saved now, it stays and is saved
#: later; see ``debts.py``.
MARK_OWED: Final = 2_097_152
#: It is deferred, and will be on disk only when the storage has it.
MARK_AWAY: Final = 4_194_304
#: Its event MessageProduced waits for the storage's answer, like its confirm.
MARK_UNTOLD: Final = 8_388_608
#: Its confirm waits until the feeds of its queue have it; see ``awaited_copies.py``.
MARK_AWAITS: Final = 16_777_216
#: Its confirm need not wait for the storage if its consumer acknowledges it first; see
#: ``done_confirms.py``.
MARK_DONE_CONFIRMS: Final = 33_554_432


class Timing:
    """When the consumers that have a message must have answered.

    ``due`` is the earliest of these times.  Nearly always, only one consumer has its own time,
    which needs no table.
    """

    __slots__ = ("number", "own", "others", "due")

    def __init__(self, number: int, own: float) -> None:
        self.number = number
        self.own = own
        self.others: dict[int, float] | None = None
        self.due = NEVER

    def set(self, number: int, due: float) -> None:
        """Set a consumer's own time."""
        if number == self.number:
            self.own = due
        elif self.others is None:
            self.others = {number: due}
        else:
            self.others[number] = due

    def get(self, number: int, usual: float) -> float:
        """The time of a consumer; *usual* if it has no own time."""
        if number == self.number:
            return self.own
        return usual if self.others is None else self.others.get(number, usual)


@mypyc_attr(acyclic=True)
class Rare(Record):
    """The properties that only some messages need."""

    __slots__ = (
        "put_backs",
        "hops",
        "expires_at",
        "due_at",
        "ticket",
        "stored",
        "old_key",
        "old",
        "between",
        "key",
        "held_confirm",
        "receivers",
        "timing",
        "settling",
    )

    def __init__(self) -> None:
        self.put_backs = 0
        #: How often it has been moved as a dead letter.
        self.hops = 0
        #: Monotonic seconds, or NEVER.
        self.expires_at = NEVER
        #: Not to be sent before this time; monotonic seconds, or AT_ONCE.
        self.due_at = AT_ONCE
        #: The ticket of the last request to save it; 0 for none.
        self.ticket = 0
        #: The sequence under which the storage has it in its queue, or was asked to save it; 0 for
        #: none.
        self.stored = 0
        #: A copy that is owed until that one is saved: the key of its queue, and its sequence; 0
        #: for none.
        self.old_key = 0
        self.old = 0
        #: Copies that were requested after that one and before this one: key and sequence.  The
        #: storage may or may not have them.
        self.between: list[tuple[int, int]] | None = None
        #: Its key in the table of messages in flight, if it is a duplicate.
        self.key = ""
        #: The confirm that waits for the storage's answer.
        self.held_confirm: Record | None = None
        #: How many consumers got it immediately; -1 if its producer did not request the number.
        self.receivers = -1
        #: The times of the consumers that have it, if some have their own.
        self.timing: Timing | None = None
        #: The numbers of consumers whose answer is part of a batch that is not saved yet.
        self.settling: dict[int, None] | None = None


@mypyc_attr(acyclic=True)
class Message:
    """One message.  ``channel`` is the channel's name in the producer's spelling (F76).
    ``message_id`` is empty only if the queue does not create ids; then the message cannot be
    acknowledged.

    ``sequence`` is the message's number in its queue, from 1, and is never reused; ``attempts`` is
    the number of deliveries; ``size`` is in bytes, as the door counts them.
    """

    __slots__ = (
        "message_id",
        "producer",
        "channel",
        "queue_id",
        "size",
        "wire",
        "marks",
        "sequence",
        "attempts",
        "sent_at",
        "holder",
        "holders",
        "held",
        "rare",
    )

    def __init__(
        self,
        message_id: str,
        producer: Origin,
        channel: str,
        queue_id: int,
        size: int,
        wire: object,
        marks: int,
        sequence: int,
    ) -> None:
        self.message_id = message_id
        self.producer = producer
        self.channel = channel
        self.queue_id = queue_id
        self.size = size
        self.wire = wire
        self.marks = marks
        self.sequence = sequence
        self.attempts = 0
        #: When it was last sent, in monotonic seconds; if it was never sent, since when it waits,
        #: or 0 if that is unknown.
        self.sent_at = 0.0
        #: The one consumer that has it, or None.
        self.holder: Client | None = None
        #: The consumers that have it, by number, if there are several; those that have answered are
        #: removed.
        self.holders: dict[int, Client] | None = None
        #: The charge for that table in the broker's books.
        self.held = 0
        self.rare: Rare | None = None

    @property
    def source(self) -> str:
        """The producer's client id."""
        return self.producer.client_id

    @property
    def high_priority(self) -> bool:
        """Whether it is delivered before all regular messages of its queue (F85)."""
        return self.marks & MARK_HIGH != 0

    @property
    def wants_confirm(self) -> bool:
        """Whether its producer requested a confirm (the flag PendingAcknowledge on the push)."""
        return self.marks & MARK_WANTS != 0

    @property
    def saved(self) -> bool:
        """Whether the storage has saved it."""
        return self.marks & MARK_SAVED != 0

    @property
    def confirmed(self) -> bool:
        """Whether its producer has received the confirm or refusal."""
        return self.marks & MARK_CONFIRMED != 0

    @property
    def expires_at(self) -> float:
        """When it expires, in monotonic seconds, or NEVER (F97)."""
        rare = self.rare
        return NEVER if rare is None else rare.expires_at

    @property
    def put_backs(self) -> int:
        """How often it has been put back into its queue (F98)."""
        rare = self.rare
        return 0 if rare is None else rare.put_backs

    @property
    def readdressed(self) -> bool:
        """Whether its channel and queue are no longer those that ``wire`` names.

        True for a dead letter and for a copy made by a feed: the door must write the real address
        (contradiction 19).
        """
        return self.marks & MARK_COPY != 0 or self.is_dead_letter

    @property
    def is_dead_letter(self) -> bool:
        """Whether it was moved here from a queue that gave it up."""
        rare = self.rare
        return rare is not None and rare.hops > 0

    @property
    def flight_key(self) -> str:
        """The key under which the table of messages in flight has it."""
        return self.rarely().key if self.marks & MARK_DUPLICATE else self.message_id

    def rarely(self) -> Rare:
        """The record of its rarer properties, created if it is missing."""
        rare = self.rare
        if rare is None:
            rare = Rare()
            if self.marks & (MARK_SAVED | MARK_SAVING):
                rare.stored = self.sequence  # one of a run that is being saved has no record either
            self.rare = rare
        return rare

    def promise(self, client: Client) -> None:
        """Reserve the answer to its delivery to *client* for a batch."""
        rare = self.rarely()
        if rare.settling is None:
            rare.settling = {}
        rare.settling[client.number] = None

    def break_promise(self, client: Client) -> None:
        """Release the reservation, so that *client* can answer it in any way."""
        rare = self.rarely()
        assert rare.settling is not None, "it was promised"
        del rare.settling[client.number]
        if not rare.settling:
            rare.settling = None

    def is_held_by(self, client: Client) -> bool:
        """Return whether it is in flight to *client*, and neither answered nor part of a batch that
        is being saved."""
        rare = self.rare
        if rare is not None and rare.settling is not None and client.number in rare.settling:
            return False
        if self.holder is client:
            return True
        holders = self.holders
        return holders is not None and client.number in holders

    def __repr__(self) -> str:
        return (
            f"Message({self.message_id!r} of {self.source!r} in {self.channel!r}/{self.queue_id},"
            f" sequence={self.sequence}, attempts={self.attempts}, size={self.size},"
            f" marks={self.marks}, wire={self.wire!r})"
        )


@mypyc_attr(allow_interpreted_subclasses=True)
class SubscriptionFilter:
    """Chooses which of a channel's messages one subscription gets; made by a door.

    A filter is pure and always gives the same result for the same message.  If it raises, the
    message counts as not accepted.
    """

    def accepts(self, message: Message) -> bool:
        """Whether the subscription wants *message*; this base wants every message."""
        return True

    def identity(self) -> object:
        """Return equal objects for filters that accept the same messages; this base equals no
        other."""
        return self

    def family(self) -> object:
        """Return equal objects for filters that examine the same part of a message, or None."""
        return None

    def key_of(self, message: Message) -> object:
        """That part of *message*, equal for all filters of the family: messages with equal keys are
        all accepted or all not accepted.  None if it is not worth comparing."""
        return None

    def is_counted(self) -> bool:
        """Whether it counts against the number of filters of an audience (``MAX_FILTERS``).  A
        filter that examines only the producer need not count, if it has a family and keys: its
        result is determined once for each producer."""
        return True


def verdict(chooser: SubscriptionFilter | None, message: Message) -> bool | None:
    """Whether a filter, if there is one, accepts a message; None if it has raised, which affects
    only the clients that requested it."""
    if chooser is None:
        return True
    try:
        return chooser.accepts(message)
    except Exception:  # noqa: BLE001 - see above
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Wires:
    """Reads what only doors know about messages; made by the doors.  This base knows nothing."""

    def key_of(self, message: Message) -> str:
        """The key of *message*, always the same; empty if it has none."""
        return ""

    def priority_of(self, message: Message) -> int:
        """The priority of *message*, 0 to 9, always the same."""
        return 9 if message.marks & MARK_HIGH else 4

    def pack(self, message: Message) -> bytes | None:
        """The wire form and the id of *message* as ``size`` bytes, from which ``unpack`` makes an
        equal one; None if that is not possible, as in this base."""
        return None

    def unpack(self, packed: bytes) -> tuple[list[str], list[int], list[object]]:
        """The packed messages: their ids, sizes and wire forms.

        :param packed: the bytes of one or several messages, one after the other.
        """
        raise NotImplementedError

    def trace_of(self, message: Message) -> str:
        """The id of the trace that *message* is part of, 32 hexadecimal digits; empty if there is
        none."""
        return ""

    def filter_of(self, language: str, text: str) -> SubscriptionFilter:
        """Make a filter from its written form.

        :raises ValueError: if the text is invalid.
        """
        raise ValueError(f"filters such as {text!r} in {language!r} are not supported")

    def with_reason(self, message: Message, reason: str, queue_name: str) -> tuple[object, int]:
        """The wire form that *message* has as a dead letter, and how many bytes larger it is.

        :param reason: why it is a dead letter: ``put-backs``, ``expired`` or ``full``.
        :param queue_name: the queue that it leaves, ``channel;id``.
        """
        return message.wire, 0
