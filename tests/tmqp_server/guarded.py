"""A server in memory whose questions a test answers, at once or when it likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.tmqp_server.outputs import questions, touched
from tests.tmqp_server.peers import Peer, operation, push
from tests.tmqp_server.world import World
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.access.gate import AUTHENTICATE, MESSAGE, Question, Verdict
from tmqp_server.engine.commands import Connect
from tmqp_server.engine.options import BrokerOptions

__all__ = ["QUEUE", "GuardedWorld", "Policy", "asks", "event", "frame", "let_in", "stage"]

#: What is decided; None leaves the question open.
Policy = Callable[[Question], Verdict | None]


def let_in(question: Question) -> Verdict:
    """Let a client connect as whom it says it is."""
    assert isinstance(question.command, Connect)
    return Verdict(True, connect=question.command)


class GuardedWorld(World):
    """Asks ``policy`` about every right; whoever wants to may connect.

    ``asked`` are all questions about rights, in order; ``held`` those that wait.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        options: BrokerOptions | None = None,
        *,
        takes_custom: bool = False,
    ) -> None:
        super().__init__(options, guarded=True, takes_custom=takes_custom)
        self.policy: Policy = policy or (lambda _: Verdict(True))
        self.connecting: Policy = let_in
        self.asked: list[Question] = []
        self.held: list[Question] = []
        self.handed_over: list[Question] = []

    def settle(self) -> None:
        """Answer what is asked, and let everybody go on."""
        touched(self.hub)
        while asked := questions(self.hub):
            for question in asked:
                if question.right == AUTHENTICATE:
                    decision = self.connecting(question)
                elif question.right == MESSAGE:
                    self.handed_over.append(question)
                    decision = Verdict(True)
                else:
                    self.asked.append(question)
                    decision = self.policy(question)
                if decision is None:
                    self.held.append(question)
                else:
                    self._decide(question, decision)
        super().settle()

    def decide(self, decision: Verdict) -> None:
        """Answer the question that has waited longest."""
        self._decide(self.held.pop(0), decision)
        self.settle()

    def _decide(self, question: Question, decision: Verdict) -> None:
        number = question.session
        self.hub.decide(number, question.ticket, decision, self.now)
        touched(self.hub)
        while self.hub.go_on(number, self.now):
            if self.hub.is_waiting(number):
                return
            touched(self.hub)


#: Which queue an operation is about.
QUEUE: Final = [("Queue-Id", "1")]


def frame(kind: int, target: str = "", content_type: int = 0, **more: Any) -> Frame:
    """A message under the id ``m``."""
    return Frame.build(kind, target, content_type, message_id="m", **more)


def asks(number: int, target: str = "", payload: bytes = b"", **more: Any) -> Frame:
    """An operation under the id ``m``."""
    return operation(number, target, payload, message_id="m", **more)


def event(name: str, *headers: tuple[str, str]) -> Frame:
    """A subscription."""
    return frame(MessageType.EVENT, name, 1, headers=headers, pending_response=True)


def stage() -> tuple[GuardedWorld, Peer, Peer]:
    """Channel ``c`` with queue 1 and a message in it, router ``r``; two clients, who may all."""
    world = GuardedWorld(takes_custom=True)
    me = Peer(world, "me")
    other = Peer(world, "other")
    assert me.ask(Operation.CREATE_QUEUE, "c", headers=QUEUE).content_type == 0
    assert me.ask(Operation.CREATE_ROUTER, "r").content_type == 0
    me.say(push("c", 1, "stored"))
    me.take()
    world.asked.clear()
    return world, me, other
