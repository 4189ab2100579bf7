"""What is pushed to statsd: differences of counters, and gauges (N134).

Pure: takes the decoded JSON of ``/stats`` and returns lines and packets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

__all__ = ["StatsdPush", "packets"]

_CHANNEL_COUNTERS: Final = ("message_count", "requeue_count", "timeout_count")
_CHANNEL_GAUGES: Final = ("depth", "backend_depth", "in_flight_count", "deferred_count")
_MEMORY: Final = (
    "heap_objects",
    "heap_idle_bytes",
    "heap_in_use_bytes",
    "heap_released_bytes",
    "gc_pause_usec_100",
    "gc_pause_usec_99",
    "gc_pause_usec_95",
    "next_gc_bytes",
)
_EPHEMERAL: Final = "#ephemeral"


class StatsdPush:
    """Remembers counters, so that each push has what was added since the last one.

    :param prefix: what keys begin with; ``%s`` is the node's address and port, with ``_`` for
        points and colons.
    :param memory: whether memory statistics are pushed.
    :param ephemeral: whether ephemeral topics and channels are.
    """

    def __init__(self, prefix: str, *, memory: bool = True, ephemeral: bool = True) -> None:
        self._prefix = prefix
        self._memory = memory
        self._ephemeral = ephemeral
        self._before: dict[str, int] = {}

    def lines(self, node: str, stats: dict[str, Any]) -> list[bytes]:
        """The lines of one push.

        :param node: address and port of the node.
        """
        prefix = self._prefix.replace("%s", node.replace(".", "_").replace(":", "_"))
        if prefix and not prefix.endswith("."):
            prefix += "."
        counts: dict[str, int] = {}
        found = []
        for kind, name, value in self._values(stats):
            shown = value
            if kind == "c":
                counts[name] = value
                before = self._before.get(name, 0)
                # A topic that was deleted and created again counts from 0.
                shown = value if value < before else value - before
            found.append(f"{prefix}{name}:{shown}|{kind}\n".encode())
        self._before = counts
        return found

    def _values(self, stats: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
        for topic in stats.get("topics") or ():
            if not self._ephemeral and topic["topic_name"].endswith(_EPHEMERAL):
                continue
            name = f"topic.{topic['topic_name']}"
            for counter in ("message_count", "message_bytes"):
                yield "c", f"{name}.{counter}", int(topic.get(counter, 0))
            for gauge in ("depth", "backend_depth"):
                yield "g", f"{name}.{gauge}", int(topic.get(gauge, 0))
            yield from _latencies(name, topic)
            for channel in topic.get("channels") or ():
                if self._ephemeral or not channel["channel_name"].endswith(_EPHEMERAL):
                    yield from _of_channel(name, channel)
        memory = stats.get("memory")
        if self._memory and memory:
            for gauge in _MEMORY:
                yield "g", f"mem.{gauge}", int(memory.get(gauge, 0))
            yield "c", "mem.gc_runs", int(memory.get("gc_total_runs", 0))


def _of_channel(topic: str, channel: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    name = f"{topic}.channel.{channel['channel_name']}"
    for counter in _CHANNEL_COUNTERS:
        yield "c", f"{name}.{counter}", int(channel.get(counter, 0))
    for gauge in _CHANNEL_GAUGES:
        yield "g", f"{name}.{gauge}", int(channel.get(gauge, 0))
    yield "g", f"{name}.clients", int(channel.get("client_count", 0))
    yield from _latencies(name, channel)


def _latencies(name: str, row: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    for each in (row.get("e2e_processing_latency") or {}).get("percentiles") or ():
        word = f"{float(each['quantile']) * 100:.0f}"
        yield "g", f"{name}.e2e_processing_latency_{word}", int(each["value"])


def packets(lines: Sequence[bytes], most_bytes: int) -> list[bytes]:
    """Join lines to packets of at most *most_bytes*; a longer line has a packet of its own."""
    found: list[bytes] = []
    part = b""
    for line in lines:
        if part and len(part) + len(line) > most_bytes:
            found.append(part)
            part = b""
        part += line
    return [*found, part] if part else found
