"""A message for a router in the forms it may take, as a door of the tests' own makes it."""

from __future__ import annotations

from tmqp_server.engine.commands import BY_ID, BY_NAME, Envelope, HttpMessage, Push, SendDirect
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_NOTHING

__all__ = ["Letter"]


class Letter(Envelope):
    """A message for a router, with its id; a ``~`` begins the name in a direct target."""

    def __init__(self, message_id: str, headers: dict[str, str] | None = None) -> None:
        self.message_id = message_id
        self.headers = headers or {}

    def id_of(self) -> str:
        return self.message_id

    def content_type_of(self) -> int:
        return 9

    def payload_of(self) -> bytes:
        return f"body of {self.message_id}".encode()

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    def as_http(self) -> HttpMessage:
        return HttpMessage([("Id", self.message_id)], self.payload_of())

    def as_push(self, channel: str, queue_id: int | None, interaction: int) -> Push:
        copy = f"copy of {self.message_id}" if interaction == ASKS_NOTHING else self.message_id
        queue_id = 1 if queue_id is None else queue_id
        asks = interaction == ASKS_ACKNOWLEDGE
        return Push(1, copy, channel, queue_id, False, asks, 10, "wire")

    def as_direct(self, target: str, content_type: int | None, interaction: int) -> SendDirect:
        by = BY_NAME if target.startswith("~") else BY_ID
        wire = f"{self.message_id}/{content_type}/{interaction}"
        who = target.removeprefix("~")
        return SendDirect(1, by, who, False, 10, wire, None, self.message_id, interaction)
