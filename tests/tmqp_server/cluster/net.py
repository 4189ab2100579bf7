"""Owns a cluster in memory for tests: servers without sockets, joined by their links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tests.tmqp_server.world import MemoryLink, World
from tmqp.backoff import Backoff
from tmqp.constants import NODE_CLIENT_TYPE
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.cluster.filters import KINDS, NodeFilter, PatternFilter
from tmqp_server.cluster.link import Link, LinkState
from tmqp_server.cluster.outbox import Outbox
from tmqp_server.cluster.relay import HOST_PROPERTY, ClusterRelay
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.options import BrokerOptions

__all__ = ["TOKEN", "Net", "Node"]

TOKEN: Final = "secret of the cluster"


class Node:
    """One server: a world, its relay, and the connection each of its links has at the moment."""

    def __init__(self, world: World, relay: ClusterRelay, targets: Sequence[str]) -> None:
        self.world = world
        self.relay = relay
        self.targets = targets
        self.wires: dict[int, MemoryLink] = {}
        #: Whether others reach it.
        self.away = False


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
            world = World(options, handlers=handlers)
            world.broker.take_nodes()
            if share:
                world.broker.share_decisions()
            token = (tokens or {}).get(name, TOKEN)
            who = ConnectionInformation(
                name, name, NODE_CLIENT_TYPE, token, {HOST_PROPERTY: f"host-{name}"}
            )
            links = [
                Link(
                    target,
                    f"host-{target}",
                    who,
                    Limits(),
                    Backoff(1.0, 8.0),
                    Outbox(buffer_bytes),
                    lambda: 1.0,
                    share,
                    world.now,
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
            world.hub.relay = relay
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
        done = 0
        node.world.settle()
        for place, link in enumerate(node.relay.links):
            now = node.world.now
            due = link.next_deadline()
            if link.state == LinkState.WAITING and due is not None and due <= now:
                done += 1
                target = self.nodes[node.targets[place]]
                link.dialling(now)
                if target.away:
                    link.failed("nobody is there", now)
                    continue
                link.opened(now)
                node.wires[place] = target.world.open_link()
            done += self._carry(node, place, link)
        return done

    def _carry(self, node: Node, place: int, link: Link) -> int:
        wire = node.wires.get(place)
        if wire is None:
            return 0
        now = node.world.now
        data = link.take(100)
        if data:
            link.note_written(len(data))
            wire.send(data)
        back = wire.receive()
        commands = link.receive(back, now) if back else []
        if wire.closed:
            commands += link.lost("", now)
            wire.close()
            del node.wires[place]
        for command in commands:
            if node.relay.heed(command):
                node.world.hub.perform(command, now)
        return len(data) + len(back)

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
            for place, link in enumerate(node.relay.links):
                wire = node.wires.get(place)
                if wire is not None and node.targets[place] == name:
                    del node.wires[place]
                    wire.close()
                    for command in link.lost("broken", node.world.now):
                        node.world.hub.perform(command, node.world.now)
