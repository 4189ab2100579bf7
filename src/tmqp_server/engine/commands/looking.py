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
    """Answered with a list, or with 482 if it has more than ``most_items``; 0 is no bound.

    Whoever writes the answer sets it: more items cannot fit, so they are not collected.
    """

    __slots__ = ("request", "most_items")

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request
        self.most_items = 0


class ListChannels(ListCommand):
    """Answered with a list of ChannelSnapshot, those whose name passes ``filter`` (F52, F53).

    ``visible`` are the channels that may be seen; None for all.
    """

    __slots__ = ("filter", "visible")

    def __init__(self, session: int, request: object, filter: str = "") -> None:
        super().__init__(session, request)
        self.filter = filter
        self.visible: frozenset[str] | None = None


class ListConsumers(ListCommand):
    """Answered with a list of ClientSnapshot, in join order; ages count since joining (F52).

    404: unlike the original, asking creates no channel.
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
    """Ask whether the client may do something that is not the broker's: it only answers."""

    __slots__ = ("request",)

    def __init__(self, session: int, request: object) -> None:
        super().__init__(session)
        self.request = request


class Configure(Permission):
    """Whether it may change settings of the server."""

    __slots__ = ()


class SeeMetrics(Permission):
    """Whether it may see the metrics of the server."""

    __slots__ = ()


class SeeServer(Permission):
    """Whether it may see how the server is: its state, and what fails."""

    __slots__ = ()


class SeeAudit(Permission):
    """Whether it may see who has asked for which change."""

    __slots__ = ()


class Manage(Permission):
    """Whether it may do something to the server that is not the broker's.

    ``right`` is the one of ``access/rights.py`` that it takes, ``action`` one of
    ``access/auditing.py``'s ``MANAGED``, ``subject`` what it is about, and ``after`` what that is
    to be then, ``before`` what it was.
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
    """Whether it has a right: nothing is done, and a no is no refusal that is counted.

    ``right`` is one of ``access/rights.py``, ``subject`` the name of what it is about, ``queue_id``
    -1 for no queue in particular.
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
