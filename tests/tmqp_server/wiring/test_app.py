"""The whole server on real sockets: connecting, limits, ends of every kind, stopping."""

from __future__ import annotations

import gc
import logging
import os
import socket
import statistics
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.machine import machine_s
from tests.tmqp_server.peers import greeting, operation, push
from tests.tmqp_server.settings.users_classes import Everywhere, Failing, Loud
from tests.tmqp_server.wires import Wire, dial, serving, settled, wire
from tmqp.address import Address
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp.limits import Limits
from tmqp_server.config import ConfigError, OutboundLimits, ServerConfig
from tmqp_server.doors.native.door import NativeSession
from tmqp_server.engine.options import QueueChanges
from tmqp_server.io.listener import ListenError
from tmqp_server.settings.extensions import ClassSetting
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.running import running

pytestmark = pytest.mark.anyio


async def test_a_client_connects_and_is_answered() -> None:
    async with serving() as server, wire(server) as client:
        await client.say(greeting("a"))
        accepted = await client.hear()
        assert client.preamble == b"TMQP/2.0"
        assert (accepted.content_type, accepted.target) == (202, "a")
        assert server.sessions == 1
        answer = await client.ask(Operation.CLIENT_LIST)
        assert b'"Id":"a"' in answer.payload


async def test_unix_sockets_and_tcp_share_one_broker(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    listen = (Address("127.0.0.1", 0), Address(socket_path=str(path)))
    async with serving(listen=listen) as server:
        near, far = [await dial(address) for address in server.addresses]
        async with near.stream, far.stream:
            await (await near.greet("tcp")).join("c")
            await far.greet("unix")
            await far.say(push("c", 1, "m"))
            assert (await near.hear()).source == "unix"
    assert not path.exists()


async def test_one_push_reaches_two_hundred_consumers() -> None:
    async with serving() as server, wire(server, "producer") as producer:
        consumers = [await (await dial(server.addresses[0])).greet() for _ in range(200)]
        for consumer in consumers:
            await consumer.join("c")
        await producer.say(*[push("c", 1, f"m{n}", b"x" * 1_000) for n in range(20)])
        for consumer in consumers:
            received = [(await consumer.hear()).message_id for _ in range(20)]
            assert received == [f"m{n}" for n in range(20)]
            await consumer.stream.aclose()


async def test_ten_mebibytes_pass_through_a_limit_of_sixteen() -> None:
    limits = Limits(max_payload_bytes=16 << 20)
    payload = os.urandom(1 << 20) * 10
    async with (
        serving(connection=limits) as server,
        wire(server, "a", "c") as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.say, push("c", 1, "m", payload))
        assert (await client.hear()).payload == payload


async def test_what_is_above_the_limit_is_refused_before_it_has_come() -> None:
    async with serving() as server, wire(server, "a") as client:
        await client.say(push("c", 1, "m", b"x" * 1_048_577).raw[:100])
        (last,) = await client.hear_to_the_end()
        assert (last.type, last.content_type) == (MessageType.TERMINATE, 482)


async def test_one_who_talks_on_after_a_violation_still_hears_why() -> None:
    async with serving() as server, wire(server, "a") as client:
        forged = push("c", 1, "m", b"x" * 1_000, source="other").raw
        with anyio.move_on_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_shout, client, forged * 1_000)
                last = await client.hear()
                tasks.cancel_scope.cancel()
        assert (last.type, last.content_type) == (MessageType.TERMINATE, 400)


async def _shout(client: Wire, data: bytes) -> None:
    try:
        await client.say(data)
    except anyio.BrokenResourceError:
        return


# --- Users' classes ------------------------------------------------------------------------------


async def test_handlers_and_routers_given_as_arguments() -> None:
    config = ServerConfig(listen=[Address("127.0.0.1", 0)], queue=QueueChanges(status=3))
    with anyio.fail_after(10):
        async with (
            running(config, handlers={"loud": Loud()}, routers={"r": Everywhere()}) as server,
            wire(server, "me") as client,
        ):
            queue = [("Queue-Id", "1"), ("Delivery-Handler", "loud")]
            answer = await client.ask(Operation.CREATE_QUEUE, "everywhere", headers=queue)
            assert answer.content_type == 0
            message = Frame.build(MessageType.ROUTER, "r", message_id="m", pending_response=True)
            await client.say(message)
            assert (await client.hear()).type == MessageType.ACKNOWLEDGE  # of the queue's copy
            assert (await client.hear()).message_id == "m"
            assert server.set_router_enabled("r", False)
            assert not server.set_router_enabled("R", False)
            await client.say(message)
            assert (await client.hear()).content_type == 404


