"""What queues promise about messages with the same key; told from commands and effects alone.

*Strict*: one of a key is with somebody at a time.  *Sticky*: a bucket is with one consumer; it goes
to another only when somebody has joined or its consumer has left, and not before nobody has
anything of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from tmqp.extensions import HEADER_GROUP_KEY, KEYS_STRICT
from tmqp.frames import Frame
from tmqp_server.engine.commands import Push
from tmqp_server.engine.model.message import Message
from tmqp_sim.foreign import ForeignWire
from tmqp_sim.history import Place
from tmqp_sim.promises import Hand
from tmqp_sim.world import Violation, World

__all__ = ["Kinship", "header_of"]

_BUCKETS = 1_024
#: Rounding of times.
_EPSILON_S = 1e-9

Key = tuple[str, int]


class Kinship:
    """The model of keys.

    :param hands: what is in somebody's hands, by queue and message.
    :param members: who has joined, by channel.
    """

    __slots__ = ("_hands", "_joins", "_members", "_owners", "_world")

    def __init__(
        self,
        world: World,
        hands: Mapping[tuple[Key, str], list[Hand]],
        members: Mapping[str, dict[int, None]],
    ) -> None:
        self._world = world
        self._hands = hands
        self._members = members
        #: How often somebody has joined a channel.
        self._joins: dict[str, int] = {}
        #: Whose a bucket was last, and how often somebody had joined by then.
        self._owners: dict[tuple[Key, int], tuple[int, int]] = {}

    def joined(self, channel: str) -> None:
        """Somebody joins, or joins again."""
        self._joins[channel] = self._joins.get(channel, 0) + 1

    def pushed(self, key: Key, command: Push) -> str:
        """A message comes; its key."""
        return header_of(command.wire, HEADER_GROUP_KEY) or ""

    def check(self, place: Place, message: Message, session: int) -> None:
        """A message of a queue where keys count goes to a session.

        :raises Violation: when another of its key, or somebody else, must be waited for.
        """
        group = header_of(message.wire, HEADER_GROUP_KEY)
        if not group:
            return
        if place.keys == KEYS_STRICT:
            self._world.mark("delivered in strict order")
            self._check_alone(place, message, group)
        else:
            self._world.mark("delivered to the owner of its bucket")
            self._check_owner(place, message, _bucket(group), session)

    def _others(self, place: Place, message: Message) -> list[Hand]:
        now = self._world.now
        return [
            hand
            for (key, _), hands in self._hands.items()
            if key == place.key
            for hand in hands
            if hand.message is not message and hand.holders and now < hand.last_due() - _EPSILON_S
        ]

    def _check_alone(self, place: Place, message: Message, group: str) -> None:
        for hand in self._others(place, message):
            if header_of(hand.message.wire, HEADER_GROUP_KEY) == group:
                what = f"{message.message_id} of {place}, of key {group},"
                raise Violation("keys", f"{what} is sent while {hand.holders} have {hand.uid}")

    def _check_owner(self, place: Place, message: Message, bucket: int, session: int) -> None:
        what = f"{message.message_id} of {place}, of bucket {bucket}, goes to session {session}"
        for hand in self._others(place, message):
            group = header_of(hand.message.wire, HEADER_GROUP_KEY)
            if group and _bucket(group) == bucket and hand.holders != [session]:
                raise Violation("keys", f"{what} while {hand.holders} have {hand.uid}")
        channel = place.channel.lower()
        joins = self._joins.get(channel, 0)
        owner, known = self._owners.get((place.key, bucket), (session, joins))
        if owner != session and known == joins and owner in self._members.get(channel, {}):
            raise Violation("keys", f"{what}, and is session {owner}'s")
        self._owners[place.key, bucket] = (session, joins)


def _bucket(group: str) -> int:
    return crc32(group.encode()) % _BUCKETS


def header_of(wire: object, name: str) -> str | None:
    """A header of a message, by whatever door it came; None if it cannot be read."""
    frame = wire.frame if isinstance(wire, ForeignWire) else wire
    return (frame.header(name) or "") if isinstance(frame, Frame) else None
