"""A run of two or three servers: honest clients at each, faults between them, then healing.

Every server is whole: turn, hub, broker, relay and links, as in ``simulation.py``, without a disk.
What is judged on the way is in ``passages.py`` (what goes from server to server) and ``uplinks.py``
(when links are tried, given up and written to).  In the end every link stands, nothing waits, and
everything that was written to a connection that stands has arrived.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final

from tmqp.backoff import Backoff
from tmqp.constants import NODE_CLIENT_TYPE, STATUS_ROUND_ROBIN
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_client.config import ClientLimits
from tmqp_server.cluster.filters import KINDS, PatternFilter
from tmqp_server.cluster.link import LinkState, MasterLink
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.doors.native.door import NativeDoor
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.options import BrokerOptions, ChannelOptions, QueueOptions
from tmqp_server.hub.hub import Hub
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.turn import Turn
from tmqp_server.shell.world import Dial, HangUp, LinkOutput, WorldEffect
from tmqp_sim.books import Ballast
from tmqp_sim.built import Built
from tmqp_sim.cluster_clients import CHANNELS, ClusterConsumer, ClusterProducer
from tmqp_sim.cluster_plan import ClusterPlan
from tmqp_sim.history import History, Place
from tmqp_sim.network import CUT_NOTICE_S, Link, Network
from tmqp_sim.outside import Outside
from tmqp_sim.passages import Passage, Passages, Witness
from tmqp_sim.plan import Fault, MessagePlan
from tmqp_sim.results import Result
from tmqp_sim.server import Server
from tmqp_sim.uplinks import CONNECT_TIMEOUT_S, Master, Uplinks
from tmqp_sim.world import Violation, World

__all__ = ["ClusterWorld"]

_TOKEN: Final = "the secret of the cluster"
_HEALING_S: Final = 60.0
_QUIET_S: Final = 2.5
#: Seconds that a server which stops has for its goodbyes.
_GOODBYE_S: Final = 0.8


class _Node:
    """One server with its clients; a stage for them."""

    def __init__(self, cluster: ClusterWorld, number: int, limits: ClientLimits) -> None:
        plan = cluster.plan
        self.cluster = cluster
        self.world = cluster.world
        self.network = cluster.network
        self.name = cluster.names[number]
        self.number = number
        self.places: dict[tuple[str, int], Place] = {}
        self.history = History(self.places)
        self.watched = False
        self.healed = False
        self.broker: Broker
        self.links: list[MasterLink] = []
        self.server = Server(
            self.world, self._build, self._began, self._store, Outside(self.world, list),
            plan.lateness_s, cluster.protocol.ping_interval_s, self.name,
        )  # fmt: skip
        self.chance = self.world.child(f"{self.name} links")
        self.producer = ClusterProducer(
            self, f"producer-{self.name}", limits, self.name, cluster.passages
        )
        self.consumers = [
            ClusterConsumer(
                self, f"consumer-{self.name}{more}", limits, self.name, cluster.passages, channel
            )
            for channel, more in zip(
                CHANNELS, ("", "-exact") if plan.exact else ("",), strict=False
            )
        ]
        self.uplinks: Uplinks

    def join(self) -> None:
        """Find the way to its masters, when all servers are there."""
        cluster = self.cluster
        masters = [
            Master(cluster.nodes[number].server, self._reach(number), self._record(number))
            for number in cluster.plan.masters[self.number]
        ]
        self.uplinks = Uplinks(self.server, self.network, masters, cluster.plan.loses_dials)
        starters: dict[type, Callable[[Any], None]] = {
            Dial: self.uplinks.dial,
            LinkOutput: self.uplinks.output,
            HangUp: self.uplinks.hang_up,
        }
        self.server.join(self.uplinks, starters)

    def _reach(self, number: int) -> Reach:
        return Reach(self.cluster, self.number, number)

    def _record(self, number: int) -> Record:
        return Record(self.cluster.passages, self.name, self.cluster.names[number])

    # -- its lives ------------------------------------------------------------------------------

    def _build(self) -> Built:
        cluster = self.cluster
        plan = cluster.plan
        queue = QueueOptions(request_acknowledge=True, acknowledge_timeout_ms=1_500)
        queue.status = STATUS_ROUND_ROBIN
        options = BrokerOptions(
            channel=ChannelOptions(queue=queue), takes_nodes=True, shares_decisions=plan.shares
        )
        self.broker = Broker(None, options)
        who = ConnectionInformation(self.name, self.name, NODE_CLIENT_TYPE, _TOKEN)
        self.links = [
            MasterLink(
                cluster.names[number], "host", who, cluster.protocol, Backoff(0.3, 2.0),
                Outbox(plan.buffer_bytes), self.chance.random, plan.shares, self.server.now,
            )
            for number in plan.masters[self.number]
        ]  # fmt: skip
        everything = PatternFilter(("*",), KINDS)
        relay = ClusterRelay(self.name, _TOKEN, True, self.links, everything, everything)
        cluster.passages.restart(self.name)
        witness = Witness(relay, self.name, cluster.passages)
        hub = Hub(self.broker, cluster.marks.high_bytes, relay=witness)
        door = NativeDoor(cluster.new_id, cluster.protocol)
        turn = Turn(hub, cluster.marks, masters=self.links, connect_timeout_s=CONNECT_TIMEOUT_S)
        return Built(turn, door, Ballast(self.broker, 0))

    def _began(self) -> None:
        """Nothing is brought back: there is no disk."""

    def _store(self, effect: WorldEffect) -> None:
        raise Violation("disk", f"{self.name} has no store: {effect!r}")

    def stop(self) -> None:
        """Leave politely, and come back."""
        self.server.stop("the server stops")
        self.world.after(_GOODBYE_S, self._stopped, self.server.lives)

    def _stopped(self, life: int) -> None:
        server = self.server
        if not server.up or server.lives != life:
            return
        if not server.asleep:
            self.world.mark("server of a cluster stopped in order")
            server.drop_sessions()
            server.turn.finish(server.now)
        self.crash(0.1)

    def crash(self, back_s: float) -> None:
        """The process is gone, and is started again after a while."""
        self.server.crash()
        self.world.after(back_s, self.server.start)

    # -- in the end -----------------------------------------------------------------------------

    def owes(self) -> str:
        """What is not as it must be in the end, if something is not; by whom."""
        for client in (self.producer, *self.consumers):
            if not client.usable or client.link.dead:
                return f"{client.name} is not connected"
        if self.producer.ready:
            return f"{self.producer.name} has {len(self.producer.ready)} messages to push"
        for index, link in enumerate(self.links):
            passage = self.uplinks.standing(index)
            if link.state != LinkState.UP or passage is None:
                return f"{self.name} has no connection to {link.node_id}"
            if len(link.outbox):
                return f"{self.name} has {len(link.outbox)} messages for {link.node_id}"
            under_way = self.cluster.passages.under_way(passage)
            if under_way:
                return f"{under_way} did not come from {self.name} to {link.node_id}"
        waiting = sum([queue.live() for queue in self.broker.queues()])
        return f"{waiting} messages wait at {self.name}" if waiting else ""


class Reach:
    """Whether packets go from one server to another."""

    def __init__(self, cluster: ClusterWorld, here: int, there: int) -> None:
        self._cluster = cluster
        self._pair = (min(here, there), max(here, there))

    def __call__(self) -> bool:
        cluster = self._cluster
        return cluster.parted.get(self._pair, 0.0) <= cluster.world.now


class Record:
    """Begins the record of a connection."""

    def __init__(self, passages: Passages, slave: str, master: str) -> None:
        self._passages = passages
        self._slave = slave
        self._master = master

    def __call__(self) -> Passage:
        return Passage(self._passages, self._slave, self._master)


class ClusterWorld:
    """One run."""

    def __init__(self, plan: ClusterPlan) -> None:
        self.plan = plan
        self.world = World(plan.seed)
        self.network = Network(self.world, plan.shape)
        self.healed = False
        self.protocol = Limits(ping_interval_s=2.0, handshake_timeout_s=3.0)
        self.marks = Marks(8_192, 2_048, 512, stall_timeout_s=1.5, flush_timeout_s=0.5)
        self.names = [f"node-{number}" for number in range(len(plan.masters))]
        masters = [[self.names[each] for each in numbers] for numbers in plan.masters]
        self.passages = Passages(
            self.world, dict(zip(self.names, masters, strict=True)), plan.exact
        )
        #: Pairs of servers that do not reach each other, and until when.
        self.parted: dict[tuple[int, int], float] = {}
        self._ids = 0
        limits = ClientLimits(
            protocol=self.protocol, response_timeout_s=3.0, acknowledge_timeout_s=2.0
        )
        self.nodes = [_Node(self, number, limits) for number in range(len(plan.masters))]
        for node in self.nodes:
            node.join()

    def new_id(self) -> str:
        """An id that a door gives."""
        self._ids += 1
        return f"door-{self._ids}"

    # -- faults ---------------------------------------------------------------------------------

    def _uplinks(self) -> list[Link]:
        return [link for node in self.nodes for link in node.uplinks.links]

    def _inject(self, fault: Fault) -> None:
        if self.healed:
            return
        self.world.note("fault", repr(fault))
        if fault.kind in ("node-crash", "node-freeze", "node-stop"):
            struck = self._inject_node(fault)
        elif fault.kind == "partition":
            struck = self._part(fault)
        else:
            struck = self._inject_link(fault)
        if struck:
            self.world.mark(f"fault: {fault.kind}")

    def _inject_node(self, fault: Fault) -> bool:
        node = self.nodes[int(fault.pick * len(self.nodes))]
        server = node.server
        if not server.up or server.asleep:
            return False
        if fault.kind == "node-crash":
            node.crash(fault.lasts_s)
        elif fault.kind == "node-stop":
            node.stop()
        else:
            left_s = self.plan.duration_s - self.world.now
            server.freeze(min(fault.lasts_s, max(left_s, 0.01)))
        return True

    def _inject_link(self, fault: Fault) -> bool:
        links = [link for link in self._uplinks() if not link.dead]
        if fault.kind == "client-cut":
            links = [link for link in self.network.living() if not link.host]
        if not links:
            return False
        link = links[int(fault.pick * len(links))]
        late_s = CUT_NOTICE_S * fault.pick
        if fault.kind in ("node-cut", "client-cut"):
            link.cut(*((late_s, 0.0) if fault.lasts_s > 0.5 else (0.0, late_s)))
        elif fault.kind == "node-half-open":
            link.dead = True
        elif fault.kind == "node-silence":
            pipe = link.up if int(fault.pick * 1000) % 2 else link.down
            pipe.silent = True
            self.world.after(fault.lasts_s, pipe.speak)
        else:
            for each in links:
                each.up.clogged_by = each.down.clogged_by = fault.pick
                self.world.after(fault.lasts_s, self._unclog, each)
        return True

    def _unclog(self, link: Link) -> None:
        link.up.clogged_by = link.down.clogged_by = 0.0

    def _part(self, fault: Fault) -> bool:
        first = int(fault.pick * len(self.nodes))
        second = (first + 1) % len(self.nodes)
        pair = (min(first, second), max(first, second))
        until = self.world.now + fault.lasts_s
        self.parted[pair] = max(until, self.parted.get(pair, 0.0))
        for here, there in (pair, pair[::-1]):
            for index, number in enumerate(self.plan.masters[here]):
                uplink = self.nodes[here].uplinks.current.get(index)
                if number != there or uplink is None or uplink.end is None:
                    continue
                for pipe in (uplink.end.link.up, uplink.end.link.down):
                    pipe.silent = True
                    self.world.after(fault.lasts_s, pipe.speak)
        return True

    # -- the run --------------------------------------------------------------------------------

    def _schedule(self) -> None:
        for number, node in enumerate(self.nodes):
            self.world.at(0.01 * number, node.server.start)
            self.world.at(0.05 + 0.01 * number, node.producer.connect)
            for consumer in node.consumers:
                self.world.at(0.06 + 0.01 * number, consumer.connect)
        for message in self.plan.messages:
            self.world.at(message.at, self._give, message)
        for fault in self.plan.faults:
            self.world.at(fault.at, self._inject, fault)

    def _give(self, message: MessagePlan) -> None:
        self.nodes[message.producer].producer.give(message)

    def _heal(self) -> None:
        self.healed = True
        self.world.note("heals")
        self.network.heal()
        self.parted.clear()
        for node in self.nodes:
            node.healed = True
            node.uplinks.loses_dials = 0
            if node.server.asleep:
                node.server.wake(node.server.lives)
            if not node.server.up:
                node.server.start()

    def _owed(self) -> list[str]:
        return [owed for owed in [node.owes() for node in self.nodes] if owed]

    def _at_home(self) -> bool:
        return all(not node.owes() for node in self.nodes)

    def _judge(self) -> tuple[str, str]:
        """The checker that complains, and what it says."""
        owed = self._owed()
        if owed:
            return "stuck", "\n".join(owed)
        found: list[str] = []
        for node in self.nodes:
            found += self.passages.complaints(node.name, node.links)
            if any(link.outbox.dropped for link in node.links):
                self.world.mark("messages for a master given up")
        return ("cluster" if found else ""), "\n".join(found)

    def go(self) -> Result:
        """Let it happen."""
        checker = text = ""
        healed_in = 0.0
        try:
            self._schedule()
            self.world.run(self.plan.duration_s)
            self._heal()
            self.world.run(self.world.now + _HEALING_S, self._at_home)
            healed_in = self.world.now - self.plan.duration_s
            self.world.run(self.world.now + _QUIET_S)
            checker, text = self._judge()
        except Violation as violation:
            checker, text = violation.checker, violation.text
        except Exception:  # noqa: BLE001 - whatever our code raises is a finding
            checker, text = "exception", traceback.format_exc()
        if not checker:
            self.world.mark("cluster of servers")
        return Result(self.plan, self.world, checker, text, healed_in)
