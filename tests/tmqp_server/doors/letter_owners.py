"""A protocol whose messages are letters as they stand, for tests of what reads letters."""

from __future__ import annotations

from tmqp_server.doors.letter import Letter


class LettersAsTheyStand:
    """What such a protocol keeps of a message is its letter."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 200

    def letter(self, wire: object) -> Letter:
        assert isinstance(wire, Letter)
        return wire

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        raise AssertionError("nothing of it was kept")

    def with_headers(self, wire: object, headers: list[tuple[str, str]]) -> tuple[object, int]:
        return wire, 0
