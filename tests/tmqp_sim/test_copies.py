"""What goes through feeds: each complaint is made about a history that deserves it."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp.models import FeedInformation
from tmqp_server.engine.commands import Acknowledge
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_sim.copies import (
    FIRST,
    SECOND,
    SOURCE,
    SOURCE_ID,
    TARGET_ID,
    TARGETS,
    THIRD,
    Copies,
)
from tmqp_sim.world import Violation, World

_ALL, _SOME, _NOW_AND_THEN = TARGETS


def _copies(kind: str = "durable", items: int = 4) -> Copies:
    """Books with both feeds that stay, and items that are pushed and confirmed one by one."""
    copies = Copies(World(0), kind)
    for target in (FIRST, SECOND):
        copies.changing(target)
        copies.changed(target, True, kept=True)
    for number in range(items):
        copies.pushed(f"f{number}", number, 1)
        copies.confirmed(f"f{number}")
    return copies


def _message(uid: str, channel: str) -> Message:
    return Message(uid, Origin(1, "p", None, None, "tmqp"), channel, TARGET_ID, 1, None, 0, 0)


def _send(copies: Copies, uid: str, channel: str) -> None:
    copies.sent(channel, _message(uid, channel), [7])


def _take(copies: Copies, *targets: int) -> None:
    for target in targets:
        for uid, item in copies.items.items():
            if target != SECOND or item.is_odd:
                copies.done[target].add(uid)


def test_items_that_come_everywhere_are_fine() -> None:
    copies = _copies()
    for uid in ("f0", "f1"):
        _send(copies, uid, _ALL)
    _send(copies, "f1", _SOME)
    _send(copies, "f0", _ALL)  # again, for nobody has answered
    copies.check_feeds([_ALL, _SOME])
    copies.check_disk({SOURCE: ["f2", "f3"], _ALL: ["f0", "f1"], _SOME: ["f1"]})
    _take(copies, FIRST, SECOND)
    copies.check_disk({})
    copies.check_end(2)


@pytest.mark.parametrize(
    ("uids", "channel"),
    [(["f0"], SOURCE), (["x"], _ALL), (["f0"], _SOME), (["f1", "f0"], _ALL)],
    ids=["of the source", "invented", "filtered", "overtaken"],
)
def test_a_wrong_sending(uids: list[str], channel: str) -> None:
    copies = _copies()
    for uid in uids[:-1]:
        _send(copies, uid, channel)
    with pytest.raises(Violation, match=uids[-1]):
        _send(copies, uids[-1], channel)


def test_an_answered_copy_is_sent_again_in_another_life_only() -> None:
    copies = _copies()
    _send(copies, "f0", _ALL)
    copies.answered(Acknowledge(8, "f0", _ALL, TARGET_ID, True, "", None, 0))
    _send(copies, "f0", _ALL)  # it was somebody else who answered
    copies.answered(Acknowledge(7, "f0", _ALL, TARGET_ID, False, "no", None, 0))
    _send(copies, "f0", _ALL)
    copies.answered(Acknowledge(7, "f0", _ALL, TARGET_ID, True, "", None, 0))
    with pytest.raises(Violation, match="after it was answered"):
        _send(copies, "f0", _ALL)
    copies.began()
    _send(copies, "f0", _ALL)


@pytest.mark.parametrize(
    ("there", "text"),
    [
        ({SOURCE: ["f0"], _ALL: ["f0"]}, "2 times"),
        ({_ALL: ["f0", "f0"]}, "2 times"),
        ({_ALL: ["x"]}, "never pushed"),
        ({_ALL: ["f0", "f1", "f2", "f3"], _SOME: ["f1"]}, "f3 is neither"),
    ],
)
def test_a_wrong_disk(there: dict[str, list[str]], text: str) -> None:
    with pytest.raises(Violation, match=text):
        _copies().check_disk(there)


def test_feeds_are_as_the_disk_was_told() -> None:
    copies = _copies()
    with pytest.raises(Violation, match="feeds-some is missing"):
        copies.check_feeds([_ALL])
    with pytest.raises(Violation, match="feeds-now-and-then is there again"):
        copies.check_feeds(TARGETS)
    copies.changing(THIRD)
    copies.check_feeds(TARGETS)  # nobody knows


def test_a_feed_that_was_never_kept_is_owed_nothing_when_it_is_gone() -> None:
    copies = _copies(items=0)
    copies.changing(THIRD)
    copies.changed(THIRD, True, kept=False)
    copies.pushed("f0", 0, 1)
    assert copies.items["f0"].owed == {FIRST, THIRD}
    copies.check_feeds([_ALL, _SOME])
    assert copies.items["f0"].owed == {FIRST}


def test_an_item_that_never_comes() -> None:
    copies = _copies()
    _take(copies, FIRST)
    with pytest.raises(Violation, match="f1 was confirmed and never came to feeds-some"):
        copies.check_end(1)


def test_what_is_in_memory_is_owed_in_one_life() -> None:
    copies = _copies("memory")
    copies.check_disk({})
    copies.check_end(2)
    with pytest.raises(Violation, match="f0 was confirmed and never came to feeds-all"):
        copies.check_end(1)


def _listed(target: int, **more: Any) -> FeedInformation:
    told: dict[str, Any] = {"channel": SOURCE, "queue": SOURCE_ID, "target_queue": TARGET_ID}
    told["filter"] = "kind=k1" if target == SECOND else ""
    return FeedInformation(**{**told, "target": TARGETS[target], **more})


def test_a_list_of_the_feeds_that_are_there_is_fine() -> None:
    copies = _copies()
    first, second = _listed(FIRST, copied=4), _listed(SECOND, copied=2, passed=2)
    copies.check_listed([first, second], copies.changes)
    before = [*copies.changes]
    copies.changing(THIRD)  # meanwhile, so nobody knows
    copies.check_listed([first, second], before)
    copies.check_listed([first, second, _listed(THIRD)], before)


@pytest.mark.parametrize(
    "found",
    [
        [_listed(FIRST)],
        [_listed(FIRST), _listed(FIRST), _listed(SECOND)],
        [_listed(FIRST), _listed(SECOND), _listed(THIRD)],
        [_listed(FIRST), _listed(SECOND, filter="")],
        [_listed(FIRST, target_queue=9), _listed(SECOND)],
        [_listed(FIRST, passed=1), _listed(SECOND)],
        [_listed(FIRST), _listed(SECOND, passed=3)],
        [_listed(FIRST, copied=5), _listed(SECOND)],
        [_listed(FIRST, waiting=5), _listed(SECOND)],
    ],
    ids=[
        "missing", "twice", "removed", "unfiltered", "another queue", "passed", "passed too many",
        "copied too many", "waiting",
    ],
)  # fmt: skip
def test_a_wrong_list_of_feeds_is_noticed(found: list[FeedInformation]) -> None:
    copies = _copies()
    with pytest.raises(Violation):
        copies.check_listed(found, copies.changes)
