"""What a plan consists of: clients, messages and faults, each with a name and a time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from tmqp_server.shell.rates import RateLimits
from tmqp_sim.consumers import Habits
from tmqp_sim.disk import DiskHabits
from tmqp_sim.history import Place, Sent
from tmqp_sim.network import Shape

__all__ = ["ORDINARY", "ClientPlan", "Fault", "MessagePlan", "Plan"]

#: Kinds of queues whose delivery handler may be another one.
ORDINARY: Final = ("work", "share", "polite", "durable", "pull", "spill")
#: Parts of a plan that are a number, 0 where there is nothing of the kind.
_PARTS: Final = (
    "epochs",
    "moves",
    "feeds",
    "nsq",
    "removals",
    "shifts",
    "throttr",
    "zmtp",
    "smq",
    "goms",
    "stomp",
    "openwire",
    "scrapers",
    "cells",
)


class Fault:
    """One fault: its kind, its time, for how long, and a number in 0..1 that picks the victim."""

    __slots__ = ("at", "kind", "lasts_s", "name", "pick")

    def __init__(self, name: str, kind: str, at: float, lasts_s: float, pick: float) -> None:
        self.name = name
        self.kind = kind
        self.at = at
        self.lasts_s = lasts_s
        self.pick = pick

    def __repr__(self) -> str:
        return f"{self.name}: {self.kind} at {self.at:.2f} s for {self.lasts_s:.2f} s"


class MessagePlan:
    """One message: when it comes up, who sends it, where to."""

    __slots__ = (
        "asks",
        "at",
        "cancel_s",
        "delay_s",
        "high",
        "name",
        "place",
        "priority",
        "producer",
        "size",
    )

    def __init__(
        self, name: str, at: float, producer: int, place: int, high: bool, size: int, asks: bool
    ) -> None:
        self.name = name
        self.at = at
        self.producer = producer
        self.place = place
        self.high = high
        self.size = size
        self.asks = asks
        #: For how long it is deferred; how long after its confirm its producer cancels it, negative
        #: for never.
        self.delay_s = 0.0
        self.cancel_s = -1.0
        #: Which of ten priorities it has; negative if it does not say.
        self.priority = -1

    def sent(self, index: int, producer: str, place: Place) -> Sent:
        """What its producer has to send.

        :param index: the message's number in the plan.
        """
        uid = f"m{self.name.rpartition(' ')[2]}"
        sent = Sent(uid, producer, place, index, self.high, self.size, self.asks)
        sent.delay_s, sent.cancel_s = self.delay_s, self.cancel_s
        sent.priority = self.priority
        return sent


class ClientPlan:
    """One client beside the producers: its role and habits, and the place it cares for.

    ``bad`` ones leave when the world heals; the others must bring everything home.
    """

    __slots__ = ("at", "bad", "habits", "name", "place", "role")

    def __init__(
        self, name: str, role: str, place: int, habits: Habits, at: float, bad: bool
    ) -> None:
        self.name = name
        self.role = role
        self.place = place
        self.habits = habits
        self.at = at
        self.bad = bad


class Plan:
    """All that a run begins with."""

    __slots__ = (
        "buffers",
        "bulk_linger_s",
        "bulk_producer",
        "bulk_traces",
        "cells",
        "clients",
        "counts",
        "disk",
        "divides_runs",
        "duration_s",
        "fails",
        "epochs",
        "faults",
        "fed_filters",
        "fed_kind",
        "fed_looks",
        "fed_room",
        "feeds",
        "foreign",
        "goms",
        "guarded",
        "lateness_s",
        "left_out",
        "max_in_flight",
        "memory_bytes",
        "messages",
        "moves",
        "nsq",
        "nsq_durable",
        "places",
        "producers",
        "quiet",
        "rates",
        "removals",
        "scrapers",
        "shifts",
        "seed",
        "shape",
        "shared_address",
        "openwire",
        "openwire_durable",
        "patience_s",
        "smq",
        "smq_durable",
        "stomp",
        "stomp_durable",
        "take_over",
        "tells",
        "throttr",
        "trusting",
        "web_producer",
        "web_sockets",
        "window",
        "work_per_step",
        "zmtp",
        "zmtp_durable",
    )

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.quiet = False
        self.duration_s = 0.0
        self.places: list[Place] = []
        self.producers = 0
        self.window = 1
        self.clients: list[ClientPlan] = []
        self.messages: list[MessagePlan] = []
        self.faults: list[Fault] = []
        self.shape = Shape(0.001, 0.01, 65_536, 100)
        self.disk = DiskHabits(0.001, 0.01, 0)
        self.lateness_s = 0.0
        #: How long a batch may be out before that counts as a failure.
        self.patience_s = math.inf
        self.take_over = False
        self.max_in_flight = 10_000
        self.work_per_step = 1_000
        #: Rights are asked about; channels have an event handler.
        self.guarded = False
        self.tells = False
        #: The server passes every answer on to whom it names, as the original does.
        self.trusting = False
        #: The broker fails now and then at a deadline.
        self.fails = False
        #: What the messages of all queues may take.
        self.memory_bytes = 1_073_741_824
        #: Output limits of the server: high and low water, the most.
        self.buffers = (262_144, 65_536, 4_194_304)
        self._leave_out_the_rest()
        #: The number of the producer that writes many messages at once, if there is one, and for
        #: how long it gathers them.
        self.bulk_producer, self.bulk_linger_s = -1, 0.0
        #: Its messages have headers.
        self.bulk_traces = False
        #: Producers ask how many consumers their messages go to.
        self.counts = False
        #: The number of the producer that publishes by HTTP, if there is one.
        self.web_producer = -1
        #: The names of the clients that come by WebSocket.
        self.web_sockets: tuple[str, ...] = ()
        #: So many of a thousand connections come in by a door of another kind.
        self.foreign = 0
        #: The watched broker is brought no runs.
        self.divides_runs = False
        self.left_out: tuple[str, ...] = ()

    def _leave_out_the_rest(self) -> None:
        """Nobody does what only some runs have."""
        #: So many epochs are written in transactions, and so many items moved in batches.
        self.epochs = self.moves = 0
        #: So many items go through feeds; whether one has a filter, which queues are durable, and
        #: what may wait in a target.
        self.feeds = self.fed_room = 0
        self.fed_filters = True
        self.fed_kind = "durable"
        #: Its feeds are listed now and then.
        self.fed_looks = False
        #: So many questions about counters and values are to be answered to each who keeps some.
        self.cells = 0
        #: So many items are published by clients that speak NSQ; whether topics are durable.
        self.nsq = 0
        self.nsq_durable = True
        #: So many groups of channels are made, and removed at once.
        self.removals = self.shifts = 0
        #: So many clients speak Throttr, and so many watch the server by HTTP.
        self.throttr = self.scrapers = 0
        #: The address from which all connections come; empty if each has one of its own.
        self.shared_address = ""
        #: How fast clients may send, if that is limited.
        self.rates: RateLimits | None = None
        #: So many items are pushed by sockets of ZeroMQ; whether queues are durable.
        self.zmtp = 0
        self.zmtp_durable = False
        #: So many items are sent by clients of Simple MQ, whether its queues are durable; and by
        #: clients of goMS.
        self.smq = self.goms = 0
        self.smq_durable = False
        #: So many units are sent by clients of STOMP, or of OpenWire, whose queues are durable.
        self.stomp = self.openwire = 0
        self.stomp_durable = self.openwire_durable = False

    @property
    def is_narrow(self) -> bool:
        """Whether the server has room for ten messages or so."""
        return self.memory_bytes < 1_000_000

    @property
    def has_sides(self) -> bool:
        """Whether somebody speaks another protocol than TMQP and HTTP."""
        sides = (self.nsq, self.throttr, self.zmtp, self.smq, self.goms, self.stomp, self.openwire)
        return any(sides)

    def names(self) -> list[str]:
        """Everything that can be left out."""
        found = [each.name for each in self.faults]
        found += [each.name for each in self.clients if each.bad]
        found += [each.name for each in self.messages]
        found += [name for name in _PARTS if getattr(self, name)]
        if self.rates is not None:
            found.append("rates")
        if self.web_sockets:
            found.append("web sockets")
        return found

    def without(self, names: Iterable[str]) -> None:
        """Leave things out."""
        gone = {*names}
        self.left_out = tuple(sorted({*self.left_out, *gone}))
        self.faults = [each for each in self.faults if each.name not in gone]
        self.clients = [each for each in self.clients if each.name not in gone]
        self.messages = [each for each in self.messages if each.name not in gone]
        for name in _PARTS:
            if name in gone:
                setattr(self, name, 0)
        if "rates" in gone:
            self.rates = None
        if "web sockets" in gone:
            self.web_sockets = ()

    def use_handler(self, name: str, promise: str) -> None:
        """Let a delivery handler of your own serve the ordinary queues.

        :param name: under which it is registered.
        :param promise: what it keeps: ``once-or-more`` (what it confirms arrives and is answered
            for) or ``none``; any other promise of a queue is not judged.
        """
        for place in self.places:
            place.fleeting = False  # or queues that nobody declares would have the handler
            if place.kind in ORDINARY:
                place.handler = name
                place.promise = promise
        if promise == "none":
            for message in self.messages:
                message.asks = message.asks and self.places[message.place].kind not in ORDINARY

    def described(self) -> list[str]:
        """The plan in lines."""
        lines = [
            (
                f"seed {self.seed}: {'quiet' if self.quiet else 'with faults'},"
                f" {self.duration_s:.1f} s, {self.producers} producers (window {self.window}),"
                f" {len(self.messages)} messages"
            ),
            (
                f"network: up to {self.shape.delay_max * 1000:.1f} ms,"
                f" room {self.shape.room} bytes, {self.shape.splits} of 1000 pieces cut anew"
            ),
            (
                f"server: lateness {self.lateness_s * 1000:.1f} ms, take-over {self.take_over},"
                f" in flight {self.max_in_flight}, work {self.work_per_step},"
                f" memory {self.memory_bytes}, buffers {self.buffers}"
            ),
        ]
        lines += [f"place: {place!r} ({place.handler}, {place.promise})" for place in self.places]
        lines += [f"client: {each.name} ({each.role})" for each in self.clients]
        if self.epochs:
            lines.append(f"epochs: {self.epochs}")
        if self.moves:
            lines.append(f"moves: {self.moves}")
        if self.feeds:
            filters = "filtered" if self.fed_filters else "all"
            lines.append(
                f"feeds: {self.feeds} items, {filters}, {self.fed_kind}, room {self.fed_room},"
                f" {'listed' if self.fed_looks else 'not listed'}"
            )
        if self.cells:
            lines.append(f"cells: {self.cells} answers about them for each who keeps some")
        if self.nsq:
            kept = "durable" if self.nsq_durable else "in memory"
            lines.append(f"NSQ: {self.nsq} items, {kept}")
        if self.removals:
            lines.append(f"removals: {self.removals} groups of channels")
        if self.shifts:
            lines.append(f"moves by an operator: of {self.shifts} messages")
        if self.throttr:
            lines.append(f"Throttr: {self.throttr} clients")
        if self.zmtp:
            kept = "durable" if self.zmtp_durable else "in memory"
            lines.append(f"ZeroMQ: {self.zmtp} items, {kept}")
        if self.smq:
            kept = "durable" if self.smq_durable else "in memory"
            lines.append(f"Simple MQ: {self.smq} items, {kept}")
        if self.goms:
            lines.append(f"goMS: {self.goms} items")
        for title, units, durable in (
            ("STOMP", self.stomp, self.stomp_durable),
            ("OpenWire", self.openwire, self.openwire_durable),
        ):
            if units:
                kept = "durable" if durable else "in memory"
                lines.append(f"{title}: {units} messages or transactions, {kept}")
        if self.bulk_producer >= 0:
            lines.append(
                f"bulk: producer-{self.bulk_producer} gathers for {self.bulk_linger_s} s,"
                f" runs are {'divided' if self.divides_runs else 'taken whole'}"
            )
        if self.web_producer >= 0:
            lines.append(f"HTTP: producer-{self.web_producer}")
        if self.web_sockets:
            lines.append(f"by WebSocket: {', '.join(self.web_sockets)}")
        lines += self._about_the_server()
        if self.foreign:
            lines.append(f"another door: {self.foreign} of 1000 connections")
        lines += [f"fault: {each!r}" for each in self.faults]
        return lines

    def _about_the_server(self) -> list[str]:
        """Who watches it, and how fast clients may be."""
        lines: list[str] = []
        if self.patience_s < math.inf:
            lines.append(f"a write that takes {self.patience_s:g} s counts as one that fails")
        if self.shared_address:
            lines.append(f"all clients come from {self.shared_address}")
        if self.scrapers:
            lines.append(f"who watches by HTTP: {self.scrapers}")
        rates = self.rates
        if rates is not None:
            lines.append(
                f"rates: {rates.client_messages:g} messages and {rates.client_bytes:g} bytes a"
                f" second, {rates.address_messages:g} messages, {rates.address_bytes:g} bytes and"
                f" {rates.address_connections:g} connections of an address, exempt {rates.exempt}"
            )
        return lines
