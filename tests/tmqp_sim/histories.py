"""Small histories made by hand, for tests of what judges them."""

from __future__ import annotations

from tmqp.constants import STATUS_PUSH, STATUS_ROUND_ROBIN
from tmqp_sim.history import History, Place, Receipt, Sent

__all__ = ["WORK", "confirmed", "history_of", "received", "share", "work"]

WORK = ("work", 1)


def work(kind: str = "work", promise: str = "once-or-more", **more: object) -> Place:
    """A place where each message goes to one consumer, who has a second to answer."""
    return Place(
        kind,
        *WORK,
        STATUS_ROUND_ROBIN,
        "ack-if-asked",
        promise,
        1.0,
        **more,  # type: ignore[arg-type]
    )


def share() -> Place:
    """A place where each message goes to everybody."""
    return Place("share", *WORK, STATUS_PUSH, "ack-if-asked", "once-or-more", 1.0, exclusive=False)


def history_of(place: Place, *uids: str) -> History:
    """A history in which these were pushed once each."""
    history = History({place.key: place})
    for index, uid in enumerate(uids):
        sent = Sent(uid, "producer", place, index, False, 3, True)
        sent.pushes = 1
        history.add(sent)
    return history


def confirmed(history: History, uid: str, life: int = 1) -> None:
    """The producer was told that all is well."""
    sent = history.sent[uid]
    sent.confirms += 1
    sent.last_life = life


def received(history: History, uid: str, answer: str = "ack", link: int = 7) -> Receipt:
    """A consumer got a message over a link, and answered."""
    sent = history.sent[uid]
    first = uid not in history.receipts
    receipt = Receipt(uid, "consumer", link, sent.place.key, 1.0, first)
    history.received(receipt, sent.payload(), sent.producer)
    receipt.answer = answer
    return receipt
