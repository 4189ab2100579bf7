"""What all nodes together know: the questions of nsqadmin to lookupds and nsqds (N152, N155).

A question goes to every node.  If some fail, the answer is what the others said, with a warning; if
all fail, :class:`UpstreamError`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import anyio

from tmqp_nsq.nodes.aggregates import add_channel, add_topic, topic_of
from tmqp_nsq.nodes.upstream import Upstream, UpstreamError

__all__ = ["Answer", "Cluster", "Node", "version_key"]

_T = TypeVar("_T")
_UNKNOWN: Final = "TOPIC_NOT_FOUND"
_HOST: Final = re.compile(r"[\w.:%-]{1,255}")
_DIGITS: Final = re.compile(r"\d+")


@dataclass
class Node:
    """An nsqd, as lookupds or it itself describe it."""

    broadcast_address: str
    hostname: str
    tcp_port: int
    http_port: int
    version: str
    remote_address: str = ""
    remote_addresses: list[str] = field(default_factory=list)
    topics: dict[str, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its HTTP address, by which pages and lookupds know it."""
        host = self.broadcast_address
        return f"[{host}]:{self.http_port}" if ":" in host else f"{host}:{self.http_port}"

    @property
    def base(self) -> str:
        """The beginning of its URLs."""
        return f"http://{self.name}"


@dataclass
class Answer:
    """What nodes said, and what to warn of."""

    value: Any
    warnings: list[str] = field(default_factory=list)


def _sorted_texts(values: Iterable[Any]) -> list[str]:
    return sorted({each for each in values if isinstance(each, str)})


