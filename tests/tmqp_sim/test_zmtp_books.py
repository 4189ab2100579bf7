"""What ZeroMQ's sockets are owed: each complaint is made about a history that deserves it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tmqp_server.doors.letters import Letters
from tmqp_server.doors.zmtp.filters import TopicFilter
from tmqp_server.doors.zmtp.message import ZmtpRequest
from tmqp_server.engine.commands import Acknowledge, Disconnect, Join, Leave, Push, Synced
from tmqp_server.engine.effects import Append
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_sim.network import Link, Network, Shape
from tmqp_sim.world import Violation, World
from tmqp_sim.zmtp_books import Item, ZmtpBooks
from tmqp_wires.zmtp.frames import message_frames

QUEUE = "\x01zeromq.queue"
SERVICE = "\x01zeromq.service"
TOPIC = "\x01zeromq.topic"


class Story:
    """Sockets with connections of their own, and a server in its first life."""

    def __init__(self, *, durable: bool = True, mark: int = 2, steady: bool = True) -> None:
        self.world = World(0)
        network = Network(self.world, Shape(0.001, 0.01, 65_536, 0))
        self.books = ZmtpBooks(self.world, durable=durable, mark=mark, steady=steady)
        self.books.watches = True
        self.books.began(())
        self.links: list[Link] = []
        for _ in range(4):
            link = network.open()
            link.life = 1
            self.links.append(link)
        self.push, self.pull, self.other, self.sub = self.links

    def item(self, uid: str, *more: bytes) -> Item:
        return Item(uid, [f"{uid} text".encode(), *more])

    def hand(self, uid: str = "z0", *, takes: bool = True, channel: str = QUEUE) -> None:
        """A producer sends an item, and the broker takes it."""
        item = self.item(uid)
        if channel == TOPIC:
            item.parts = [b"topic", *item.parts]
        self.books.hands(self.push, item)
        if takes:
            self.take(uid, channel)

    def take(self, uid: str, channel: str = QUEUE) -> None:
        command = Push(self.push.number, f"id-{uid}", channel, 0, False, False, 9, self.wire(uid))
        self.books.asked(command)

    def wire(self, uid: str) -> bytes:
        return message_frames(self.books.items[uid].parts)

    def message(self, uid: str, channel: str = QUEUE) -> Message:
        origin = Origin(self.push.number, "p", None, None, "zmtp")
        wire: object = self.wire(uid)
        if channel == SERVICE:
            wire = ZmtpRequest(f"id-{uid}", "p", self.wire(uid))
        return Message(f"id-{uid}", origin, channel, 0, 9, wire, 0, 0)

    def send(self, uid: str, link: Link, channel: str = QUEUE) -> None:
        """The broker sends it."""
        self.books.sent(channel, self.message(uid, channel), [link.number])

    def pulls(self, uid: str, link: Link) -> None:
        """A PULL socket gets it."""
        self.books.pulled(link, self.books.items[uid].parts)

    def done(self, uid: str, link: Link) -> None:
        self.books.asked(Acknowledge(link.number, f"id-{uid}", QUEUE, 0, True))

    def join(self, *prefixes: bytes) -> None:
        chosen = TopicFilter(prefixes, Letters())
        self.books.asked(Join(self.sub.number, None, TOPIC, filter=chosen))

    def end(self, counted: int = 0, skipped: int = 0, *living: Link) -> None:
        self.books.check_end({self.sub.number: counted}, skipped, [each.number for each in living])


def test_a_message_that_is_pulled_is_fine() -> None:
    story = Story()
    story.hand("z0")
    story.hand("z1")
    story.send("z0", story.pull)
    story.send("z1", story.pull)
    story.pulls("z0", story.pull)
    story.done("z0", story.pull)
    story.books.asked(Disconnect(story.pull.number))
    story.send("z1", story.other)
    story.pulls("z1", story.other)
    story.done("z1", story.other)
    story.end()


def test_a_queue_on_disk_may_send_again_in_another_life() -> None:
    story = Story()
    story.hand()
    story.send("z0", story.pull)
    story.pulls("z0", story.pull)
    story.books.began([(b"zeromq.queue", story.message("z0"))])
    story.other.life = 2
    story.send("z0", story.other)
    story.pulls("z0", story.other)
    story.done("z0", story.other)
    story.end()


def test_memory_owes_nothing_to_the_next_life() -> None:
    story = Story(durable=False)
    story.hand()
    story.books.began(())
    story.end()


def test_what_a_failing_disk_loses_is_excused() -> None:
    story = Story(steady=False)
    story.hand()
    story.books.kept(Append(1, story.message("z0"), QUEUE, 0, 7, 1, False, 0, 0))
    story.books.asked(Synced(1, False))
    story.end()


def test_a_push_that_waits_may_go_with_its_socket() -> None:
    story = Story()
    story.hand()
    story.books.holds = lambda session: session == story.push.number
    story.books.asked(Disconnect(story.push.number))
    story.end()


def test_what_is_due_is_what_was_sent_last_until_it_comes() -> None:
    story = Story()
    story.join(b"topic")
    assert story.books.last_due(story.sub.number) == ""
    story.hand("z0", channel=TOPIC)
    story.send("z0", story.sub, TOPIC)
    assert story.books.last_due(story.sub.number) == "z0"
    story.books.heard(story.sub, story.books.items["z0"].parts, frozenset((b"topic",)))
    assert story.books.last_due(story.sub.number) == ""


def test_a_slow_subscriber_may_miss_what_is_counted() -> None:
    story = Story(mark=2)
    story.books.wants(story.sub, frozenset((b"top",)))
    story.join(b"top")
    for uid in ("n0", "n1", "n2", "n3"):
        story.hand(uid, channel=TOPIC)
        story.send(uid, story.sub, TOPIC)
    for uid in ("n0", "n1"):
        story.books.heard(story.sub, story.books.items[uid].parts, frozenset((b"top",)))
    story.end(2, 0, story.sub)


def _twice(story: Story) -> None:
    story.hand()
    story.send("z0", story.pull)
    story.pulls("z0", story.pull)
    story.books.asked(Disconnect(story.pull.number))
    story.send("z0", story.other)
    story.pulls("z0", story.other)


def _beside(story: Story) -> None:
    story.hand()
    story.send("z0", story.pull)
    story.send("z0", story.other)


def _again(story: Story) -> None:
    story.hand()
    story.send("z0", story.pull)
    story.done("z0", story.pull)
    story.send("z0", story.other)


def _gap_at_the_server(story: Story) -> None:
    story.hand("z0", takes=False)
    story.hand("z1")


def _gap_at_the_socket(story: Story) -> None:
    for uid in ("z0", "z1"):
        story.hand(uid)
        story.send(uid, story.pull)
    story.pulls("z1", story.pull)


def _disorder(story: Story) -> None:
    story.hand("z0")
    story.hand("z1")
    story.send("z1", story.pull)
    story.send("z0", story.pull)


def _lost(story: Story) -> None:
    story.hand()
    story.end()


def _changed(story: Story) -> None:
    story.hand()
    story.send("z0", story.pull)
    story.books.pulled(story.pull, [b"z0 another text"])


def _unsubscribed(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"x",)))
    story.join(b"x")
    story.hand("n0", channel=TOPIC)
    story.send("n0", story.sub, TOPIC)


def _not_what_it_said(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"x",)))
    story.join(b"y")


def _not_to_all(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"t",)))
    story.join(b"t")
    story.hand("n0", channel=TOPIC)
    story.end(0, 0, story.sub)


def _deaf(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"t",)))
    story.end(0, 0, story.sub)


def _still_subscribed(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"t",)))
    story.join(b"t")
    story.books.wants(story.sub, frozenset())
    story.books.asked(Leave(story.sub.number, None, TOPIC))
    story.hand("n0", channel=TOPIC)
    story.send("n0", story.sub, TOPIC)


def _dropped_with_room(story: Story) -> None:
    story.books.wants(story.sub, frozenset((b"t",)))
    story.join(b"t")
    for uid in ("n0", "n1"):
        story.hand(uid, channel=TOPIC)
        story.send(uid, story.sub, TOPIC)
    story.books.heard(story.sub, story.books.items["n1"].parts, frozenset((b"t",)))


def _miscounted(story: Story) -> None:
    story.end(1)


def _two_requests(story: Story) -> None:
    story.books.works(story.pull)
    for uid in ("r0", "r1"):
        story.hand(uid, channel=SERVICE)
        story.send(uid, story.pull, SERVICE)


def _two_replies(story: Story) -> None:
    story.books.replied(story.push, "r0")
    story.books.replied(story.push, "r0")


class _Closed:
    """The server's session of a connection that its peer has closed."""

    reason = "the peer closed the connection"

    def readable(self) -> None: ...

    def writable(self) -> None: ...

    def broken(self, reason: str) -> None: ...


def _unread(story: Story) -> None:
    story.hand(takes=False)
    story.books.closes(story.push)
    story.push.server.owner = _Closed()
    story.end()


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (_twice, "comes to PULL sockets twice"),
        (_beside, "has it"),
        (_again, "was done"),
        (_gap_at_the_server, "pushes z1, due is 'z0'"),
        (_gap_at_the_socket, "gets z1, and was sent z0"),
        (_disorder, "behind later ones"),
        (_lost, "nobody has it"),
        (_changed, "was never sent"),
        (_unsubscribed, "which wants"),
        (_not_what_it_said, "said no socket"),
        (_not_to_all, "did not go to all"),
        (_deaf, "its socket to"),
        (_still_subscribed, "which wants"),
        (_dropped_with_room, "and 0 were before it"),
        (_miscounted, "1 were counted"),
        (_two_requests, "beside another request"),
        (_two_replies, "replied to twice"),
        (_unread, "was sent before a client closed"),
    ],
)
def test_what_is_wrong_is_noticed(spoil: Callable[[Story], None], text: str) -> None:
    with pytest.raises(Violation, match=text):
        spoil(Story())
