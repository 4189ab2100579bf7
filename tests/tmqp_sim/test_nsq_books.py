"""What NSQ's clients are owed: each complaint is made about a history that deserves it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tmqp_server.engine.commands import Acknowledge, Disconnect, Extend, Release
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_sim.nsq_books import CHANNELS, MOST_TIMEOUT_S, TIMEOUT_S, TOPICS, Item, NsqBooks
from tmqp_sim.world import Violation, World
from tmqp_wires.nsq.writing import message_frame

_ID = "a" * 16
_FED = [TOPICS[topic] + b":" + name for topic, name in CHANNELS[:-1]]
_FIRST = "\x01nsq-Sim:first"


def _books(*, durable: bool = True) -> NsqBooks:
    """One item of the first topic, published and confirmed; a consumer with the session 7."""
    books = NsqBooks(World(0), durable=durable, steady=True, exact=True)
    books.began(())
    for number in range(len(CHANNELS)):
        books.opened(number, 1)
    item = Item("n0", 0, 3, 0.0)
    books.confirmed(item, books.publishes(item), 1)
    books.windows[7], books.timeouts[7] = 1, TIMEOUT_S
    books.watches = True
    return books


def _send(books: NsqBooks, session: int = 7, name: str = _ID, channel: str = _FIRST) -> None:
    wire = message_frame(0, 1, name.encode(), books.items["n0"].body)
    origin = Origin(1, "p", None, None, "nsq")
    books.sent(channel, Message(name, origin, channel, 0, len(wire), wire, 0, 0), [session])


def _later(books: NsqBooks, seconds: float) -> None:
    books._world.now += seconds


def test_what_comes_to_each_channel_is_fine() -> None:
    books = _books()
    _send(books)
    assert books.received(0, 7, b"n0 xxx", 1) == "n0"
    books.asked(Extend(7, None, _ID, _FIRST, 0, 2_000, 6_000))
    _later(books, TIMEOUT_S - 0.1)
    books.requeues(7, _ID, 1.0)
    books.asked(Release(7, None, _ID, _FIRST, 0, 0, 1_000))
    _later(books, 1.0)
    _send(books)
    books.received(0, 7, b"n0 xxx", 2)
    _later(books, MOST_TIMEOUT_S)
    _send(books, 8)
    books.asked(Disconnect(8))
    _send(books, 9)
    books.began(_FED)
    _send(books, 9)
    assert books.received(3, 9, b"n0 xxx", 5) == "n0"
    for number, (topic, _) in enumerate(CHANNELS):
        if not topic:
            books.done[number].add("n0")
    books.check_end()


def test_each_of_two_requeues_of_a_message_has_its_own_pause() -> None:
    books = _books()
    _send(books)
    books.requeues(7, _ID, 0.3)
    books.requeues(7, _ID, 1.0)
    books.asked(Release(7, None, _ID, _FIRST, 0, 0, 300))
    books.asked(Release(7, None, _ID, _FIRST, 0, 0, 1_000))  # it has the message no more
    _later(books, 0.3)
    _send(books)
    books.requeues(7, _ID, 0.5)
    books.asked(Release(7, None, _ID, _FIRST, 0, 0, 500))
    _later(books, 0.4)
    with pytest.raises(Violation, match="too early"):
        _send(books)


def test_memory_owes_nothing_to_the_next_life() -> None:
    books = _books(durable=False)
    books.began(())
    books.check_end()


def _in_hand(books: NsqBooks) -> None:
    _send(books)
    _send(books, 8)


def _beyond_rdy(books: NsqBooks) -> None:
    _send(books)
    _send(books, name="b" * 16)


def _finished(books: NsqBooks) -> None:
    _send(books)
    books.asked(Acknowledge(7, _ID, _FIRST, 0, True))
    _send(books)


def _too_early(books: NsqBooks) -> None:
    _send(books)
    books.requeues(7, _ID, 1.0)
    books.asked(Release(7, None, _ID, _FIRST, 0, 0, 1_000))
    _later(books, 0.9)
    _send(books)


def _touched(books: NsqBooks) -> None:
    _send(books)
    _later(books, TIMEOUT_S - 0.1)
    books.asked(Extend(7, None, _ID, _FIRST, 0, 2_000, 6_000))
    _later(books, 0.2)
    _send(books, 8)


def _miscounted(books: NsqBooks) -> None:
    _send(books)
    books.received(0, 7, b"n0 xxx", 2)


def _deferred(books: NsqBooks) -> None:
    item = Item("n1", 0, 0, 1.0)
    books.publishes(item)
    _later(books, 0.9)
    books.taken(0, item.body)


@pytest.mark.parametrize(
    "history",
    [
        _in_hand,
        _beyond_rdy,
        _finished,
        _too_early,
        _touched,
        _miscounted,
        _deferred,
        lambda books: _send(books, channel="nsq-Sim"),
        lambda books: books.taken(0, b"n0 xxy"),
        lambda books: books.taken(1, b"n0 xxx"),
        lambda books: books.taken(0, b"n9 "),
        lambda books: books.began(_FED[1:]),
        lambda books: books.check_end(),
    ],
    ids=[
        "two have it",
        "more than RDY",
        "finished",
        "requeued too early",
        "touched",
        "attempts",
        "deferred too early",
        "sent by a topic",
        "damaged",
        "another topic",
        "invented",
        "channel lost",
        "never came",
    ],
)
def test_a_broken_promise_is_noticed(history: Callable[[NsqBooks], object]) -> None:
    books = _books()
    _later(books, 0.1)
    if history.__name__ == "<lambda>":
        late = Item("n5", 0, 0, 0.0)
        books.confirmed(late, books.publishes(late), 1)
    with pytest.raises(Violation, match="nsq"):
        history(books)
