"""A journal for tests, with a door whose messages are their ids."""

from __future__ import annotations

from tmqp_server.engine.effects import Append, Erase, StoredChange
from tmqp_server.engine.model.client import Origin
from tmqp_server.engine.model.message import Message
from tmqp_server.storage.journal import Journal, Writing

__all__ = ["PRODUCER", "Codec", "Gathering"]


class Codec:
    """A door whose messages are their ids."""

    name = "plain"
    number = 7

    def stored(self, message: Message) -> tuple[bytes, int, int]:
        return f"<{message.message_id}>".encode(), 1, len(message.message_id)

    def unpacked(self, data: bytes) -> list[tuple[bytes, int, int, bool]]:
        pieces = data.split(b",")
        return [(each, 1, len(each) - 1, each.startswith(b"!")) for each in pieces]

    def restored(self, body: bytes) -> tuple[object, str, str, str, int]:
        if not body.startswith(b"<"):
            raise ValueError("not one of mine")
        return body, body.decode()[1:-1], "producer", "Spelt", len(body)


PRODUCER = Origin(1, "producer", None, None, "plain")


class Gathering:
    """A journal and the tickets given so far."""

    def __init__(self) -> None:
        self.journal = Journal([Codec()], 1_000.0)
        self.ticket = 0

    def append(
        self, sequence: int, key: int = 1, marks: int = 0, old: int = 0, transient: bool = False
    ) -> Message:
        self.ticket += 1
        message = Message(f"m{sequence}", PRODUCER, "c", 1, 10, None, marks, sequence)
        effect = Append(self.ticket, message, "c", 1, key, sequence, transient, key, old)
        self.journal.append(effect, 5.0)
        return message

    def erase(self, sequence: int, key: int = 1, ticket: int = 0) -> None:
        self.journal.erase(Erase(ticket, key, sequence))

    def change(self, change: StoredChange) -> None:
        self.ticket += 1
        change.ticket = self.ticket
        self.journal.change(change)

    def take(self) -> tuple[Writing, list[int], list[int]]:
        """The batch, and the sequences appended to and settled in queue 1."""
        writing = self.journal.take()
        appended = [each.sequence for each in writing.batch.appended.get(1, [])]
        return writing, appended, writing.batch.settled.get(1, [])

    def finished(self, writing: Writing, ok: bool) -> tuple[int, bool, int] | None:
        answer = self.journal.finished(writing, ok)
        return None if answer is None else (answer.ticket, answer.ok, answer.count)
