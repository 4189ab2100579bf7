"""The commands for consecutive messages of one kind, and the data that doors add to them."""

from __future__ import annotations

from tmqp._compat import mypyc_attr
from tmqp_server.engine.commands.base import SessionCommand
from tmqp_server.engine.commands.clients import PassAnswer, SendDirect
from tmqp_server.engine.commands.messages import Acknowledge, Push

__all__ = [
    "AcknowledgeRun",
    "ClientRun",
    "PassAnswerRun",
    "PushRun",
    "RunNotes",
    "RunWire",
    "SendDirectRun",
]


class RunNotes:
    """What the engine tells a door about its runs: ``divided`` is set when a run was divided,
    ``unmixed`` when a run for several queues or of both priorities was divided.

    The door may then pass the next pushes singly, or in runs for one queue each.
    """

    __slots__ = ("divided", "unmixed")

    def __init__(self) -> None:
        self.divided = False
        self.unmixed = False


@mypyc_attr(allow_interpreted_subclasses=True)
class RunWire:
    """A run as its door encodes it; the door gets it back when the run is delivered."""

    def pushes(self, run: PushRun) -> list[Push]:
        """Return the run as single pushes."""
        raise NotImplementedError

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """For each push in order: the ids of the messages, their sizes in bytes, and their own
        ``wire``."""
        raise NotImplementedError

    def stored(self) -> tuple[bytes, list[int], list[int]] | None:
        """The bytes to store of all messages, one after another; the size of each; and the offset
        of the payload in each, which extends to its end.  A single number stands for all.

        None if each message must be stored separately, as its door encodes it.
        """
        return None

    def message_ids(self) -> list[str]:
        """The id of each message."""
        return self.contents()[0]

    def keeps(self) -> bool:
        """Whether the messages may stay in this form for a long time: the form takes no more memory
        than the messages, and always has the same contents.  This base returns False."""
        return False

    def sample(self, family: object) -> object:
        """The ``wire`` of one message, if all messages are equal for filters of this family; None
        if they are not, or if it is not worth finding out."""
        return None

    def is_keyless(self) -> bool:
        """Whether no message of the run has a group key."""
        return False

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """Return the run as single acknowledgements."""
        raise NotImplementedError

    def said(self, run: ClientRun) -> list[SendDirect | PassAnswer]:
        """Return the run as single messages from client to client."""
        raise NotImplementedError


