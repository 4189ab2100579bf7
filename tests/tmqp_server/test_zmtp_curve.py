"""CURVE at our server, with sockets of libzmq: both sides bind, every pattern, who is let in."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import anyio
import attrs
import pytest
import zmq
import zmq.auth
from click.testing import CliRunner

from tests.ports import free_port
from tests.tmqp_server.test_zmtp_door import shakes_hands
from tests.tmqp_server.zmtp_sockets import (
    Sockets,
    config,
    in_thread,
    messages,
    port_of,
    sockets,
    with_sockets,
)
from tmqp_server import ConfigError, Server, ServerConfig, running
from tmqp_server.__main__ import main
from tmqp_wires.zmtp.keys import key_file, key_from, key_text

pytest.importorskip("nacl", reason="PyNaCl is not installed: pip install 'tmqp[zmtp]'")

SERVER: Final = zmq.curve_keypair()
CLIENT: Final = zmq.curve_keypair()
STRANGER: Final = zmq.curve_keypair()
WORKER: Final = zmq.curve_keypair()
CLIENT_OPTIONS: Final[dict[str, Any]] = {
    "CURVE_PUBLICKEY": CLIENT[0],
    "CURVE_SECRETKEY": CLIENT[1],
    "CURVE_SERVERKEY": SERVER[0],
}
ALL: Final = {"rights": ["push", "join", "direct"], "channels": ["*"], "clients": ["*"]}
NEWS: Final = {"rights": ["join"], "channels": ["zeromq.topic"]}


def access(**more: Any) -> dict[str, Any]:
    """Rules by which the client may do everything, and others what *more* says."""
    return {
        "roles": {"all": ALL, "news": NEWS},
        "tokens": [{"name": "client", "public_key": CLIENT[0].decode(), "roles": ["all"]}],
        **more,
    }


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The file of the server's secret key."""
    path = tmp_path / "server.key"
    public, secret = key_from(SERVER[0].decode()), key_from(SERVER[1].decode())
    path.write_text(key_file(public, secret))
    path.chmod(0o600)
    return path


def curve(key: Path, port: int = 0, data: Path | None = None, **options: Any) -> ServerConfig:
    """A server whose door speaks CURVE, to the client alone."""
    rules = options.pop("access", access())
    chosen = {"mechanism": "curve", "curve_secret_key_file": str(key), **options}
    return config(data, port, access=rules, options=chosen)


# --- Patterns ------------------------------------------------------------------------------------


async def test_push_and_pull(key: Path) -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        push, pull = [found.make(kind, **CLIENT_OPTIONS) for kind in (zmq.PUSH, zmq.PULL)]
        for each in messages():
            push.send_multipart(each)
        return [pull.recv_multipart() for _ in messages()]

    assert await with_sockets(work, curve(key)) == messages()


async def test_publish_and_subscribe(key: Path) -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        publisher, subscriber = [found.make(kind, **CLIENT_OPTIONS) for kind in (zmq.PUB, zmq.SUB)]
        subscriber.subscribe(b"A")
        subscriber.subscribe(b"B")
        time.sleep(0.4)
        subscriber.unsubscribe(b"B")
        time.sleep(0.4)
        publisher.send(b"B not wanted any more")
        for each in messages():
            publisher.send_multipart([b"A", *each])
        return [subscriber.recv_multipart()[1:] for _ in messages()]

    assert await with_sockets(work, curve(key)) == messages()


async def test_request_and_reply(key: Path) -> None:
    def work(found: Sockets) -> list[list[bytes]]:
        asker, worker = [found.make(kind, **CLIENT_OPTIONS) for kind in (zmq.REQ, zmq.REP)]
        answers: list[list[bytes]] = []
        for each in messages():
            asker.send_multipart(each)
            worker.send_multipart([b"re", *worker.recv_multipart()])
            answers.append(asker.recv_multipart()[1:])
        return answers

    assert await with_sockets(work, curve(key)) == messages()


