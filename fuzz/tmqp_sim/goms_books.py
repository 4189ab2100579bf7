"""What must become of the messages of goMS: the books, without a client.

Theory of operation.  Each item has a name of its own and is sent once, to one topic or to several.

* What a client hands to a connection reaches the broker once for each topic, whole and in order, up
  to where the connection ended.
* A client joins and leaves topics in the order in which it says so, and no others.
* Each message goes once to all who are registered to its topic, unless they are too slow, which is
  counted; to its sender only in the dialect in which it wants that.
* What is sent to a session comes to its client in order and without gaps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from tmqp_server.doors.goms.message import GomsMessage
from tmqp_server.doors.names import foreign_name
from tmqp_server.engine.commands import Command, Disconnect, Join, Leave, Push
from tmqp_server.engine.model.message import Message
from tmqp_sim.network import Link
from tmqp_sim.side_books import SideBooks
from tmqp_sim.streams import Streams
from tmqp_sim.world import Violation, World

__all__ = ["TOPICS", "Entry", "GomsBooks"]

TOPICS: Final = ("goms-one", "goms-two", "goms-three")
_TITLE: Final = "goMS"
_CHECKER: Final = "goms"


class Entry:
    """One message to one topic; its data begin with its name and a space.

    :param echoes: its sender gets it, if it is registered.
    """

    __slots__ = ("data", "echoes", "topic", "uid")

    def __init__(self, name: str, topic: str, data: str, *, echoes: bool) -> None:
        self.uid = f"{name} to {topic}"
        self.topic = topic
        self.data = data
        self.echoes = echoes


class GomsBooks(SideBooks):
    """The books of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.entries: dict[str, Entry] = {}
        self.streams: Streams[Entry] = Streams(world, _CHECKER, _TITLE)
        #: By session: what its client has said and the broker has not heard: whether it joins, and
        #: which topic.
        self._said: dict[int, deque[tuple[bool, str]]] = {}
        #: By session: the topics it has joined, in this life, and what it should get of them.
        self._joined: dict[int, set[str]] = {}
        self._missed: dict[int, dict[str, None]] = {}

    # -- what clients say -----------------------------------------------------------------------

    def hands(self, link: Link, entry: Entry) -> None:
        """A client sends something to a topic."""
        self.entries[entry.uid] = entry
        self.streams.hands(link, entry)

    def says(self, link: Link, topic: str, *, joins: bool) -> None:
        """A client registers to a topic, or logs out of it."""
        self._said.setdefault(link.number, deque()).append((joins, topic))

    def comes(self, link: Link, topic: str, data: str) -> Entry:
        """A client gets a message.

        :param topic: which it is of; empty if that is not said.
        :raises Violation: when it should not have got this.
        """
        name = data.partition(" ")[0]
        topics = (topic,) if topic else TOPICS
        found = [self.entries.get(f"{name} to {each}") for each in topics]
        entries = [each for each in found if each is not None and each.data == data]
        if not entries:
            raise Violation(_CHECKER, f"{data!r} of {topic!r} was never sent")
        waiting = self.streams.sent.get(link.number)
        entry = entries[0]
        for each in entries:
            if waiting and waiting[0][0] == each.uid:
                entry = each
        self.streams.comes(link.number, entry.uid)
        return entry

    # -- what the broker does -------------------------------------------------------------------

    def began(self) -> None:
        """A life begins, with nothing but what the last one has sent.

        That still comes, over connections of its own; of which topic it is may be known from
        nothing else (seed 50092).
        """
        self._joined.clear()
        self._missed.clear()

    def asked(self, command: Command) -> None:
        """A command is about to be carried out.

        :raises Violation: when it is not what a client has asked for.
        """
        if isinstance(command, Push):
            topic = _topic_of(command.channel)
            if topic in TOPICS:
                self._push(topic, command)
        elif isinstance(command, Join):
            self._change(command.session, command.channel, joins=True)
        elif isinstance(command, Leave):
            self._change(command.session, command.channel, joins=False)
        elif isinstance(command, Disconnect):
            self._joined.pop(command.session, None)
            self._missed.pop(command.session, None)

    def _change(self, session: int, channel: str, *, joins: bool) -> None:
        topic = _topic_of(channel)
        if topic not in TOPICS:
            return
        said = self._said.get(session)
        due = said.popleft() if said else None
        if due != (joins, topic):
            text = f"session {session} {'joins' if joins else 'leaves'} {topic!r}, due is {due}"
            raise Violation(_CHECKER, text)
        joined = self._joined.setdefault(session, set())
        if joins:
            joined.add(topic)
        else:
            joined.discard(topic)

    def _push(self, topic: str, command: Push) -> None:
        wire = command.wire
        assert isinstance(wire, GomsMessage), "nobody else sends something here"
        entry = self.entries.get(f"{wire.data.partition(' ')[0]} to {topic}")
        if entry is None or entry.data != wire.data:
            raise Violation(_CHECKER, f"{wire.data!r} is pushed to {topic!r}, and was not sent")
        self.streams.takes(command.session, entry)
        for session, joined in self._joined.items():
            if topic in joined and (session != command.session or entry.echoes):
                self._missed.setdefault(session, {})[entry.uid] = None

    def sent(self, channel: str, message: Message, sessions: Sequence[int]) -> None:
        """The broker sends a message.

        :raises Violation: when it must not.
        """
        topic = _topic_of(channel)
        if topic not in TOPICS:
            return
        assert isinstance(message.wire, GomsMessage), "nobody else sends something here"
        uid = f"{message.wire.data.partition(' ')[0]} to {topic}"
        for session in sessions:
            missed = self._missed.get(session, {})
            if uid not in missed:
                raise Violation(
                    _CHECKER, f"{uid} is sent to session {session}, which it is not for"
                )
            del missed[uid]
            self.streams.note_sent(session, uid)

    # -- how it must be -------------------------------------------------------------------------

    def under_way(self, link: Link) -> int:
        """How many messages were handed to a connection that the broker has not taken."""
        return self.streams.under_way(link)

    def check_end(self, skipped: int, living: Sequence[int]) -> None:
        """Everything has come home.

        :param skipped: for how many recipients the broker says that it has passed them over.
        :param living: the sessions whose clients have read and sent all.
        :raises Violation: when something is missing.
        """
        if not self.streams.watches:
            return
        self.streams.check_closed()
        for number in living:
            said = self._said.get(number)
            if said:
                text = f"session {number} has said that it changes {said[0]}, and did not"
                raise Violation(_CHECKER, text)
            sent = self.streams.sent.get(number)
            if sent:
                raise Violation(_CHECKER, f"{sent[0][0]} did not come to session {number}")
        missed = [uid for each in self._missed.values() for uid in each]
        if len(missed) > skipped:
            raise Violation(_CHECKER, f"{missed} did not go to all, {skipped} were skipped")


def _topic_of(channel: str) -> str:
    return foreign_name(channel).decode("utf-8", "replace").lower()
