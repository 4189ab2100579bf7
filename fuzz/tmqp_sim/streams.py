"""Messages on their way through a server: what clients hand to connections, and what sessions are
sent.

Theory of operation.  What a client hands to a connection reaches the broker once, whole and in
order, up to where the connection ended; all of it, if the client had closed the connection and the
server read its end.  What the broker sends to a session comes to its client in order and without
gaps.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar

from tmqp_sim.network import Link
from tmqp_sim.world import Violation, World

__all__ = ["Named", "Streams"]

#: How the server says that a client closed its connection.
_POLITE: Final = "the peer closed the connection"


class Named(Protocol):
    """A message, before any server has given it an id."""

    uid: str


_Item = TypeVar("_Item", bound=Named)


class _Handed(Generic[_Item]):
    """What a client has handed to one connection, and how much of it the broker has taken."""

    __slots__ = ("items", "link", "polite", "taken")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.items: list[_Item] = []
        self.taken = 0
        #: The client has closed the connection when all was sent.
        self.polite = False


class Streams(Generic[_Item]):
    """The streams of one protocol.

    :param checker: its name in reports.
    :param title: how marks begin.
    """

    def __init__(self, world: World, checker: str, title: str) -> None:
        self._world = world
        self._checker = checker
        self._title = title
        #: Somebody watches the broker.
        self.watches = False
        self._handed: dict[int, _Handed[_Item]] = {}
        #: By session: the names of what was sent and has not come, and what is noted of each.
        self.sent: dict[int, deque[tuple[str, int]]] = {}

    # -- to the server --------------------------------------------------------------------------

    def hands(self, link: Link, item: _Item) -> None:
        """A client hands an item to its connection."""
        handed = self._handed.get(link.number)
        if handed is None:
            handed = self._handed[link.number] = _Handed(link)
        handed.items.append(item)

    def closes(self, link: Link) -> None:
        """A client closes its connection, and all that it had was sent."""
        handed = self._handed.get(link.number)
        if handed is not None:
            handed.polite = True

    def under_way(self, link: Link) -> int:
        """How many items were handed to a connection that the broker has not taken."""
        handed = self._handed.get(link.number)
        if handed is None or not self.watches:
            return 0
        return len(handed.items) - handed.taken

    def takes(self, session: int, item: _Item) -> None:
        """The broker takes an item from a session.

        :raises Violation: when that is not the next one.
        """
        handed = self._handed.get(session)
        due: _Item | None = None
        if handed is not None and handed.taken < len(handed.items):
            due = handed.items[handed.taken]
            handed.taken += 1
        if due is not item:
            text = f"session {session} pushes {item.uid}, due is {due and due.uid!r}"
            raise Violation(self._checker, text)
        self._world.mark(f"{self._title} message taken in")

    def last_taken(self, session: int) -> _Item | None:
        """The item that the broker took last from a session."""
        handed = self._handed.get(session)
        return None if handed is None or not handed.taken else handed.items[handed.taken - 1]

    def check_closed(self) -> None:
        """What clients had sent when they closed their connections is there.

        :raises Violation: when something is missing.
        """
        for handed in self._handed.values():
            link = handed.link
            reason = getattr(link.server.owner, "reason", "")
            if not handed.polite or link.gone or link.dead or reason != _POLITE:
                continue
            self._world.mark(f"{self._title} client closed, and all was read")
            if handed.taken < len(handed.items):
                text = f"{handed.items[handed.taken].uid} was sent before a client closed"
                raise Violation(
                    self._checker, f"{text} session {link.number}, and was not taken in"
                )

    # -- from the server ------------------------------------------------------------------------

    def note_sent(self, session: int, uid: str, note: int = 0) -> None:
        """The broker sends an item to a session."""
        sent = self.sent.get(session)
        if sent is None:
            sent = self.sent[session] = deque()
        sent.append((uid, note))

    def comes(self, session: int, uid: str) -> None:
        """A client gets an item.

        :raises Violation: when it is not what was sent to this connection next.
        """
        sent = self.sent.get(session)
        if sent is None or not self.watches:
            return  # of a life that is over
        name = sent.popleft()[0] if sent else ""
        if name != uid:
            text = f"session {session} gets {uid}, and was sent {name or 'nothing'}"
            raise Violation(self._checker, text)
