"""Copies of the store over the API, for another server of the group."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.tmqp_server.access.kept import Kept
from tests.tmqp_server.admin.api_stage import ApiStage
from tmqp_server.access.auditing import Auditor
from tmqp_server.access.gate import Question


class Block:
    """A block that is there when it was looked at twice."""

    def __init__(self, data: bytes | None) -> None:
        self.data = data
        self._looks = 0

    @property
    def done(self) -> bool:
        self._looks += 1
        return self._looks > 2


class Desk:
    """A copy of ten bytes."""

    def __init__(self) -> None:
        self.last: Mapping[str, Any] | None = None
        self.fails = False

    def begin(self) -> bool:
        if self.last is not None:
            return False
        self.last = {
            "id": "m",
            "group": "g/0",
            "running": False,
            "complete": True,
            "bytes": 10,
            "said": "",
        }
        return True

    def read(self, name: str, offset: int) -> Block | None:
        if self.last is None or name != "m":
            return None
        return Block(None if self.fails else b"0123456789"[offset : offset + 4])

    def remove(self, name: str) -> bool:
        if self.last is None or name != "m":
            return False
        self.last = None
        return True


COPY = "/api/v1/server/copy"


def test_a_server_that_is_in_no_group_makes_no_copies() -> None:
    caller = ApiStage().caller()
    for method, path in (
        ("GET", COPY),
        ("POST", COPY),
        ("GET", f"{COPY}/m"),
        ("DELETE", f"{COPY}/m"),
    ):
        assert caller.ask(method, path).status == 501, (method, path)


def test_a_copy_is_made_read_in_blocks_and_removed_and_the_audit_tells() -> None:
    stage = ApiStage()
    stage.world.copies = desk = Desk()
    kept = Kept()
    stage.hub.auditor = Auditor(kept)
    caller = stage.caller()
    assert caller.get(COPY).status == 404
    assert caller.ask("POST", COPY).json == desk.last
    assert caller.ask("POST", COPY).status == 409
    assert caller.get(COPY).json["bytes"] == 10
    blocks = [caller.get(f"{COPY}/m?offset={at}") for at in (0, 4, 8, 10)]
    assert [each.body for each in blocks] == [b"0123", b"4567", b"89", b""]
    assert blocks[0].headers["Content-Type"] == "application/octet-stream"
    desk.fails = True
    assert caller.get(f"{COPY}/m").status == 503
    assert caller.get(f"{COPY}/other").status == 404
    assert caller.ask("DELETE", f"{COPY}/other").status == 404
    assert caller.ask("DELETE", f"{COPY}/m").status == 204
    assert [each[1:] for each in kept.told()] == [
        ("copy", "", 200),
        ("copy", "", 409),
        ("remove-copy", "", 404),
        ("remove-copy", "", 200),
    ]


def _all_but(right: str, question: Question) -> bool:
    return question.right != right


def test_a_copy_has_what_messages_say_so_who_may_not_browse_all_may_not_read_it() -> None:
    for right in ("browse", "manage-server"):
        stage = ApiStage(guarded=True)
        stage.world.copies = desk = Desk()
        desk.begin()
        stage.policy = partial(_all_but, right)
        assert stage.caller().get(f"{COPY}/m").status == 403