async def test_heartbeats_and_messages_in_both_directions_at_once(key: Path) -> None:
    """Numbers of boxes rise over answers of the protocol and deliveries alike."""

    def work(found: Sockets) -> list[int]:
        beats = {"HEARTBEAT_IVL": 20, "HEARTBEAT_TTL": 2_000, "HEARTBEAT_TIMEOUT": 2_000}
        pull = found.make(zmq.PULL, **CLIENT_OPTIONS, **beats)
        push = found.make(zmq.PUSH, **CLIENT_OPTIONS, **beats)
        taken = []
        for number in range(2_000):
            push.send(b"%d" % number)
            if number % 100 == 99:
                time.sleep(0.03)
        for _ in range(2_000):
            taken.append(int(pull.recv()))
        return taken

    settings = curve(key, heartbeat_ms=10)
    assert await with_sockets(work, settings) == list(range(2_000))


def bound(key: Path, ours: str, address: str, *, is_server: bool) -> dict[str, Any]:
    """An endpoint that connects to a socket which binds, and that socket's options."""
    worker = {"name": "worker", "public_key": WORKER[0].decode(), "roles": ["all"]}
    rules = access(tokens=[*access()["tokens"], worker])
    serving = curve(key, access=rules)
    if is_server:
        calling = curve(
            key,
            access=rules,
            curve_server_key=WORKER[0].decode(),
            socket_type=ours,
            connect=[address],
        )
        options: dict[str, Any] = {
            "CURVE_SERVER": 1,
            "CURVE_PUBLICKEY": WORKER[0],
            "CURVE_SECRETKEY": WORKER[1],
        }
        settings = attrs.evolve(serving, doors=serving.doors + calling.doors)
    else:
        options = CLIENT_OPTIONS
        settings = curve(key, access=rules, connect=[address])
    return {"settings": settings, "options": options}


def first_port(server: Server) -> int:
    """The port of the first endpoint, to which sockets connect."""
    (first, *_) = [each for each in server.door_addresses() if each.startswith("zmtp")]
    return int(first.rpartition(":")[2])


#: A socket that binds, the type that the door has towards it, and one that connects.
_BOUND: Final = {
    "PUSH": (zmq.PUSH, "PULL", zmq.PULL),
    "PULL": (zmq.PULL, "PUSH", zmq.PUSH),
    "PUB": (zmq.PUB, "XSUB", zmq.SUB),
    "SUB": (zmq.SUB, "XPUB", zmq.PUB),
}


@pytest.mark.parametrize("is_server", [True, False], ids=["server", "client"])
@pytest.mark.parametrize("name", _BOUND)
async def test_sockets_that_bind(key: Path, name: str, is_server: bool) -> None:
    """They are servers of CURVE or its clients: that has nothing to do with who connects."""
    kind, ours, other_kind = _BOUND[name]
    address = f"tcp://127.0.0.1:{free_port()}"
    made = bound(key, ours, address, is_server=is_server)
    with sockets(0) as found:
        binding = found.unconnected(kind, **made["options"])
        if kind == zmq.SUB:
            binding.subscribe(b"")
        binding.bind(address)
        async with running(made["settings"]) as server:

            def work(others: Sockets) -> list[list[bytes]]:
                connecting = others.make(other_kind, **CLIENT_OPTIONS)
                if other_kind == zmq.SUB:
                    connecting.subscribe(b"")
                # A socket that binds sees a new connection when its program calls it.
                binding.poll(600)
                pair = (binding, connecting)
                sender, receiver = pair if kind in (zmq.PUSH, zmq.PUB) else reversed(pair)
                taken: list[list[bytes]] = []
                for each in messages():
                    sender.send_multipart(each)
                    taken.append(receiver.recv_multipart())
                return taken

            assert await in_thread(work, first_port(server)) == messages()


@pytest.mark.parametrize("server_first", [True, False])
async def test_a_service_that_binds_and_is_a_server_of_curve(key: Path, server_first: bool) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    made = bound(key, "DEALER", address, is_server=True)
    with sockets(0) as found:
        worker = found.unconnected(zmq.REP, **made["options"])
        if not server_first:
            worker.bind(address)
        async with running(made["settings"]) as server:
            if server_first:
                await anyio.sleep(0.3)
                worker.bind(address)

            def work(others: Sockets) -> list[list[bytes]]:
                asker = others.make(zmq.REQ, **CLIENT_OPTIONS)
                answers: list[list[bytes]] = []
                for each in messages():
                    asker.send_multipart(each)
                    worker.send_multipart([b"re", *worker.recv_multipart()])
                    answers.append(asker.recv_multipart()[1:])
                return answers

            assert await in_thread(work, first_port(server)) == messages()


