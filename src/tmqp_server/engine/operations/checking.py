"""Checks the options of a broker."""

from __future__ import annotations

from tmqp.constants import RESULT_OK
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.delivery import HandlerRegistry
from tmqp_server.engine.options import BrokerOptions

__all__ = ["check_broker", "check_options"]


def check_broker(limits: EngineLimits, options: BrokerOptions, handlers: HandlerRegistry) -> None:
    """Check the options of a broker, with its limits and handlers.

    :raises ValueError: if they are not possible.
    """
    check_options(limits, options)
    if handlers.find(options.channel.queue.delivery_handler) is None:
        name = options.channel.queue.delivery_handler
        raise ValueError(f"no delivery handler is registered under the name {name!r}")
    if not options.knows(options.channel):
        raise ValueError(
            "no such authenticator or event handler is registered:"
            f" {options.channel.authenticator!r}, {options.channel.event_handler!r}"
        )
    if options.channel.needs_owner():
        raise ValueError("automatically created channels have no owner to end with")
    if options.channel.queue.needs_storage() and not options.storage:
        raise ValueError("queues cannot be durable without a storage")


def check_options(limits: EngineLimits, options: BrokerOptions) -> None:
    """Check the options of new channels.

    :raises ValueError: if they exceed the limits.
    """
    if options.channel.problem(limits) != RESULT_OK:
        raise ValueError(f"these options are not possible within the limits: {options!r}")
