"""nsq_to_file and nsq_to_http over real sockets, against an nsqd made of the codec."""

from __future__ import annotations

import gzip
import logging
import os
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.ports import free_port
from tests.tmqp_nsq.broker import FakeBroker, broker
from tests.tmqp_nsq.nodes import FakeLookupd, FakeNode, FakeNsqd, serving
from tests.waiting import until
from tmqp.backoff import Backoff
from tmqp_nsq import nsq_to_file, nsq_to_http
from tmqp_nsq.flags import FlagError, FlagTable, FlagValues, parse
from tmqp_nsq.starting import ProgramError, guarded
from tmqp_nsq.tool_flags import NSQ_TO_FILE, NSQ_TO_HTTP

pytestmark = pytest.mark.cold


@asynccontextmanager
async def running(table: FlagTable, *words: str) -> AsyncIterator[Callable[[], None]]:
    """A program with these flags, in a task; what it gives stops it as SIGTERM does."""
    run = {NSQ_TO_FILE: nsq_to_file.run, NSQ_TO_HTTP: nsq_to_http.run}[table]
    values = parse(table, words)
    ended = anyio.Event()

    async def program(values: FlagValues) -> None:
        await guarded(run, values)
        ended.set()

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    async with anyio.create_task_group() as group:
        group.start_soon(program, values)
        yield stop
        with anyio.fail_after(20):
            await ended.wait()


def lines(*paths: Path) -> list[bytes]:
    """The lines of files, in order of their names."""
    found = []
    for path in sorted(paths):
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        found += text.splitlines()
    return found


async def test_a_topic_is_archived(tmp_path: Path) -> None:
    bodies = [b"line %d" % number for number in range(500)]
    async with broker(*bodies) as server:
        words = [f"--nsqd-tcp-address={server.address}", "--topic=api_requests"]
        words += ["--channel=archive", f"--output-dir={tmp_path}", "--sync-interval=100ms"]
        words += ["--filename-format=<TOPIC>.log", "--max-in-flight=50"]
        async with running(NSQ_TO_FILE, *words) as stop:
            await until(lambda: len(server.finished) == 500)
            stop()
    assert lines(tmp_path / "api_requests.log") == bodies
    assert server.subscribed == [(b"api_requests", b"archive")]
    assert server.most_in_flight == 50
    assert server.requeued == []
    assert server.closing == 1
    assert server.user_agents[0].startswith("nsq_to_file/1.3.0")


async def test_a_message_is_finished_when_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with broker(b"one") as server:
        finished_before_sync: list[list[int]] = []
        sync = os.fsync

        def watched_sync(descriptor: int) -> None:
            finished_before_sync.append(list(server.finished))
            sync(descriptor)

        monkeypatch.setattr(os, "fsync", watched_sync)
        words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--sync-interval=1h"]
        words += [f"--output-dir={tmp_path}", "--filename-format=<TOPIC>.log"]
        path = tmp_path / "t.log"
        async with running(NSQ_TO_FILE, *words) as stop:
            await until(lambda: path.exists() and path.read_bytes() == b"one\n")
            stop()
        await until(lambda: server.finished == [0])
    assert finished_before_sync[0] == []


async def test_gzip_rotation_and_a_work_directory(tmp_path: Path) -> None:
    random.seed(1)
    bodies = [random.randbytes(400).hex().encode() for _ in range(60)]
    work, output = tmp_path / "work", tmp_path / "output"
    output.mkdir()
    taken = output / "t.h-000000.x.log.gz"
    taken.write_bytes(b"taken")
    async with broker(*bodies) as server:
        words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--host-identifier=h"]
        words += ["--gzip", "--rotate-size=5000", "--datetime-format=x", "--max-in-flight=10"]
        words += ["--sync-interval=100ms"]
        words += [f"--work-dir={work}", f"--output-dir={output}", "--consumer-opt=deflate"]
        async with running(NSQ_TO_FILE, *words) as stop:
            await until(lambda: len(server.finished) == 60)
            stop()
    assert taken.read_bytes() == b"taken"
    taken.unlink()
    files = sorted(output.iterdir())
    assert len(files) >= 3
    assert [each.name for each in files[:2]] == ["t.h-000001.x.log.gz", "t.h-000002.x.log.gz"]
    assert lines(*files) == bodies
    assert list(work.iterdir()) == []


async def test_a_file_that_cannot_be_written_ends_the_program(tmp_path: Path) -> None:
    async with broker(b"x") as server:
        words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--max-in-flight=1"]
        (tmp_path / "file").touch()
        values = parse(NSQ_TO_FILE, [*words, f"--output-dir={tmp_path / 'file' / 'x'}"])
        with pytest.raises(ProgramError, match=r"\[t\] writing .*file/x failed"):
            await guarded(nsq_to_file.run, values)
    assert server.finished == []