async def test_a_router_that_raises_is_logged_and_its_publisher_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = ServerConfig(listen=[Address("127.0.0.1", 0)])
    with anyio.fail_after(10):
        async with running(config, routers={"r": Failing()}) as server, wire(server, "me") as me:
            await me.say(
                Frame.build(MessageType.ROUTER, "r", message_id="m", pending_response=True)
            )
            assert (await me.hear()).content_type == 500
            await me.say(
                Frame.build(MessageType.ROUTER, "r", message_id="m", pending_acknowledge=True)
            )
            assert (await me.hear()).header("Nack-Reason") == "internal-server-error"
            assert (await me.ask(Operation.LIST_ROUTERS)).content_type == 0
    failures = [record for record in caplog.records if record.exc_info]
    assert [record.getMessage() for record in failures] == ["the router 'r' failed"] * 2
    assert "a bug of the user's" in caplog.text


async def test_what_cannot_be_made_leaves_nothing_open(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.sock"
    config = ServerConfig(
        listen=[Address(socket_path=str(path))],
        handlers={"x": ClassSetting("handlers.x", "no_such_module", "X", {})},
    )
    with pytest.raises(ConfigError, match="cannot be imported"):
        async with running(config):
            pass
    assert not path.exists()


# --- Strangers and the slow to speak -------------------------------------------------------------

STRANGERS = {
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "tls": bytes.fromhex("160301020001000001fc0303"),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "amqp": b"AMQP\x00\x00\x09\x01",
    "mqtt": b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c\x00\x04abcd",
    "nats": b'CONNECT {"verbose":false}\r\n',
    "stomp": b"STOMP\naccept-version:1.2\n\n\x00",
    "redis": b"*1\r\n$4\r\nPING\r\n",
    "nsq": b"  V2",
    "zeromq": b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f",
    "one byte": b"\x00",
}


@pytest.mark.parametrize("name", STRANGERS)
async def test_other_protocols_are_cut_at_once_without_a_word(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """B3 of the reliability cases."""
    caplog.set_level(logging.INFO)
    async with serving(within_s=5) as server, wire(server) as stranger:
        await stranger.say(STRANGERS[name])
        assert await stranger.hear_to_the_end() == []
        await settled(server, 0)
    (line,) = [r.getMessage() for r in caplog.records if "closed:" in r.getMessage()]
    assert "violation: not TMQP: the peer sent" in line
    assert "\n" not in line


async def test_whoever_does_not_introduce_itself_in_time_is_cut() -> None:
    """B2 of the reliability cases, in small: silent, dripping and half-way clients."""
    limits = Limits(handshake_timeout_s=0.3)
    async with serving(connection=limits) as server, wire(server, "honest") as honest:
        began = anyio.current_time()
        slow = [await dial(server.addresses[0]) for _ in range(30)]
        ended: list[float] = []

        async def wait(number: int, client: Wire) -> None:
            async with client.stream, anyio.create_task_group() as tasks:
                if number % 3 == 1:
                    tasks.start_soon(_drip, client)
                elif number % 3 == 2:
                    await client.say(greeting("x")[:-1])
                with suppress(anyio.BrokenResourceError):  # a drop fell after the cut
                    await client.hear_to_the_end()
                ended.append(anyio.current_time() - began)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for number, client in enumerate(slow):
                tasks.start_soon(wait, number, client)
        assert len(ended) == 30
        assert min(ended) >= 0.3
        assert max(ended) < 3
        await settled(server, 1)
        assert (await honest.ask(Operation.CHANNEL_LIST)).content_type == 0


async def _drip(client: Wire) -> None:
    for byte in greeting("drip"):
        try:
            await client.say(bytes((byte,)))
        except anyio.BrokenResourceError:
            return
        await anyio.sleep(0.05)


async def test_a_silent_client_is_pinged_and_then_given_up() -> None:
    """The interval may well be shorter than the time for the handshake."""
    limits = Limits(ping_interval_s=0.2, handshake_timeout_s=5)
    async with serving(connection=limits) as server, wire(server, "a") as client:
        began = anyio.current_time()
        ping = await client.hear()
        assert ping.type == MessageType.PING
        assert 0.15 < anyio.current_time() - began < 2
        assert await client.hear_to_the_end() == []
        assert 0.35 < anyio.current_time() - began < 3


async def test_whoever_answers_pings_stays() -> None:
    limits = Limits(ping_interval_s=0.1)
    async with serving(connection=limits) as server, wire(server, "a") as client:
        for _ in range(5):
            assert (await client.hear()).type == MessageType.PING
            await client.say(Frame.build(MessageType.PONG))
        assert (await client.ask(Operation.CHANNEL_LIST)).content_type == 0


@pytest.mark.alone
async def test_a_busy_server_keeps_time() -> None:
    """Deadlines are served between chunks, however many there are.

    The middle one of five waits counts: where deadlines starve every ping is late, where the
    machine stands still for a moment one is.
    """
    limits = Limits(ping_interval_s=0.3)
    waits: list[float] = []
    async with (
        serving(connection=limits) as server,
        wire(server, "silent") as silent,
        wire(server, "busy", "c") as busy,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_flood, busy)
        for _ in range(5):
            began = anyio.current_time()
            assert (await silent.hear()).type == MessageType.PING
            waits.append(anyio.current_time() - began)
            await silent.say(Frame.build(MessageType.PONG))
        tasks.cancel_scope.cancel()
    assert statistics.median(waits) < max(1.5, 60 * machine_s()), waits


async def _flood(client: Wire) -> None:
    """Push as fast as the server takes it, read what comes back."""
    chunk = push("c", 1, "m", b"x" * 100).raw * 2_000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.hear_to_the_end)
        while True:
            await client.say(chunk)


# --- Limits of the listener ----------------------------------------------------------------------


async def test_one_more_than_allowed_is_closed_at_once_and_the_others_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """F4 of the reliability cases; a burst of connections is counted as it comes."""
    async with serving(max_connections=5) as server:
        sockets = [socket.create_connection(_place(server)) for _ in range(12)]
        clients = [Wire(await anyio.abc.SocketStream.from_socket(s)) for s in sockets]
        await settled(server, 5)
        for client in clients[5:]:
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await client.hear()
        for client in clients[:5]:
            await client.greet()
        assert server.sessions == 5
        await clients[0].stream.aclose()
        await settled(server, 4)
        async with wire(server, "again"):
            assert server.sessions == 5
        for client in clients:
            await client.stream.aclose()
    refusals = [r.getMessage() for r in caplog.records if "refused" in r.getMessage()]
    assert len(refusals) == 7
    assert refusals[0].endswith(": 5 connections")


def _place(server: Server) -> tuple[str, int]:
    return server.addresses[0].host, server.addresses[0].port


async def test_one_remote_address_cannot_take_all_connections(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loopback is exempt, so here nothing counts as local."""
    monkeypatch.setattr(Address, "is_local", property(lambda self: self.port == 0))
    async with serving(max_connections_per_address=2) as server:
        place = _place(server)
        first = [socket.create_connection(place, source_address=("127.0.0.2", 0)) for _ in range(3)]
        other = socket.create_connection(place, source_address=("127.0.0.3", 0))
        streams = [Wire(await anyio.abc.SocketStream.from_socket(s)) for s in [*first, other]]
        with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await streams[2].hear()
        for stream in (streams[0], streams[1], streams[3]):
            await stream.greet()
        await streams[0].stream.aclose()
        await settled(server, 2)
        again = socket.create_connection(place, source_address=("127.0.0.2", 0))
        streams.append(Wire(await anyio.abc.SocketStream.from_socket(again)))
        await streams[-1].greet()
        for stream in streams:
            await stream.stream.aclose()
        await settled(server, 0)
        assert server._connected_now._by_host == {}
    (refusal,) = [r.getMessage() for r in caplog.records if "refused" in r.getMessage()]
    assert refusal.startswith("refused 127.0.0.2:")
    assert refusal.endswith(": 2 connections from there")


async def test_loopback_and_unix_sockets_are_not_counted_by_address(tmp_path: Path) -> None:
    listen = (Address("127.0.0.1", 0), Address(socket_path=str(tmp_path / "s")))
    async with serving(listen=listen, max_connections_per_address=1) as server:
        for address in server.addresses:
            clients = [await (await dial(address)).greet() for _ in range(3)]
            for client in clients:
                await client.stream.aclose()


async def test_a_socket_that_is_gone_before_it_is_served_is_passed_over(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(socket.socket):
        def setsockopt(self, *_args: object) -> None:
            raise OSError(22, "Invalid argument")

    caplog.set_level(logging.INFO)
    async with serving() as server, wire(server, "a"):
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as client,
        ):
            gone = Gone(fileno=listener.accept()[0].detach())
            server._admit(gone, secure=False, door=None)
            client.settimeout(5)
            assert client.recv(1) == b""
        assert server.sessions == 1
        async with wire(server, "b"):
            pass
    assert any("Invalid argument" in record.getMessage() for record in caplog.records)


# --- Ends ----------------------------------------------------------------------------------------


async def test_half_closing_ends_a_client_after_its_last_answers() -> None:
    async with serving() as server, wire(server, "other", "c") as other, wire(server) as client:
        ask = [operation(Operation.JOIN, f"d{n}", message_id=str(n)) for n in range(50)]
        await client.say(greeting("a"), *ask, push("c", 1, "m"))
        await client.stream.send_eof()
        said = await client.hear_to_the_end()
        assert [frame.content_type for frame in said] == [202] + [0] * 50
        assert (await other.hear()).message_id == "m"
        await settled(server, 1)


PLACES = ("preamble", "hello", "frame", "whole")


@pytest.mark.parametrize(
    ("where", "reset"),
    [
        (where, reset)
        for where in ("preamble", "hello", "frame", "whole")
        for reset in (False, True)
    ],
)
async def test_a_client_may_vanish_anywhere(
    where: str, reset: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """B5 of the reliability cases: in the middle of whatever, by an end of stream or a reset."""
    caplog.set_level(logging.INFO)
    whole = greeting("a") + push("c", 1, "m", b"x" * 1_000).raw
    cut = {"preamble": 3, "hello": 20, "frame": len(whole) - 500, "whole": len(whole)}[where]
    async with serving(within_s=10) as server, wire(server, "other", "c") as other:
        async with await dial(server.addresses[0]) as client:
            await client.say(whole[:cut])
            if where == "whole":
                assert (await other.hear()).message_id == "m"
            elif where == "frame":
                assert (await client.hear()).content_type == 202
            else:
                await settled(server, 2)
            if reset:
                client.reset()
        await settled(server, 1)
        assert (await other.ask(Operation.CLIENT_LIST)).payload.count(b'"Id"') == 1
    (line,) = [r.getMessage() for r in caplog.records if "closed:" in r.getMessage()][:1]
    if reset and where != "preamble":
        assert "reset" in line.lower()
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]


async def test_a_thousand_who_come_and_vanish_leave_nothing() -> None:
    """B5 of the reliability cases: sessions, tasks and descriptors are as before."""
    async with serving(within_s=50) as server, wire(server, "stays", "c") as stays:
        await settled(server, 1)
        gc.collect()
        before = (descriptors(), anyio_tasks())
        for number in range(1_000):
            sock = socket.create_connection(_place(server))
            if number % 4:
                sock.sendall(greeting(f"c{number}")[: 5 * (number % 40) + 1])
            if number % 5 == 0:
                sock.sendall(greeting(f"d{number}") + operation(Operation.JOIN, "c").raw)
            if number % 3 == 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.close()
            if number % 50 == 0:
                await anyio.sleep(0.001)
        await stays.ask(Operation.CHANNEL_LIST)
        await settled(server, 1)
        await anyio.wait_all_tasks_blocked()
        gc.collect()
        assert (descriptors(), anyio_tasks()) == before
        clients = await stays.ask(Operation.CLIENT_LIST)
        assert clients.payload.count(b'"Id"') == 1
        assert set(server._turn._timers._due) <= set(server._shell._connections)
        assert not server._hub._rest


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def anyio_tasks() -> int:
    """How many tasks there are."""
    return len(anyio.get_running_tasks())


@pytest.mark.cold  # a compiled class cannot be patched
async def test_a_fault_in_one_session_is_logged_and_ends_it_alone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive = NativeSession.receive

    def faulty(self: NativeSession, data: bytes, now: float) -> object:
        if b"poison" in data:
            raise OSError("a bug that looks like a broken connection")
        return receive(self, data, now)

    async with serving() as server, wire(server, "good", "c") as good:
        async with wire(server, "bad", "c") as bad:
            monkeypatch.setattr(NativeSession, "receive", faulty)
            await bad.say(push("c", 1, "m", b"poison"))
            assert await bad.hear_to_the_end() == []
        await settled(server, 1)
        assert (await good.ask(Operation.CLIENT_LIST)).payload.count(b'"Id"') == 1
    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert record.getMessage().endswith("the session failed")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "a bug that looks like a broken connection"


async def test_one_line_a_client_whatever_it_sends(caplog: pytest.LogCaptureFixture) -> None:
    """G6 of the reliability cases: no line of a log can be forged."""
    caplog.set_level(logging.DEBUG)
    hostile = "x\r\nERROR forged \x1b[31m\u2028line\n"
    hellos = [
        f"CONNECT /\r\nClient-Id: {hostile}\r\n".encode(),
        f"CONNECT /\r\n{hostile}: a\r\n{hostile}: b\r\n".encode(),
        b"CONNECT /\r\nClient-Name: a\x1b[31m\n\r\n",
        b"\xff\n",
    ]
    async with serving() as server:
        for first in [*(greeting(payload=hello) for hello in hellos), hostile.encode()]:
            async with wire(server) as client:
                await client.say(first)
                await client.stream.send_eof()
                await client.hear_to_the_end()
        await settled(server, 0)
    for record in caplog.records:
        assert "\n" not in record.getMessage()
        assert "\x1b" not in record.getMessage()
        assert "\u2028" not in record.getMessage()


# --- Stopping ------------------------------------------------------------------------------------


async def test_stopping_tells_every_client_and_frees_the_address() -> None:
    with anyio.fail_after(10):
        clients = []
        async with running(ServerConfig(listen=[Address("127.0.0.1", 0)])) as server:
            address = server.addresses[0]
            for _ in range(20):
                clients.append(await (await dial(address)).greet())
            silent = await dial(address)
            await settled(server, 21)
        for client in clients:
            async with client:
                (last,) = await client.hear_to_the_end()
                assert (last.type, last.content_type) == (MessageType.TERMINATE, 0)
        async with silent:
            assert await silent.hear_to_the_end() == []
        async with running(ServerConfig(listen=[address])):
            pass


@pytest.mark.parametrize(
    ("flush_timeout_s", "shutdown_timeout_s"), [(0.3, 10.0), (30.0, 0.3)], ids=["flush", "stop"]
)
async def test_a_client_that_does_not_read_delays_the_stop_by_no_more_than_it_may(
    flush_timeout_s: float, shutdown_timeout_s: float
) -> None:
    config = ServerConfig(
        listen=[Address("127.0.0.1", 0)],
        outbound=OutboundLimits(flush_timeout_s=flush_timeout_s),
        shutdown_timeout_s=shutdown_timeout_s,
    )
    with anyio.fail_after(10):
        async with running(config) as server:
            client = await (await dial(server.addresses[0])).greet("deaf")
            await client.join("c")
            for number in range(500):
                await client.say(push("c", 1, f"m{number}", b"x" * 10_000))
            began = anyio.current_time()
        assert 0.2 < anyio.current_time() - began < 3
        await client.stream.aclose()


async def test_being_cancelled_stops_it_politely_too() -> None:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            started = anyio.Event()
            places: list[Address] = []

            async def run() -> None:
                async with running(ServerConfig(listen=[Address("127.0.0.1", 0)])) as server:
                    places.extend(server.addresses)
                    started.set()
                    await anyio.sleep_forever()

            tasks.start_soon(run)
            await started.wait()
            client = await (await dial(places[0])).greet("a")
            tasks.cancel_scope.cancel()
        async with client:
            (last,) = await client.hear_to_the_end()
            assert last.type == MessageType.TERMINATE


async def test_an_address_that_is_taken_is_a_plain_error_and_nothing_stays_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as free:
            free_port = free.getsockname()[1]
        listen = [Address("127.0.0.1", free_port), Address("127.0.0.1", port)]
        with pytest.raises(ListenError, match=str(port)):
            async with running(ServerConfig(listen=listen)):
                raise AssertionError("it must not start")
        socket.create_server(("127.0.0.1", free_port)).close()
