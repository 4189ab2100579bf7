"""Java programs from the check-list of a team that tried NSQ, with nsq-client and Jackson."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import pytest

from tests.interop.building import EXPECTED
from tests.interop.nsq.clients import java
from tests.tmqp_nsq.running import Shell, shell
from tests.tmqp_server.test_doors import serving
from tmqp_client import connect

pytestmark = [
    pytest.mark.interop,
    pytest.mark.cold,
    pytest.mark.timeout(400),
    pytest.mark.xdist_group("Java"),
    pytest.mark.skipif(
        bool(EXPECTED) and "nsq-client" not in EXPECTED, reason="only other clients are asked for"
    ),
]

TOPIC: Final = "OneToOne"
_MOST_S: Final = 60


class Team:
    """nsqlookupd and nsqd, and the team's programs."""

    def __init__(self, run: Shell) -> None:
        self.run = run
        ports = run.ports
        run.start(
            "nsqlookupd --log-level=warn",
            f"--tcp-address=127.0.0.1:{ports[4160]}",
            f"--http-address=127.0.0.1:{ports[4161]}",
        )
        run.start(
            "nsqd --log-level=warn --broadcast-address=127.0.0.1",
            f"--lookupd-tcp-address=127.0.0.1:{ports[4160]}",
            f"--tcp-address=127.0.0.1:{ports[4150]}",
            f"--http-address=127.0.0.1:{ports[4151]}",
        )
        run.answers(4151)
        run.answers(4161)

    def send(self, first: int, count: int, topic: str = TOPIC) -> list[str]:
        """Run the producer; gives what it has sent."""
        words, folder = java("Producer")
        port = self.run.ports[4150]
        said = subprocess.run(
            [*words, "127.0.0.1", str(port), topic, str(first), str(count)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_MOST_S,
            check=False,
        )
        assert said.stdout == f"sent {count}\n", said.stderr
        return [f"message {number}" for number in range(first, first + count)]

    @contextmanager
    def consumer(self, channel: str, topic: str = TOPIC) -> Iterator[list[str]]:
        """A consumer, which is subscribed; the list has what it has printed."""
        words, folder = java("Consumer")
        port = self.run.ports[4161]
        before = self.subscribers(topic, channel)
        with (self.run.folder / "consumers.log").open("ab") as log:
            process = subprocess.Popen(
                [*words, "127.0.0.1", str(port), topic, channel],
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        lines: list[str] = []

        thread = threading.Thread(target=_listen, args=(process, lines))
        thread.start()
        try:
            self.run.until(
                "the consumer is there", lambda: self.subscribers(topic, channel) > before
            )
            yield lines
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(_MOST_S)
            thread.join()
            assert process.stdout is not None
            process.stdout.close()

    def subscribers(self, topic: str, channel: str) -> int:
        """How many consumers a channel has."""
        url = f"http://127.0.0.1:4151/stats?format=json&topic={topic}&channel={channel}"
        return self.run.run(f"curl -s '{url}'").count('"client_id"')

    def create(self, topic: str = TOPIC) -> None:
        """Make the topic, so that consumers find its nsqd."""
        self.run.run(f"curl -s -X POST http://127.0.0.1:4151/topic/create?topic={topic}")


def _listen(process: subprocess.Popen[str], lines: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    java("Consumer")  # skips here where there is no Java
    with shell(tmp_path) as run:
        yield Team(run)


def test_one_to_one_in_three_topics_that_differ_in_capitals(team: Team) -> None:
    """In sequence, and no message of one topic reaches the consumer of another."""
    topics = ("OneToOne", "oneToOne", "OnetoOne")
    for topic in topics:
        team.create(topic)
    with (
        team.consumer("dustin", topics[0]) as first,
        team.consumer("dustin", topics[1]) as second,
        team.consumer("dustin", topics[2]) as third,
    ):
        sent = [team.send(100 * place, 20, topic) for place, topic in enumerate(topics)]
        team.run.until("all have come", lambda: len(first) + len(second) + len(third) >= 60)
    assert [first, second, third] == sent


def test_a_late_consumer_gets_everything_in_sequence(team: Team) -> None:
    """NSQ's order is another one then, which the team asked about."""
    sent = team.send(0, 50)
    with team.consumer("late") as lines:
        team.run.until("all have come", lambda: len(lines) >= 50)
        sent += team.send(50, 10)
        team.run.until("the others have come", lambda: len(lines) >= 60)
    assert lines == sent
    with team.consumer("late") as lines:  # it starts again: what it has finished stays away
        team.send(60, 1)
        team.run.until("the last has come", lambda: bool(lines))
    assert lines == ["message 60"]


def test_one_to_many_and_a_channel_that_joins_late(team: Team) -> None:
    """Every channel gets every message, from the time on when it is there."""
    team.create()
    with team.consumer("first") as first, team.consumer("second") as second:
        early = team.send(0, 20)
        team.run.until("both have all", lambda: len(first) == len(second) == 20)
        with team.consumer("third") as third:
            late = team.send(20, 20)
            team.run.until("all have all", lambda: len(first) + len(second) + len(third) == 100)
    assert (first, second, third) == (early + late, early + late, late)


def test_one_to_many_but_one_of_them_gets_the_message(team: Team) -> None:
    """The consumers of one channel share its messages."""
    team.create()
    with team.consumer("shared") as first, team.consumer("shared") as second:
        sent = team.send(0, 100)
        team.run.until("all have come", lambda: len(first) + len(second) >= 100)
    assert sorted(first + second) == sorted(sent)
    assert first
    assert second


@dataclass(frozen=True)
class Line:
    article: str
    count: int


@dataclass(frozen=True)
class Order:
    id: int
    customer: str
    total: float
    paid: bool
    note: str | None
    lines: list[Line]


async def test_objects_from_jacksons_mapper_reach_a_typed_consumer_of_tmqp() -> None:
    words, folder = java("Orders")
    orders: list[Order] = []
    done = anyio.Event()
    async with (
        serving({"protocol": "nsq", "listen": ["127.0.0.1:0"]}) as server,
        connect(str(server.addresses[0])) as client,
        anyio.create_task_group() as tasks,
    ):
        host, _, port = server.door_addresses("nsq")[0].removeprefix("nsq://").partition(":")
        await client.create_queue("orders", 0, status="push")

        @client.handler("orders", 0)
        async def take(order: Order) -> None:
            orders.append(order)
            if len(orders) == 2:
                done.set()

        await tasks.start(client.run)
        sent = await anyio.run_process([*words, host, port, "orders"], cwd=folder, check=False)
        assert sent.returncode == 0, sent.stderr.decode()
        with anyio.fail_after(_MOST_S):
            await done.wait()
        tasks.cancel_scope.cancel()
    assert orders == [
        Order(1 << 40, "Zoë", 12.5, True, None, [Line("tea", 2), Line("cup", 1)]),
        Order(2, "Jürgen", 0.1, False, "leave at the door", []),
    ]