def _rows(value: Any, name: str) -> list[dict[str, Any]]:
    found = value.get(name) if isinstance(value, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _texts(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _port(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 65_536 else 0


def _node(values: dict[str, Any]) -> Node | None:
    """A node as ``/nodes``, ``/lookup`` or ``/info`` describe it; None if it cannot be asked."""
    address = values.get("broadcast_address") or values.get("address")
    port = _port(values.get("http_port"))
    if not isinstance(address, str) or _HOST.fullmatch(address) is None or not port:
        return None
    return Node(
        address,
        str(values.get("hostname", "")),
        _port(values.get("tcp_port")),
        port,
        str(values.get("version", "")),
        str(values.get("remote_address", "")),
    )


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing; an unknown one is the oldest."""
    return tuple(int(each) for each in _DIGITS.findall(version.partition("-")[0])[:4])


class Cluster:
    """The nodes of one installation."""

    def __init__(self, upstream: Upstream, lookupds: Sequence[str], nsqds: Sequence[str]) -> None:
        self._upstream = upstream
        self.lookupds = tuple(lookupds)
        self._nsqds = tuple(nsqds)

    # --- Asking many ------------------------------------------------------------------------

    async def _each(
        self, what: str, items: Sequence[_T], ask: Callable[[_T], Awaitable[Any]]
    ) -> tuple[list[tuple[_T, Any]], list[str]]:
        """Ask all at once; returns what answered, and the errors.

        :raises UpstreamError: if all failed.
        """
        answers: dict[int, Any] = {}
        errors: list[str] = []

        async def one(place: int, item: _T) -> None:
            try:
                answers[place] = await ask(item)
            except UpstreamError as error:
                errors.append(str(error))

        async with anyio.create_task_group() as group:
            for place, item in enumerate(items):
                group.start_soon(one, place, item)
        if items and not answers:
            raise UpstreamError(f"failed to query any {what}: {', '.join(errors)}")
        return [(items[place], answers[place]) for place in sorted(answers)], errors

    async def _lookups(self, path: str) -> tuple[list[tuple[str, Any]], list[str]]:
        return await self._each(
            "nsqlookupd", self.lookupds, lambda base: self._upstream.get(f"http://{base}", path)
        )

    # --- Topics, channels, nodes ------------------------------------------------------------

    async def topics(self) -> Answer:
        """The names of all topics."""
        if self.lookupds:
            answers, errors = await self._lookups("/topics")
            return Answer(
                _sorted_texts(each for _, value in answers for each in _texts(value, "topics")),
                errors,
            )
        answers_of_nodes, errors = await self._stats_of_addresses("/stats?format=json")
        names = [
            row.get("topic_name") for _, value in answers_of_nodes for row in _rows(value, "topics")
        ]
        return Answer(_sorted_texts(names), errors)

    async def _stats_of_addresses(self, path: str) -> tuple[list[tuple[str, Any]], list[str]]:
        return await self._each(
            "nsqd", self._nsqds, lambda base: self._upstream.get(f"http://{base}", path)
        )

    async def channels(self, topic: str) -> Answer:
        """The names of a topic's channels, as the lookupds know them."""
        answers, errors = await self._lookups(f"/channels?{urlencode({'topic': topic})}")
        return Answer(
            _sorted_texts(each for _, value in answers for each in _texts(value, "channels")),
            errors,
        )

    async def nodes(self) -> Answer:
        """Every nsqd that a lookupd knows, or that the command line names."""
        if not self.lookupds:
            return await self._named_nodes()
        answers, errors = await self._lookups("/nodes")
        found: dict[str, Node] = {}
        for base, value in answers:
            for row in _rows(value, "producers"):
                node = _node(row)
                if node is None:
                    continue
                node = found.setdefault(node.name, node)
                if version_key(str(row.get("version", ""))) > version_key(node.version):
                    node.version = str(row["version"])
                node.remote_addresses.append(f"{base}/{row.get('remote_address', '')}")
                tombstones = _texts(row, "tombstones")
                for place, topic in enumerate(_texts(row, "topics")):
                    if isinstance(topic, str):
                        # Lists of different lengths crashed the original (N145).
                        gone = place < len(tombstones) and tombstones[place] is True
                        node.topics[topic] = node.topics.get(topic, False) or gone
        return Answer(list(found.values()), errors)

    async def _named_nodes(self) -> Answer:
        """The nodes of the command line, asked themselves."""

        async def ask(base: str) -> Any:
            info = await self._upstream.get(f"http://{base}", "/info")
            path = "/stats?format=json&include_clients=false"
            return info, await self._upstream.get(f"http://{base}", path)

        answers, errors = await self._each("nsqd", self._nsqds, ask)
        nodes = []
        for base, (info, stats) in answers:
            node = _node(info) if isinstance(info, dict) else None
            if node is None:
                errors.append(f"{base}: /info names no address")
                continue
            node.remote_address = f"{node.broadcast_address}:{node.tcp_port}"
            node.remote_addresses = [node.remote_address]
            names = _sorted_texts(row.get("topic_name") for row in _rows(stats, "topics"))
            node.topics = dict.fromkeys(names, False)
            nodes.append(node)
        return Answer(nodes, errors)

    async def producers(self, topic: str) -> Answer:
        """The nodes that have a topic."""
        if not self.lookupds:
            answer = await self._named_nodes()
            return Answer([node for node in answer.value if topic in node.topics], answer.warnings)
        answers, errors = await self._lookups(f"/lookup?{urlencode({'topic': topic})}")
        found: dict[str, Node] = {}
        for _, value in answers:
            for row in _rows(value, "producers"):
                node = _node(row)
                if node is not None:
                    found.setdefault(node.name, node)
        # That one lookupd does not know what another knows is no failure.
        return Answer(list(found.values()), [each for each in errors if _UNKNOWN not in each])

    async def consumer_addresses(self, topic: str) -> Answer:
        """Hosts and TCP ports of the nsqds with a topic, for consumers: HTTP may be off there."""
        answers, errors = await self._lookups(f"/lookup?{urlencode({'topic': topic})}")
        found = set()
        for _, value in answers:
            for row in _rows(value, "producers"):
                host, port = row.get("broadcast_address"), _port(row.get("tcp_port"))
                if isinstance(host, str) and _HOST.fullmatch(host) and port:
                    found.add((host, port))
        return Answer(sorted(found), [each for each in errors if _UNKNOWN not in each])

    # --- Statistics -------------------------------------------------------------------------

    async def stats(
        self, nodes: Sequence[Node], topic: str = "", channel: str = "", *, clients: bool = True
    ) -> Answer:
        """The topics of nodes, one row for each topic and node."""
        query = {"format": "json"}
        if topic:
            query["topic"] = topic
        if channel:
            query["channel"] = channel
        if not clients:
            query["include_clients"] = "false"
        path = f"/stats?{urlencode(query)}"
        answers, errors = await self._each(
            "nsqd", nodes, lambda node: self._upstream.get(node.base, path)
        )
        rows = [
            topic_of(node.name, node.hostname, row)
            for node, value in answers
            for row in _rows(value, "topics")
            if not topic or row.get("topic_name") == topic
        ]
        return Answer(rows, errors)

    async def topic(self, name: str) -> Answer:
        """A topic, summed over its nodes; None if no node has it."""
        producers = await self.producers(name)
        answer = await self.stats(producers.value, name, clients=False)
        total = None
        for row in answer.value:
            total = add_topic(total, row)
        return Answer(total, producers.warnings + answer.warnings)

    async def channel(self, topic: str, name: str) -> Answer:
        """A channel, summed over its nodes; None if no node has it."""
        producers = await self.producers(topic)
        answer = await self.stats(producers.value, topic, name)
        total = None
        for row in answer.value:
            for channel in row["channels"]:
                if channel["channel_name"] == name:
                    total = add_channel(total, channel)
        return Answer(total, producers.warnings + answer.warnings)

    async def inactive(self) -> Answer:
        """The topics that no node has any more, with their channels."""
        if not self.lookupds:
            return Answer({})
        topics = await self.topics()
        found: dict[str, list[str]] = {}
        warnings = list(topics.warnings)
        for name in topics.value:
            try:
                producers = await self.producers(name)
                if producers.value:
                    continue
                channels = await self.channels(name)
            except UpstreamError as error:
                warnings.append(str(error))
                continue
            warnings += producers.warnings + channels.warnings
            found[name] = channels.value
        return Answer(found, warnings)

    # --- Actions ----------------------------------------------------------------------------

    async def _post_lookups(self, path: str) -> list[str]:
        if not self.lookupds:
            return []
        _, errors = await self._each(
            "nsqlookupd", self.lookupds, lambda base: self._upstream.post(f"http://{base}", path)
        )
        return errors

    async def _post_nodes(self, nodes: Sequence[Node], path: str) -> list[str]:
        _, errors = await self._each(
            "nsqd", nodes, lambda node: self._upstream.post(node.base, path)
        )
        return errors

    async def create(self, topic: str, channel: str) -> Answer:
        """Create a topic, and a channel if one is named.

        With lookupds they are told, and every node that has the topic creates the channel; without,
        every node creates both.
        """
        at_topic = f"/topic/create?{urlencode({'topic': topic})}"
        at_channel = f"/channel/create?{urlencode({'topic': topic, 'channel': channel})}"
        if not self.lookupds:
            nodes = await self._named_nodes()
            errors = nodes.warnings + await self._post_nodes(nodes.value, at_topic)
            if channel:
                errors += await self._post_nodes(nodes.value, at_channel)
            return Answer(None, errors)
        errors = await self._post_lookups(at_topic)
        if channel:
            errors += await self._post_lookups(at_channel)
            producers = await self.producers(topic)
            errors += producers.warnings + await self._post_nodes(producers.value, at_channel)
        return Answer(None, errors)

    async def act(self, action: str, topic: str, channel: str = "") -> Answer:
        """Have every node with the topic do ``pause``, ``unpause``, ``empty`` or ``delete``."""
        names = {"topic": topic, "channel": channel} if channel else {"topic": topic}
        path = f"/{'channel' if channel else 'topic'}/{action}?{urlencode(names)}"
        producers = await self.producers(topic)
        errors = list(producers.warnings)
        if action == "delete":
            # The lookupds first, or consumers would find the topic again.
            errors += await self._post_lookups(path)
        errors += await self._post_nodes(producers.value, path)
        return Answer(None, errors)

    async def tombstone(self, node: Node, topic: str) -> Answer:
        """Hide a topic of a node from consumers, and delete it there."""
        query = f"topic={quote(topic, safe='')}&node={quote(node.name, safe='')}"
        errors = await self._post_lookups(f"/topic/tombstone?{query}")
        path = f"/topic/delete?{urlencode({'topic': topic})}"
        errors += await self._post_nodes([node], path)
        return Answer(None, errors)
