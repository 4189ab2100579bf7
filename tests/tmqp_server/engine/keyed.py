"""A world with a queue where keys count."""

from __future__ import annotations

from tests.tmqp_server.engine.world import World, queue_defaults
from tmqp.constants import STATUS_ROUND_ROBIN
from tmqp_server.engine.commands import Block
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.model.message import Message, Wires

__all__ = ["BeforeDash", "busy", "keyed", "sent"]


class BeforeDash(Wires):
    """The key is what stands before the dash in a message's id."""

    def key_of(self, message: Message) -> str:
        key, dash, _ = message.message_id.partition("-")
        return key if dash else ""


def keyed(keys: str, **more: object) -> World:
    """A world with one queue of this kind, and a consumer for each name."""
    options: dict[str, object] = {
        "status": STATUS_ROUND_ROBIN,
        "request_acknowledge": True,
        "group_keys": keys,
        "delivery_handler": "putback-start",
    }
    limits = more.pop("limits", None)
    handlers = more.pop("handlers", None)
    assert limits is None or isinstance(limits, EngineLimits)
    world = World(limits, queue_defaults(**{**options, **more}), handlers)  # type: ignore[arg-type]
    world.broker.know_wires(BeforeDash())
    world.create()
    return world


def sent(words: list[str]) -> list[str]:
    """The deliveries among effects, without their flags."""
    return [" ".join(word.split()[:3]) for word in words if " <- " in word]


def busy(world: World, name: str) -> None:
    """Let a client read nothing."""
    world.step(Block(world.numbers[name]))
