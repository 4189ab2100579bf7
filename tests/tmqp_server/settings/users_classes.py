"""Classes as a user writes them, for tests of what the configuration loads."""

from __future__ import annotations

from tmqp_server import (
    ACKNOWLEDGE,
    ALLOW,
    CustomRouter,
    Decision,
    DeliveryHandler,
    Message,
    QueueFacts,
    RoutedMessage,
    Target,
    to_queue,
)

__all__ = ["Broken", "Everywhere", "Failing", "Loud", "number"]

number = 5


class Loud(DeliveryHandler):
    """Acknowledges some."""

    def __init__(self, larger_than: int = 0) -> None:
        self.larger_than = larger_than

    def received_from_producer(self, queue: QueueFacts, message: Message) -> Decision:
        return ACKNOWLEDGE if message.size > self.larger_than else ALLOW


class Broken(DeliveryHandler):
    """Cannot be made."""

    def __init__(self) -> None:
        raise RuntimeError("no licence")


class Everywhere(CustomRouter):
    """Routes to one queue."""

    def route(self, message: RoutedMessage) -> list[Target]:
        return [to_queue("everywhere", 1)]


class Failing(CustomRouter):
    """Has a bug."""

    def route(self, message: RoutedMessage) -> list[Target]:
        raise RuntimeError("a bug of the user's")
