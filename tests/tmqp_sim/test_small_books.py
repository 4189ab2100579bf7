"""What clients of Simple MQ and goMS are owed: each complaint is made about a history that deserves
it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tmqp.constants import RESULT_LIMIT_EXCEEDED
from tmqp_server.doors.goms.message import GomsMessage
from tmqp_server.doors.smq.message import SmqMessage
from tmqp_server.engine.commands import Acknowledge, Disconnect, Join, Leave, Push, Synced
from tmqp_server.engine.effects import Append, Reply
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_sim.goms_books import TOPICS, Entry, GomsBooks
from tmqp_sim.network import Link, Network, Shape
from tmqp_sim.smq_books import QUEUES, Item, SmqBooks
from tmqp_sim.world import Violation, World

QUEUE = "\x01smq-Sim"
OTHER = "\x01smq-sim"
TOPIC, SECOND, _ = TOPICS


def _links(world: World) -> list[Link]:
    network = Network(world, Shape(0.001, 0.01, 65_536, 0))
    return [network.open() for _ in range(3)]


class Queues:
    """A producer and two consumers of Simple MQ, and a server in its first life."""

    def __init__(self, *, steady: bool = True) -> None:
        world = World(0)
        self.books = SmqBooks(world, steady=steady)
        self.books.streams.watches = True
        self.books.began(())
        self.push, self.one, self.two = _links(world)

    def hand(self, uid: str = "s0") -> None:
        """The producer sends an item."""
        self.books.hands(self.push, Item(uid, QUEUES[0], f"{uid} text".encode()))

    def take(self, uid: str = "s0", channel: str = QUEUE) -> None:
        """The broker takes it."""
        wire = SmqMessage(channel, f"{uid} text".encode())
        number = self.push.number
        self.books.asked(Push(number, f"id-{uid}", channel, 0, False, False, 9, wire))

    def given(self, *uids: str) -> Queues:
        """The first consumer has these."""
        for uid in uids:
            self.hand(uid)
            self.take(uid)
            self.send(uid, self.one)
        return self

    def send(self, uid: str, link: Link) -> None:
        """The broker sends it."""
        origin = Origin(self.push.number, "p", None, None, "smq")
        wire = SmqMessage(QUEUE, f"{uid} text".encode())
        message = Message(f"id-{uid}", origin, QUEUE, 0, 9, wire, 0, 0)
        self.books.sent(QUEUE, message, [link.number])

    def comes(self, uid: str, link: Link) -> None:
        """A consumer gets it."""
        self.books.comes(link, f"{uid} text".encode())

    def answer(self, uid: str, link: Link) -> None:
        """The broker is told that it is done."""
        self.books.asked(Acknowledge(link.number, f"id-{uid}", QUEUE, 0, True))

    def refuse(self, uid: str = "s0") -> None:
        """The broker refuses it."""
        wire = SmqMessage(QUEUE, f"{uid} text".encode())
        self.books.told(Reply(self.push.number, wire, RESULT_LIMIT_EXCEEDED, None))


def _refused_and_on(queues: Queues) -> None:
    for uid in ("s0", "s1"):
        queues.hand(uid)
    queues.take("s0")
    queues.refuse("s0")
    queues.take("s1")


def _too_many_done(queues: Queues) -> None:
    queues.given("s0", "s1")
    queues.books.counts(queues.one, QUEUES[0], 1)
    queues.answer("s0", queues.one)
    queues.answer("s1", queues.one)


def _newest_done(queues: Queues) -> None:
    queues.given("s0", "s1")
    queues.books.counts(queues.one, QUEUES[0], 1)
    queues.answer("s1", queues.one)


def _last_first(queues: Queues) -> None:
    for uid in ("s0", "s1"):
        queues.hand(uid)
        queues.take(uid)
    queues.send("s1", queues.one)
    queues.send("s0", queues.two)


def _counted_in_vain(queues: Queues) -> None:
    queues.given("s0")
    queues.books.counts(queues.one, QUEUES[0], 1)
    queues.books.asked(Disconnect(queues.two.number))
    queues.answer("s0", queues.one)
    queues.books.counts(queues.one, QUEUES[0], 1)
    queues.books.check_end([queues.one.number])


@pytest.mark.parametrize(
    ("tell", "text"),
    [
        (lambda q: q.take(), "was never sent"),
        (lambda q: (q.hand(), q.take(channel=OTHER)), "not b'smq-Sim'"),
        (lambda q: (q.hand("s0"), q.hand("s1"), q.take("s1")), "due is 's0'"),
        (lambda q: (q.given("s0"), q.take("s0")), "due is None"),
        (lambda q: (q.given("s0"), q.send("s0", q.two)), "has it"),
        (lambda q: (q.hand(), q.send("s0", q.one)), "was not taken in"),
        (lambda q: (q.given("s0", "s1"), q.comes("s1", q.one)), "was sent s0"),
        (lambda q: (q.given("s0"), q.answer("s0", q.one)), "more than was counted"),
        (_too_many_done, "more than was counted"),
        (_newest_done, "the oldest it has is id-s0"),
        (_last_first, "behind later ones"),
        (_refused_and_on, "one before it was refused"),
        (lambda q: (q.given("s0"), q.books.check_end(())), "nobody has it"),
        (_counted_in_vain, "has counted 1 more"),
        (lambda q: q.books.check_statistics({"smq-Sim": 1}, {}, "c"), "there are 0 to 0"),
        (lambda q: q.books.check_statistics({}, {QUEUES[0]: 1}, "c"), "is not told"),
        (lambda q: q.books.check_statistics({"x": 0}, {}, "c"), "which nobody uses"),
    ],
)
def test_complaints_of_simple_mq(tell: Callable[[Queues], object], text: str) -> None:
    queues = Queues()
    with pytest.raises(Violation, match=text):
        tell(queues)


def test_nobody_complains_of_what_is_right_with_simple_mq() -> None:
    queues = Queues().given("s0", "s1")
    queues.comes("s0", queues.one)
    queues.books.counts(queues.one, QUEUES[0], 1)
    queues.answer("s0", queues.one)
    queues.books.asked(Disconnect(queues.one.number))
    queues.send("s1", queues.two)
    queues.comes("s1", queues.two)
    queues.books.counts(queues.two, QUEUES[0], 1)
    queues.answer("s1", queues.two)
    queues.hand("s2")
    queues.take("s2")
    queues.refuse("s2")
    queues.books.check_end([queues.two.number])


@pytest.mark.parametrize("steady", [True, False])
def test_what_the_disk_cannot_take_may_be_lost_if_it_is_known_to_fail(steady: bool) -> None:
    queues = Queues(steady=steady)
    queues.hand()
    queues.take()
    wire = SmqMessage(QUEUE, b"s0 text")
    origin = Origin(queues.push.number, "p", None, None, "smq")
    message = Message("id-s0", origin, QUEUE, 0, 9, wire, 0, 0)
    queues.books.kept(Append(7, message, QUEUE, 0, 7, 1, False, 0, 0))
    queues.books.asked(Synced(7, False))
    if steady:
        with pytest.raises(Violation, match="nobody has it"):
            queues.books.check_end(())
    else:
        queues.books.check_end(())


class Topics:
    """Clients of goMS, and a server in its first life."""

    def __init__(self) -> None:
        world = World(0)
        self.books = GomsBooks(world)
        self.books.streams.watches = True
        self.books.began()
        self.sender, self.one, self.two = _links(world)

    def join(self, link: Link, topic: str = TOPIC, *, says: bool = True) -> Topics:
        """A client registers."""
        if says:
            self.books.says(link, topic, joins=True)
        self.books.asked(Join(link.number, None, topic))
        return self

    def hand(self, name: str = "g0", topic: str = TOPIC, *, echoes: bool = False) -> Topics:
        """The sender says something."""
        self.books.hands(self.sender, Entry(name, topic, f"{name} text", echoes=echoes))
        return self

    def take(self, name: str = "g0", topic: str = TOPIC) -> Topics:
        """The broker takes it."""
        wire = GomsMessage("s", topic, f"{name} text", echoes=False)
        number = self.sender.number
        self.books.asked(Push(number, f"id-{name}", topic, 0, False, False, 9, wire))
        return self

    def send(self, name: str, *links: Link, topic: str = TOPIC) -> Topics:
        """The broker sends it."""
        origin = Origin(self.sender.number, "s", None, None, "goms")
        wire = GomsMessage("s", topic, f"{name} text", echoes=False)
        message = Message(f"id-{name}", origin, topic, 0, 9, wire, 0, 0)
        self.books.sent(topic, message, [link.number for link in links])
        return self

    def told(self) -> Topics:
        """One is registered, and the broker has taken a message."""
        return self.join(self.one).hand().take()


@pytest.mark.parametrize(
    ("tell", "text"),
    [
        (lambda t: t.take(), "was not sent"),
        (lambda t: t.hand("g0").hand("g1").take("g1"), "due is 'g0 to goms-one'"),
        (lambda t: t.hand().take(topic=SECOND), "was not sent"),
        (lambda t: t.join(t.one, says=False), "due is None"),
        (lambda t: (t.books.says(t.one, SECOND, joins=True), t.join(t.one)), "due is"),
        (lambda t: t.books.asked(Leave(t.one.number, None, TOPIC)), "leaves"),
        (lambda t: t.told().send("g0", t.one).send("g0", t.one), "which it is not for"),
        (lambda t: t.told().send("g0", t.two), "which it is not for"),
        (lambda t: t.join(t.sender).hand().take().send("g0", t.sender), "which it is not for"),
        (lambda t: t.books.comes(t.one, TOPIC, "g0 text"), "was never sent"),
        (lambda t: (t.told(), t.books.comes(t.one, SECOND, "g0 text")), "was never sent"),
        (
            lambda t: (t.told().hand("g1").take("g1").send("g0", t.one).send("g1", t.one),
                       t.books.comes(t.one, TOPIC, "g1 text")),
            "was sent g0",
        ),
        (lambda t: t.told().books.check_end(0, ()), "did not go to all"),
        (lambda t: t.told().send("g0", t.one).books.check_end(0, [t.one.number]), "did not come"),
        (
            lambda t: (t.books.says(t.one, TOPIC, joins=True),
                       t.books.check_end(0, [t.one.number])),
            "and did not",
        ),
    ],
)  # fmt: skip
def test_complaints_of_goms(tell: Callable[[Topics], object], text: str) -> None:
    topics = Topics()
    with pytest.raises(Violation, match=text):
        tell(topics)


def test_nobody_complains_of_what_is_right_with_goms() -> None:
    topics = Topics().told()
    topics.join(topics.sender).hand("g1", echoes=True).take("g1")
    topics.send("g0", topics.one).send("g1", topics.one, topics.sender)
    for name in ("g0", "g1"):
        topics.books.comes(topics.one, "", f"{name} text")
    topics.books.comes(topics.sender, TOPIC, "g1 text")
    topics.books.says(topics.one, TOPIC, joins=False)
    topics.books.asked(Leave(topics.one.number, None, TOPIC))
    topics.hand("g2").take("g2")
    topics.books.asked(Disconnect(topics.two.number))
    topics.books.check_end(0, [topics.one.number, topics.sender.number])


def test_a_slow_client_may_miss_what_is_counted() -> None:
    topics = Topics().told()
    topics.books.check_end(1, [topics.one.number])


def test_what_a_life_before_has_sent_is_of_the_topic_it_was_sent_for() -> None:
    """It was taken for one of the first topic that its message went to (seed 50092)."""
    topics = Topics()
    topics.join(topics.one, SECOND)
    for topic in (TOPIC, SECOND):
        topics.hand(topic=topic).take(topic=topic)
    topics.send("g0", topics.one, topic=SECOND)
    topics.books.began()
    assert topics.books.comes(topics.one, "", "g0 text").topic == SECOND
    with pytest.raises(Violation, match="was sent nothing"):
        topics.books.comes(topics.one, "", "g0 text")
