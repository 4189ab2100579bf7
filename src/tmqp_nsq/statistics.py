"""Pushes the statistics of this nsqd to statsd: asks over a private socket, sends by UDP (N134)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import httpx

from tmqp_nsq.addresses import Address
from tmqp_nsq.nodes.statsd import StatsdPush, packets

__all__ = ["push_statistics"]

logger = logging.getLogger("tmqp_nsq.statsd")


async def push_statistics(
    socket_path: str,
    push: StatsdPush,
    statsd: Address,
    *,
    interval_s: float,
    packet_bytes: int,
    http_port: int = 0,
) -> None:
    """Push again and again, until cancelled; a push that fails is logged.

    :param socket_path: where nsqd answers.
    :param http_port: the port under which the node is named; 0 for the one listened on.
    """
    transport = httpx.AsyncHTTPTransport(uds=socket_path)
    async with httpx.AsyncClient(transport=transport, base_url="http://nsqd") as client:
        while True:
            await anyio.sleep(interval_s)
            try:
                info: dict[str, Any] = (await client.get("/info")).json()
                stats: dict[str, Any] = (await client.get("/stats?format=json")).json()
                node = f"{info['broadcast_address']}:{http_port or info['http_port']}"
                parts = packets(push.lines(node, stats), packet_bytes)
                async with await anyio.create_connected_udp_socket(
                    statsd.host, statsd.port
                ) as socket:
                    for part in parts:
                        await socket.send(part)
            except (httpx.HTTPError, OSError, KeyError, ValueError) as error:
                logger.error("cannot push statistics to %s: %s", statsd, error)
