"""The reference broker of TMQP/2.0: an engine without I/O, doors for protocols, and a thin anyio
shell.

The public interface for programs that run or extend a server::

    async with running(ServerConfig(listen=("tmq://127.0.0.1:2626",))) as server:
        ...

:func:`running` takes delivery handlers, routers, access rules and hooks as arguments; the
    configuration names them by ``module:Class``.  Import these names from here, because the modules
    that define them may change.  A name is loaded when it is first used, so a program that only
    needs the engine does not load the network code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tmqp._lazy import loading as _loading

if TYPE_CHECKING:
    from tmqp_server.access.auth import (
        Access,
        Admission,
        Answer,
        Applicant,
        Identity,
        TableAccess,
    )
    from tmqp_server.access.channel_hooks import ChannelEventHandler
    from tmqp_server.access.custom import ClientGone, CustomMessage, MessageHook
    from tmqp_server.access.nsq_auth import NsqAuthServer
    from tmqp_server.access.roles import AccessConfig, parse_access
    from tmqp_server.cluster.filters import NodeFilter, Passing
    from tmqp_server.config import (
        OutboundLimits,
        ServerConfig,
        StorageConfig,
        WebConfig,
        parse_config,
    )
    from tmqp_server.engine.commands import Credentials
    from tmqp_server.engine.events import (
        ChannelFact,
        ClientFact,
        MessageFact,
        NodeFact,
        QueueFact,
        SubscriptionFact,
    )
    from tmqp_server.engine.limits import EngineLimits
    from tmqp_server.engine.model.client import Client, Origin
    from tmqp_server.engine.model.delivery import (
        ACKNOWLEDGE,
        ALLOW,
        NEGATIVE,
        PUT_BACK_AT_END,
        PUT_BACK_AT_START,
        REFUSE,
        SAVE,
        Decision,
        DeliveryHandler,
        QueueFacts,
    )
    from tmqp_server.engine.model.message import Message
    from tmqp_server.engine.options import (
        ASKS_ACKNOWLEDGE,
        ASKS_NOTHING,
        ASKS_RESPONSE,
        ChannelChanges,
        QueueChanges,
    )
    from tmqp_server.engine.routing.custom import (
        CustomRouter,
        RoutedMessage,
        Target,
        to_clients,
        to_queue,
        to_tag,
        to_url,
    )
    from tmqp_server.io.listener import ListenError
    from tmqp_server.settings.checks import ConfigError
    from tmqp_server.settings.doors import DoorSettings
    from tmqp_server.settings.tls import TlsSettings
    from tmqp_server.storage.memory import MemoryStore
    from tmqp_server.storage.port import StoreError
    from tmqp_server.wiring.app import Server
    from tmqp_server.wiring.running import running
    from tmqp_server.wiring.serving import serve_forever

__all__ = [
    "ACKNOWLEDGE",
    "ALLOW",
    "ASKS_ACKNOWLEDGE",
    "ASKS_NOTHING",
    "ASKS_RESPONSE",
    "NEGATIVE",
    "PUT_BACK_AT_END",
    "PUT_BACK_AT_START",
    "REFUSE",
    "SAVE",
    "Access",
    "AccessConfig",
    "Admission",
    "Answer",
    "Applicant",
    "ChannelChanges",
    "ChannelEventHandler",
    "ChannelFact",
    "Client",
    "ClientFact",
    "ClientGone",
    "ConfigError",
    "Credentials",
    "CustomMessage",
    "CustomRouter",
    "Decision",
    "DeliveryHandler",
    "DoorSettings",
    "EngineLimits",
    "Identity",
    "ListenError",
    "MemoryStore",
    "Message",
    "MessageFact",
    "MessageHook",
    "NodeFact",
    "NodeFilter",
    "NsqAuthServer",
    "Origin",
    "OutboundLimits",
    "Passing",
    "QueueChanges",
    "QueueFact",
    "QueueFacts",
    "RoutedMessage",
    "Server",
    "ServerConfig",
    "StorageConfig",
    "StoreError",
    "SubscriptionFact",
    "TableAccess",
    "Target",
    "TlsSettings",
    "WebConfig",
    "parse_access",
    "parse_config",
    "running",
    "serve_forever",
    "to_clients",
    "to_queue",
    "to_tag",
    "to_url",
]

#: The names that each module defines.
_HOMES: Final = {
    "access.auth": "Access Admission Answer Applicant Identity TableAccess",
    "access.channel_hooks": "ChannelEventHandler",
    "access.custom": "ClientGone CustomMessage MessageHook",
    "access.nsq_auth": "NsqAuthServer",
    "access.roles": "AccessConfig parse_access",
    "cluster.filters": "NodeFilter Passing",
    "config": "OutboundLimits ServerConfig StorageConfig WebConfig parse_config",
    "engine.commands": "Credentials",
    "engine.events": "ChannelFact ClientFact MessageFact NodeFact QueueFact SubscriptionFact",
    "engine.limits": "EngineLimits",
    "engine.model.client": "Client Origin",
    "engine.model.delivery": (
        "ACKNOWLEDGE ALLOW NEGATIVE PUT_BACK_AT_END PUT_BACK_AT_START REFUSE SAVE Decision "
        "DeliveryHandler QueueFacts"
    ),
    "engine.model.message": "Message",
    "engine.options": "ASKS_ACKNOWLEDGE ASKS_NOTHING ASKS_RESPONSE ChannelChanges QueueChanges",
    "engine.routing.custom": "CustomRouter RoutedMessage Target to_clients to_queue to_tag to_url",
    "io.listener": "ListenError",
    "settings.checks": "ConfigError",
    "settings.doors": "DoorSettings",
    "settings.tls": "TlsSettings",
    "storage.memory": "MemoryStore",
    "storage.port": "StoreError",
    "wiring.app": "Server",
    "wiring.running": "running",
    "wiring.serving": "serve_forever",
}

__getattr__, __dir__ = _loading(globals(), _HOMES)
