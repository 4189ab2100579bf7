"""The consumers: honest, careless, slow and flapping ones, and those who pull.

A consumer says what it got in the history, deals with it for a while, and answers.  What it has
answered positively is done, whether the answer arrives or not.
"""

from __future__ import annotations

from typing import Final

from tmqp.constants import TYPE_ACKNOWLEDGE, HeaderName
from tmqp.extensions import REASON_RELEASE
from tmqp.frames import Frame
from tmqp_client._core import requests
from tmqp_client._core.arguments import Pairs
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.outcomes import NotRestored
from tmqp_client._core.pending import Kind, Pending
from tmqp_client._core.pulls import PullUnderWay
from tmqp_client.config import ClientLimits
from tmqp_client.errors import ClientError
from tmqp_sim.burials import check_letter
from tmqp_sim.clients import SimClient
from tmqp_sim.history import Receipt
from tmqp_sim.retuning import Tuner
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["Consumer", "Habits", "Meddler", "Puller"]

#: What a message has left of its 16 hops when it comes to a consumer (F11).
_TTL_OF_DELIVERY: Final = 15
#: How often a puller asks.
_PULL_EVERY_S: Final = 0.3


class Habits:
    """How a consumer behaves, in parts of a thousand and in seconds."""

    __slots__ = (
        "at_once",
        "bulk_s",
        "extend",
        "filter",
        "flap_s",
        "forget",
        "give_back",
        "nack",
        "pace_s",
        "retune_s",
        "terms",
        "work_s",
    )

    def __init__(
        self,
        work_s: float = 0.05,
        nack: int = 0,
        forget: int = 0,
        flap_s: float = 0.0,
        pace_s: float = 0.0,
        bulk_s: float = 0.0,
    ) -> None:
        #: It deals with a message for up to so long.
        self.work_s = work_s
        #: It answers negatively.
        self.nack = nack
        #: It does not answer at all.
        self.forget = forget
        #: It goes and comes back about so often; 0 for never.
        self.flap_s = flap_s
        #: It takes one message in so long; 0 for at once.
        self.pace_s = pace_s
        #: It gathers answers for so long and writes them together; 0 for at once.
        self.bulk_s = bulk_s
        #: It gives the message back.
        self.give_back = 0
        #: To the end of its queue, and not for later.
        self.at_once = False
        #: It asks for more time, and takes it.
        self.extend = 0
        #: What it wants of its subscription.
        self.terms: Pairs = ()
        #: It changes that about so often; 0 for never.
        self.retune_s = 0.0
        #: What it wants; None is everything.
        self.filter: str | None = None