async def test_sighup_lets_another_program_move_the_file(tmp_path: Path) -> None:
    async with broker(b"one") as server:
        words = [f"--nsqd-tcp-address={server.address}", "--topic=t", f"--output-dir={tmp_path}"]
        words += ["--filename-format=<TOPIC>.log", "--max-in-flight=1"]
        path = tmp_path / "t.log"
        async with running(NSQ_TO_FILE, *words) as stop:
            await until(lambda: len(server.finished) == 1)
            path.rename(tmp_path / "moved")
            os.kill(os.getpid(), signal.SIGHUP)
            await anyio.sleep(0.2)
            server.push(b"two")
            await until(lambda: len(server.finished) == 2)
            stop()
    assert lines(tmp_path / "moved", path) == [b"one", b"two"]


async def test_topics_of_a_pattern_are_found(tmp_path: Path) -> None:
    folder = tmp_path

    class Nsqd(FakeNsqd):
        tcp = 0

        @property
        def info(self) -> dict[str, object]:
            return {**super().info, "tcp_port": self.tcp}

    async with broker(b"x") as server:
        nsqd = Nsqd()
        nsqd.tcp = server.address.port
        nsqd.stats["topics"] = [
            {"topic_name": name, "channels": []} for name in ("log.a", "log.b", "other")
        ]
        lookupd, ignorant = FakeLookupd(nsqd), FakeLookupd()
        with serving(nsqd, lookupd, ignorant):
            words = [f"--lookupd-http-address={each.address}" for each in (lookupd, ignorant)]
            words += ["--topic-pattern=^log", f"--output-dir={tmp_path}", "--max-in-flight=1"]
            async with running(NSQ_TO_FILE, *words) as stop:
                await until(lambda: len(server.finished) == 1)
                await until(lambda: len(server.subscribed) == 2)
                stop()
    assert sorted(server.subscribed) == [(b"log.a", b"nsq_to_file"), (b"log.b", b"nsq_to_file")]
    assert lines(*folder.glob("*")) == [b"x"]


async def test_a_broker_that_goes_is_connected_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tmqp_nsq.consumer.consumer._PAUSES", Backoff(0.05, 15.0, 0.0))
    server = FakeBroker([b"one"])
    port = free_port()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    words = [f"--nsqd-tcp-address=127.0.0.1:{port}", "--topic=t", f"--output-dir={tmp_path}"]
    async with running(NSQ_TO_FILE, *words, "--max-in-flight=1") as stop:
        async with anyio.create_task_group() as first:
            first.start_soon(listener.serve, server.serve)
            await until(lambda: len(server.finished) == 1)
            first.cancel_scope.cancel()
        await listener.aclose()
        server.push(b"two")
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
        async with listener, anyio.create_task_group() as second:
            second.start_soon(listener.serve, server.serve)
            await until(lambda: len(server.finished) == 2)
            stop()
            await anyio.sleep(0.1)
            second.cancel_scope.cancel()


class Endpoint(FakeNode):
    """Answers with a status that the body or the query chooses."""

    def answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, object]:
        word = query.get("m", "") or self.bodies[-1][1].decode()
        return (int(word) if word.isdigit() else 200), {"got": word}


async def test_each_message_is_posted() -> None:
    endpoint = Endpoint()
    bodies = [b"m%d" % number for number in range(40)]
    with serving(endpoint):
        async with broker(*bodies) as server:
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--n=4"]
            words += [f"--post=http://{endpoint.address}/in", "--header=X-Token: a: b"]
            async with running(NSQ_TO_HTTP, *words, "--content-type=text/plain") as stop:
                await until(lambda: len(server.finished) == 40)
                stop()
    assert sorted(body for _, body, _ in endpoint.bodies) == sorted(bodies)
    headers = endpoint.bodies[0][2]
    assert headers["X-Token"] == "a: b"
    assert headers["Content-Type"] == "text/plain"
    assert headers["User-Agent"] == "nsq_to_http v1.3.0"
    assert server.subscribed == [(b"t", b"nsq_to_http")]


async def test_a_message_is_put_into_the_url_and_only_200_is_good() -> None:
    endpoint = Endpoint()
    with serving(endpoint):
        async with broker(b"a b&c=\xc3\xa9", b"201") as server:
            server.returns = False
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t"]
            words += [f"--get=http://{endpoint.address}/?m=%s", "--n=1", "--max-in-flight=1"]
            async with running(NSQ_TO_HTTP, *words) as stop:
                await until(lambda: len(server.requeued) == 1)
                stop()
    assert endpoint.asked[0] == ("GET", "/?m=a+b%26c%3D%C3%A9")
    assert server.finished == [0]
    assert server.requeued == [(1, 90_000)]
    assert server.ready[-1] == 0  # backing off


