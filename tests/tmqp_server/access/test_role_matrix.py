"""Every operation for every role: one right opens what it is for, and nothing else."""

from __future__ import annotations

import pytest

from tests.tmqp_server.access.test_gate_matrix import MATRIX
from tests.tmqp_server.guarded import QUEUE, asks, frame, stage
from tests.tmqp_server.peers import push
from tmqp.constants import MessageType, Operation
from tmqp.extensions import (
    HEADER_PUT_BACK,
    OP_DROP_GROUP,
    OP_EXTEND,
    OP_GRANT_CREDIT,
    OP_OPEN_GROUP,
    OP_SET_TERMS,
    ExtensionOperation,
)
from tmqp.frames import Frame
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import OF_NOTHING, RIGHTS
from tmqp_server.access.roles import ADMIN, Role

#: What a client that has joined a channel may always do, by operation.
FREE: dict[int, Frame] = {
    OP_SET_TERMS: asks(OP_SET_TERMS, "c", headers=[("Window", "5")]),
    OP_GRANT_CREDIT: asks(OP_GRANT_CREDIT, "c", headers=[("Credit", "5")]),
    OP_EXTEND: asks(OP_EXTEND, "c", headers=[*QUEUE, ("Message-Id", "x"), ("Timeout", "5")]),
}
#: They ask about each queue of a filter and leave out what is refused: ``test_gate_matrix.py``.
OF_A_FILTER = (OP_OPEN_GROUP, OP_DROP_GROUP)
_ALL = ("*",)


def role_of(*names: str) -> Role:
    """A role with these rights for everything."""
    return Role("r", frozenset(names), _ALL, (), _ALL, _ALL, _ALL, _ALL)


def elsewhere(right: str) -> Role:
    """A role with a right for other names than those of the matrix."""
    return Role("r", frozenset({right}), ("z",), (), ("z",), ("z",), ("z",), ("z",))


def test_every_operation_of_this_project_has_a_row() -> None:
    rows = {
        request.content_type
        for request, _, _ in MATRIX.values()
        if request.type == MessageType.SERVER
    }
    rows.update(FREE, OF_A_FILTER)
    assert [each.name for each in ExtensionOperation if each not in rows] == []


@pytest.mark.parametrize("what", MATRIX)
def test_of_all_roles_with_one_right_the_one_that_is_needed_allows_an_operation(what: str) -> None:
    _, need, _ = MATRIX[what]
    assert [right for right in RIGHTS if role_of(right).allows(*need)] == [need[0]]
    assert not role_of(*(right for right in RIGHTS if right != need[0])).allows(*need)
    assert elsewhere(need[0]).allows(*need) == (RIGHTS[need[0]] == OF_NOTHING)
    assert ADMIN.allows(*need)


@pytest.mark.parametrize("allowed", [False, True], ids=["with all but its right", "with it alone"])
@pytest.mark.parametrize("what", MATRIX)
def test_an_operation_is_carried_out_for_the_role_that_has_its_right(
    what: str, allowed: bool
) -> None:
    request, need, refusal = MATRIX[what]
    others = [right for right in RIGHTS if right != need[0]]
    role = role_of(need[0]) if allowed else role_of(*others)

    def policy(question: Question) -> Verdict:
        fits = role.allows(question.right, question.subject, question.queue_id)
        return Verdict(fits, names=frozenset(question.names))

    world, me, _ = stage()
    world.policy = policy
    me.say(request)
    answers = [(each.type, each.content_type, each.headers) for each in me.take()]
    if allowed:
        assert (MessageType.RESPONSE, 401) not in {each[:2] for each in answers}
    else:
        assert answers == refusal


@pytest.mark.parametrize("operation", FREE)
def test_who_has_joined_needs_no_right_for_what_is_its_own(operation: int) -> None:
    world, me, _ = stage()
    me.ask(Operation.JOIN, "c")
    me.take()
    world.asked.clear()
    world.policy = lambda _: Verdict(False)
    me.say(FREE[operation])
    (answer,) = me.take()
    assert answer.content_type in (0, 404), "carried out, or there is no such message"
    release = [("Nack-Reason", "release"), (HEADER_PUT_BACK, "end")]
    me.say(frame(MessageType.ACKNOWLEDGE, "c", 1, headers=release))
    assert world.asked == []
    me.say(push("c", 1, "m2", pending_response=True))
    assert [each.right for each in world.asked] == ["push"], "but for everything else"
