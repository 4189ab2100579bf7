"""The interface of feeding that the workflow uses; see ``feeding.py``."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.model.message import Message
from tmqp_server.engine.model.queues import Queue

__all__ = ["FeedPort"]


@mypyc_attr(allow_interpreted_subclasses=True)
class FeedPort:
    """Sends the messages of queues that have feeds.  This base is for a broker without feeds."""

    __slots__ = ()

    def arrive(self, queue: Queue, message: Message, now: float) -> None:
        """Send a message that was accepted in this step now if possible; otherwise let it wait."""
        raise NotImplementedError

    def arrive_deferred(self, queue: Queue, message: Message, now: float) -> None:
        """The same for a message that is not due yet: feeds get it, consumers do not."""
        raise NotImplementedError

    def wait(self, queue: Queue, message: Message, now: float) -> None:
        """Let a message wait behind the others, and send what can be sent."""
        raise NotImplementedError

    def pump(self, queue: Queue, now: float, floor: int) -> None:
        """Send what waits until the budget is down to *floor*."""
        raise NotImplementedError
