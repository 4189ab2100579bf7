"""Commands that return information about channels, queues, clients and nodes."""

from __future__ import annotations

from collections.abc import Mapping

from tmqp_server.engine.commands.base import SessionCommand

__all__ = [
    "AskRight",
    "Configure",
    "DescribeChannel",
    "DescribeQueue",
    "DescribeServer",
    "ListChannels",
    "ListClients",
    "ListCommand",
    "ListConsumers",
    "ListNodes",
    "ListQueues",
    "Manage",
    "Permission",
    "SeeAudit",
    "SeeMetrics",
    "SeeServer",
]


class DescribeChannel(SessionCommand):
    """Answered with a ChannelSnapshot (F52).  404."""

    __slots__ = ("request", "channel")

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel


class ListCommand(SessionCommand):
    """Answered with a list, or with 482 if it has more than ``most_items``; 0 means no limit.

    The door that writes the answer sets the limit: more items would not fit, so they are not
    collected.
    """

    __slots__ = ("request", "most_items")

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request
        self.most_items = 0


class ListChannels(ListCommand):
    """Answered with a list of ChannelSnapshot, those whose name passes ``filter`` (F52, F53).

    ``visible`` are the channels that the client may see; None for all.
    """

    __slots__ = ("filter", "visible")

    def __init__(self, session: int, request: object, filter: str = "") -> None:
        super().__init__(session, request)
        self.filter = filter
        self.visible: frozenset[str] | None = None


class ListConsumers(ListCommand):
    """Answered with a list of ClientSnapshot, in join order; ages count from joining (F52).

    404: unlike in the original, this request does not create the channel.
    """

    __slots__ = ("channel",)

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session, request)
        self.channel = channel


class DescribeQueue(SessionCommand):
    """Answered with a QueueSnapshot (F57, F68).  404."""

    __slots__ = ("request", "channel", "queue_id")

    def __init__(self, session: int, request: object, channel: str, queue_id: int) -> None:
        super().__init__(session)
        self.request = request
        self.channel = channel
        self.queue_id = queue_id


class ListQueues(ListCommand):
    """Answered with a list of QueueSnapshot, in the order of creation (F57).  404."""

    __slots__ = ("channel",)

    def __init__(self, session: int, request: object, channel: str) -> None:
        super().__init__(session, request)
        self.channel = channel


class DescribeServer(SessionCommand):
    """Answered with a ServerSnapshot."""

    __slots__ = ("request",)

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request


class Permission(SessionCommand):
    """Ask whether the client may do something outside the broker; the broker only answers."""

    __slots__ = ("request",)

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request


class Configure(Permission):
    """Whether the client may change settings of the server."""

    __slots__ = ()


class SeeMetrics(Permission):
    """Whether the client may see the metrics of the server."""

    __slots__ = ()


class SeeServer(Permission):
    """Whether the client may see the state of the server and its failures."""

    __slots__ = ()


class SeeAudit(Permission):
    """Whether the client may see who requested which change."""

    __slots__ = ()


class Manage(Permission):
    """Whether the client may do something to the server that is outside the broker.

    ``right`` is the required right (``access/rights.py``), ``action`` one of ``MANAGED`` in
    ``access/auditing.py``, ``subject`` the object, and ``before`` and ``after`` its old and new
    value.
    """

    __slots__ = ("right", "action", "subject", "after", "before")

    def __init__(
        self,
        session: int,
        request: object,
        right: str,
        action: str,
        subject: str = "",
        after: Mapping[str, object] | None = None,
        before: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(session, request)
        self.right = right
        self.action = action
        self.subject = subject
        self.after = {} if after is None else after
        self.before = {} if before is None else before


class AskRight(Permission):
    """Whether the client has a right; a negative answer does not count as a refusal.

    ``right`` is one of ``access/rights.py``, ``subject`` the name of the object, ``queue_id`` -1
    for no queue in particular.
    """

    __slots__ = ("right", "subject", "queue_id")

    def __init__(
        self, session: int, request: object, right: str, subject: str = "", queue_id: int = -1
    ) -> None:
        super().__init__(session, request)
        self.right = right
        self.subject = subject
        self.queue_id = queue_id


class ListNodes(SessionCommand):
    """Answered with a list of NodeSnapshot: the masters, then the slaves connected (F59, F69)."""

    __slots__ = ("request",)

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request


class ListClients(ListCommand):
    """Answered with a list of ClientSnapshot, those whose type passes ``filter`` (F53, F59)."""

    __slots__ = ("filter",)

    def __init__(self, session: int, request: object, filter: str = "") -> None:
        super().__init__(session, request)
        self.filter = filter
