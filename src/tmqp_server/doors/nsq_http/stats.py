"""The statistics of nsqd, as JSON and as text (N121 to N130).

All numbers are the broker's or the TCP sessions'.  Counters begin again when the server starts, as
in the original; ``requeue_count`` counts REQ and ``timeout_count`` timeouts (N95).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, final

from tmqp.constants import QueueStatus
from tmqp_server.doors.nsq_latency import shown
from tmqp_server.doors.nsq_world import NsqClient
from tmqp_server.engine.model.snapshots import QueueSnapshot

__all__ = [
    "ChannelStats",
    "Stats",
    "TopicStats",
    "as_text",
    "go_duration",
    "sorted_stats",
    "told",
]

_MEMORY_KEYS: Final = (
    "heap_objects",
    "heap_idle_bytes",
    "heap_in_use_bytes",
    "heap_released_bytes",
    "gc_pause_usec_100",
    "gc_pause_usec_99",
    "gc_pause_usec_95",
    "next_gc_bytes",
    "gc_total_runs",
)


@final
class ChannelStats:
    """A channel of a topic; ``clients`` is None if they are not wanted, ``latency`` has the
    percentiles."""

    __slots__ = ("client_count", "clients", "latency", "name", "queue")

    def __init__(
        self,
        name: bytes,
        queue: QueueSnapshot,
        client_count: int,
        clients: list[NsqClient] | None,
        latency: dict[str, object],
    ) -> None:
        self.name = name
        self.latency = latency
        self.queue = queue
        self.client_count = client_count
        self.clients = clients


@final
class TopicStats:
    """A topic with its channels; ``message_bytes`` counts bodies, ``latency`` has the percentiles
    of all channels together."""

    __slots__ = ("channels", "latency", "message_bytes", "name", "queue")

    def __init__(self, name: bytes, queue: QueueSnapshot, message_bytes: int) -> None:
        self.latency: dict[str, object] = {}
        self.name = name
        self.queue = queue
        self.message_bytes = message_bytes
        self.channels: list[ChannelStats] = []


@final
class Stats:
    """The statistics of one answer.

    :ivar topics: None if the topic that was asked for does not exist.
    :ivar memory_bytes: the memory of the broker's messages and tables; None to leave it out.
    :ivar producers: None if clients are not wanted.
    """

    __slots__ = ("memory_bytes", "producers", "start_time", "topics", "version")

    def __init__(self, version: str, start_time: int) -> None:
        self.version = version
        self.start_time = start_time
        self.topics: list[TopicStats] | None = None
        self.memory_bytes: int | None = None
        self.producers: list[NsqClient] | None = None


def told(stats: Stats, offset_s: float) -> dict[str, object]:
    """The statistics as JSON.

    :param offset_s: seconds to add to the engine's time for Unix time.
    """
    topics = None if stats.topics is None else [_topic(each, offset_s) for each in stats.topics]
    answer: dict[str, object] = {
        "version": stats.version,
        "health": "OK",
        "start_time": stats.start_time,
        "topics": topics,
    }
    if stats.memory_bytes is not None:
        answer["memory"] = _memory(stats.memory_bytes)
    answer["producers"] = _clients(stats.producers, offset_s)
    return answer


def _memory(used: int) -> dict[str, int]:
    return {key: used if key == "heap_in_use_bytes" else 0 for key in _MEMORY_KEYS}


def _topic(topic: TopicStats, offset_s: float) -> dict[str, object]:
    return {
        "topic_name": topic.name.decode(),
        "channels": [_channel(each, offset_s) for each in topic.channels],
        "depth": _topic_depth(topic.queue),
        "backend_depth": topic.queue.spilled,
        "message_count": _arrived(topic.queue),
        "message_bytes": topic.message_bytes,
        "paused": _is_paused(topic.queue),
        "e2e_processing_latency": topic.latency,
    }


def _channel(channel: ChannelStats, offset_s: float) -> dict[str, object]:
    queue = channel.queue
    found: dict[str, object] = {
        "channel_name": channel.name.decode(),
        "depth": _depth(queue),
        "backend_depth": queue.spilled,
        "in_flight_count": queue.in_flight,
        "deferred_count": queue.deferred,
        "message_count": _arrived(queue),
    }
    if queue.deliveries:
        found["global_msg_count"] = queue.deliveries
    found |= {
        "requeue_count": queue.released,
        "timeout_count": queue.ack_timeouts,
        "client_count": channel.client_count,
        "clients": _clients(channel.clients, offset_s),
        "paused": _is_paused(queue),
        "e2e_processing_latency": channel.latency,
    }
    return found


def _arrived(queue: QueueSnapshot) -> int:
    """The number of messages received since the server started (N102)."""
    return queue.accepted - queue.restored


def _depth(queue: QueueSnapshot) -> int:
    """The number of waiting messages, in memory and on disk (N128)."""
    return queue.messages + queue.priority_messages


def _topic_depth(queue: QueueSnapshot) -> int:
    """The depth of a topic, which also keeps deferred messages while it has no channel (N65)."""
    return _depth(queue) + queue.deferred


def _is_paused(queue: QueueSnapshot) -> bool:
    return queue.options.status == QueueStatus.PAUSED


def _clients(
    clients: Iterable[NsqClient] | None, offset_s: float
) -> list[dict[str, object]] | None:
    return None if clients is None else [_client(each, offset_s) for each in clients]


def _client(client: NsqClient, offset_s: float) -> dict[str, object]:
    """One connection (N126); for a producer with its published messages (N127)."""
    found: dict[str, object] = {
        "client_id": client.client_id,
        "hostname": client.hostname,
        "version": "V2",
        "remote_address": client.remote_address,
        "state": client.state,
        "ready_count": client.ready_count,
        "in_flight_count": client.in_flight_count,
        "message_count": client.message_count,
        "finish_count": client.finish_count,
        "requeue_count": client.requeue_count,
        "connect_ts": int(client.connected_s + offset_s),
        "sample_rate": client.sample_rate,
        "deflate": client.deflate,
        "snappy": client.snappy,
        "user_agent": client.user_agent,
    }
    if client.identity is not None:
        found["authed"] = True
        found["auth_identity"] = client.identity
        found["auth_identity_url"] = client.identity_url
    found["topology_zone"] = ""
    found["topology_region"] = ""
    if client.published:
        found["pub_counts"] = [
            {"topic": topic.decode(), "count": count} for topic, count in client.published.items()
        ]
    found["tls"] = bool(client.tls_version)
    found["tls_cipher_suite"] = client.tls_cipher_suite
    found["tls_version"] = client.tls_version
    found["tls_negotiated_protocol"] = ""
    found["tls_negotiated_protocol_is_mutual"] = False
    return found


# -- text ---------------------------------------------------------------------------------------


def as_text(stats: Stats, now: float, started_s: float, build: str) -> bytes:
    """The statistics as text for people.

    :param build: the server's name and version, shown after the version of NSQ.
    """
    lines = [
        f"nsqd v{stats.version} ({build})",
        f"start_time {_rfc3339(stats.start_time)}",
        f"uptime {go_duration(now - started_s)}",
        "",
        "Health: OK",
    ]
    if stats.memory_bytes is not None:
        lines += ["", "Memory:"]
        lines += [f"   {key:<25}\t{count}" for key, count in _memory(stats.memory_bytes).items()]
    lines += ["", "Topics:" if stats.topics else "Topics: None"]
    for topic in stats.topics or ():
        lines += _topic_lines(topic, now)
    lines += ["", "Producers:" if stats.producers else "Producers: None"]
    lines += [f"   {_client_line(each, now)}" for each in stats.producers or ()]
    return ("\n".join(lines) + "\n").encode()


def _topic_lines(topic: TopicStats, now: float) -> list[str]:
    mark = "*P " if _is_paused(topic.queue) else "   "
    head = f"{mark}[{topic.name.decode():<15}] depth: {_topic_depth(topic.queue):<5}"
    counts = f"be-depth: {topic.queue.spilled:<5} msgs: {_arrived(topic.queue):<8}"
    lines = [f"{head} {counts} e2e%: {shown(topic.latency)}"]
    for channel in topic.channels:
        queue = channel.queue
        mark = "   *P " if _is_paused(queue) else "      "
        lines.append(
            f"{mark}[{channel.name.decode():<25}] depth: {_depth(queue):<5}"
            f" be-depth: {queue.spilled:<5} inflt: {queue.in_flight:<4} def: {queue.deferred:<4}"
            f" re-q: {queue.released:<5} timeout: {queue.ack_timeouts:<5}"
            f" msgs: {_arrived(queue):<8} e2e%: {shown(channel.latency)}"
        )
        lines += [f"        {_client_line(each, now)}" for each in channel.clients or ()]
    return lines


def _client_line(client: NsqClient, now: float) -> str:
    port = client.remote_address.rpartition(":")[2]
    who = f"{client.hostname}:{port} {client.user_agent}"
    since = go_duration(float(int(now - client.connected_s)))
    if client.published:
        topics = ",".join(
            [f"{topic.decode()}={count}" for topic, count in client.published.items()]
        )
        total = sum(client.published.values())
        return f"[V2 {who:<21}] msgs: {total:<8} topics: {topics} connected: {since}"
    return (
        f"[V2 {who:<21}] state: {client.state} inflt: {client.in_flight_count:<4}"
        f" rdy: {client.ready_count:<4} fin: {client.finish_count:<8}"
        f" re-q: {client.requeue_count:<8} msgs: {client.message_count:<8} connected: {since}"
    )


def _rfc3339(unix: int) -> str:
    """A Unix time as ``2026-11-21T12:03:34Z``."""
    days, second = divmod(unix, 86_400)
    # Years that begin in March end with the day that some of them do not have.
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month < 3)
    minutes = second // 60
    clock = f"{minutes // 60:02}:{minutes % 60:02}:{second % 60:02}"
    return f"{year:04}-{month:02}-{day + 1:02}T{clock}Z"


def go_duration(seconds: float) -> str:
    """A time as Go writes it: ``1h2m3.5s``, ``250ms``."""
    if seconds <= 0.0:
        return "0s"
    if seconds < 1.0:
        return f"{_trimmed(seconds * 1_000)}ms"
    minutes, rest = divmod(seconds, 60.0)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{_trimmed(rest)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{hours}h{text}" if hours else text


def _trimmed(value: float) -> str:
    text = f"{value:.9f}".rstrip("0").rstrip(".")
    return text or "0"


def sorted_stats(topics: Sequence[TopicStats]) -> list[TopicStats]:
    """Topics and their channels by name (N122)."""
    for topic in topics:
        topic.channels.sort(key=lambda each: each.name)
    return sorted(topics, key=lambda each: each.name)