async def test_a_message_that_fails_too_often_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = Endpoint()
    with serving(endpoint):
        async with broker(b"500") as server:
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t"]
            words += [f"--post=http://{endpoint.address}/", "--consumer-opt=backoff_multiplier,0s"]
            words += ["--consumer-opt=default_requeue_delay,10ms", "--consumer-opt=max_attempts,3"]
            async with running(NSQ_TO_HTTP, *words) as stop:
                await until(lambda: len(server.finished) == 1)
                stop()
    assert server.requeued == [(0, 10), (0, 20), (0, 30)]
    assert len(endpoint.asked) == 3
    assert "giving up on message" in caplog.text
    assert "got status code 500" in caplog.text


@pytest.mark.parametrize(("mode", "each"), [("round-robin", 5), ("all", 10), ("hostpool", 5)])
async def test_modes(mode: str, each: int, caplog: pytest.LogCaptureFixture) -> None:
    one, two = Endpoint(), Endpoint()
    caplog.set_level(logging.INFO)
    with serving(one, two):
        async with broker(*[b"x"] * 10) as server:
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t", f"--mode={mode}"]
            words += [f"--post=http://{node.address}/" for node in (one, two)]
            async with running(NSQ_TO_HTTP, *words, "--status-every=10") as stop:
                await until(lambda: len(server.finished) == 10)
                stop()
    assert [len(one.asked), len(two.asked)] == [each, each]
    assert "finished 10 - 99th: " in caplog.text


async def test_an_address_that_is_down_fails_over() -> None:
    endpoint = Endpoint()
    with serving(endpoint):
        async with broker(*[b"x"] * 6) as server:
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--n=1"]
            words += ["--post=http://127.0.0.1:1/", f"--post=http://{endpoint.address}/"]
            words += ["--max-in-flight=1", "--consumer-opt=backoff_multiplier,10ms"]
            async with running(NSQ_TO_HTTP, *words) as stop:
                await until(lambda: len(server.finished) == 6)
                stop()
    assert len(server.requeued) == 1


async def test_sampling_finishes_without_a_request() -> None:
    endpoint = Endpoint()
    with serving(endpoint):
        async with broker(*[b"x"] * 20) as server:
            words = [f"--nsqd-tcp-address={server.address}", "--topic=t", "--sample=0"]
            async with running(NSQ_TO_HTTP, *words, f"--post=http://{endpoint.address}/") as stop:
                await until(lambda: len(server.finished) == 20)
                stop()
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("table", "words", "text"),
    [
        (NSQ_TO_FILE, [], "--topic or --topic-pattern required"),
        (NSQ_TO_FILE, ["--topic=t"], "--nsqd-tcp-address or --lookupd-http-address required"),
        (NSQ_TO_FILE, ["--topic-pattern=x", "--nsqd-tcp-address=a:1"], "must be specified with"),
        (NSQ_TO_FILE, ["--topic-pattern=(", "--lookupd-http-address=a:1"], "is not a regular"),
        (NSQ_TO_FILE, ["--topic=t", "--sync-interval=0s"], "must be positive"),
        (NSQ_TO_FILE, ["--topic=a b", "--nsqd-tcp-address=a:1"], "--topic: 'a b' is not a name"),
        (NSQ_TO_HTTP, [], "--topic is required"),
        (NSQ_TO_HTTP, ["--topic=t", "--channel="], "--get or --post required"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=x"], "not an http URL: 'x'"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=http://a", "--get=http://a/%s"], "not both"),
        (NSQ_TO_HTTP, ["--topic=t", "--get=http://a/"], "must have one %s"),
        (NSQ_TO_HTTP, ["--topic=t", "--get=http://a/%s", "--content-type=x"], "only used with"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=http://a", "--sample=2"], "between 0.0 and 1.0"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=http://a", "--header=x"], "must be 'NAME: VALUE'"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=http://a", "--n=0"], "--n must be from 1 to 10000"),
        (NSQ_TO_HTTP, ["--topic=t", "--post=http://a", "--max-in-flight=0"], "--max-in-flight"),
    ],
)
async def test_flags_that_cannot_be(table: FlagTable, words: list[str], text: str) -> None:
    run = {NSQ_TO_FILE: nsq_to_file.run, NSQ_TO_HTTP: nsq_to_http.run}[table]
    if "--max-in-flight=0" in words:
        words = [*words, "--nsqd-tcp-address=a:1"]
    with pytest.raises(FlagError, match=text):
        await guarded(run, parse(table, words))
