"""The commands about groups: the cursors of one name, in many queues.

``places`` has the queues: those that the client names, or those whose channels pass a filter, which
``Broker.resolve`` finds.
"""

from __future__ import annotations

from tmqp_server.engine.commands.base import Command, SessionCommand
from tmqp_server.engine.commands.reading import KeptPart, ListOffsets
from tmqp_server.engine.records import Record

__all__ = [
    "CommitGroup",
    "DropGroup",
    "GroupCommand",
    "GroupPlace",
    "ListGroups",
    "OpenGroup",
    "ResetGroup",
    "StoredMeasured",
]


class GroupPlace(Record):
    """A queue and the position of a reader in it; a queue that is not ``allowed`` is skipped.

    With an ``incarnation``, only this incarnation of the queue is meant.
    """

    __slots__ = ("channel", "queue_id", "sequence", "incarnation", "allowed")

    def __init__(
        self, channel: str, queue_id: int, sequence: int = 0, incarnation: str = ""
    ) -> None:
        self.channel = channel
        self.queue_id = queue_id
        self.sequence = sequence
        self.incarnation = incarnation
        self.allowed = True


class GroupCommand(SessionCommand):
    """A command about the cursors named ``cursor``.

    With a ``filter`` of channel names (F53), in all queues of these channels, or in those with
    ``queue_id``: then ``places`` is None until they are found, and stays None if they are too many.
    """

    __slots__ = ("request", "cursor", "filter", "queue_id", "places", "too_many")

    def __init__(
        self,
        session: int,
        request: object,
        cursor: str,
        filter: str | None = None,
        queue_id: int | None = None,
        places: list[GroupPlace] | None = None,
    ) -> None:
        super().__init__(session)
        self.request = request
        self.cursor = cursor
        self.filter = filter
        self.queue_id = queue_id
        self.places = places
        self.too_many = False


class OpenGroup(GroupCommand):
    """Create a cursor in all queues that pass a filter; where it exists already, it stays where it
    is.

    It begins with the ``earliest`` message that is kept, with the first that arrived at
    ``timestamp_ms`` (Unix time, negative for none) or later, or after the latest.
    """

    __slots__ = ("earliest", "timestamp_ms")

    def __init__(
        self,
        session: int,
        request: object,
        cursor: str,
        filter: str,
        queue_id: int | None,
        earliest: bool,
        timestamp_ms: int = -1,
    ) -> None:
        super().__init__(session, request, cursor, filter, queue_id)
        self.earliest = earliest
        self.timestamp_ms = timestamp_ms


class CommitGroup(GroupCommand):
    """Move the cursors of a reader forward to these places; missing ones are created."""

    __slots__ = ()

    def __init__(
        self, session: int, request: object, cursor: str, places: list[GroupPlace]
    ) -> None:
        super().__init__(session, request, cursor, None, None, places)


class ResetGroup(GroupCommand):
    """Move existing cursors of a reader, also backwards: to ``places``, or as in OpenGroup."""

    __slots__ = ("earliest", "timestamp_ms")

    def __init__(
        self,
        session: int,
        request: object,
        cursor: str,
        filter: str | None,
        queue_id: int | None,
        places: list[GroupPlace] | None,
        earliest: bool = False,
        timestamp_ms: int = -1,
    ) -> None:
        super().__init__(session, request, cursor, filter, queue_id, places)
        self.earliest = earliest
        self.timestamp_ms = timestamp_ms


class DropGroup(GroupCommand):
    """Remove the cursors of a reader from all queues that pass a filter."""

    __slots__ = ()

    def __init__(
        self, session: int, request: object, cursor: str, filter: str, queue_id: int | None
    ) -> None:
        super().__init__(session, request, cursor, filter, queue_id)


class ListGroups(ListOffsets):
    """List the cursors of all queues that pass a filter, of one name if one is given, with their
    lag."""

    __slots__ = ()


class StoredMeasured(Command):
    """The answer to MeasureStored, in its order; empty if the code is not 0."""

    __slots__ = ("number", "code", "parts")

    def __init__(self, number: int, code: int, parts: list[KeptPart]) -> None:
        self.number = number
        self.code = code
        self.parts = parts
