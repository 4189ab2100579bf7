"""What consumers want, the filters they joined with and the kinds of the messages; and which of
the messages that wait go first."""

from __future__ import annotations

from tmqp.extensions import KEYS_STRICT
from tmqp_server.doors.selecting import TextFilter
from tmqp_server.engine.commands import Command, Join, Push, UpdateChannel
from tmqp_server.engine.model.message import Message, SubscriptionFilter
from tmqp_server.engine.options import TEN
from tmqp_sim.history import Place
from tmqp_sim.kinship import Kinship, header_of
from tmqp_sim.precedence import Precedence
from tmqp_sim.world import Violation, World

__all__ = ["Wishes", "is_wanted"]


class Wishes:
    """Told from commands, as the ledger is, of which this is a part."""

    __slots__ = (
        "_filters",
        "_kinds",
        "_kinship",
        "_patient",
        "_precedence",
        "_world",
    )

    def __init__(self, world: World, kinship: Kinship) -> None:
        self._world = world
        self._kinship = kinship
        #: What a session that has joined a channel wants; None is everything.
        self._filters: dict[tuple[str, int], str | None] = {}
        #: Of messages by which consumers choose, their kinds.
        self._kinds: dict[tuple[tuple[str, int], str], str] = {}
        #: Messages whose pushes wait for room, or have waited.
        self._patient: set[tuple[tuple[str, int], str]] = set()
        self._precedence = Precedence(world)

    def joined(self, command: Join) -> None:
        """A session joins, or joins again."""
        chosen = command.filter
        text = chosen.text if isinstance(chosen, TextFilter) else None
        self._filters[command.channel.lower(), command.session] = text
        self._kinship.joined(command.channel.lower())

    def retuned(self, channel: str) -> None:
        """Somebody wants to be exclusive, or no longer: buckets may change their owners as when
        somebody joins (seed 2402)."""
        self._kinship.joined(channel)

    def updated(self, command: Command) -> None:
        """One consumer of a channel is to get everything, or no longer: buckets may change their
        owners, as all the others leave or join as far as these are concerned (seed 57189)."""
        assert isinstance(command, UpdateChannel)
        if command.changes.single_consumer is not None:
            self._kinship.joined(command.channel.lower())

    def pushed(self, place: Place, command: Push) -> None:
        """A message comes."""
        key = (command.channel, command.queue_id)
        self._patient.discard((key, command.message_id))
        if place.groups:
            self._kinds[key, command.message_id] = self._kinship.pushed(key, command)
            return
        kind = _kind(command.wire)
        if place.kinds and kind is not None:
            self._kinds[key, command.message_id] = kind

    def kind_of(self, key: tuple[str, int], uid: str) -> str:
        """The kind of a message, or its key; empty where neither matters."""
        return self._kinds.get((key, uid), "")

    def hold(self, command: Push) -> None:
        """A push waits for room: others may be quicker (seed 2021)."""
        key = (command.channel, command.queue_id)
        self._patient.add((key, command.message_id))
        self.passes(key, command.message_id)

    def is_patient(self, key: tuple[str, int], uid: str) -> bool:
        """Whether a message has waited for room before it entered its queue."""
        return (key, uid) in self._patient

    def comes(self, place: Place, command: Push) -> None:
        """A message waits to be sent."""
        self._precedence.comes(place.key, command, has_ten=place.priorities == TEN)

    def passes(self, key: tuple[str, int], uid: str) -> None:
        """A message, if it is one that waits, waits no more, or one of those pushed so."""
        self._precedence.passes(key, uid)

    def removed(self, key: tuple[str, int], uid: str) -> None:
        """A message is removed on purpose: nothing can overtake it any more (seed 410)."""
        self._precedence.removed(key, uid)

    def cleared(self, key: tuple[str, int]) -> None:
        """What waits in a queue is removed on purpose."""
        self._precedence.cleared(key)

    def level_of(self, place: Place, message: Message) -> int:
        """Of messages that differ in this, one may go before the other."""
        if place.priorities == TEN:
            return self._precedence.level_of(message)
        return int(message.high_priority)

    def check_rank(self, place: Place, message: Message) -> None:
        """A message of a queue is sent, from memory, where all that waits there is.

        The first of a strict key goes before the others of its key even when it comes back.

        :raises Violation: when one of a higher priority has to go first.
        """
        if place.priorities == TEN and place.keys != KEYS_STRICT:
            kind = self.kind_of(place.key, message.message_id)
            chooses = bool(place.kinds or place.groups)
            self._precedence.check(
                place.key,
                message,
                lambda uid: not chooses or self.kind_of(place.key, uid) == kind,
            )

    def high_of_kind(self, place: Place, kind: str) -> list[str]:
        """The waiting messages of high priority that are wanted by those who want this kind."""
        waiting = self._precedence.high_ones(place.key)
        if not (place.kinds or place.groups):
            return waiting
        return [uid for uid in waiting if self.kind_of(place.key, uid) == kind]

    def check(self, place: Place, message: Message, channel: str, session: int) -> None:
        """A message goes to a session.

        :raises Violation: when that does not want it.
        """
        if place.groups:
            self._kinship.check(place, message, session)
        text = self._filters.get((channel.lower(), session))
        if not place.kinds or text is None:
            return
        self._world.mark("delivered by a filter")
        if not _is_of(text, message):
            what = f"{message.message_id} of {place}, of kind {_kind(message.wire)},"
            raise Violation("audience", f"{what} goes to session {session}, which wants {text}")


def is_wanted(chosen: SubscriptionFilter, message: Message) -> bool:
    """Whether a message is of the kind that a filter wants, told without asking the filter."""
    assert isinstance(chosen, TextFilter), "clients write it down"
    return _is_of(chosen.text, message)


def _is_of(text: str, message: Message) -> bool:
    return text == f"kind={_kind(message.wire)}"


def _kind(wire: object) -> str | None:
    """The kind of a message, by whatever door it came; None if that cannot be read."""
    return header_of(wire, "Kind")
