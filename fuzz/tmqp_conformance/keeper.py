"""The connection that checks the server after each case, and removes channels and routers that
cases have left."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from tmqp import ConnectionInformation, Frame, MessageType, Operation
from tmqp.testing.conformance import Case, Patience, Stage, UnreachableError, case
from tmqp.testing.conformance.lines import Line, Log
from tmqp.testing.conformance.steps import Answer
from tmqp.testing.conformance.talk import PREAMBLE_ANSWER, connect, hear

__all__ = ["PROBE", "Keeper"]

#: The description of the keeper's connection, for the stage.
PROBE: Final[Case] = case(
    "server.keeper.probe",
    "Takes a new client",
    "A server that does not take a new client has crashed.",
    "F21",
    connect("keeper"),
    hear("keeper", Answer()),
)


class Keeper:
    """A client of the server under test.

    :param suffix: makes its client id unique.
    :param token: an administrator's token, if the server requires one.
    :raises UnreachableError: if the server does not accept it.
    """

    def __init__(self, stage: Stage, suffix: str, patience: Patience, token: str = "") -> None:
        self._stage = stage
        self._patience = patience
        self._requests = 0
        self._line = Line("keeper", stage.open("keeper", PROBE), Log(stage), pongs=True)
        information = ConnectionInformation(f"keeper-{suffix}", token=token)
        hello = Frame.build(MessageType.SERVER, "", 101, information.encode())
        self._line.send(PREAMBLE_ANSWER.data + hello.raw, hello)
        try:
            self._wait(lambda: self._line.accepted, "a new client was not accepted")
        except UnreachableError:
            self.close()
            raise

    def close(self) -> None:
        """Leave."""
        self._line.release()

    def ping(self) -> None:
        """Check that the server answers.

        :raises UnreachableError: if it does not answer.
        """
        self._line.fenced_by_ping += 1
        self._line.send(Frame.build(MessageType.PING, ttl=16).raw, None)
        self._wait(lambda: not self._line.fenced_by_ping, "a ping was not answered")

    def ask(
        self,
        number: int,
        target: str = "",
        payload: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> tuple[int, bytes]:
        """Request an operation; returns the code and the payload of the answer.

        :raises UnreachableError: when it is not answered.
        """
        self._requests += 1
        name = f"keeper-{self._requests}"
        request = Frame.build(
            MessageType.SERVER,
            target,
            number,
            payload,
            message_id=name,
            headers=headers,
            pending_response=True,
        )
        self._line.send(request.raw, request)
        found: list[Frame] = []

        def answered() -> bool:
            found.extend(
                each
                for each in self._line.seen
                if isinstance(each, Frame)
                and each.type == MessageType.RESPONSE
                and each.message_id == name
            )
            self._line.seen.clear()
            return bool(found)

        self._wait(answered, f"operation {number} was not answered")
        return found[0].content_type, found[0].payload

    def clean_up(self, suffix: str) -> str:
        """Remove channels and routers whose names contain ``-suffix``; name those that stay.

        :raises UnreachableError: when the server does not answer.
        """
        left = []
        filters = (("Channel-Name", f"*-{suffix}*"),)
        code, payload = self.ask(Operation.CHANNEL_LIST, headers=filters)
        for name in _names(payload) if code == 0 else ():
            code, _ = self.ask(Operation.REMOVE_CHANNEL, name)
            if code not in (0, 404):
                left.append(name)
        code, payload = self.ask(Operation.LIST_ROUTERS)
        for name in _names(payload) if code == 0 else ():
            if f"-{suffix}" in name:
                self.ask(Operation.REMOVE_ROUTER, name)
        return ", ".join(left)

    def _wait(self, done: Callable[[], bool], otherwise: str) -> None:
        deadline = self._stage.now() + self._patience.answer
        while not done():
            if self._line.complaint:
                raise UnreachableError(self._line.complaint)
            if not self._line.receive(deadline - self._stage.now()):
                raise UnreachableError(otherwise)


def _names(payload: bytes) -> list[str]:
    """Return the names in a list of channels or routers; none if it is not such a list."""
    try:
        entries = json.loads(payload)
    except ValueError:
        return []
    if not isinstance(entries, list):
        return []
    names = [entry.get("Name") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str)]
