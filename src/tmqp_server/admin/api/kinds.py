"""The kinds of things that are listed: queues, channels and clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, final

from tmqp_server.admin.api.filters import Fields
from tmqp_server.admin.api.lists import Walk
from tmqp_server.admin.api.shapes import STATUS_WORDS, channel_item, client_item, queue_item
from tmqp_server.engine.commands import Command, SurveyChannels, SurveyClients, SurveyQueues
from tmqp_server.engine.model.snapshots import ChannelSnapshot, QueueSnapshot
from tmqp_server.engine.model.surveyed import SurveyedClient

__all__ = ["CHANNELS", "CLIENTS", "QUEUES"]


def _of_queue(
    find: Callable[[QueueSnapshot], str | float],
) -> Callable[[object], str | float]:
    def found(item: object) -> str | float:
        assert isinstance(item, QueueSnapshot), "the list is one of queues"
        return find(item)

    return found


_QUEUE_FIELDS: Final[Fields] = {
    "name": _of_queue(lambda queue: queue.channel),
    "queue": _of_queue(lambda queue: queue.queue_id),
    "status": _of_queue(lambda queue: STATUS_WORDS[int(queue.options.status)]),
    "waiting": _of_queue(lambda queue: queue.messages + queue.priority_messages),
    "high_priority": _of_queue(lambda queue: queue.priority_messages),
    "spilled": _of_queue(lambda queue: queue.spilled),
    "deferred": _of_queue(lambda queue: queue.deferred),
    "in_flight": _of_queue(lambda queue: queue.in_flight),
    "bytes": _of_queue(lambda queue: queue.bytes),
    "disk_bytes": _of_queue(lambda queue: queue.disk_bytes),
    "accepted": _of_queue(lambda queue: queue.accepted),
    "received_messages": _of_queue(lambda queue: queue.received_messages),
    "deliveries": _of_queue(lambda queue: queue.deliveries),
    "done": _of_queue(lambda queue: queue.done),
    "dead": _of_queue(lambda queue: queue.dead),
    "expired": _of_queue(lambda queue: queue.expired),
    "refused": _of_queue(lambda queue: queue.refused),
    "ack_timeouts": _of_queue(lambda queue: queue.ack_timeouts),
    "consumers": _of_queue(lambda queue: queue.consumers),
}


@final
class _Queues:
    name = "name"
    identity: tuple[str, ...] = ("channel", "queue")

    def fields(self, now: float) -> Fields:
        def age(item: object) -> float:
            assert isinstance(item, QueueSnapshot), "the list is one of queues"
            since = item.oldest_since_s
            return 0.0 if since is None else max(now - since, 0.0)

        return {**_QUEUE_FIELDS, "oldest_age_s": age}

    def look(self, session: int, request: object, names: str, walk: Any) -> Command:
        return SurveyQueues(session, request, names, walk)

    def walk_of(self, command: Command) -> Walk | None:
        assert isinstance(command, SurveyQueues), "it looks at queues"
        return command.walk

    def read(self, session: int, request: object, keys: list[Any]) -> Command:
        return SurveyQueues(session, request, places=keys)

    def key(self, item: object) -> tuple[str, int]:
        assert isinstance(item, QueueSnapshot), "the list is one of queues"
        return item.channel, item.queue_id

    def identify(self, key: Any) -> dict[str, object]:
        return {"channel": key[0], "queue": key[1]}

    def show(self, item: object, now: float, offset_s: float) -> dict[str, object]:
        assert isinstance(item, QueueSnapshot), "the list is one of queues"
        return queue_item(item, now, offset_s)


def _of_channel(
    find: Callable[[ChannelSnapshot], str | float],
) -> Callable[[object], str | float]:
    def found(item: object) -> str | float:
        assert isinstance(item, ChannelSnapshot), "the list is one of channels"
        return find(item)

    return found


_CHANNEL_FIELDS: Final[Fields] = {
    "name": _of_channel(lambda channel: channel.name),
    "queues": _of_channel(lambda channel: len(channel.queues)),
    "consumers": _of_channel(lambda channel: channel.active_clients),
    "owner": _of_channel(lambda channel: channel.owner or ""),
}


@final
class _Channels:
    name = "name"
    identity: tuple[str, ...] = ("name",)

    def fields(self, now: float) -> Fields:
        return _CHANNEL_FIELDS

    def look(self, session: int, request: object, names: str, walk: Any) -> Command:
        return SurveyChannels(session, request, names, walk)

    def walk_of(self, command: Command) -> Walk | None:
        assert isinstance(command, SurveyChannels), "it looks at channels"
        return command.walk

    def read(self, session: int, request: object, keys: list[Any]) -> Command:
        return SurveyChannels(session, request, names=keys)

    def key(self, item: object) -> str:
        assert isinstance(item, ChannelSnapshot), "the list is one of channels"
        return item.name

    def identify(self, key: Any) -> dict[str, object]:
        return {"name": key}

    def show(self, item: object, now: float, offset_s: float) -> dict[str, object]:
        assert isinstance(item, ChannelSnapshot), "the list is one of channels"
        return channel_item(item)


def _of_client(
    find: Callable[[SurveyedClient], str | float],
) -> Callable[[object], str | float]:
    def found(item: object) -> str | float:
        assert isinstance(item, SurveyedClient), "the list is one of clients"
        return find(item)

    return found


_CLIENT_FIELDS: Final[Fields] = {
    "id": _of_client(lambda item: item.client.client_id),
    "name": _of_client(lambda item: item.client.name or ""),
    "type": _of_client(lambda item: item.client.client_type or ""),
    "door": _of_client(lambda item: item.client.door),
    "online_ms": _of_client(lambda item: item.client.online_ms),
    "subscriptions": _of_client(lambda item: item.client.subscriptions),
    "in_flight": _of_client(lambda item: item.client.in_flight),
    "pushed": _of_client(lambda item: item.client.pushed),
    "delivered": _of_client(lambda item: item.client.delivered),
    "acknowledged": _of_client(lambda item: item.client.acknowledged),
    "blocked": _of_client(lambda item: int(item.client.blocked)),
}


@final
class _Clients:
    #: The broker knows no filter for clients.
    name = ""
    identity: tuple[str, ...] = ("id",)

    def fields(self, now: float) -> Fields:
        return _CLIENT_FIELDS

    def look(self, session: int, request: object, names: str, walk: Any) -> Command:
        return SurveyClients(session, request, walk)

    def walk_of(self, command: Command) -> Walk | None:
        assert isinstance(command, SurveyClients), "it looks at clients"
        return command.walk

    def read(self, session: int, request: object, keys: list[Any]) -> Command:
        return SurveyClients(session, request, ids=keys)

    def key(self, item: object) -> str:
        assert isinstance(item, SurveyedClient), "the list is one of clients"
        return item.client.client_id

    def identify(self, key: Any) -> dict[str, object]:
        return {"id": key}

    def show(self, item: object, now: float, offset_s: float) -> dict[str, object]:
        assert isinstance(item, SurveyedClient), "the list is one of clients"
        return client_item(item)


QUEUES: Final = _Queues()
CHANNELS: Final = _Channels()
CLIENTS: Final = _Clients()
