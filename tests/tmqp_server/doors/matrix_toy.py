"""The tests' own protocol in the matrix of doors."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from tests.tmqp_server.doors.matrix_parts import (
    CHANNEL,
    EVERYTHING,
    MOST,
    Adapter,
    Case,
    Consumer,
    Wire,
    one_table,
)
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tests.tmqp_server.toy_door import FIELDS, lines_of
from tmqp_server.doors.letter import Letter, Property

__all__ = ["Toy", "ToyPull"]


class _ToyPeer:
    """A client of the tests' own protocol."""

    def __init__(self, stage: MatrixStage, client_id: str) -> None:
        self._wire = Wire(stage, "toy")
        self.hang_up = self._wire.hang_up
        self._unread: list[dict[str, Any]] = []
        assert self.ask(do="connect", id=client_id)["is"] == "accepted"

    def say(self, *asked: dict[str, Any]) -> None:
        """Send, as one chunk."""
        self._wire.say(*[json.dumps(each).encode() + b"\n" for each in asked])

    def lines(self) -> list[dict[str, Any]]:
        """What has come since the last time."""
        unread, self._unread = self._unread, []
        return unread + lines_of(self._wire.take())

    def ask(self, **asked: Any) -> dict[str, Any]:
        """Send a line, and read the one that answers it."""
        self.say(asked)
        lines = self.lines()
        (answer,) = [each for each in lines if each["is"] in ("accepted", "reply")]
        self._unread = [each for each in lines if each is not answer]
        return answer


class _ToyConsumer(Consumer):
    """Gets messages as they come, or pulls them."""

    def __init__(self, stage: MatrixStage, *, pulls: bool) -> None:
        self._peer = _ToyPeer(stage, "consumer")
        self._pulls = pulls
        assert self._peer.ask(do="join", channel=CHANNEL)["code"] == 0

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        peer = self._peer
        if self._pulls:
            peer.say({"do": "pull", "channel": CHANNEL, "queue": 0, "count": MOST})
        found: list[Letter] = []
        for line in peer.lines():
            if line["is"] not in ("message", "pulled"):
                continue
            letter = Letter(base64.b64decode(line["body"]), line["id"], line["source"])
            for field in FIELDS:
                setattr(letter, field, line.get(field, getattr(letter, field)))
            letter.headers = [(key, value) for key, value in line.get("headers", [])]
            letter.properties = [Property(*each) for each in line.get("properties", [])]
            found.append(letter)
            peer.say({"do": "ack", "channel": CHANNEL, "queue": 0, "id": letter.message_id})
        return found


class Toy(Adapter):
    """The tests' own protocol, which can say everything."""

    name = "toy"
    tables = one_table(protocol="toy", listen=["127.0.0.1:0"])
    gives = EVERYTHING
    shows = EVERYTHING

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``."""
        peer = _ToyPeer(stage, "producer")
        asked = [self._request(case) for case in cases]
        for chunk in [asked] if in_a_row else [[each] for each in asked]:
            peer.say(*chunk)
            answers = [(each["is"], each["positive"]) for each in peer.lines()]
            assert answers == [("confirm", True)] * len(chunk)
        peer.hang_up()

    def _request(self, case: Case) -> dict[str, Any]:
        letter = case.letter
        asked: dict[str, Any] = {field: getattr(letter, field) for field in FIELDS}
        asked.update(do="push", channel=CHANNEL, queue=0, id=letter.message_id)
        asked["body"] = base64.b64encode(letter.body).decode()
        asked["headers"] = letter.headers
        asked["properties"] = [[each.name, each.kind, each.value] for each in letter.properties]
        if case.lifetime_ms:
            asked["ttl_ms"] = case.lifetime_ms
        if case.delay_ms:
            asked["delay_ms"] = case.delay_ms
        return asked

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _ToyConsumer(stage, pulls=self.status == "pull")


class ToyPull(Toy):
    """The same, by pulling."""

    name = "toy, pull"
    sends = False
    status = "pull"
