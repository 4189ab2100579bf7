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
    """What the engine says to a door about its runs; ``divided`` is set when one was, and
    ``unmixed`` when one for several queues, or of several priorities, was.

    The door that reads it may well bring the next ones singly, or each for one queue.
    """

    __slots__ = ("divided", "unmixed")

    def __init__(self) -> None:
        self.divided = False
        self.unmixed = False


@mypyc_attr(allow_interpreted_subclasses=True)
class RunWire:
    """What a door makes of a run; it gets it back when the run is delivered."""

    def pushes(self, run: PushRun) -> list[Push]:
        """The same as single pushes."""
        raise NotImplementedError

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        """Of each push in order: the message's id, its bytes, and its own ``wire``."""
        raise NotImplementedError

    def stored(self) -> tuple[bytes, list[int], list[int]] | None:
        """What is to be kept of all messages, one after another, the size of each, and where in
        each its payload begins, which reaches to its end; a single number stands for all.

        None where each is to be kept by itself, as its door has it.
        """
        return None

    def message_ids(self) -> list[str]:
        """The id of each message."""
        return self.contents()[0]

    def keeps(self) -> bool:
        """Whether the messages may stay in this form for long: it takes no more memory than they
        do, and says the same whenever it is asked.  This base says no."""
        return False

    def sample(self, family: object) -> object:
        """The ``wire`` of one message, if all others are like it in what filters of this family
        look at; None where they are not, or where that is not worth finding out."""
        return None

    def is_keyless(self) -> bool:
        """Whether no message of it has a group key, so that keys make no difference to it."""
        return False

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        """The same as single acknowledges."""
        raise NotImplementedError

    def said(self, run: ClientRun) -> list[SendDirect | PassAnswer]:
        """The same as single messages from client to client."""
        raise NotImplementedError


@mypyc_attr(acyclic=True)
class PushRun(SessionCommand):
    """Put messages into a queue, or several queues of one channel, in their order.

    None of them brings extras; all of them ask to be told, or none.  ``count`` is how many there
    are, ``size`` what they cost together, in bytes, and ``largest`` what the largest does.

    ``left`` are the pushes still to be carried out of a run that is divided, the next one last.
    ``copied`` says that a feed copies it: then ``channel`` and ``queue_id`` are those of the
    target, and ``wire`` names others.

    ``queues`` are the queues of all in order, or empty where they go into one; ``odd`` the places
    of those whose priority is not that of the first.  ``sequences`` are those that the first
    messages got in each queue, where there are several, once they were taken.
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
        """The same as single pushes: the run will be divided."""
        if self.is_mixed:
            self.notes.unmixed = True
        else:
            self.notes.divided = True
        return self.wire.pushes(self)

    def singles(self) -> list[Push]:
        """Those still to be carried out, as single pushes."""
        return self.left[::-1] if self.left else self.pushes()

    def is_over(self) -> bool:
        """Whether nothing is left of it, once it was begun."""
        return not self.left

    def divide(self) -> None:
        """Have the pushes carried out one by one."""
        self.left = self.pushes()
        self.left.reverse()


@mypyc_attr(acyclic=True)
class AcknowledgeRun(SessionCommand):
    """Positive answers of a consumer about messages of one queue, or of several queues of one
    channel, in their order (F95).

    Where it ``answers``, an answer for a message that the session has not in its hands is answered
    itself, as an Acknowledge's: by a Reply whose ``request`` is the message's id.
    ``at`` is how many of ``message_ids`` have been taken; ``left`` are the answers still to be
    taken of a run that is divided, the next one last.

    ``queues`` are the queues of all in order, or empty where they are about one.
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
        """Those still to be taken, as single acknowledges."""
        if self.left:
            return self.left[::-1]
        if self.queues:
            self.notes.unmixed = True
        else:
            self.notes.divided = True
        return self.wire.acknowledges(self)[self.at :]

    def divide(self) -> None:
        """Have the acknowledgements taken one by one."""
        self.left = self.singles()
        self.left.reverse()
        self.at = len(self.message_ids)

    def is_over(self) -> bool:
        """Whether nothing is left of it."""
        return not self.left and self.at >= len(self.message_ids)


@mypyc_attr(acyclic=True)
class ClientRun(SessionCommand):
    """What a client says to others, several times in a row: a ``SendDirectRun`` or a
    ``PassAnswerRun``.

    ``count`` is how many messages there are, ``size`` what they cost together, in bytes, and
    ``largest`` what the largest does.  ``left`` are those still to be carried out of a run that is
    divided, the next one last.
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
        """Those still to be carried out, as single messages."""
        return self.left[::-1] if self.left else self.wire.said(self)

    def divide(self) -> None:
        """Have the messages carried out one by one."""
        self.left = self.wire.said(self)
        self.left.reverse()

    def is_over(self) -> bool:
        """Whether nothing is left of it, once it was begun."""
        return not self.left


@mypyc_attr(acyclic=True)
class SendDirectRun(ClientRun):
    """Bring messages to the same clients, as so many ``SendDirect`` that ask for the same answers;
    each has an id, and none was given to other nodes."""

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
    """Bring answers of one kind to a client, as so many ``PassAnswer``."""

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
