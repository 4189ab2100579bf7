"""The blocking face: it has everything the async one has, and works from threads."""

from __future__ import annotations

import inspect
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tools import make_sync

import tmqp_client
from tests.tmqp_client.server import running_server
from tmqp_client import (
    ClientClosed,
    ConnectFailed,
    Multipart,
    NegativeAcknowledge,
    OperationTimeout,
    Refuse,
    sync,
)
from tmqp_client.sync._blocking import Loop

COUNT = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with running_server() as addresses:
        yield addresses[0]


@pytest.fixture
def channel() -> str:
    return f"channel-{next(COUNT)}"


@pytest.fixture(params=["asyncio", "trio"])
def client(request: pytest.FixtureRequest, server: str) -> Iterator[sync.Client]:
    with sync.connect(server, backend=request.param) as client:
        yield client


def test_the_modules_are_up_to_date() -> None:
    for name, text in make_sync.render().items():
        path = make_sync.FOLDER / name
        assert path.read_text(encoding="utf-8") == text, "run python -m tools.make_sync"


def parameters(function: object) -> list[tuple[str, object, object]]:
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    return [
        (each.name, each.kind, each.default)
        for each in found
        if each.name not in {"task_status", "backend"}
    ]


@pytest.mark.parametrize("kind", [tmqp_client.Client, *make_sync.CLASSES], ids=lambda k: k.__name__)
def test_same_names_and_same_parameters(kind: type) -> None:
    wrapped = getattr(sync, kind.__name__)
    names = {"__aenter__": "__enter__", "__aexit__": "__exit__"}
    names |= {"__aiter__": "__iter__", "__anext__": "__next__"}
    for name, member in make_sync.members(kind).items():
        other = inspect.getattr_static(wrapped, names.get(name, name))
        if isinstance(member, property):
            assert isinstance(other, property), name
        else:
            assert not inspect.iscoroutinefunction(other), name
            assert parameters(other) == parameters(member), name


def test_connect_has_the_same_parameters() -> None:
    assert parameters(sync.connect) == parameters(tmqp_client.connect)


@pytest.fixture
def crossings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that were called in the event loop's thread."""
    names: list[str] = []
    call = Loop.call

    def counted(self: Loop, function: Any, *arguments: Any, **named: Any) -> Any:
        names.append(function.__name__)
        return call(self, function, *arguments, **named)

    monkeypatch.setattr(Loop, "call", counted)
    return names


def test_only_what_needs_the_loop_crosses_a_thread(
    client: sync.Client, channel: str, crossings: list[str]
) -> None:
    client.create_queue(channel, 1, status="push")
    with client.consume(channel, 1) as messages:
        client.push(channel, 1, b'"payload"', headers=[("Key", "value")])
        message = messages.get(timeout_s=5)
        del crossings[:]
        assert message.header("key") == "value"
        assert ("Key", "value") in message.headers
        assert (message.channel, message.queue_id, message.text) == (channel, 1, '"payload"')
        assert (message.payload, message.parts) == (b'"payload"', [b'"payload"'])
        assert not message.answered
        assert (message.stale, message.lapsed) == (False, "")
        assert client.statistics().delivered >= 1
        assert client.decode(message, str) == "payload"
        assert client.encode("payload") == b'"payload"'
        assert client.connected
        assert crossings == []
        message.ack()
        assert crossings == ["ack"]
        client.push(channel, 1, b"second")
        loop = iter(messages)
        assert crossings == ["ack", "push"]
        assert next(loop).payload == b"second"
        assert crossings == ["ack", "push", "__anext__"]
    with client.connection_events() as changes:
        changes.close()
    assert crossings[-4:] == ["connection_events", "__aenter__", "close", "__aexit__"]


