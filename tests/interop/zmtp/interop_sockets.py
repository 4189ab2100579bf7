"""ZeroMQ libraries of every language, in every pattern, against a server that may be killed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import zmq

from tests.interop.building import EXPECTED, Client
from tests.interop.zmtp.clients import AGAIN, CLIENTS, EMPTY
from tests.interop.zmtp.talking import Talk, talking
from tests.ports import free_port
from tests.tmqp_server.killing import Process
from tests.tmqp_server.zmtp_sockets import Sockets, messages, sockets
from tmqp_client import OperationFailed
from tmqp_client.sync import connect

pytestmark = [pytest.mark.interop, pytest.mark.cold, pytest.mark.timeout(400)]

#: A subscription reaches the server, and a publisher is asked for its messages, within this time.
SETTLING_S: Final = 0.5
#: So long something that must not come may take.
QUIET_MS: Final = 700

ACCESS: Final = """
[access.roles.all]
rights = ["push", "join", "create-channel", "create-queue"]
channels = ["*"]

[[access.tokens]]
name = "adm"
user = "adm"
password = "pw"
roles = ["all"]
"""


class World:
    """A server with a door of ZeroMQ, and the client's program."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self._folder = folder
        self._server: Process | None = None
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"

    def serve(self, options: str = "", more: str = "") -> Process:
        """Start the server; what is durable is still there."""
        file = self._folder / "server.toml"
        door = f'[[doors]]\nprotocol = "zmtp"\nlisten = ["127.0.0.1:{self.port}"]\n'
        file.write_text(f"{door}options = {{ {options} }}\n{more}", encoding="utf-8")
        self._server = Process(self._folder, "--config", str(file))
        return self._server

    def kill(self) -> None:
        """End the server without warning."""
        if self._server is not None:
            self._server.kill()
            self._server = None

    @contextmanager
    def program(self) -> Iterator[Talk]:
        """The client's program."""
        words, folder = self.client.command()
        with talking(words, folder, self._folder / "client.log") as talk:
            yield talk

    @contextmanager
    def libzmq(self) -> Iterator[Sockets]:
        """Sockets of libzmq, for the other side."""
        with sockets(self.port) as found:
            yield found

    def requests(self) -> list[list[bytes]]:
        """Messages that every REP socket of the library can take."""
        found = messages()
        return [each for each in found if b"" not in each] if EMPTY in self.client.lacks else found


def expect(talk: Talk, name: str, wanted: list[list[bytes]]) -> None:
    """Have these messages come, in this order."""
    for number, each in enumerate(wanted):
        found = talk.recv(name)
        shown = None if found is None else [(part[:10], len(part)) for part in found]
        assert found == each, f"message {number} of {len(wanted)} at {name}: {shown}\n{talk.log()}"


def settle(world: World) -> None:
    """One message of two parts by each pattern."""
    world.serve()
    two = [b"a part", b"another"]
    with world.program() as talk:
        for kind in ("PUSH", "PULL", "PUB", "SUB", "REQ", "REP"):
            talk.open(f"{kind} {kind} connect {world.address}")
        talk.do(f"subscribe SUB {b'a'.hex()}")
        for sender, receiver in (("PUSH", "PULL"), ("REQ", "REP"), ("REP", "REQ")):
            talk.send(sender, two)
            assert talk.recv(receiver) == two, f"{sender} to {receiver}"
        assert talk.again("PUB", two, "SUB") == two


def push_pull(world: World) -> None:
    """Every size, alone and among parts: the producer first, the consumer first; to and from
    libzmq."""
    world.serve()
    with world.program() as talk, world.libzmq() as other:
        talk.open(f"early PUSH connect {world.address}")
        for each in messages():
            talk.send("early", each)
        pull = other.make(zmq.PULL)
        assert [pull.recv_multipart() for _ in messages()] == messages()
        pull.close(linger=0)
        time.sleep(SETTLING_S)  # until then the server may still send to it
        for each in messages():
            talk.send("early", each)
        talk.open(f"late PULL connect {world.address}")
        expect(talk, "late", messages())
        for each in messages():
            talk.send("early", each)
            assert talk.recv("late") == each
        push = other.make(zmq.PUSH)
        for each in messages():
            push.send_multipart(each)
        expect(talk, "late", messages())
        assert talk.recv("late", QUIET_MS) is None, "more than was sent"


