"""A server in memory with an admin door, and peers that speak HTTP to it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import h11

from tests.tmqp_server.admin.stage import Stage
from tests.tmqp_server.doors.http.stage import Answer
from tests.tmqp_server.shell.stage import StubWire

__all__ = ["ApiStage", "Caller"]

_MOST_STEPS: Final = 20_000


class Caller:
    """One connection to the admin door, on which requests follow each other."""

    def __init__(self, stage: ApiStage, fields: Mapping[str, str]) -> None:
        self.stage = stage
        self.fields = {"Host": "127.0.0.1:2680", **fields}
        self.number = stage.new_number()
        self.wire = stage.wires[self.number] = StubWire()
        self.wire.peer = stage.wire_peer
        stage.turn.opened(self.number, stage.admin, self.wire, "host", stage.now)

    def send(self, method: str, target: str, body: object = None, **fields: str) -> None:
        """Send a request: a body that is no bytes is JSON."""
        said = {**self.fields, **{key.replace("_", "-"): value for key, value in fields.items()}}
        data = b""
        if body is not None or method in ("POST", "PUT", "PATCH"):
            data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
            said["Content-Length"] = str(len(data))
            if not isinstance(body, bytes):
                said.setdefault("Content-Type", "application/json")
        lines = [f"{method} {target} HTTP/1.1", *[f"{k}: {v}" for k, v in said.items()], "", ""]
        self.stage.say(self.number, "\r\n".join(lines).encode() + data)

    def take(self) -> Answer:
        """The next answer, as soon as it is there."""
        machine = h11.Connection(h11.CLIENT)
        machine.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        machine.send(h11.EndOfMessage())
        stage = self.stage
        for _ in range(_MOST_STEPS):
            data = bytes(self.wire.sent)
            self.wire.sent.clear()
            if data:
                machine.receive_data(data)
            found = self._read(machine)
            if found is not None:
                self.wire.sent[:0] = machine.trailing_data[0]
                return found
            if self.number in stage.closed:
                machine.receive_data(b"")
            stage.now = max(stage.now, stage.turn.next_deadline())
            stage.turn.on_deadline(stage.now)
            stage.attend()
        raise AssertionError("there was no answer")

    _response: Any = None
    _body = b""

    def _read(self, machine: Any) -> Answer | None:
        while True:
            event = machine.next_event()
            if event is h11.NEED_DATA:
                return None
            if isinstance(event, h11.Response):
                self._response, self._body = event, b""
            elif isinstance(event, h11.Data):
                self._body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                headers = [(k.title(), v) for k, v in self._response.headers]
                return Answer(self._response.status_code, headers, self._body)

    def ask(self, method: str, target: str, body: object = None, **fields: str) -> Answer:
        """Send a request, and wait for its answer."""
        self.send(method, target, body, **fields)
        return self.take()

    def get(self, target: str, **fields: str) -> Answer:
        """Ask for a resource."""
        return self.ask("GET", target, **fields)


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


class ApiStage(Stage):
    """A server in memory; its callers come from ``wire_peer``."""

    wire_peer = ""

    def prepare(self) -> None:
        """Have one of everything: queues c/1 and d/1, a message m, a client k, a router r, and in
        the space s a counter n."""
        caller = self.caller()
        for name in ("c", "d"):
            assert caller.ask("PUT", f"/api/v1/channels/{name}/queues/1", {"status": "pull"}).status
        caller.ask("PUT", "/api/v1/routers/r", {})
        caller.ask("PUT", "/api/v1/routers/r/bindings/b", {"kind": "tag", "target": "t"})
        caller.ask("PUT", "/api/v1/channels/c/queues/1/feeds/d/1", {})
        caller.ask("POST", "/api/v1/channels/d/queues/1/messages?id=m", b"x")
        caller.ask("PUT", "/api/v1/cells/s/n", {"count": 5, "ttl_ms": 3_600_000})
        self.connect("k")

    def state(self) -> str:
        """Everything that an operation may change, in words."""
        caller = self.caller(Authorization="Bearer all")
        policy, self.policy = self.policy, lambda _: True
        found = [
            caller.get(f"/api/v1/{each}").body.decode()
            for each in (
                "definitions",
                "queues?fields=waiting,counts",
                "clients?fields=name&filter=door%3Dtmqp",
                "cells/s",
            )
        ]
        self.end(caller.number)
        self.policy = policy
        return re.sub(r'"(taken_at_ms|examined|ttl_ms)":[0-9]+', "", "\n".join(found))

    def caller(self, **fields: str) -> Caller:
        """A connection to the admin door."""
        return Caller(self, {key.replace("_", "-"): value for key, value in fields.items()})
