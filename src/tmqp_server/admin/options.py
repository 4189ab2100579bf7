"""The options of the admin door."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tmqp.constants import MAX_QUEUE_ID
from tmqp_server.engine.operations.survey import QueueChoice

__all__ = ["ADMIN", "AdminOptions", "read_choice"]

_ORIGIN: Final = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?")
#: The name of the door.
ADMIN: Final = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminOptions:
    """The options of the admin door."""

    metrics_queues: tuple[str, ...] = ()
    """The queues with separate metrics: ``orders`` for all queues of that channel, ``bills-*/1``
    for queue 1 of all channels whose names begin with ``bills-``; by default none."""

    max_metrics_queues: int = 1_000
    """How many of these queues are shown separately; the others are summed."""

    exemplars: bool = False
    """Whether OpenMetrics shows, for ``tmqp_push_to_delivery_seconds``, the traces of messages; the
    server reads the header ``traceparent`` of one message per minute and bucket."""

    hosts: tuple[str, ...] = ()
    """The names under which browsers and scripts reach this server, in addition to ``localhost``
    and addresses; requests for other hosts are refused."""

    anonymous_metrics: bool = False
    """Whether ``/metrics`` is shown to clients that do not log in."""

    origins: tuple[str, ...] = ()
    """Other origins whose pages may send requests, with a token and never with a cookie, such as
    ``https://tools.example.org``; by default none."""

    requests_per_s: int = 50
    """Requests per second from one client, and from one address that is not this machine's; twice
    as many may come at once.  A request that sorts or browses counts as ten; 0 for no limit."""

    share: int = 5
    """Percent of the event loop's time that requests may take while the loop is never idle; while
    it is idle, they may take more.  100 for no limit."""

    max_at_work: int = 32
    """How many requests work at the same time, without those that wait for a message, an event or a
    confirm.  Further ones wait."""

    max_waiting: int = 64
    """How many requests may wait to begin; further ones are answered with 503."""

    backups: str = ""
    """The directory for backups that operators request over HTTP; without it, they cannot."""

    console: bool = True
    """Whether ``/`` serves the console."""

    def __post_init__(self) -> None:
        if self.max_metrics_queues < 1:
            raise ValueError(f"max_metrics_queues must be positive, got {self.max_metrics_queues}")
        if self.requests_per_s < 0:
            raise ValueError(f"requests_per_s must not be negative, got {self.requests_per_s}")
        if not 1 <= self.share <= 100:
            raise ValueError(f"share is a percentage from 1 to 100, got {self.share}")
        if self.max_at_work < 1:
            raise ValueError(f"max_at_work must be positive, got {self.max_at_work}")
        if self.max_waiting < 0:
            raise ValueError(f"max_waiting must not be negative, got {self.max_waiting}")
        for each in self.origins:
            if not _ORIGIN.fullmatch(each):
                raise ValueError(f"origins: {each!r} is not like https://host or https://host:port")


def read_choice(text: str) -> QueueChoice:
    """Read an item of ``metrics_queues``: ``CHANNELS`` or ``CHANNELS/QUEUE``.

    :raises ValueError: when the item is not valid.
    """
    pattern, slash, number = text.rpartition("/")
    if not slash or not (number.isascii() and number.isdecimal()):
        pattern, number = text, ""
    if not pattern or "*" in pattern[1:-1]:
        raise ValueError(
            f"metrics_queues: a star must be at the beginning, the end or both, not as in {text!r}"
        )
    if number and int(number) > MAX_QUEUE_ID:
        raise ValueError(f"metrics_queues: {text!r}: the largest queue id is {MAX_QUEUE_ID}")
    return QueueChoice(pattern, int(number) if number else -1)
