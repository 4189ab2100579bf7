"""A cluster in memory for tests: servers without sockets, joined by their links."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Final

from tests.tmqp_server.world import BEGAN, MemoryLink, World
from tmqp.backoff import Backoff
from tmqp.constants import NODE_CLIENT_TYPE
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.cluster.filters import KINDS, NodeFilter, PatternFilter
from tmqp_server.cluster.link import MasterLink
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import HOST_PROPERTY, ClusterRelay
from tmqp_server.engine.commands import Command
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.options import BrokerOptions
from tmqp_server.shell.links import Links
from tmqp_server.shell.outbound import Marks
from tmqp_server.shell.world import Dial, HangUp, LinkOutput, WorldEffect

__all__ = ["TOKEN", "Net", "Node"]

TOKEN: Final = "secret of the cluster"


_MARKS: Final = Marks(4_194_304, 262_144, 65_536, stall_timeout_s=10.0, flush_timeout_s=2.0)


class Node:
    """One server: a world, its relay, and the connections of its links at the moment."""

    def __init__(self, world: World, relay: ClusterRelay, targets: Sequence[str]) -> None:
        self.world = world
        self.relay = relay
        self.targets = targets
        self.wires: dict[Dial, MemoryLink] = {}
        #: Whether others reach it.
        self.away = False
        self.effects: list[WorldEffect] = []
        self.links = Links(self.effects, relay.links, _MARKS, 10.0)

    def perform(self, commands: Sequence[Command]) -> None:
        """Carry out what the links bring."""
        for command in commands:
            if self.relay.heed(command):
                self.world.hub.perform(command, self.world.now)


class Net:
    """Several servers.

    :param masters: the masters of each server, by their names.
    :param share: whether decisions are shared.
    """

    def __init__(
        self,
        masters: Mapping[str, Sequence[str]],
        *,
        share: bool = False,
        options: BrokerOptions | None = None,
        handlers: dict[str, DeliveryHandler] | None = None,
        forward: Sequence[str] = ("*",),
        accept: Sequence[str] = ("*",),
        kinds: Sequence[str] = KINDS,
        custom: NodeFilter | None = None,
        tokens: Mapping[str, str] | None = None,
        buffer_bytes: int = 1 << 20,
    ) -> None:
        self.nodes: dict[str, Node] = {}
        for name, targets in masters.items():
            token = (tokens or {}).get(name, TOKEN)
            who = ConnectionInformation(
                name, name, NODE_CLIENT_TYPE, token, {HOST_PROPERTY: f"host-{name}"}
            )
            links = [
                MasterLink(
                    target,
                    f"host-{target}",
                    who,
                    Limits(),
                    Backoff(1.0, 8.0),
                    Outbox(buffer_bytes),
                    lambda: 1.0,
                    share,
                    BEGAN,
                )
                for target in targets
            ]
            relay = ClusterRelay(
                name,
                token,
                True,
                links,
                PatternFilter(forward, kinds),
                PatternFilter(accept, kinds),
                custom,
            )
            own = BrokerOptions() if options is None else copy.copy(options)
            own.takes_nodes, own.shares_decisions = True, share
            world = World(own, handlers=handlers, relay=relay)
            self.nodes[name] = Node(world, relay, targets)
        #: How often the last :meth:`settle` went round.
        self.rounds = 0
        self.settle()

    def __getitem__(self, name: str) -> World:
        return self.nodes[name].world

    def settle(self) -> None:
        """Let everything that can happen now happen, within bounds."""
        for self.rounds in range(1, 1_000):
            if not sum([self._work(node) for node in self.nodes.values()]):
                return
        raise AssertionError("messages go round for ever")

    def _work(self, node: Node) -> int:
        """Connect, write, read; how much there was to do."""
        node.world.settle()
        now = node.world.now
        if node.links.due() <= now:
            node.perform(node.links.on_deadline(now))
        node.links.feed(now)
        done = self._attend(node)
        return done + sum([self._read(node, dial) for dial in list(node.wires)])

    def _attend(self, node: Node) -> int:
        effects, node.effects[:] = node.effects[:], []
        for effect in effects:
            self._carry_out(node, effect)
        return len(effects)

    def _carry_out(self, node: Node, effect: WorldEffect) -> None:
        now = node.world.now
        if isinstance(effect, Dial):
            target = self.nodes[node.targets[effect.link]]
            if target.away:
                node.perform(node.links.failed(effect, "nobody is there", now))
                return
            node.wires[effect] = target.world.open_link()
            node.links.dialled(effect, now)
        elif isinstance(effect, LinkOutput):
            while data := node.links.piece(effect.dial)[node.links.offset(effect.dial) :][:100]:
                node.wires[effect.dial].send(data)
                node.links.taken(effect.dial, len(data), now)
        elif isinstance(effect, HangUp):
            wire = node.wires.pop(effect.dial, None)
            if wire is not None:
                wire.close()

    def _read(self, node: Node, dial: Dial) -> int:
        wire = node.wires[dial]
        data = wire.receive()
        if data:
            node.perform(node.links.read(dial, data, node.world.now))
        if wire.closed:
            node.perform(node.links.read(dial, b"", node.world.now))
        return len(data)

    def advance(self, seconds: float) -> None:
        """Let time pass everywhere, in steps of a tenth of a second."""
        for _ in range(round(seconds * 10)):
            for node in self.nodes.values():
                node.world.advance_to(node.world.now - node.world.began + 0.1)
            self.settle()

    def cut(self, name: str, *, away: bool = False) -> None:
        """Break every connection to a server; with ``away`` nobody reaches it from now on."""
        target = self.nodes[name]
        target.away = away
        for node in self.nodes.values():
            for dial in list(node.wires):
                if node.targets[dial.link] == name:
                    node.perform(node.links.failed(dial, "broken", node.world.now))
            self._attend(node)