@mypyc_attr(acyclic=True)
class PushRun(SessionCommand):
    """Push messages into one queue, or several queues of one channel, in order.

    No message has extras; all of them request a confirm, or none.  ``count`` is the number of
    messages, ``size`` their total cost in bytes, and ``largest`` the cost of the largest.

    ``left`` are the remaining pushes of a divided run, the next one last.  ``copied`` means that a
    feed copies the run: then ``channel`` and ``queue_id`` are those of the target, and ``wire``
    names those of the source.

    ``queues`` has the queue of each message in order, or is empty if there is only one queue;
    ``odd`` has the indexes of the messages whose priority differs from the first one's.  If there
    are several queues, ``sequences`` has the sequence of the first message in each, once the run is
    accepted.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "high_priority",
        "wants_confirm",
        "count",
        "size",
        "largest",
        "wire",
        "notes",
        "copied",
        "left",
        "queues",
        "odd",
        "sequences",
    )

    def __init__(
        self,
        session: int,
        channel: str,
        queue_id: int,
        high_priority: bool,
        wants_confirm: bool,
        count: int,
        size: int,
        largest: int,
        wire: RunWire,
        notes: RunNotes,
        copied: bool = False,
        queues: list[int] | None = None,
        odd: list[int] | None = None,
    ) -> None:
        self.session = session
        self.channel = channel
        self.queue_id = queue_id
        self.high_priority = high_priority
        self.wants_confirm = wants_confirm
        self.count = count
        self.size = size
        self.largest = largest
        self.wire = wire
        self.notes = notes
        self.copied = copied
        self.left: list[Push] = []
        self.queues: list[int] = [] if queues is None else queues
        self.odd: list[int] = [] if odd is None else odd
        self.sequences: dict[int, int] = {}

    @property
    def is_mixed(self) -> bool:
        """Whether the messages go into several queues, or differ in priority."""
        return len(self.queues) > 0 or len(self.odd) > 0

    def pushes(self) -> list[Push]:
        """Return the run as single pushes, because it will be divided."""
        if self.is_mixed:
            self.notes.unmixed = True
        else:
            self.notes.divided = True
        return self.wire.pushes(self)

    def singles(self) -> list[Push]:
        """Return the remaining pushes, as single ones."""
        return self.left[::-1] if self.left else self.pushes()

    def is_over(self) -> bool:
        """Whether nothing is left of the run, once it was begun."""
        return not self.left

    def divide(self) -> None:
        """Have the pushes carried out one by one."""
        self.left = self.pushes()
        self.left.reverse()


@mypyc_attr(acyclic=True)
class AcknowledgeRun(SessionCommand):
    """Positive acknowledgements by a consumer of messages of one queue, or several queues of one
    channel, in order (F95).

    With ``answers``, the acknowledgement of a message that is not in flight to the session gets a
    Reply, as that of an Acknowledge; its ``request`` is the message's id.  ``at`` is how many of
    ``message_ids`` have been handled; ``left`` are the remaining acknowledgements of a divided run,
    the next one last.

    ``queues`` has the queue of each message in order, or is empty if there is only one queue.
    """

    __slots__ = (
        "channel",
        "queue_id",
        "message_ids",
        "wire",
        "notes",
        "answers",
        "queues",
        "at",
        "left",
    )

    def __init__(
        self,
        session: int,
        channel: str,
        queue_id: int,
        message_ids: list[str],
        wire: RunWire,
        notes: RunNotes,
        answers: bool = False,
        queues: list[int] | None = None,
    ) -> None:
        self.session = session
        self.channel = channel
        self.queue_id = queue_id
        self.message_ids = message_ids
        self.wire = wire
        self.notes = notes
        self.answers = answers
        self.queues: list[int] = [] if queues is None else queues
        self.at = 0
        self.left: list[Acknowledge] = []

    def singles(self) -> list[Acknowledge]:
        """Return the remaining acknowledgements, as single ones."""
        if self.left:
            return self.left[::-1]
        if self.queues:
            self.notes.unmixed = True
        else:
            self.notes.divided = True
        return self.wire.acknowledges(self)[self.at :]

    def divide(self) -> None:
        """Have the remaining acknowledgements carried out one by one."""
        self.left = self.singles()
        self.left.reverse()
        self.at = len(self.message_ids)

    def is_over(self) -> bool:
        """Whether nothing is left of the run."""
        return not self.left and self.at >= len(self.message_ids)


@mypyc_attr(acyclic=True)
class ClientRun(SessionCommand):
    """Consecutive messages from a client to others: a ``SendDirectRun`` or a ``PassAnswerRun``.

    ``count`` is the number of messages, ``size`` their total cost in bytes, and ``largest`` the
    cost of the largest.  ``left`` are the remaining messages of a divided run, the next one last.
    """

    __slots__ = ("count", "size", "largest", "wire", "left")

    def __init__(self, session: int, count: int, size: int, largest: int, wire: RunWire) -> None:
        super().__init__(session)
        self.count = count
        self.size = size
        self.largest = largest
        self.wire = wire
        self.left: list[SendDirect | PassAnswer] = []

    def singles(self) -> list[SendDirect | PassAnswer]:
        """Return the remaining messages, as single ones."""
        return self.left[::-1] if self.left else self.wire.said(self)

    def divide(self) -> None:
        """Have the messages carried out one by one."""
        self.left = self.wire.said(self)
        self.left.reverse()

    def is_over(self) -> bool:
        """Whether nothing is left of the run, once it was begun."""
        return not self.left


@mypyc_attr(acyclic=True)
class SendDirectRun(ClientRun):
    """Forward messages to the same clients, like as many ``SendDirect`` that request the same
    answers; each has an id, and none was passed to other nodes."""

    __slots__ = ("by", "who", "first_only", "asks")

    def __init__(
        self,
        session: int,
        by: int,
        who: str,
        first_only: bool,
        asks: int,
        count: int,
        size: int,
        largest: int,
        wire: RunWire,
    ) -> None:
        super().__init__(session, count, size, largest, wire)
        self.by = by
        self.who = who
        self.first_only = first_only
        self.asks = asks


@mypyc_attr(acyclic=True)
class PassAnswerRun(ClientRun):
    """Forward answers of one kind to a client, like as many ``PassAnswer``."""

    __slots__ = ("client_id", "kind")

    def __init__(
        self,
        session: int,
        client_id: str,
        kind: int,
        count: int,
        size: int,
        largest: int,
        wire: RunWire,
    ) -> None:
        super().__init__(session, count, size, largest, wire)
        self.client_id = client_id
        self.kind = kind