async def test_a_socket_that_binds_with_another_key_is_not_taken_for_it(key: Path) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    made = bound(key, "PULL", address, is_server=True)
    stranger = {"CURVE_PUBLICKEY": STRANGER[0], "CURVE_SECRETKEY": STRANGER[1]}
    with sockets(0) as found:
        producer = found.unconnected(zmq.PUSH, **{**made["options"], **stranger})
        producer.setsockopt(zmq.SNDTIMEO, 1_000)
        producer.bind(address)
        async with running(made["settings"]):
            with pytest.raises(zmq.Again):
                await anyio.to_thread.run_sync(producer.send, b"forged")


async def test_a_server_that_starts_again_is_met_by_the_same_sockets(
    key: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    settings = curve(key, data=data, durable=True)
    async with running(settings) as server:
        port = port_of(server, "zmtp")
        with sockets(port) as found:
            push = found.make(zmq.PUSH, **CLIENT_OPTIONS)
            for each in messages():
                push.send_multipart(each)
            await anyio.sleep(0.5)
    with sockets(port) as found:
        pull = found.make(zmq.PULL, **CLIENT_OPTIONS)
        push = found.make(zmq.PUSH, **CLIENT_OPTIONS)

        def take(count: int) -> list[list[bytes]]:
            return [pull.recv_multipart() for _ in range(count)]

        async with running(curve(key, port, data, durable=True)):
            assert await anyio.to_thread.run_sync(take, len(messages())) == messages()
        push.send(b"while it was away")
        async with running(curve(key, port, data, durable=True)):
            assert await anyio.to_thread.run_sync(take, 1) == [[b"while it was away"]]


# --- Who is let in -------------------------------------------------------------------------------


def let_in(options: dict[str, Any], kind: int = zmq.PUSH) -> Callable[[Sockets], bool]:
    return lambda found: shakes_hands(found, kind, **options)


@pytest.mark.parametrize(
    ("changes", "is_let_in"),
    [
        ({}, True),
        ({"CURVE_PUBLICKEY": STRANGER[0], "CURVE_SECRETKEY": STRANGER[1]}, False),
        ({"CURVE_SERVERKEY": STRANGER[0]}, False),
        ({"CURVE_SECRETKEY": STRANGER[1]}, False),
    ],
    ids=["known", "unknown", "another server", "not its own key"],
)
async def test_who_has_a_key_that_is_known(
    key: Path, changes: dict[str, Any], is_let_in: bool
) -> None:
    options = {**CLIENT_OPTIONS, **changes}
    assert await with_sockets(let_in(options), curve(key)) == is_let_in


async def test_a_key_that_is_unknown_is_refused_for_good(
    key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Libzmq is told so, and does not come again."""
    options = {
        **CLIENT_OPTIONS,
        "CURVE_PUBLICKEY": STRANGER[0],
        "CURVE_SECRETKEY": STRANGER[1],
        "RECONNECT_IVL": 20,
    }

    def work(found: Sockets) -> int:
        socket = found.unconnected(zmq.PUSH, **options)
        monitor = socket.get_monitor_socket(zmq.EVENT_ALL)
        monitor.setsockopt(zmq.RCVTIMEO, 1_500)
        socket.connect(found.address)
        connected = 0
        try:
            while True:
                event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
                connected += event == zmq.EVENT_CONNECTED
        except zmq.Again:
            pass
        socket.disable_monitor()
        monitor.close(linger=0)
        return connected

    with caplog.at_level(logging.INFO):
        assert await with_sockets(work, curve(key)) == 1
    secrets = [SERVER[1].decode(), CLIENT[1].decode()]
    assert not any(secret in record.getMessage() for record in caplog.records for secret in secrets)


async def test_sockets_without_curve_get_nowhere(key: Path) -> None:
    assert not await with_sockets(let_in({}), curve(key))
    plain = {"PLAIN_USERNAME": b"a", "PLAIN_PASSWORD": b"b"}
    assert not await with_sockets(let_in(plain), curve(key))


async def test_an_unknown_key_may_count_as_none(key: Path) -> None:
    """It has the rights of who shows nothing, and a known one its own."""
    stranger = {
        **CLIENT_OPTIONS,
        "CURVE_PUBLICKEY": STRANGER[0],
        "CURVE_SECRETKEY": STRANGER[1],
    }

    def work(found: Sockets) -> list[bytes]:
        subscriber = found.make(zmq.SUB, **stranger)
        subscriber.subscribe(b"")
        unheard = found.make(zmq.PUB, **stranger)
        publisher = found.make(zmq.PUB, **CLIENT_OPTIONS)
        time.sleep(0.6)
        unheard.send(b"forged")
        time.sleep(0.3)
        publisher.send(b"true")
        return [subscriber.recv()]

    rules = access(anonymous={"roles": ["news"]})
    settings = curve(key, curve_anonymous=True, access=rules)
    assert await with_sockets(work, settings) == [b"true"]
    assert not await with_sockets(let_in(stranger), curve(key, access=rules))


async def test_without_rules_whoever_knows_the_server_may_be_let_in(key: Path) -> None:
    settings = curve(key, curve_anonymous=True, access=None)
    assert await with_sockets(let_in(CLIENT_OPTIONS), settings)
    with pytest.raises(ConfigError, match=r"curve needs \[access\]"):
        async with running(curve(key, access=None)):
            pass


# --- Keys and files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"curve_secret_key_file": ""}, "needs curve_secret_key_file"),
        ({"curve_secret_key_file": "/no/such"}, "cannot read /no/such: No such file"),
        ({"curve_server_key": "short"}, "curve_server_key needs connect"),
        ({"curve_server_key": "short", "connect": ["a:1"]}, "needs socket_type"),
        (
            {"curve_server_key": "short", "connect": ["a:1"], "socket_type": "PULL"},
            "curve_server_key: a key of CURVE has 40 characters of Z85, not 5",
        ),
        ({"mechanism": "plain"}, "options that begin with curve_ need mechanism = 'curve'"),
    ],
)
async def test_doors_that_cannot_be_opened(key: Path, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        async with running(curve(key, **options)):
            pass


async def test_a_file_without_a_key_is_named_and_not_repeated(tmp_path: Path) -> None:
    path = tmp_path / "wrong"
    path.write_text('secret-key = "hunter2"\n')
    with pytest.raises(ConfigError, match="wrong: a key of CURVE has 40 characters") as caught:
        async with running(curve(path)):
            pass
    assert "hunter2" not in str(caught.value)
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(ConfigError, match="wrong is not text"):
        async with running(curve(path)):
            pass
    path.write_bytes(b"#" * 70_000)
    with pytest.raises(ConfigError, match="more than 65536 bytes"):
        async with running(curve(path)):
            pass


async def test_what_is_encrypted_may_be_reached_from_elsewhere(
    key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"mechanism": "curve", "curve_secret_key_file": str(key)}
    settings = config(access=access(), listen=["0.0.0.0:0"], options=options)
    async with running(settings):
        assert "travel unencrypted" not in caplog.text
    async with running(config(access=access(), listen=["0.0.0.0:0"])):
        assert "travel unencrypted" in caplog.text


async def test_a_file_that_others_can_open_is_said_in_the_log(
    key: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(curve(key)):
        pass
    assert "other users can open" not in caplog.text
    await anyio.Path(key).chmod(0o640)
    async with running(curve(key)):
        pass
    assert f"other users can open {key} (mode 0640), which holds a secret" in caplog.text
    assert f"chmod go-rwx {key}" in caplog.text
    assert SERVER[1].decode() not in caplog.text


def test_the_command_draws_keys_that_nobody_else_can_read(tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    done = CliRunner().invoke(main, ["curve-keys", str(path)])
    assert done.exit_code == 0, done.output
    public = done.output.strip()
    assert path.stat().st_mode & 0o777 == 0o600
    read, secret = zmq.auth.load_certificate(path)
    assert secret is not None
    assert read.decode() == public
    assert zmq.curve_public(secret).decode() == public
    assert secret.decode() not in done.output
    again = CliRunner().invoke(main, ["curve-keys", str(path)])
    assert again.exit_code == 2
    assert "already exists" in again.output
    assert zmq.auth.load_certificate(path) == (read, secret)
    shown = CliRunner().invoke(main, ["curve-keys", "--public", str(path)])
    assert shown.output.strip() == public
    path.write_text(key_text(bytes(32))[:-1])
    wrong = CliRunner().invoke(main, ["curve-keys", "--public", str(path)])
    assert wrong.exit_code == 2
    assert "has no line secret-key" in wrong.output
    nowhere = CliRunner().invoke(main, ["curve-keys", str(tmp_path / "no" / "folder")])
    assert nowhere.exit_code == 2
    assert "cannot write" in nowhere.output
