"""The adapters of Simple MQ and goMS in the matrix of doors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from tests.tmqp_server.doors.matrix_parts import CHANNEL, Adapter, Case, Consumer, Wire, one_table
from tests.tmqp_server.doors.matrix_stage import MatrixStage
from tmqp_server.doors.letter import Letter
from tmqp_wires.goms import Dialect
from tmqp_wires.goms.codec import request_line
from tmqp_wires.smq.codec import consume_line, done_line, publish_line

__all__ = ["Goms", "GomsDatagrams", "Smq"]

# --- Simple MQ -----------------------------------------------------------------------------------


class _SmqConsumer(Consumer):
    """Consumes the queue."""

    def __init__(self, stage: MatrixStage) -> None:
        self._wire = Wire(stage, "smq")
        self._wire.say(consume_line(CHANNEL.encode()))

    def take(self) -> list[Letter]:
        """See ``Consumer``."""
        lines = self._wire.take().split(b"\n")
        assert lines.pop() == b"", "each line is whole"
        if lines:
            self._wire.say(done_line(CHANNEL.encode(), len(lines)))
        return [Letter(line) for line in lines]


class Smq(Adapter):
    """Simple MQ."""

    name = "smq"
    tables = one_table(protocol="smq", options={"durable": True})

    def can_send(self, case: Case) -> bool:
        """A message is a line."""
        return b"\n" not in case.letter.body

    def body(self, case: Case) -> bytes:
        """A message is a line."""
        return case.line

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; nothing is confirmed."""
        wire = Wire(stage, "smq")
        lines = [publish_line(CHANNEL.encode(), case.letter.body) for case in cases]
        for chunk in [lines] if in_a_row else [[line] for line in lines]:
            wire.say(*chunk)
        assert wire.take() == b""
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _SmqConsumer(stage)


# --- goMS ----------------------------------------------------------------------------------------


class _GomsConsumer(Consumer):
    """Registers to the topic."""

    def __init__(self, stage: MatrixStage, door: str) -> None:
        self._wire = Wire(stage, door)
        self._wire.say(request_line(Dialect.MESSAGETYPE, "register", [CHANNEL]))

    def take(self) -> list[Letter]:
        """See ``Consumer``: the protocol has no word for it."""
        found: list[Letter] = []
        for line in self._wire.take().splitlines():
            said = json.loads(line)
            assert (said["messagetype"], said["topics"]) == ("message", [CHANNEL])
            found.append(Letter(said["data"].encode()))
        return found


class Goms(Adapter):
    """goMS over TCP."""

    name = "goms"
    tables = one_table(
        protocol="goms",
        listen=["127.0.0.1:55545", "udp://127.0.0.1:55545"],
        options={"topics": [CHANNEL]},
    )
    door: ClassVar[str] = "goms"

    def can_send(self, case: Case) -> bool:
        """A message is a text."""
        return case.text == case.letter.body

    def body(self, case: Case) -> bytes:
        """A message is a text."""
        return case.text

    def send(self, stage: MatrixStage, cases: Sequence[Case], *, in_a_row: bool) -> None:
        """See ``Adapter``; nothing is confirmed."""
        wire = Wire(stage, self.door)
        lines = [
            request_line(Dialect.MESSAGETYPE, "send", [CHANNEL], case.letter.body.decode())
            for case in cases
        ]
        whole = in_a_row and self.door == "goms"
        for chunk in [lines] if whole else [[line] for line in lines]:
            wire.say(*chunk)
        assert wire.take() == b""
        wire.hang_up()

    def consumer(self, stage: MatrixStage) -> Consumer:
        """See ``Adapter``."""
        return _GomsConsumer(stage, self.door)


class GomsDatagrams(Goms):
    """goMS over UDP."""

    name = "goms, UDP"
    door = "goms, datagrams"
