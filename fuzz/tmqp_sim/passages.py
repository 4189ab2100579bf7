"""Judges what goes from server to server, from what clients pushed and from the bytes on the way.

Every message is pushed once, at one server, and is owed to that server's masters.  To each it goes
at most once, whole, and from there to nobody.  It is lost only with the process that had it, with
the buffer that was full, or with the connection that it had been written to.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmqp.codec import FrameDecoder
from tmqp.constants import PREAMBLE, TYPE_QUEUE_MESSAGE
from tmqp.names import EXACT_MARK
from tmqp_server.cluster.link import MasterLink
from tmqp_server.cluster.relay import ClusterRelay
from tmqp_server.doors.port import Door
from tmqp_server.doors.rewriting import exact_headers, rewritten
from tmqp_server.engine.commands import Acknowledge, Batch, Command, Connect, Join, Leave, Push
from tmqp_server.engine.effects import Effect, TellNodes
from tmqp_sim.world import Violation, World

__all__ = ["Passage", "Passages", "Witness"]


class Passage:
    """What went over one connection to a master, as its bytes say."""

    def __init__(self, passages: Passages, slave: str, master: str) -> None:
        self.slave = slave
        self.master = master
        self.written: list[str] = []
        self._passages = passages
        self._preamble = PREAMBLE
        self._decoder = FrameDecoder()

    def wrote(self, data: bytes) -> None:
        """The network took these bytes.

        :raises Violation: when they are not what a node says, or a message was written before.
        """
        expected = self._preamble[: len(data)]
        if not data.startswith(expected):
            raise Violation("cluster", f"{self.slave} greets {self.master} with {data[:20]!r}")
        self._preamble = self._preamble[len(expected) :]
        for frame in self._decoder.feed(data[len(expected) :]):
            if frame.type == TYPE_QUEUE_MESSAGE:
                self._passages.write(self, frame.message_id)
        if self._decoder.error is not None:
            text = f"{self.slave} sends {self.master} torn frames: {self._decoder.error}"
            raise Violation("cluster", text)

    @property
    def is_torn(self) -> bool:
        """Whether it ends in the middle of a frame."""
        return self._decoder.buffered > 0


class Passages:
    """All messages of a run.

    :param masters: of each server, by name.
    :param exact: whether clients tell names of channels by their case.
    """

    def __init__(self, world: World, masters: dict[str, list[str]], exact: bool = False) -> None:
        self._world = world
        self.exact = exact
        #: The channel of each message, as it is named between servers.
        self._channels: dict[str, str] = {}
        self.masters = masters
        #: Where each message was pushed.
        self._origins: dict[str, str] = {}
        #: What has come to each server: from where (its own name for its clients).
        self.arrived: dict[str, dict[str, str]] = {name: {} for name in masters}
        #: What each server owes its masters since it was started.
        self.owed: dict[str, list[str]] = {name: [] for name in masters}
        self._written: dict[tuple[str, str, str], None] = {}

    def push(self, uid: str, origin: str) -> None:
        """A client is about to push a message at a server."""
        self._origins[uid] = origin

    def restart(self, name: str) -> None:
        """A server has lost its memory."""
        self.owed[name] = []

    def take(self, uid: str, name: str, giver: str) -> None:
        """A server carries out a push.

        :param giver: the slave that brought it, or its own name for a client's.
        :raises Violation: when it is not the way that a message goes, or it has come already.
        """
        origin = self._origins.get(uid)
        if origin != giver:
            raise Violation(
                "cluster", f"{giver} brings {name} {uid}, which is {origin}'s to pass on"
            )
        if uid in self.arrived[name]:
            raise Violation("cluster", f"{uid} comes to {name} again")
        self.arrived[name][uid] = giver
        if giver == name:
            self.owed[name].append(uid)
        else:
            self._world.mark("message came from a slave")

    def name(self, uid: str, channel: str) -> None:
        """A server knows a message as one of this channel.

        :raises Violation: when another one knew it as one of another channel.
        """
        known = self._channels.setdefault(uid, channel)
        if known != channel:
            raise Violation("cluster", f"{uid} is in {known!r} at a server, in {channel!r} at one")
        if channel.startswith(EXACT_MARK):
            self._world.mark("name that differs by case between servers")

    def write(self, passage: Passage, uid: str) -> None:
        """A message was written as a whole.

        :raises Violation: when it was before.
        """
        key = (passage.slave, passage.master, uid)
        if key in self._written:
            raise Violation("cluster", f"{passage.slave} writes {uid} to {passage.master} again")
        self._written[key] = None
        passage.written.append(uid)

    def under_way(self, passage: Passage) -> list[str]:
        """What was written to a connection that stands, and has not arrived."""
        arrived = self.arrived[passage.master]
        return [uid for uid in passage.written if uid not in arrived]

    def complaints(self, name: str, links: Sequence[MasterLink]) -> list[str]:
        """What a server that has nothing left to write should have written."""
        found: list[str] = []
        for master, link in zip(self.masters[name], links, strict=True):
            missing = [uid for uid in self.owed[name] if (name, master, uid) not in self._written]
            if len(missing) > link.outbox.dropped:
                gone = f"{link.outbox.dropped} were given up"
                found.append(f"{name} never wrote {missing} to {master}, and {gone}")
        return found


class _Cases(Door):
    """How clients that tell names by their case say to other servers what they say here."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def encode_for_node(self, command: Command) -> bytes | None:
        """The message, with the header of exact names."""
        data = self._door.encode_for_node(command)
        if data is None or not isinstance(command, Push):
            return data
        (frame,) = FrameDecoder().feed(data)
        headers = [*frame.headers, *exact_headers(command.channel)]
        asks = frame.pending_acknowledge
        return rewritten(frame, headers, pending_acknowledge=asks).raw


class Witness:
    """A server's relay, and what it is shown.  Where clients tell names by their case, it marks the
    names that they say, as their doors would."""

    def __init__(self, relay: ClusterRelay, name: str, passages: Passages) -> None:
        self._relay = relay
        self._name = name
        self._passages = passages
        self._nodes: dict[int, str] = {}

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        """See what is carried out."""
        if self._passages.exact and number not in self._nodes:
            if isinstance(command, (Acknowledge, Join, Leave, Push)):
                command.channel = EXACT_MARK + command.channel
            door = _Cases(door)
        instead = self._relay.meet(number, door, command, now)
        if instead is not None:
            return instead
        if isinstance(command, Connect) and command.node:
            self._nodes[number] = command.client_id
        elif isinstance(command, Push):
            giver = self._nodes.get(number, self._name)
            self._passages.take(command.message_id, self._name, giver)
            self._passages.name(command.message_id, command.channel)
        elif isinstance(command, Batch):
            raise Violation("cluster", "nobody makes copies here")
        return None

    def tell(self, effect: TellNodes) -> tuple[bytes, Sequence[int]]:
        """As the relay."""
        self._passages.name(effect.message_id, effect.channel)
        return self._relay.tell(effect)

    def heed(self, command: Command) -> bool:
        """As the relay."""
        return self._relay.heed(command)

    def recognises(self, command: Connect) -> bool:
        """As the relay."""
        return self._relay.recognises(command)

    def forget(self, number: int) -> None:
        """As the relay."""
        self._nodes.pop(number, None)
        self._relay.forget(number)

    def take_error(self) -> Exception | None:
        """As the relay."""
        return self._relay.take_error()
