"""Which nsqds have a topic, as the lookupds say (N144, N148)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from urllib.parse import urlencode

from tmqp_nsq.addresses import Address
from tmqp_nsq.nodes.cluster import Cluster
from tmqp_nsq.nodes.upstream import Upstream, UpstreamError

__all__ = ["Discovery"]

logger = logging.getLogger("tmqp_nsq")


class Discovery:
    """Asks all lookupds; what one does not know another may."""

    def __init__(self, upstream: Upstream, lookupds: Sequence[str]) -> None:
        self._cluster = Cluster(upstream, lookupds, ())
        self.has_lookupds = bool(lookupds)

    async def nodes(self, topic: str) -> list[Address] | None:
        """The TCP addresses of a topic's nsqds; None if no lookupd answered."""
        try:
            answer = await self._cluster.consumer_addresses(topic)
        except UpstreamError as error:
            if "TOPIC_NOT_FOUND" in str(error):
                return []
            logger.error("error querying nsqlookupd (%s): %s", urlencode({"topic": topic}), error)
            return None
        for warning in answer.warnings:
            logger.warning("nsqlookupd: %s", warning)
        return [Address(host, port) for host, port in answer.value]

    async def topics(self) -> list[str]:
        """The names of all topics; none if no lookupd answered."""
        try:
            answer = await self._cluster.topics()
        except UpstreamError as error:
            logger.error("could not retrieve topic list: %s", error)
            return []
        names: list[str] = answer.value
        return names