@pytest.mark.parametrize("kind", [tmqp_client.Client, *make_sync.CLASSES], ids=lambda k: k.__name__)
def test_what_is_async_or_changes_something_crosses_a_thread(kind: type) -> None:
    wrapped = getattr(sync, kind.__name__)
    for name, member in make_sync.members(kind).items():
        if isinstance(member, property) or name.startswith("__") or name in make_sync.BY_HAND:
            continue
        crosses = "_call" in vars(wrapped).get(name, getattr(wrapped, name)).__code__.co_names
        assert crosses == (not make_sync.is_plain(member)), name


def test_push_and_consume(client: sync.Client, channel: str) -> None:
    client.create_queue(channel, 1, status="push")
    assert client.connected
    assert client.push_many(channel, 1, (str(number) for number in range(200))).confirmed == 200
    client.push(channel, 1, Multipart("a", "b"))
    seen = []
    with client.consume(channel, 1) as messages:
        for message in messages:
            assert isinstance(message, sync.Message)
            seen.append(message.text)
            if message.parts == [b"a", b"b"]:
                break
        with pytest.raises(OperationTimeout):
            messages.get(timeout_s=0.05)
    assert seen == [*[str(number) for number in range(200)], "ab"]
    assert client.queue_information(channel, 1).received_messages == 201


def test_pull_and_cache(client: sync.Client, channel: str) -> None:
    client.create_queue(channel, 1, status="pull")
    client.join(channel)
    client.push_many(channel, 1, ["1", "2", "3"], wait=False)
    pull = client.pull(channel, 1, 2)
    taken = []
    for message in pull:
        with message:
            taken.append(message.text)
    assert taken == ["1", "2"]
    assert pull.reason == "End"


def test_a_request_between_threads(server: str) -> None:
    with sync.connect(server) as one, sync.connect(server) as two:

        @one.responder(1)
        def double(number: int, message: sync.DirectMessage) -> int:
            assert isinstance(message, sync.DirectMessage)
            return number * 2

        worker = threading.Thread(target=one.run)
        worker.start()
        time.sleep(0.1)
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(
                lambda number: two.request(one.client_id, str(number), content_type=1).text,
                range(50),
            )
            assert list(answers) == [str(number * 2) for number in range(50)]
        one.aclose()
        worker.join(5)
        assert not worker.is_alive()


def test_handlers_see_the_blocking_face(server: str, channel: str) -> None:
    with sync.connect(server) as one, sync.connect(server) as two:
        two.create_queue(channel, 1, status="push", delivery_handler="ack-consumer")

        @one.handler(channel, 1, acknowledge="none")
        def handle(message: sync.Message) -> None:
            if message.text == "no":
                raise Refuse("never")
            message.nack("by hand")

        worker = threading.Thread(target=one.run)
        worker.start()
        with pytest.raises(NegativeAcknowledge, match="by hand"):
            two.push(channel, 1, "x", timeout_s=5)
        one.aclose()
        worker.join(5)


def test_a_message_can_be_given_back(client: sync.Client, channel: str) -> None:
    client.create_queue(channel, 1, status="push")
    client.push(channel, 1, "x")
    with client.consume(channel, 1, acknowledge="manual") as consumer:
        assert consumer.get().release(delay_s=0.01, to="front", counted=False)
        again = consumer.get(timeout_s=5)
        assert again.redelivered
        again.ack()


def test_events_and_connection_events(client: sync.Client, channel: str) -> None:
    with client.events("ChannelCreated") as events:
        client.create_channel(channel)
        assert channel in repr(next(events))
    changes = client.connection_events()
    changes.close()
    assert list(changes) == []


def test_closing(server: str) -> None:
    client = sync.connect(server)
    with pytest.raises(ClientClosed):
        client.ping()
    client.open()
    assert client.ping() > 0
    client.close()
    client.close()
    with pytest.raises(ClientClosed):
        client.ping()
    with pytest.raises(ConnectFailed):
        sync.connect("unix:/nowhere").open()
    with pytest.raises(KeyboardInterrupt), sync.connect(server):
        raise KeyboardInterrupt