class Consumer(SimClient):
    """Joins a channel and deals with what comes."""

    def __init__(
        self,
        simulation: Stage,
        name: str,
        limits: ClientLimits,
        channel: str,
        habits: Habits,
    ) -> None:
        super().__init__(simulation, name, limits)
        self.channel = channel
        self.habits = habits
        self.joined = False
        self._taking = False
        self._gathering = False
        #: Messages in the inbox that came over an earlier connection.
        self._left_over = 0
        self.inbox: Inbox[Frame] = self.machine.subscribe(channel, None)
        self._tuner = Tuner(self, habits.retune_s) if habits.retune_s else None

    def forgets(self) -> None:
        """A new machine knows no subscription."""
        self.joined = False
        self._left_over = 0
        self.inbox = self.machine.subscribe(self.channel, None)

    def begin(self) -> None:
        """Join, or join again what the last connection had joined."""
        if self.machine.joins:
            self.world.mark("joined again after a loss")  # which the machine does by itself
            self.joined = True
        else:
            wanted = requests.join(self.channel, self.habits.filter, None, self.habits.terms)
            self.machine.request(wanted, self.world.now)
        if self.habits.flap_s:
            delay = self.habits.flap_s * (0.2 + self.random.random())
            self.later(delay, self._flap)
        if self._tuner is not None:
            self._tuner.begin()
        self.flush()

    def _flap(self) -> None:
        self.world.mark("client flapped")
        self.leave(politely=self.random.random() < 0.5)

    def settled(self, pending: Pending) -> None:
        """Joined, or not: then try on another connection."""
        if pending.asked.startswith("extend"):
            return  # whether or not there was something left to extend
        if self._tuner is not None and self._tuner.settled(pending):
            return
        if pending.kind == Kind.OPERATION and self.machine.lost is None:
            if pending.error is None:
                self.joined = True
            else:
                self.world.mark("join failed")
                self.world.after(0.0, self.leave, False)

    def not_restored(self, outcome: NotRestored) -> None:
        """The channel is not to be had any more: try on another connection."""
        self.joined = False
        self.world.mark("join failed")
        self.world.after(0.0, self.leave, False)

    def lost(self) -> None:
        """What was not answered will come again; what is in the inbox must be gone."""
        self.joined = False
        self._left_over = len(self.inbox)
        left = [frame for frame, _ in self.inbox.items if frame.pending_acknowledge]
        if left:
            raise Violation("client", f"{self.name} keeps {left} of a connection that is lost")

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Take what came, at once or at one's pace."""
        if inbox is not self.inbox:
            return
        if self.habits.pace_s:
            if not self._taking and len(inbox):
                self._taking = True
                self.world.after(self.habits.pace_s, self._take_slowly)
            return
        while len(inbox):
            self.take(inbox.take())
        self.flush()

    def _take_slowly(self) -> None:
        self._taking = False
        if len(self.inbox):
            self.take(self.inbox.take())
            self.flush()
        self.read_on()
        if len(self.inbox):
            self._taking = True
            self.world.after(self.habits.pace_s, self._take_slowly)

    def take(self, frame: Frame) -> None:
        """One message has come."""
        if self._tuner is not None:
            self._tuner.takes()
        left_over = self._left_over > 0
        if left_over:
            self._left_over -= 1
        receipt = Receipt(
            frame.message_id,
            self.name,
            0 if left_over else self.link.number,
            (frame.target, frame.content_type),
            self.world.now,
            frame.first_acquirer,
        )
        history = self.simulation.history
        history.received(receipt, bytes(frame.payload), frame.source)
        self.world.note("got", self.name, frame.message_id)
        if check_letter(frame, history.sent[receipt.uid].place, receipt.place_key):
            self.world.mark("dead letter says why")
        if frame.ttl != _TTL_OF_DELIVERY:
            raise Violation("door", f"{frame.message_id} has {frame.ttl} hops left, not 15 (F11)")
        place = self.simulation.places.get(receipt.place_key)
        if place is not None and frame.pending_acknowledge != place.acks:
            raise Violation("door", f"{frame.message_id} of {place}: wrong flag for acknowledges")
        if not frame.pending_acknowledge:
            receipt.answer = "ack"
            return
        draw = self.random.randrange(1000)
        habits = self.habits
        healed = self.simulation.healed
        if not healed and draw < habits.forget:
            self.world.mark("consumer forgot to answer")
            return
        nack = not healed and habits.forget <= draw < habits.forget + habits.nack
        connection = self.connection
        delay = habits.work_s * self.random.random()
        if not healed and habits.extend and self.random.randrange(1000) < habits.extend:
            delay += self._extend(frame)
        if not healed and habits.give_back and self.random.randrange(1000) < habits.give_back:
            self.world.after(delay, self._give_back, connection, frame, receipt)
            return
        self.world.after(delay, self._answer, connection, frame, receipt, nack)

    def _answer(self, connection: int, frame: Frame, receipt: Receipt, nack: bool) -> None:
        if connection != self.connection or not self.usable:
            self.world.mark("answer lost with the connection")
            return
        try:
            self.machine.acknowledge(frame, "error" if nack else None)
        except ClientError:
            return
        receipt.answer = "nack" if nack else "ack"
        if nack:
            self.world.mark("negative acknowledge")
        self._write_soon()

    def _extend(self, frame: Frame) -> float:
        """Ask for more time, or less; how much of it is taken."""
        seconds = self.random.choice((0.05, 0.5, 2.0))
        request = requests.extend(frame.target, frame.content_type, frame.message_id, seconds)
        try:
            self.machine.request(request, self.world.now)
        except ClientError:
            return 0.0
        self.world.mark("delivery extended")
        self.flush()
        return seconds * self.random.choice((0.2, 0.9))

    def _give_back(self, connection: int, frame: Frame, receipt: Receipt) -> None:
        """It is to be sent again, to this consumer or another, at once or later."""
        if connection != self.connection or not self.usable:
            self.world.mark("answer lost with the connection")
            return
        delay_s = self.random.choice((0.0, 0.0, 0.1, 0.6))
        to = self.random.choice(("front", "end"))
        if self.habits.at_once:
            delay_s, to = 0.0, "end"
        headers = requests.release_headers(delay_s, to, self.random.random() < 0.5)
        try:
            self.machine.acknowledge(frame, REASON_RELEASE, headers)
        except ClientError:
            return
        receipt.answer = "back"
        self.world.mark("delivery given back, for later" if delay_s else "delivery given back")
        self._write_soon()

    def _write_soon(self) -> None:
        if not self.habits.bulk_s:
            self.flush()
        elif not self._gathering:
            self._gathering = True
            self.world.after(self.habits.bulk_s, self._write_answers)

    def _write_answers(self) -> None:
        self._gathering = False
        self.flush()


