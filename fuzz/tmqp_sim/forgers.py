"""Clients that answer what nobody asked them, and one another what they did ask."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from tmqp.constants import TARGET_TYPE_PREFIX, TYPE_ACKNOWLEDGE, TYPE_DIRECT_MESSAGE, TYPE_RESPONSE
from tmqp.frames import Frame
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.letters import DirectRequest, acknowledge_frame, response_frame
from tmqp_client._core.pending import Kind
from tmqp_client.config import ClientLimits
from tmqp_sim.clients import SimClient
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["Forger"]

#: Forgers ask all of their type.
_ALL: Final = f"{TARGET_TYPE_PREFIX}Forger"


class Forger(SimClient):
    """Knows the id of every message, and answers to producers in the server's place.

    Forgers also ask one another, answer, and answer again, so that there are honest answers too.
    """

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits) -> None:
        super().__init__(simulation, name, limits)
        #: Forgers that have asked this one, by id.
        self._askers: dict[str, None] = {}
        #: What has been asked: the asker and the message's id.
        self._asked: set[tuple[str, str]] = set()
        self._again = self.world.child(f"{name}/again")

    def begin(self) -> None:
        """Go at it."""
        self.later(0.02, self._forge)

    def _forge(self) -> None:
        self.later(0.02 + 0.2 * self.random.random(), self._forge)
        if self.random.random() < 0.3:
            self._ask()
        known = list(self.simulation.history.sent.values())
        if known:
            sent = known[self.random.randrange(len(known))]
            way = self.random.randrange(3)
            for _ in range(self.random.choice((1, 1, 3))):
                self._answer(sent.uid, sent.producer, way)
            self.world.mark("answer forged")
        self.flush()

    def _ask(self) -> None:
        """Ask all of the type once, or one of them several times in a row."""
        kind = self.random.choice((Kind.DIRECT, Kind.REQUEST))
        who, count = _ALL, self.random.choice((1, 1, 2))
        if self._askers and self.random.random() < 0.5:
            who, count = self.random.choice(list(self._askers)), self.random.randrange(1, 6)
        for _ in range(count):
            if not self.machine.full:
                request = DirectRequest(kind, who, 7, b"?", (), False, False)
                self.machine.request(request, self.world.now)

    def _answer(self, message_id: str, client_id: str, way: int) -> None:
        """Say that it is well, in one of the ways that a server would pass on."""
        self.machine.send(
            Frame.build(
                TYPE_RESPONSE if way == 0 else TYPE_ACKNOWLEDGE,
                client_id,
                0,
                message_id=message_id,
                source=self.machine.client_id,
                high_priority=way == 1,
            )
        )

    def arrived(self, inbox: Inbox[Frame]) -> None:
        """Answer what others ask, now and then twice, and now and then all of it once more later.

        :raises Violation: when the same is asked again.
        """
        alike = self.random.choice((0, 1, 2))
        answers: list[Frame] = []
        items: Inbox[Any] = inbox  # what nobody listens for comes as an event
        while len(items):
            item = items.take()
            frame: Frame = getattr(item, "frame", item)
            if frame.type != TYPE_DIRECT_MESSAGE:
                continue
            asked = (frame.source, frame.message_id)
            if asked in self._asked:
                raise Violation("runs", f"{self.name} is brought {frame!r} again")
            self._asked.add(asked)
            self._askers[frame.source] = None
            for _ in range(self.random.choice((0, 1, 1, 2))):
                if alike == 1 or (alike == 0 and self.random.random() < 0.5):
                    answer = acknowledge_frame(frame, self.machine.client_id, None)
                else:
                    answer = response_frame(frame, self.machine.client_id, 0, b"!")
                self.machine.send(answer)
                answers.append(answer)
        self.flush()
        if len(answers) > 1 and self._again.random() < 0.3:
            self.later(0.05 + 0.1 * self._again.random(), partial(self._repeat, answers))

    def _repeat(self, answers: list[Frame]) -> None:
        """Give answers again that were given already."""
        for answer in answers:
            self.machine.send(answer)
        self.flush()
