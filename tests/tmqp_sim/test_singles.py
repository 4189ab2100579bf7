"""The proof that a run is judged as its messages would be one by one."""

from __future__ import annotations

import pytest

from tests.tmqp_sim.histories import WORK, work
from tests.tmqp_sim.test_ledger import Desk, broken, confirm
from tmqp_server.engine.commands import (
    Acknowledge,
    AcknowledgeRun,
    Push,
    PushRun,
    RunNotes,
    RunWire,
    Synced,
)
from tmqp_server.engine.effects import (
    AppendRun,
    Confirm,
    ConfirmRun,
    Deliver,
    DeliverRun,
    Effect,
    Erase,
    EraseRun,
)
from tmqp_server.engine.model.message import MARK_HIGH, Message
from tmqp_sim.audit import Audit
from tmqp_sim.singles import Flights, single_effects
from tmqp_sim.world import Violation


class Wire(RunWire):
    """A run of messages that say nothing."""

    def __init__(self, *uids: str) -> None:
        self.uids = uids

    def pushes(self, run: PushRun) -> list[Push]:
        return [Push(run.session, uid, *WORK, False, True, 1, uid) for uid in self.uids]

    def contents(self) -> tuple[list[str], list[int], list[object]]:
        return [*self.uids], [1] * len(self.uids), [*self.uids]

    def acknowledges(self, run: AcknowledgeRun) -> list[Acknowledge]:
        raise AssertionError("nobody asks")


def run_of(*uids: str, high: bool = False) -> PushRun:
    count = len(uids)
    return PushRun(9, *WORK, high, True, count, count, 1, Wire(*uids), RunNotes())


def deliver(desk: Desk, run: PushRun, *sessions: int, first: bool = True) -> DeliverRun:
    return DeliverRun([*sessions], run, desk.client, 1, "work", first, True, 0, 1, run.count)


def nobody(channel: str, queue_id: int) -> dict[str, Message]:
    return {}


def flying(message: Message) -> Flights:
    """A queue with this in flight."""

    def flights(channel: str, queue_id: int) -> dict[str, Message]:
        assert (channel, queue_id) == WORK
        return {message.message_id: message}

    return flights


def named(effects: list[Effect]) -> list[str]:
    found = []
    for effect in effects:
        if isinstance(effect, Deliver):
            found.append(f"{effect.message.message_id} to {effect.sessions}")
        else:
            found.append(type(effect).__name__)
    return found


def test_each_message_goes_to_all_before_the_next() -> None:
    desk = Desk()
    run = run_of("a", "b")
    first, rest = deliver(desk, run, 1), deliver(desk, run, 2, 3, first=False)
    told = ConfirmRun(9, ["a", "b"], *WORK)
    singles = single_effects([told, first, rest, EraseRun(1, [4])], nobody)
    assert named(singles) == [
        "Confirm", "Confirm", "a to [1]", "a to [2, 3]", "b to [1]", "b to [2, 3]", "Erase",
    ]  # fmt: skip
    one, other = singles[2], singles[3]
    assert isinstance(one, Deliver)
    assert isinstance(other, Deliver)
    assert one.message is other.message
    assert (one.first_acquirer, other.first_acquirer) == (True, False)
    confirmed = singles[1]
    assert isinstance(confirmed, Confirm)
    assert (confirmed.message_id, confirmed.positive) == ("b", True)
    assert isinstance(singles[-1], Erase)
    assert singles[-1].sequence == 4


def test_two_runs_behind_one_another_stay_so() -> None:
    desk = Desk()
    one, other = deliver(desk, run_of("a", "b"), 1), deliver(desk, run_of("c"), 1)
    assert named(single_effects([one, other], nobody)) == ["a to [1]", "b to [1]", "c to [1]"]


def test_a_delivery_is_about_the_message_in_flight() -> None:
    desk = Desk()
    kept = Message("b", desk.client, *WORK, 1, "wire", MARK_HIGH, 2)
    effect = deliver(desk, run_of("a", "b"), 1)
    singles = single_effects([effect], flying(kept))
    assert [isinstance(each, Deliver) and each.message is kept for each in singles] == [False, True]
    effect.wants_acknowledge = False
    for each in single_effects([effect], flying(kept)):
        assert isinstance(each, Deliver)
        assert each.message is not kept, "it is in nobody's books"


def test_a_message_of_a_run_is_in_one_hand() -> None:
    desk = Desk()
    run = run_of("a", "b")
    for push in run.wire.pushes(run):
        desk.pushes[push.message_id] = 1
        desk.ledger.before(push)
    desk.step(None, *single_effects([deliver(desk, run, 1)], nobody))
    again = Message("b", desk.client, *WORK, 1, "wire", 0, 2)
    broken("exclusivity", lambda: desk.step(None, desk.deliver(again, 2, first=False)))
    desk.answer("b")
    desk.step(None, desk.deliver(again, 2, first=False))


def saved() -> tuple[Desk, AppendRun]:
    """The messages a and b were pushed together, and are to be kept."""
    desk = Desk(work("saved", saves=True))
    run = run_of("a", "b")
    for push in run.wire.pushes(run):
        desk.pushes[push.message_id] = 1
        desk.ledger.before(push)
    messages = [Message(uid, desk.client, *WORK, 1, "wire", 0, 1) for uid in ("a", "b")]
    return desk, AppendRun(7, run, messages, "work", 1, 1)


@pytest.mark.parametrize("ok", [True, False])
def test_one_answer_of_the_storage_is_for_all_of_a_run(ok: bool) -> None:
    desk, append = saved()
    desk.step(None, *single_effects([append], nobody))
    both = single_effects([ConfirmRun(9, ["a", "b"], *WORK)], nobody)
    if ok:
        desk.step(Synced(7, True, 1), *both)
        broken("confirm", lambda: desk.step(None, confirm("a")))
    else:
        assert "safe before it is" in broken(
            "confirm", lambda: desk.step(Synced(7, False, 1), *both)
        )


def test_no_message_of_a_run_is_safe_before_the_storage_says_so() -> None:
    desk, append = saved()
    together = [append, ConfirmRun(9, ["a", "b"], *WORK)]
    singles = single_effects(together, nobody)
    assert "safe before it is" in broken("confirm", lambda: desk.step(None, *singles))


def test_the_disk_owes_each_message_of_a_run() -> None:
    desk = Desk()
    run = run_of("a", "b", "c")
    messages = [Message(uid, desk.client, *WORK, 1, "wire", 0, 1) for uid in ("a", "b", "c")]
    audit = Audit()
    audit.see(single_effects([AppendRun(1, run, messages, "work", 5, 11)], nobody))
    audit.taken()
    audit.see(single_effects([EraseRun(5, [11, 13])], nobody))
    audit.written(True)
    assert [*audit.owed] == [(5, 11), (5, 12), (5, 13)]
    audit.taken()
    audit.written(True)
    assert [*audit.owed] == [(5, 12)]


def test_a_violation_names_the_message() -> None:
    desk = Desk()
    run = run_of("a", "b")
    with pytest.raises(Violation, match="more often than it asked"):
        desk.step(None, *single_effects([ConfirmRun(9, ["a"], *WORK)], nobody))
    assert run.notes.divided is False, "whoever looks at a run does not divide it"
