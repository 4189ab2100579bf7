"""Sums over nodes: what one page shows of the answers of many nsqds (N151, N154).

Pure: takes decoded JSON of ``/stats`` and returns the API's shapes (N153), with the fields in the
order in which the original writes them.
"""

from __future__ import annotations

from typing import Any

__all__ = ["add_channel", "add_topic", "topic_of"]

_ADDED_CHANNEL = (
    "depth",
    "memory_depth",
    "backend_depth",
    "in_flight_count",
    "deferred_count",
    "requeue_count",
    "timeout_count",
    "message_count",
    "delivery_msg_count",
    "client_count",
)
_ADDED_TOPIC = ("depth", "memory_depth", "backend_depth", "message_count", "delivery_msg_count")
_LOCALITY = ("zone_local_msg_count", "region_local_msg_count", "global_msg_count")


def _number(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _text(values: dict[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _list(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    value = values.get(name)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _latency_of(values: dict[str, Any]) -> dict[str, Any]:
    """The percentiles of one node, ready to be added; an nsqd that sends none has none (N125)."""
    given = values.get("e2e_processing_latency")
    inner: dict[str, Any] = given if isinstance(given, dict) else {}
    count = _number(inner, "count")
    found = [
        {
            "average": float(each.get("value") or 0),
            "count": count,
            "max": float(each.get("value") or 0),
            "min": float(each.get("value") or 0),
            "quantile": float(each.get("quantile") or 0),
            "value": float(each.get("value") or 0),
        }
        for each in _list(inner, "percentiles")
    ]
    return _whole({"count": count, "percentiles": found, "topic": "", "channel": "", "host": ""})


def _whole(latency: dict[str, Any]) -> dict[str, Any]:
    """Write whole numbers without a fraction, and no percentiles as null."""
    percentiles = [
        {name: int(value) if float(value).is_integer() else value for name, value in each.items()}
        for each in latency["percentiles"] or []
    ]
    return {**latency, "percentiles": percentiles or None}


def _add_latency(total: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Average the percentiles, weighted by the number of messages."""
    rows = [dict(each) for each in total["percentiles"] or []]
    for each in other["percentiles"] or []:
        row = next((row for row in rows if row["quantile"] == each["quantile"]), None)
        if row is None:
            rows.append(dict(each))
            continue
        count = row["count"] + each["count"]
        if count:
            weighted = row["average"] * row["count"] + each["average"] * each["count"]
            row["average"] = weighted / count
            row["value"] = row["average"]
        row["max"] = max(row["max"], each["max"])
        row["min"] = min(row["min"], each["min"])
        row["count"] = count
    rows.sort(key=lambda row: -row["quantile"])
    return _whole({**total, "count": total["count"] + other["count"], "percentiles": rows})


def _client_of(node: str, values: dict[str, Any]) -> dict[str, Any]:
    """A consumer's row; our *node* stands first, whatever the consumer calls itself."""
    mutual = values.get("tls_negotiated_protocol_is_mutual")
    return {
        "node": node,
        "remote_address": _text(values, "remote_address"),
        "version": _text(values, "version"),
        "client_id": _text(values, "client_id") or _text(values, "name"),
        "hostname": _text(values, "hostname"),
        "user_agent": _text(values, "user_agent"),
        "connect_ts": _number(values, "connect_ts"),
        "connected": 0,
        "in_flight_count": _number(values, "in_flight_count"),
        "ready_count": _number(values, "ready_count"),
        "finish_count": _number(values, "finish_count"),
        "requeue_count": _number(values, "requeue_count"),
        "message_count": _number(values, "message_count"),
        "sample_rate": _number(values, "sample_rate"),
        "deflate": values.get("deflate") is True,
        "snappy": values.get("snappy") is True,
        "authed": values.get("authed") is True,
        "auth_identity": _text(values, "auth_identity"),
        "auth_identity_url": _text(values, "auth_identity_url"),
        "tls": values.get("tls") is True,
        "tls_cipher_suite": _text(values, "tls_cipher_suite"),
        "tls_version": _text(values, "tls_version"),
        "tls_negotiated_protocol": _text(values, "tls_negotiated_protocol"),
        "tls_negotiated_protocol_is_mutual": mutual is True,
    }


def _channel_of(node: str, hostname: str, topic: str, values: dict[str, Any]) -> dict[str, Any]:
    """A channel of one node; its consumers are in ``clients`` if the node told them."""
    depth, backend = _number(values, "depth"), _number(values, "backend_depth")
    locality = {name: _number(values, name) for name in _LOCALITY if _number(values, name)}
    clients = values.get("clients")
    return {
        "node": node,
        "hostname": hostname,
        "topic_name": topic,
        "channel_name": _text(values, "channel_name"),
        "depth": depth,
        "memory_depth": depth - backend,
        "backend_depth": backend,
        "in_flight_count": _number(values, "in_flight_count"),
        "deferred_count": _number(values, "deferred_count"),
        "requeue_count": _number(values, "requeue_count"),
        "timeout_count": _number(values, "timeout_count"),
        "message_count": _number(values, "message_count"),
        "delivery_msg_count": sum(locality.values()),
        **locality,
        "client_count": _number(values, "client_count"),
        "nodes": None,
        "clients": (
            [_client_of(node, each) for each in _list(values, "clients")]
            if isinstance(clients, list)
            else None
        ),
        "paused": values.get("paused") is True,
        "e2e_processing_latency": _latency_of(values),
    }


def topic_of(node: str, hostname: str, values: dict[str, Any]) -> dict[str, Any]:
    """A topic of one node, with its channels."""
    depth, backend = _number(values, "depth"), _number(values, "backend_depth")
    name = _text(values, "topic_name")
    return {
        "node": node,
        "hostname": hostname,
        "topic_name": name,
        "depth": depth,
        "memory_depth": depth - backend,
        "backend_depth": backend,
        "message_count": _number(values, "message_count"),
        "delivery_msg_count": 0,
        "nodes": None,
        "channels": [_channel_of(node, hostname, name, each) for each in _list(values, "channels")],
        "paused": values.get("paused") is True,
        "e2e_processing_latency": _latency_of(values),
    }


def add_channel(total: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """The sum over the nodes with one node's channel more; *other* stays as it is."""
    if total is None:
        total = _channel_of("*", "", other["topic_name"], {"channel_name": other["channel_name"]})
        total["nodes"], total["clients"] = [], []
    counts = {name: total.get(name, 0) + other.get(name, 0) for name in _LOCALITY}
    total = _with_locality(total, counts)
    for name in _ADDED_CHANNEL:
        total[name] += other[name]
    total["paused"] = total["paused"] or other["paused"]
    total["nodes"] = _in_order([*total["nodes"], other])
    total["clients"] = total["clients"] + (other["clients"] or [])
    total["e2e_processing_latency"] = _add_latency(
        total["e2e_processing_latency"], other["e2e_processing_latency"]
    )
    return total


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda each: (str(each["hostname"]), str(each["node"])))


def _with_locality(values: dict[str, Any], counts: dict[str, int]) -> dict[str, Any]:
    """Put the counts by locality that are not 0 where a node's row has them."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _LOCALITY:
            found[name] = value
        if name == "delivery_msg_count":
            found.update({each: count for each, count in counts.items() if count})
    return found


def add_topic(total: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    """The sum over the nodes with one node's topic and its channels more.

    A channel that only one node has is that node's row, as in the original.
    """
    if total is None:
        total = topic_of("*", "", {"topic_name": other["topic_name"]})
        total["nodes"] = []
    total = dict(total)
    for name in _ADDED_TOPIC:
        total[name] += other[name]
    total["paused"] = total["paused"] or other["paused"]
    total["nodes"] = _in_order([*total["nodes"], other])
    sums = {str(each["channel_name"]): each for each in total["channels"]}
    for channel in other["channels"]:
        name = str(channel["channel_name"])
        before = sums.get(name)
        if before is not None and before["nodes"] is None:
            before = add_channel(None, before)
        sums[name] = channel if before is None else add_channel(before, channel)
    total["channels"] = [sums[name] for name in sorted(sums)]
    total["e2e_processing_latency"] = _add_latency(
        total["e2e_processing_latency"], other["e2e_processing_latency"]
    )
    return total
