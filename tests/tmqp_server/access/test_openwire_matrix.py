"""Every command of OpenWire for every right: what it needs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

import pytest

from tests.tmqp_server.guarded import GuardedWorld
from tests.tmqp_server.outputs import sent
from tmqp_server.access import rights
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import Role
from tmqp_server.doors.openwire.door import OpenwireDoor
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_wires.openwire import ClientConnection, Command, MessageAck, MessageDispatch
from tmqp_wires.openwire.commands import (
    ADD,
    BEGIN,
    COMMIT,
    REMOVE,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    MessagePull,
    ProducerInfo,
    RemoveInfo,
    RemoveSubscriptionInfo,
    Response,
    SessionInfo,
    TransactionInfo,
)
from tmqp_wires.openwire.ids import (
    QUEUE,
    TEMP_QUEUE,
    TOPIC,
    ConsumerId,
    Destination,
    LocalTransactionId,
    MessageId,
    ProducerId,
    SessionId,
)
from tmqp_wires.openwire.messages import ACK_POISON, ACK_STANDARD, TEXT_MESSAGE, Message

Needs = tuple[tuple[str, str], ...]
_ALL: Final = ("*",)
ME: Final = "ID:me:1"
Q: Final = Destination(QUEUE, "q")
NEW: Final = Destination(QUEUE, "new")
T: Final = Destination(TOPIC, "t")
TEMPORARY: Final = Destination(TEMP_QUEUE, f"{ME}:1")
X: Final = LocalTransactionId(ME, 1)
_SEQUENCES: Final = count(1)


def message(to: Destination, transaction: LocalTransactionId | None = None) -> Message:
    found = Message(TEXT_MESSAGE, MessageId(ProducerId(ME, 1, 1), next(_SEQUENCES)), to)
    found.transaction = transaction
    found.persistent = True
    return found


def consumer(to: Destination, number: int = 1) -> ConsumerInfo:
    return ConsumerInfo(ConsumerId(ME, 1, number), to)


def durable() -> ConsumerInfo:
    info = consumer(T)
    info.subscription = "s"
    return info


def browser() -> ConsumerInfo:
    info = consumer(Q)
    info.browser = True
    return info


def in_transaction() -> list[Command]:
    begin = TransactionInfo(ME, X, BEGIN)
    return [begin, message(Q, X), TransactionInfo(ME, X, COMMIT)]


_DURABLE: Final = f"durable://{ME}/s"
#: What a client says, whose queue ``q`` and topic ``t`` are there, of which the last wants a
#: response; the rights that it needs.
MATRIX: Final[dict[str, tuple[Callable[[], list[Command]], Needs]]] = {
    "message": (lambda: [message(Q)], ((rights.PUSH, "q"),)),
    "message to a topic": (lambda: [message(T)], ((rights.PUSH, "topic://t"),)),
    "message to a new queue": (lambda: [message(NEW)], ((rights.PUSH, "new"),)),
    "message to several": (
        lambda: [message(Destination(QUEUE, "q,topic://t"))],
        ((rights.PUSH, "q"), (rights.PUSH, "topic://t")),
    ),
    "message in a transaction": (in_transaction, ((rights.PUSH, "q"),)),
    "producer": (lambda: [ProducerInfo(ProducerId(ME, 1, 1), NEW)], ()),
    "session": (lambda: [SessionInfo(SessionId(ME, 1))], ()),
    "consumer": (lambda: [consumer(Q)], ((rights.JOIN, "q"),)),
    "consumer of a topic": (lambda: [consumer(T)], ((rights.JOIN, "topic://t"),)),
    "consumer of a new queue": (
        lambda: [consumer(NEW)],
        (
            (rights.CREATE_QUEUE, "new"),
            (rights.PUSH, "ActiveMQ.DLQ"),
            (rights.JOIN, "new"),
        ),
    ),
    "durable subscription": (
        lambda: [durable()],
        (
            (rights.SEE_CHANNEL, _DURABLE),
            (rights.CREATE_QUEUE, _DURABLE),
            (rights.FEED, "topic://t"),
            (rights.FEED, _DURABLE),
            (rights.PUSH, "ActiveMQ.DLQ"),
            (rights.JOIN, _DURABLE),
        ),
    ),
    "temporary queue": (
        lambda: [DestinationInfo(ME, TEMPORARY, ADD)],
        ((rights.CREATE_QUEUE, f"temp-queue://{ME}:1"), (rights.PUSH, "ActiveMQ.DLQ")),
    ),
    "removing a destination": (
        lambda: [DestinationInfo(ME, Q, REMOVE)],
        ((rights.REMOVE_CHANNEL, "q"),),
    ),
}


class Guarded:
    """A server that asks about everything, and a client that is let in."""

    def __init__(self) -> None:
        self.world = GuardedWorld()
        self.world.door.letters.add(OpenwireBodies())
        numbers = count(1)
        self.door = OpenwireDoor(
            lambda: f"{next(numbers):012x}".ljust(32, "0"), letters=self.world.door.letters
        )
        for number, name, said in ((7, "ID:other:1", [message(Q), message(T)]), (8, ME, [])):
            self.number = number
            self.client = ClientConnection()
            self.world.hub.open(number, self.door, self.world.now)
            self.tell()
            self.tell(ConnectionInfo(name, name), *said)
        self.world.asked.clear()

    def tell(self, *commands: Command) -> list[Command]:
        """Send commands, of which the last wants a response, and read."""
        for each in commands:
            each.response_required = each is commands[-1]
            self.client.send(each)
        hub, number = self.world.hub, self.number
        more = hub.receive(number, self.client.data_to_send(), self.world.now)
        self.world.settle()
        while more and not hub.is_waiting(number):
            more = hub.go_on(number, self.world.now)
            self.world.settle()
        events = self.client.receive(sent(hub, number), self.world.now)
        return [each for each in events if isinstance(each, Command)]


def role_of(*needs: tuple[str, str]) -> list[Role]:
    return [
        Role("r", frozenset({right}), (subject,), (), _ALL, _ALL, _ALL) for right, subject in needs
    ]


def told(commands: list[Command], roles: list[Role]) -> list[Command]:
    """What a client is told that has these roles."""
    guarded = Guarded()

    def policy(question: Question) -> Verdict:
        asked = (question.right, question.about, question.queue_id)
        return Verdict(any(role.allows(*asked) for role in roles))

    guarded.world.policy = policy
    return guarded.tell(*commands)


def answer(commands: list[Command]) -> Response:
    (found,) = [each for each in commands if isinstance(each, Response)]
    return found


@pytest.mark.parametrize("what", MATRIX)
def test_a_command_needs_its_rights_and_no_other(what: str) -> None:
    commands, needs = MATRIX[what]
    assert not isinstance(answer(told(commands(), role_of(*needs))), ExceptionResponse)
    for missing in needs:
        others = [
            Role("r", frozenset(set(RIGHTS) - {missing[0]}), _ALL, (), _ALL, _ALL, _ALL, _ALL),
            *role_of(*[each for each in needs if each != missing]),
        ]
        refused = answer(told(commands(), others))
        assert isinstance(refused, ExceptionResponse), missing
        assert refused.exception is not None
    elsewhere = [(right, f"{subject}-2") for right, subject in needs]
    if needs:
        assert isinstance(answer(told(commands(), role_of(*elsewhere))), ExceptionResponse)


def test_what_is_refused_for_a_missing_right_is_a_security_exception() -> None:
    for what in ("message", "consumer", "removing a destination"):
        refused = answer(told(MATRIX[what][0](), []))
        assert isinstance(refused, ExceptionResponse)
        assert refused.exception is not None
        assert refused.exception.class_name == "javax.jms.JMSSecurityException"


def test_a_browser_needs_the_right_to_browse() -> None:
    shown = told([browser()], role_of((rights.BROWSE, "q")))
    assert any(isinstance(each, MessageDispatch) and each.message for each in shown)
    refused = told([browser()], role_of((rights.JOIN, "q"), (rights.PUSH, "q")))
    assert not any(isinstance(each, MessageDispatch) and each.message for each in refused)


def test_a_durable_subscription_is_removed_by_who_may_remove_its_channel() -> None:
    guarded = Guarded()
    guarded.tell(durable())
    guarded.tell(RemoveInfo(ConsumerId(ME, 1, 1)))
    refused = RemoveSubscriptionInfo(ME, "s", ME)
    guarded.world.policy = lambda question: Verdict(question.right != rights.REMOVE_CHANNEL)
    assert isinstance(answer(guarded.tell(refused)), ExceptionResponse)
    guarded.world.policy = lambda question: Verdict(question.right == rights.REMOVE_CHANNEL)
    done = answer(guarded.tell(RemoveSubscriptionInfo(ME, "s", ME)))
    assert not isinstance(done, ExceptionResponse)


def test_who_consumes_needs_no_right_for_what_it_has_but_for_dead_letters() -> None:
    guarded = Guarded()
    found = guarded.tell(consumer(Q))
    (dispatch,) = [each for each in found if isinstance(each, MessageDispatch)]
    assert dispatch.message is not None
    guarded.world.policy = lambda _: Verdict(False)
    name = dispatch.message.message_id

    def ack(kind: int) -> MessageAck:
        return MessageAck(kind, ConsumerId(ME, 1, 1), Q, name, name, 1)

    guarded.tell(ack(ACK_POISON))
    assert guarded.world.broker.statistics().in_flight == 1, "it keeps what it cannot give away"
    guarded.tell(ack(ACK_STANDARD))
    assert guarded.world.broker.statistics().in_flight == 0
    guarded.tell(MessagePull(ConsumerId(ME, 1, 1), Q, 0), RemoveInfo(ConsumerId(ME, 1, 1)))
