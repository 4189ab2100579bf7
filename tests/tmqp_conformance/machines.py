"""Our server and our client as machines without I/O, for the cases of the conformance suite."""

from __future__ import annotations

import tomllib
from itertools import count

from tests.project import ROOT
from tests.tmqp_server.outputs import sent
from tests.tmqp_server.world import World
from tmqp import ConnectionInformation, Frame, MessageReceived
from tmqp.limits import Limits
from tmqp.testing.conformance import Case
from tmqp.testing.conformance.clients.words import CHANNEL, QUEUE
from tmqp_client import ClientLimits
from tmqp_client._core.board import DIRECT_MESSAGES
from tmqp_client._core.inbox import Inbox
from tmqp_client._core.letters import response_frame
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Accepted
from tmqp_client._core.pending import Pending
from tmqp_client._core.requests import PullRequest, join
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.doors.wires import LetterWires
from tmqp_server.wiring.assembly import build_broker, declare

__all__ = ["ClientUnderTest", "HubMachine"]

_CONFIGURATION = ROOT / "examples" / "interoperability.toml"


class HubMachine:
    """Our server in memory: hub, broker and native door."""

    def __init__(self, limits: Limits | None = None) -> None:
        table = tomllib.loads(_CONFIGURATION.read_text(encoding="utf-8"))
        table["routers"] = []
        config = ServerConfig(**read_config(table))
        self.world = World(limits=limits or Limits(), broker=build_broker(config))
        self.world.broker.know_wires(LetterWires(self.world.door.letters))
        declare(self.world.broker, config, self.world.now)
        self._open: set[int] = set()

    def open(self, case: Case, now: float) -> int:
        """A new connection."""
        self.world.now = now
        link = self.world.open_link()
        self._open.add(link.number)
        return link.number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes arrive."""
        waits = self.world.hub.receive(number, data, now)
        while waits:
            waits = self.world.hub.go_on(number, now)

    def take(self, number: int) -> bytes:
        """What there is to send."""
        return sent(self.world.hub, number)

    def is_closed(self, number: int) -> bool:
        """Whether the door has closed."""
        return number not in self._open or bool(self.world.hub.close_reason(number))

    def end(self, number: int, now: float) -> None:
        """The peer sends no more."""
        self.world.hub.receive_eof(number, now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self._open.discard(number)
        self.world.hub.forget(number, now)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        hub = self.world.hub
        dues = [hub.session_deadline(number) for number in self._open]
        dues.append(hub.broker_deadline())
        return min((due for due in dues if due is not None), default=None)

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        self.world.now = now
        self.world.hub.on_broker_deadline(now)
        for number in sorted(self._open):
            self.world.hub.on_session_deadline(number, now)


class ClientUnderTest:
    """Our client in memory: the core of ``tmqp_client``, and a program on it for each task."""

    def __init__(self) -> None:
        self._machines: dict[int, ClientMachine] = {}
        self._tasks: dict[int, str] = {}
        self._messages: Inbox[Frame] | None = None
        self._directs: Inbox[MessageReceived] | None = None
        self._joining: Pending | None = None
        self._ids = count(1)

    def open(self, case: Case, now: float) -> int:
        """A new connection; a client that connects again goes on."""
        number = len(self._machines) + 1
        machine = next(iter(self._machines.values()), None)
        if machine is None:
            information = ConnectionInformation("ours", name="tmqp")
            sends = 2 if "reconnect" in case.needs else 0
            machine = ClientMachine(
                information, ClientLimits(), lambda: f"{next(self._ids)}", sends
            )
        machine.start(now)
        self._machines[number] = machine
        self._tasks[number] = case.task
        return number

    def receive(self, number: int, data: bytes, now: float) -> None:
        """Bytes of the server."""
        machine = self._machines[number]
        for outcome in machine.receive(data, now):
            if isinstance(outcome, Accepted):
                self._begin(machine, self._tasks[number], now)
            elif outcome is self._messages:
                self._acknowledge(machine)
            elif outcome is self._directs:
                self._respond(machine)
            elif isinstance(outcome, Pending) and outcome is self._joining:
                self._go_on(machine, self._tasks[number], outcome)

    def _go_on(self, machine: ClientMachine, task: str, joining: Pending) -> None:
        """The join is answered."""
        if task == "pull" and joining.error is None:
            machine.pull(PullRequest(CHANNEL, QUEUE, 2))

    def _new_id(self) -> str:
        return str(next(self._ids))

    def _begin(self, machine: ClientMachine, task: str, now: float) -> None:
        if self._joining is not None:
            return  # the machine joins again by itself
        if task == "push":
            machine.push(CHANNEL, QUEUE, b"hello", (), now, confirm=True)
        elif task == "echo":
            self._directs = machine.listen(DIRECT_MESSAGES)
        elif task in ("join", "consume", "pull"):
            if task == "consume":
                self._messages = machine.subscribe(CHANNEL, None)
            self._joining = machine.request(join(CHANNEL), now)

    def _acknowledge(self, machine: ClientMachine) -> None:
        assert self._messages is not None
        self._messages.fresh = False
        while len(self._messages):
            message = self._messages.take()
            if message.pending_acknowledge:
                machine.acknowledge(message, None)

    def _respond(self, machine: ClientMachine) -> None:
        assert self._directs is not None
        self._directs.fresh = False
        while len(self._directs):
            request = self._directs.take().frame
            if request.pending_response:
                machine.send(response_frame(request, machine.client_id, 0, request.payload))

    def take(self, number: int) -> bytes:
        """What there is to send."""
        return b"" if self.is_over(number) else self._machines[number].data_to_send()

    def is_over(self, number: int) -> bool:
        """Whether this is not the client's last connection."""
        return number != len(self._machines)

    def is_closed(self, number: int) -> bool:
        """Whether the client has closed."""
        return self.is_over(number) or self._machines[number].lost is not None

    def end(self, number: int, now: float) -> None:
        """The server sends no more."""
        if not self.is_closed(number):
            self._machines[number].receive_eof(now)

    def lose(self, number: int, now: float) -> None:
        """The transport is gone."""
        self.end(number, now)

    def next_deadline(self) -> float | None:
        """The nearest deadline."""
        machine = next(iter(self._machines.values()), None)
        return None if machine is None else machine.next_deadline()

    def on_deadline(self, now: float) -> None:
        """Do what is due."""
        next(iter(self._machines.values())).on_deadline(now)