def publish(world: World) -> None:
    """What begins as is wanted, and nothing else, also after a subscription has ended."""
    world.serve()
    with world.program() as talk, world.libzmq() as other:
        talk.open(f"sub SUB connect {world.address}")
        for prefix in (b"A", b"C"):
            talk.do(f"subscribe sub {prefix.hex()}")
        talk.open(f"pub PUB connect {world.address}")
        theirs, ours = other.make(zmq.SUB), other.make(zmq.PUB)
        theirs.subscribe(b"A")
        time.sleep(SETTLING_S)
        assert talk.again("pub", [b"C0"], "sub") == [b"C0"]
        while talk.recv("sub", QUIET_MS) is not None:
            pass  # it was sent more than once
        talk.send("pub", [b"B", b"not wanted"])
        for each in messages():
            talk.send("pub", [b"A", *each])
        expect(talk, "sub", [[b"A", *each] for each in messages()])
        assert [theirs.recv_multipart()[1:] for _ in messages()] == messages()
        talk.send("pub", [b"C1"])
        assert talk.recv("sub") == [b"C1"]
        talk.do(f"unsubscribe sub {b'C'.hex()}")
        time.sleep(SETTLING_S)
        for topic in (b"C2", b"A2"):
            talk.send("pub", [topic])
        assert talk.recv("sub") == [b"A2"]
        for each in messages():
            ours.send_multipart([b"A", *each])
        expect(talk, "sub", [[b"A", *each] for each in messages()])


def request(world: World) -> None:
    """Questions and answers of every size, with a REQ and a REP socket of the library and one of
    libzmq."""
    world.serve()
    with world.program() as talk, world.libzmq() as other:
        talk.open(f"req REQ connect {world.address}")
        theirs = other.make(zmq.REP)
        for each in messages():
            talk.send("req", each)
            assert theirs.recv_multipart() == each
            theirs.send_multipart([b"re", *each])
            assert talk.recv("req") == [b"re", *each]
        theirs.close(linger=0)
        talk.open(f"rep REP connect {world.address}")
        ours = other.make(zmq.REQ)
        for each in world.requests():
            ours.send_multipart(each)
            assert talk.recv("rep") == each
            talk.send("rep", [b"re", *each])
            assert ours.recv_multipart() == [b"re", *each]
            talk.send("req", each)
            assert talk.recv("rep") == each
            talk.send("rep", each)
            assert talk.recv("req") == each


def route(world: World) -> None:
    """A DEALER asks twenty things, and a ROUTER answers the last one first."""
    world.serve()
    with world.program() as talk:
        talk.open(f"dealer DEALER connect {world.address}")
        talk.open(f"router ROUTER connect {world.address}")
        for number in range(20):
            talk.send("dealer", [b"mine", b"", b"%d" % number, bytes(300)])
        asked = [talk.recv("router") or [] for _ in range(20)]
        assert [each[-2:] for each in asked] == [[b"%d" % each, bytes(300)] for each in range(20)]
        for each in reversed(asked):
            talk.send("router", [*each[:-2], b"re:" + each[-2], b"x"])
        answers = [talk.recv("dealer") or [] for _ in range(20)]
        assert all(each[:2] == [b"mine", b""] and each[3:] == [b"x"] for each in answers)
        assert {each[2] for each in answers} == {b"re:%d" % number for number in range(20)}


def bound(*, server_first: bool) -> Callable[[World], None]:
    """Give the scenario in which the sockets bind, and the server connects to them."""

    def play(world: World) -> None:
        kinds = ("PUSH", "PULL", "PUB", "SUB", "REQ", "REP")
        addresses = {kind: f"tcp://127.0.0.1:{free_port()}" for kind in kinds}
        listed = ", ".join(f'"{each}"' for each in addresses.values())
        options = f"connect = [{listed}]"
        if server_first:
            world.serve(options)
        with world.program() as talk:
            for kind, address in addresses.items():
                talk.open(f"{kind} {kind} bind {address}")
            talk.do("subscribe SUB -")
            if not server_first:
                world.serve(options)
            for sender, receiver in (("PUSH", "PULL"), ("PUB", "SUB"), ("REQ", "REP")):
                parts = [sender.encode(), bytes(8_192)]
                assert talk.again(sender, parts, receiver) == parts
            talk.send("REP", [b"answer"])
            assert talk.recv("REQ") == [b"answer"]

    return play


