"""What the clients saw: what was sent, what was confirmed, what arrived, what was done.

The history is written by the clients alone, from their own side of the wire, so that it can be held
against what the server believes (``watch.py``).
"""

from __future__ import annotations

from typing import Final

from tmqp_server.engine.options import TWO
from tmqp_sim.world import Violation

__all__ = ["MADE", "History", "Place", "Receipt", "Sent"]

#: How an id begins that the server has made.
MADE: Final = "door-"
#: What a payload is filled up with.
_FILLER: Final = b"."


class Place:
    """One queue of the world and what it promises.

    ``promise`` is one of ``once-or-more`` (what was confirmed arrives and is answered for),
    ``accepted`` (what the server took in arrives, here or in the dead letters), ``none``.
    ``acks`` says that consumers are to answer, ``exclusive`` that a message is in one hand.
    """

    __slots__ = (
        "ack_timeout_s",
        "acks",
        "channel",
        "dead_letter",
        "disk_limit_bytes",
        "durable",
        "exclusive",
        "expiry_s",
        "fleeting",
        "groups",
        "handler",
        "keys",
        "kind",
        "kinds",
        "memory_limit",
        "message_limit",
        "overflow",
        "priorities",
        "skips",
        "promise",
        "put_back_limit",
        "queue_id",
        "saves",
        "single",
        "status",
        "waits",
    )

    def __init__(
        self,
        kind: str,
        channel: str,
        queue_id: int,
        status: int,
        handler: str,
        promise: str,
        ack_timeout_s: float,
        expiry_s: float = 0.0,
        waits: bool = False,
        put_back_limit: int = 1_000,
        dead_letter: tuple[str, int] | None = None,
        message_limit: int = 0,
        saves: bool = False,
        acks: bool = True,
        exclusive: bool = True,
        durable: bool = False,
        overflow: bool = False,
        memory_limit: int = 0,
    ) -> None:
        self.kind = kind
        self.channel = channel
        self.queue_id = queue_id
        self.status = status
        self.handler = handler
        self.promise = promise
        self.ack_timeout_s = ack_timeout_s
        self.expiry_s = expiry_s
        self.waits = waits
        self.put_back_limit = put_back_limit
        self.dead_letter = dead_letter
        self.message_limit = message_limit
        self.saves = saves
        self.acks = acks
        self.exclusive = exclusive
        self.durable = durable
        self.overflow = overflow
        self.memory_limit = memory_limit
        #: Its messages are of so many kinds, by which consumers choose; 0 is none.
        self.kinds = 0
        #: Its messages have so many keys, 0 is none; and what these have to do with each other.
        self.groups = 0
        self.keys = "none"
        #: So many bytes of it may be on the disk; 0 is any number.
        self.disk_limit_bytes = 0
        #: Its channel is destroyed when it is empty.
        self.fleeting = False
        #: One consumer of its channel gets all; and how many priorities order it.
        self.single = False
        self.priorities = TWO
        #: Its slow consumers miss messages.
        self.skips = False

    @property
    def key(self) -> tuple[str, int]:
        """Channel and queue."""
        return (self.channel, self.queue_id)

    def __repr__(self) -> str:
        return f"{self.kind} queue {self.channel}/{self.queue_id}"


class Sent:
    """One message and what its producer knows of it; it may have been pushed several times."""

    __slots__ = (
        "asks",
        "cancel_s",
        "confirms",
        "counts",
        "delay_s",
        "high",
        "index",
        "last_life",
        "place",
        "priority",
        "producer",
        "pushes",
        "refusals",
        "size",
        "uid",
    )

    def __init__(
        self, uid: str, producer: str, place: Place, index: int, high: bool, size: int, asks: bool
    ) -> None:
        self.uid = uid
        self.producer = producer
        self.place = place
        self.index = index
        self.high = high
        self.size = size
        self.asks = asks
        self.pushes = 0
        self.confirms = 0
        self.refusals = 0
        #: The life of the server in which it was confirmed last.
        self.last_life = 0
        #: As in ``MessagePlan``; and whether its receivers are to be counted.
        self.delay_s = 0.0
        self.cancel_s = -1.0
        self.priority = -1
        self.counts = False

    def payload(self) -> bytes:
        """What it says; long enough to tell it from all others."""
        return f"{self.uid}|{self.index}|".encode() + _FILLER * self.size


class Receipt:
    """One message as one consumer got it once; ``link`` is 0 when it is taken from an inbox that
    has outlived its connection."""

    __slots__ = ("answer", "at", "consumer", "first", "link", "place_key", "uid")

    def __init__(
        self,
        uid: str,
        consumer: str,
        link: int,
        place_key: tuple[str, int],
        at: float,
        first: bool,
    ) -> None:
        self.uid = uid
        self.consumer = consumer
        self.link = link
        self.place_key = place_key
        self.at = at
        self.first = first
        #: What the consumer answered: "" nothing yet, "ack", "nack" or "back".
        self.answer = ""


class History:
    """All that the clients know."""

    def __init__(self, places: dict[tuple[str, int], Place]) -> None:
        self.places = places
        self.sent: dict[str, Sent] = {}
        self.receipts: dict[str, list[Receipt]] = {}
        #: What came over each link, in its order.
        self.by_link: dict[int, list[str]] = {}
        #: Producers whose ids the server makes.
        self.nameless: dict[str, None] = {}
        #: What was removed on purpose need not arrive.
        self.excused: dict[str, None] = {}

    def add(self, sent: Sent) -> None:
        """A message that is to be sent."""
        assert sent.uid not in self.sent, "every message has its own id"
        self.sent[sent.uid] = sent

    def excuse(self, place: Place) -> None:
        """A queue was cleared: nobody is owed what was pushed into it up to now."""
        for sent in self.sent.values():
            if sent.place is place and sent.pushes:
                self.excused[sent.uid] = None

    def pushes(self, uid: str) -> int:
        """How often a message was pushed up to now."""
        sent = self.sent.get(uid)
        return 0 if sent is None else sent.pushes

    def received(self, receipt: Receipt, payload: bytes, source: str) -> None:
        """A consumer got something.

        :raises Violation: when nobody sent it, or not so, or not there.
        """
        sent = self.sent.get(receipt.uid)
        if sent is None:
            raise Violation("invented", f"{receipt.uid!r} came to {receipt.consumer}, unsent")
        if payload != sent.payload():
            raise Violation("invented", f"{receipt.uid} came with another payload: {payload!r}")
        if source != sent.producer and not (
            sent.producer in self.nameless and source.startswith(MADE)
        ):
            raise Violation("invented", f"{receipt.uid} came under the name {source!r}")
        place = sent.place
        if receipt.place_key not in (place.key, place.dead_letter):
            raise Violation("invented", f"{receipt.uid} of {place} came from {receipt.place_key}")
        if sent.pushes == 0:
            raise Violation("invented", f"{receipt.uid} came before it was sent")
        self.receipts.setdefault(receipt.uid, []).append(receipt)
        if receipt.link:
            self.by_link.setdefault(receipt.link, []).append(receipt.uid)

    def done(self, uid: str) -> bool:
        """Whether some consumer has dealt with it."""
        return any(each.answer == "ack" for each in self.receipts.get(uid, ()))
