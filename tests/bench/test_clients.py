"""The comparison of client libraries: its load, its judgement, and a real run of our own client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.tmqp_client.server import running_server
from tmqp_bench.__main__ import main
from tmqp_bench.clients import command, suite
from tmqp_bench.clients.load import Figures, Shape, measure
from tmqp_bench.clients.suite import ClientPlan, ClientResults, Results


class Echo:
    """In place of a library: what is sent comes out a moment later."""

    def __init__(self, taken: Callable[[bytes], None], *, answer: bytes | None = None) -> None:
        self._taken = taken
        self._answer = answer
        self.under_way = 0
        self.most = 0

    async def send(self, payload: bytes) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        asyncio.get_running_loop().call_later(0.001, self._arrive, payload)

    def _arrive(self, payload: bytes) -> None:
        self.under_way -= 1
        self._taken(payload)

    async def confirm(self, payload: bytes) -> None:
        await self.send(payload)
        await asyncio.sleep(0.001)

    async def confirm_many(self, payloads: list[bytes]) -> None:
        await asyncio.gather(*[self.confirm(payload) for payload in payloads])

    async def ask(self, payload: bytes) -> bytes:
        await asyncio.sleep(0.001)
        return payload if self._answer is None else self._answer


@pytest.mark.parametrize("kind", ["stream", "confirmed", "batch", "request"])
def test_every_load_counts_and_keeps_to_its_window(kind: str) -> None:
    made: list[Echo] = []

    @asynccontextmanager
    async def connect(
        port: int, kind: str, window: int, taken: Callable[[bytes], None]
    ) -> AsyncIterator[Echo]:
        made.append(Echo(taken))
        yield made[0]

    figures = asyncio.run(measure(connect, 0, Shape(kind, 10, 20, 0.05, 0.2)))
    assert figures.messages > 10
    low, middle, high = figures.latencies_us
    assert 900 < low <= middle <= high
    assert made[0].most <= (20 if kind in ("confirmed", "batch") else 10)


def test_an_answer_to_another_question_is_no_figure() -> None:
    @asynccontextmanager
    async def connect(
        port: int, kind: str, window: int, taken: Callable[[bytes], None]
    ) -> AsyncIterator[Echo]:
        yield Echo(taken, answer=b"something else")

    with pytest.raises(ExceptionGroup) as found:
        asyncio.run(measure(connect, 0, Shape("request", 2, 20, 0.05, 0.2)))
    assert "another question" in str(found.value.exceptions[0])


def test_a_lost_message_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def connect(
        port: int, kind: str, window: int, taken: Callable[[bytes], None]
    ) -> AsyncIterator[Echo]:
        yield Echo(lambda _: None)

    monkeypatch.setattr("tmqp_bench.clients.load._STALL_S", 0.3)
    with pytest.raises(TimeoutError, match="nothing has moved"):
        asyncio.run(measure(connect, 0, Shape("stream", 2, 20, 0.5, 5)))


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["stream", "confirmed", "batch", "request"])
def test_our_client_with_a_real_server(kind: str) -> None:
    with running_server() as (address, _):
        port = address.rpartition(":")[2]
        words = [kind, port, "10", "100", "0.1", "0.3"]
        done = subprocess.run(
            [sys.executable, "-m", "tmqp_bench.clients.worker", "tmqp", *words],
            env={"PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["messages"] > 0
    assert found["client_cpu_s"] > 0


def results(ours: int, peer: int) -> ClientResults:
    made = ClientResults(ClientPlan(("request-1",), 1, 1, 100, True))
    for title, rate in (("tmqp", ours), ("nats-py", peer)):
        figures = Figures(rate, 1.0, 0.5, [1.0, 2.0, 3.0])
        made.figures["request-1", title] = Results([figures])
    return made


@pytest.mark.parametrize(("ours", "reached"), [(200, True), (199, False)])
def test_the_aim_is_twice_as_many(ours: int, reached: bool) -> None:
    (verdict,) = command.verdicts(results(ours, 100))
    assert verdict.passed is reached
    text = command.as_text(results(ours, 100))
    assert ("reached" in text) is reached
    assert ("MISSED" in text) is not reached
    json.dumps(command.as_json(results(ours, 100)))


def test_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    monkeypatch.setattr(suite, "pin_load", lambda: False)
    assert main(["clients", "--load", "request-1"]) == 1
    said = capsys.readouterr()
    assert "tmqp: make compiled" in said.out
    assert "nothing could be measured" in said.err


@pytest.mark.parametrize("words", [["--payload", "7"], ["--rounds", "0"], ["--load", "x"]])
def test_what_was_typed_wrongly(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["clients", *words])
    assert ended.value.code == 2
