"""Makes the broker from the configuration, and creates the declared channels, queues and routers.

``app.py`` runs the broker.  The declarations are carried out by the same commands that clients
send, so they are checked by the same rules and fail with the same codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tmqp.constants import (
    RESULT_DUPLICATE,
    RESULT_OK,
    STATUS_INFORMATION_WORDS,
    QueueStatus,
    RouteMethod,
)
from tmqp_server.access.channel_hooks import ChannelHooks, load_channel_hooks
from tmqp_server.config import ConfigError, ServerConfig
from tmqp_server.doors.letters import Letters
from tmqp_server.doors.wires import LetterWires
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    AddBinding,
    AddFeed,
    Connect,
    CreateChannel,
    CreateQueue,
    CreateRouter,
    Disconnect,
    SessionCommand,
    SetRouterEnabled,
)
from tmqp_server.engine.effects import Effect, Reply
from tmqp_server.engine.model.delivery import DeliveryHandler
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.engine.options import (
    WITH_OWNER,
    BrokerOptions,
    ChannelOptions,
    QueueOptions,
)
from tmqp_server.engine.routing.custom import CustomRouter
from tmqp_server.settings.extensions import load
from tmqp_server.wiring.doors import door_name, further_doors

__all__ = ["broker_options", "build_broker", "declare", "summary"]

#: The number and the name of the session that creates what is declared; connections begin at 1.
_SESSION = 0
_CLIENT = "configuration"


def broker_options(
    config: ServerConfig, hooks: ChannelHooks | None = None, *, storage: bool = False
) -> BrokerOptions:
    """The engine's options, with the names of *hooks*; *storage* says that there is a store,
    whatever the configuration says.
    """
    queue = config.queue.applied_to(QueueOptions())
    channel = config.channel.applied_to(ChannelOptions(queue=queue))
    cluster = config.cluster
    return BrokerOptions(
        config.auto_channel_creation,
        config.auto_queue_creation,
        channel,
        http_prefixes=config.http.allow,
        authenticators=() if hooks is None else tuple(hooks.authenticators),
        event_handlers=None if hooks is None else hooks.wanted(),
        storage=storage or config.data is not None,
        takes_nodes=cluster is not None and cluster.takes_slaves,
        shares_decisions=cluster is not None and cluster.share_decisions,
    )


def build_broker(
    config: ServerConfig,
    handlers: Mapping[str, DeliveryHandler] | None = None,
    routers: Mapping[str, CustomRouter] | None = None,
    hooks: ChannelHooks | None = None,
    *,
    storage: bool = False,
) -> Broker:
    """Build the broker of a configuration, without its declared channels, queues and routers.

    *handlers* and *routers* are registered in addition to those of the configuration; *hooks* are
    the hooks that channels may name, None for those of the configuration; *storage* says that there
    is a store even if the configuration has none.

    :raises ConfigError: when a class cannot be loaded, a name is taken, or options are invalid.
    """
    registry = built_in_handlers()
    custom: dict[str, CustomRouter] = dict(routers or {})
    try:
        for name, handler in (handlers or {}).items():
            registry.register(name, handler)
        for name, setting in config.handlers.items():
            registry.register(name, load(setting, DeliveryHandler))
    except ValueError as error:
        raise ConfigError(f"handlers: {error}") from error
    for name, setting in config.custom_routers.items():
        if name in custom:
            raise ConfigError(f"custom_routers: {name!r} was given as an argument too")
        custom[name] = load(setting, CustomRouter)
    if hooks is None:
        hooks = load_channel_hooks(config.authenticators, config.event_handlers)
    try:
        options = broker_options(config, hooks, storage=storage)
        broker = Broker(config.broker, options, registry, custom)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    broker.know_wires(LetterWires(Letters()))  # until the doors are there, and all their letters
    return broker


def declare(
    broker: Broker,
    config: ServerConfig,
    now: float,
    take_down: Callable[[list[Effect], float], None] | None = None,
) -> None:
    """Create the channels, queues and routers of the configuration; existing ones stay as they are.

    :param take_down: gets the effects, so that the journal stores what must be stored.
    :raises ConfigError: when the broker refuses one; then the server must not start.
    """
    if not (config.channels or config.routers):
        return
    maker = _Maker(broker, now, take_down)
    broker.step(Connect(_SESSION, None, _CLIENT), now)
    for channel in config.channels:
        name = f"channels.{channel.name}"
        if channel.changes.lifetime == WITH_OWNER:
            raise ConfigError(f"{name}: only a client can create a channel that ends with it")
        maker.create(CreateChannel(_SESSION, name, channel.name, channel.changes))
        for queue in channel.queues:
            what = f"{name}.queues.{queue.queue_id}"
            command = CreateQueue(_SESSION, what, channel.name, queue.queue_id, queue.changes)
            maker.create(command)
    for channel in config.channels:
        for feed in channel.feeds:
            maker.create(
                AddFeed(
                    _SESSION,
                    f"channels.{channel.name}.feeds.{feed.target}",
                    channel.name,
                    feed.queue_id,
                    feed.target,
                    feed.target_queue,
                    None,
                    feed.filter_language,
                    feed.filter,
                )
            )
    for router in config.routers:
        name = f"routers.{router.name}"
        if router.name in config.custom_routers:
            raise ConfigError(f"{name} is a custom router already")
        maker.create(CreateRouter(_SESSION, name, router.name, router.method))
        for binding in router.bindings:
            what = f"{name}.bindings.{binding.name}"
            maker.create(AddBinding(_SESSION, what, router.name, binding))
        state = SetRouterEnabled(_SESSION, name, router.name, router.enabled)
        maker.create(state)
    broker.step(Disconnect(_SESSION), now)


def summary(config: ServerConfig) -> list[str]:
    """Describe what a server with this configuration serves, one line for each item."""
    options = broker_options(config)
    queue = options.channel.queue
    automatic = [
        word
        for word, wanted in (
            ("channels", options.auto_channel_creation),
            ("queues", options.auto_queue_creation),
        )
        if wanted
    ]
    told = "requested" if queue.request_acknowledge else "not requested"
    status = STATUS_INFORMATION_WORDS[QueueStatus(queue.status)]
    lines = [
        f"listen          {' '.join(map(str, config.listen)) or 'no TMQP'}",
        *_doors_of(config),
        f"created by use  {' and '.join(automatic) or 'nothing'}",
        f"new queues      {status}, handler {queue.delivery_handler}, acknowledges {told}",
    ]
    for channel in config.channels:
        ids = " ".join(str(each.queue_id) for each in channel.queues) or "none"
        lines.append(f"channel         {channel.name}: queues {ids}")
        for feed in channel.feeds:
            target = f"{feed.target}/{feed.target_queue}"
            lines.append(f"feed            {channel.name}/{feed.queue_id} to {target}")
    for router in config.routers:
        method = RouteMethod(router.method).name.lower().replace("_", "-")
        targets = " ".join(binding.target for binding in router.bindings) or "no bindings"
        state = "" if router.enabled else " (disabled)"
        lines.append(f"router          {router.name}{state}: {method} to {targets}")
    for kind, settings in (
        ("custom router", config.custom_routers),
        ("handler", config.handlers),
        ("authenticator", config.authenticators),
        ("event handler", config.event_handlers),
    ):
        for name, setting in settings.items():
            lines.append(f"{kind:<15} {name}: {setting.module}:{setting.name}")
    if config.replication is not None:
        group = config.replication
        lines.append(f"replication     {group.node} of {group.log}")
    lines.append(f"access          {config.access.kind}")
    if config.custom_messages:
        lines.append(f"custom messages {config.custom_messages}")
    lines.append(f"HTTP bindings   {' '.join(config.http.allow) or 'refused'}")
    return lines


def _doors_of(config: ServerConfig) -> list[str]:
    """A line for each door except TMQP's."""
    lines: list[str] = []
    for each in further_doors(config):
        names = " ".join([door_name(each.protocol, address) for address in each.listen])
        lines.append(f"door            {names or each.protocol}")
    return lines


#: The meanings of the codes here.
_REASONS = {
    400: "a name or a value is not possible",
    401: "the URL is not among those that http.allow allows",
    404: "there is no such queue",
    406: (
        "a delivery handler, authenticator or event handler with this name is not registered, the"
        " channel does not allow this queue, or a feed leads back to its own queue"
    ),
    482: "it is past a limit of [broker] or of its channel",
    501: "HTTP bindings are off: http.allow allows no URL",
}


class _Maker:
    """Creates what a configuration declares."""

    def __init__(
        self,
        broker: Broker,
        now: float,
        take_down: Callable[[list[Effect], float], None] | None,
    ) -> None:
        self._broker = broker
        self._now = now
        self._take_down = take_down

    def create(self, command: SessionCommand) -> None:
        """Create one thing; with a store, the success is reported later, and ignored."""
        effects = self._broker.step(command, self._now)
        for effect in effects:
            if isinstance(effect, Reply) and effect.code not in (RESULT_OK, RESULT_DUPLICATE):
                reason = _REASONS.get(effect.code, "it is refused")
                raise ConfigError(f"{effect.request}: {reason} ({effect.code})")
        if self._take_down is not None:
            self._take_down(effects, self._now)