class Puller(Consumer):
    """Joins a channel and asks for the messages of its pull queue."""

    def __init__(
        self,
        simulation: Stage,
        name: str,
        limits: ClientLimits,
        channel: str,
        queue_id: int,
        habits: Habits,
        newest_first: bool,
    ) -> None:
        super().__init__(simulation, name, limits, channel, habits)
        self.queue_id = queue_id
        self.newest_first = newest_first
        self.pull: PullUnderWay | None = None

    def begin(self) -> None:
        """Join, and ask from time to time."""
        super().begin()
        self.pull = None
        self.later(_PULL_EVERY_S, self._ask)

    def forgets(self) -> None:
        """The pull in progress is not known any more."""
        super().forgets()
        self.pull = None

    def lost(self) -> None:
        """The pull is over, and was told so."""
        super().lost()
        if self.pull is not None and not self.pull.over:
            raise Violation("client", f"{self.name}: a pull goes on without a connection")
        self.pull = None

    def _ask(self) -> None:
        self.later(_PULL_EVERY_S, self._ask)
        if not self.joined or self.pull is not None:
            return
        count = self.random.randrange(1, 6)
        order = "lifo" if self.newest_first else "fifo"
        request = requests.PullRequest(self.channel, self.queue_id, count, order, "None", True)
        self.pull = self.machine.pull(request)
        self.flush()

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Messages of the pull, or its end."""
        pull = self.pull
        if pull is None or inbox is not pull.inbox:
            super().arrived(inbox)
            return
        got = 0
        while len(inbox):
            self.take(inbox.take())
            got += 1
        if got:
            self.world.mark("pulled")
        if pull.over:
            self.pull = None
            if pull.reason == "Empty":
                self.world.mark("pull of an empty queue")
        self.flush()


class Meddler(SimClient):
    """Answers for what others have in flight, again and again; has joined nothing."""

    def begin(self) -> None:
        """Go at it."""
        self.later(0.02, self._meddle)

    def _meddle(self) -> None:
        self.later(0.02 + 0.2 * self.random.random(), self._meddle)
        known = list(self.simulation.history.sent.values())
        if not known:
            return
        sent = known[self.random.randrange(len(known))]
        reason = None if self.random.random() < 0.5 else "error"
        headers = () if reason is None else ((HeaderName.NACK_REASON.value, reason),)
        place = sent.place
        self.machine.send(
            Frame.build(
                TYPE_ACKNOWLEDGE,
                place.channel,
                place.queue_id,
                message_id=sent.uid,
                source=self.machine.client_id,
                headers=headers,
            )
        )
        self.world.mark("answered for others")
        self.flush()