def early(world: World) -> None:
    """The sockets connect before there is a server."""
    kinds = ("PUSH", "PULL", "REQ", "REP")
    with world.program() as talk:
        with talk.opening(*[f"{each} {each} connect {world.address}" for each in kinds]):
            time.sleep(0.3)
            world.serve()
        for sender, receiver in (("PUSH", "PULL"), ("REQ", "REP"), ("REP", "REQ")):
            talk.send(sender, [sender.encode(), bytes(300)])
            assert talk.recv(receiver) == [sender.encode(), bytes(300)]


def saved(server: Process, count: int) -> None:
    """Wait until the queue has so many messages on disk."""
    end = time.monotonic() + 20
    with connect(server.address) as client:
        while time.monotonic() < end:
            try:
                if client.queue_information("zeromq.queue", 0).saved_messages == count:
                    return
            except OperationFailed:
                pass  # the queue is about to be made
            time.sleep(0.05)
    raise AssertionError("not all of them have come")


def restart(world: World) -> None:
    """The server is killed and comes back: what is in its queue is still there, and all sockets
    have a connection again."""
    server = world.serve("durable = true")
    kept = [[b"%d" % number, bytes(300)] for number in range(10)]
    with world.program() as talk:

        def opened(*kinds: str) -> None:
            for kind in kinds:
                talk.open(f"{kind} {kind} connect {world.address}")

        opened("PUSH", "PUB", "SUB", "REQ", "REP")
        talk.do(f"subscribe SUB {b'n'.hex()}")
        for each in kept:
            talk.send("PUSH", each)
        saved(server, len(kept))
        world.kill()
        time.sleep(0.3)
        world.serve("durable = true")
        if AGAIN in world.client.lacks:
            for name in ("PUSH", "PUB", "REQ", "REP"):
                talk.do(f"close {name}")
            opened("PUSH", "PUB", "REQ", "REP")
        opened("PULL")
        expect(talk, "PULL", kept)
        assert talk.again("PUSH", [b"after"], "PULL") == [b"after"]
        assert talk.again("PUB", [b"news"], "SUB") == [b"news"]
        assert talk.again("REQ", [b"question"], "REP") == [b"question"]
        talk.send("REP", [b"answer"])
        assert talk.recv("REQ") == [b"answer"]


def plain(world: World) -> None:
    """A name and a password, a wrong one, and none."""
    world.serve('mechanism = "plain"', ACCESS)
    with world.program() as talk:
        for name, who in (("wrong", " adm other"), ("nobody", "")):
            # Some libraries say that they were refused; those that do not are never let in.
            if talk.ask(f"open {name} PUSH connect {world.address}{who}") == "did":
                talk.attempt(name, [b"from a stranger"])
        talk.open(f"pull PULL connect {world.address} adm pw")
        assert talk.recv("pull", QUIET_MS) is None, "a stranger's message came"
        talk.open(f"push PUSH connect {world.address} adm pw")
        for each in messages():
            talk.send("push", each)
        expect(talk, "pull", messages())


SCENARIOS: Final[dict[str, Callable[[World], None]]] = {
    "settle": settle,
    "push-pull": push_pull,
    "publish": publish,
    "request": request,
    "route": route,
    "bound-first": bound(server_first=False),
    "bound-late": bound(server_first=True),
    "early": early,
    "restart": restart,
    "plain": plain,
}

#: JeroMQ 0.3 may say nothing on a connection, to libzmq as well, and has no time for handshakes.
_MARKS: Final = {"jeromq-0.3.6": [pytest.mark.flaky(reruns=2)]}

CASES: Final[list[Any]] = [
    pytest.param(
        client,
        name,
        id=f"{client.name}-{name}",
        marks=[pytest.mark.xdist_group(client.language), *_MARKS.get(client.name, ())],
    )
    for client in CLIENTS
    if client.name in (EXPECTED or [each.name for each in CLIENTS])
    for name in SCENARIOS
    if name not in client.lacks
]


@pytest.mark.parametrize(("client", "scenario"), CASES)
def test_sockets(client: Client, scenario: str, tmp_path: Path) -> None:
    client.command()
    world = World(client, tmp_path)
    try:
        SCENARIOS[scenario](world)
    finally:
        world.kill()
