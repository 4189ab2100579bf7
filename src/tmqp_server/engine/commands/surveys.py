"""Commands that list all channels, queues or clients in portions, or describe one client.

A list of ten thousand queues takes as long as a thousand messages.  So each command returns one
portion; its answer has a walk, with which the next command continues.
"""

from __future__ import annotations

from tmqp_server.engine.commands.base import SessionCommand
from tmqp_server.engine.model.walks import ChannelWalk, ClientWalk

__all__ = [
    "DescribeClient",
    "DisconnectClient",
    "SurveyChannels",
    "SurveyClients",
    "SurveyCommand",
    "SurveyQueues",
]


class SurveyCommand(SessionCommand):
    """A request for a portion of the channels whose names pass ``filter`` (F53), or of their
    queues.

    The first command of a survey has no ``walk``; each further one has the walk of the previous
    command, which is set when that command is prepared.  ``visible`` are the channels that the
    client may see, None for all.
    """

    __slots__ = ("request", "filter", "walk", "visible", "prepared")

    def __init__(
        self, session: int, request: object, filter: str = "", walk: ChannelWalk | None = None
    ) -> None:
        super().__init__(session)
        self.request = request
        self.filter = filter
        self.walk = walk
        self.visible: frozenset[str] | None = None
        #: Whether ``walk`` is at the portion that this command requests.
        self.prepared = False


class SurveyChannels(SurveyCommand):
    """Answered with a list of ChannelSnapshot.

    With ``names``, the answer has these channels in this order, all at once, without missing ones;
    ``filter`` and ``walk`` are ignored.
    """

    __slots__ = ("names",)

    def __init__(
        self,
        session: int,
        request: object,
        filter: str = "",
        walk: ChannelWalk | None = None,
        names: list[str] | None = None,
    ) -> None:
        super().__init__(session, request, filter, walk)
        self.names = names


class SurveyQueues(SurveyCommand):
    """Answered with a list of QueueSnapshot.

    With ``places``, pairs of a channel's name and a queue's id, the answer has these queues in this
    order, all at once, without missing ones; ``filter`` and ``walk`` are ignored.
    """

    __slots__ = ("places",)

    def __init__(
        self,
        session: int,
        request: object,
        filter: str = "",
        walk: ChannelWalk | None = None,
        places: list[tuple[str, int]] | None = None,
    ) -> None:
        super().__init__(session, request, filter, walk)
        self.places = places


class SurveyClients(SessionCommand):
    """A portion of the clients: answered with a list of SurveyedClient; ``walk`` as above.

    With ``ids``, the answer has these clients in this order, all at once, without those that are
    not connected.
    """

    __slots__ = ("request", "walk", "ids")

    def __init__(
        self,
        session: int,
        request: object,
        walk: ClientWalk | None = None,
        ids: list[str] | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.walk = walk
        self.ids = ids


class DescribeClient(SessionCommand):
    """Answered with a ClientDetails: the client of this id, and what it has joined.  404."""

    __slots__ = ("request", "client_id")

    def __init__(self, session: int, request: object, client_id: str) -> None:
        super().__init__(session)
        self.request = request
        self.client_id = client_id


class DisconnectClient(SessionCommand):
    """Close the connection of the client of this id; its deliveries in flight are returned as after
    a lost connection.  404, also for a node of the cluster."""

    __slots__ = ("request", "client_id")

    def __init__(self, session: int, request: object, client_id: str) -> None:
        super().__init__(session)
        self.request = request
        self.client_id = client_id
