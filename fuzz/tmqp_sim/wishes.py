"""What consumers want: the filters they joined with, and the kinds of the messages."""

from __future__ import annotations

from tmqp.frames import Frame
from tmqp_server.doors.selecting import TextFilter
from tmqp_server.engine.commands import Join, Push
from tmqp_server.engine.model.message import Message
from tmqp_sim.foreign import ForeignWire
from tmqp_sim.history import Place
from tmqp_sim.world import Violation, World

__all__ = ["Wishes"]


class Wishes:
    """Told from commands, as the ledger is, of which this is a part."""

    __slots__ = ("_filters", "_kinds", "_world")

    def __init__(self, world: World) -> None:
        self._world = world
        #: What a session that has joined a channel wants; None is everything.
        self._filters: dict[tuple[str, int], str | None] = {}
        #: Of messages by which consumers choose, their kinds.
        self._kinds: dict[tuple[tuple[str, int], str], str] = {}

    def joined(self, command: Join) -> None:
        """A session joins, or joins anew."""
        chosen = command.filter
        text = chosen.text if isinstance(chosen, TextFilter) else None
        self._filters[command.channel.lower(), command.session] = text

    def pushed(self, place: Place, command: Push) -> None:
        """A message comes."""
        kind = _kind(command.wire)
        if place.kinds and kind is not None:
            self._kinds[(command.channel, command.queue_id), command.message_id] = kind

    def kind_of(self, key: tuple[str, int], uid: str) -> str:
        """The kind of a message; empty where nobody chooses."""
        return self._kinds.get((key, uid), "")

    def of_kind(self, place: Place, key: tuple[str, int], uids: dict[str, int], kind: str) -> bool:
        """Whether any of these messages is wanted by those who want this kind."""
        if not place.kinds:
            return bool(uids)
        return any(self.kind_of(key, uid) == kind for uid in uids)

    def check(self, place: Place, message: Message, channel: str, session: int) -> None:
        """A message goes to a session.

        :raises Violation: when that does not want it.
        """
        text = self._filters.get((channel.lower(), session))
        if not place.kinds or text is None:
            return
        self._world.mark("delivered by a filter")
        kind = _kind(message.wire)
        if text != f"kind={kind}":
            what = f"{message.message_id} of {place}, of kind {kind},"
            raise Violation("audience", f"{what} goes to session {session}, which wants {text}")


def _kind(wire: object) -> str | None:
    """The kind of a message, by whatever door it came; None if that cannot be read."""
    frame = wire.frame if isinstance(wire, ForeignWire) else wire
    return (frame.header("Kind") or "") if isinstance(frame, Frame) else None
