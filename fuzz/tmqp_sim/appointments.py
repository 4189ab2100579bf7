"""What producers are promised beyond a confirm: no delivery before its time, none after a cancel,
and the number of consumers that a message went to.

Over all lives of the server: a message that was saved outlives one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tmqp_server.engine.commands import CancelMessage, Push, RemoveMessage
from tmqp_server.engine.effects import Confirm, Deliver, Effect, Reply
from tmqp_sim.world import Violation, World

__all__ = ["Appointments"]

#: The storage keeps times as whole microseconds.
_EPSILON_S: Final = 2e-6

Key = tuple[str, int]


class Appointments:
    """The model of deferred, cancelled and counted messages.

    :param pushes: how often a message was pushed up to now, over all lives.
    """

    def __init__(self, world: World, pushes: Callable[[str], int]) -> None:
        self._world = world
        self._pushes = pushes
        #: When a message may be sent at the earliest.
        self._due: dict[tuple[Key, str], float] = {}
        #: Cancels that are not answered, by session and request.
        self._asked: list[tuple[int, object, tuple[Key, str]]] = []
        self._cancelled: dict[tuple[Key, str], None] = {}
        #: What was counted of a message in the steps that took it in.
        self._counted: dict[tuple[Key, str], list[int]] = {}

    def note_deferred(self, command: Push) -> bool:
        """Whether a push is to wait for its time; if so it is noted."""
        extras = command.extras
        if extras is None or not extras.delay_ms:
            return False
        key = ((command.channel, command.queue_id), command.message_id)
        due = self._world.now + extras.delay_ms / 1000
        self._due[key] = min(due, self._due.get(key, due))
        return True

    def waited(self, key: Key, uid: str) -> bool:
        """Whether a message was deferred."""
        return (key, uid) in self._due

    def check_sending(self, key: Key, uid: str) -> None:
        """A message is sent now.

        :raises Violation: before its time, or when its only push was cancelled.
        """
        early = self._due.get((key, uid), 0.0) - self._world.now
        if early > _EPSILON_S:
            raise Violation("deadline", f"{uid} of {key} is sent {early:.4f} s before its time")
        if (key, uid) in self._cancelled and self._pushes(uid) == 1:
            raise Violation("cancel", f"{uid} of {key} is sent, and was cancelled")

    def cancel(self, command: CancelMessage | RemoveMessage) -> None:
        """Somebody wants a message removed."""
        key = ((command.channel, command.queue_id), command.message_id)
        self._asked.append((command.session, command.request, key))

    def replied(self, effect: Reply) -> None:
        """Perhaps somebody hears that it was."""
        for asked in self._asked:
            if asked[0] == effect.session and asked[1] is effect.request:
                self._asked.remove(asked)
                if not effect.code:
                    self._cancelled[asked[2]] = None
                    deferred = asked[2] in self._due
                    self._world.mark(f"{'deferred' if deferred else 'waiting'} message cancelled")
                return

    # -- receivers ------------------------------------------------------------------------------

    def count(self, command: Push, effects: Sequence[Effect]) -> None:
        """A message was taken in: count to whom it goes in this step."""
        extras = command.extras
        if extras is None or not extras.counts_receivers:
            return
        count = 0
        for effect in effects:
            if isinstance(effect, Deliver) and effect.message.wire is command.wire:
                count += len(effect.sessions)
        key = ((command.channel, command.queue_id), command.message_id)
        self._counted.setdefault(key, []).append(count)

    def check_confirm(self, effect: Confirm) -> None:
        """A producer is told.

        :raises Violation: when the number of receivers is wrong, or missing.
        """
        key = ((effect.channel, effect.queue_id), effect.message_id)
        counted = self._counted.get(key)
        if counted is None:
            if effect.receivers >= 0:
                raise Violation("receivers", f"{effect.message_id}: nobody asked for them")
        elif effect.receivers >= 0:
            if effect.receivers not in counted:
                text = f"{effect.message_id} went to {counted} consumers, not {effect.receivers}"
                raise Violation("receivers", text)
            self._world.mark("receivers told")
        elif effect.positive:
            raise Violation("receivers", f"{effect.message_id}: nobody is told of them")
