"""The comparison of brokers: its counting, its load, and a real run of our own server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tmqp_bench import idle
from tmqp_bench.__main__ import main
from tmqp_bench.broker.counting import FixedSize, Lines, Pattern
from tmqp_bench.broker.loop import LoadError, Sample, Shape, run
from tmqp_bench.broker.nats_wire import StreamSubscriber
from tmqp_bench.broker.processes import Spent, StartError, free_port, server_core
from tmqp_bench.broker.report import verdicts
from tmqp_bench.broker.servers import start, version_of
from tmqp_bench.broker.suite import BrokerPlan, BrokerResults, Figures, compare_brokers
from tmqp_bench.broker.tmqp_wire import greet
from tmqp_bench.broker.watching import begin
from tmqp_bench.broker.workloads import WORKLOADS
from tmqp_bench.codec import PLACES
from tmqp_bench.depth import measure as measure_depth


def cut(data: bytes, sizes: range) -> list[list[bytes]]:
    return [[data[at : at + size] for at in range(0, len(data), size)] for size in sizes]


@pytest.mark.parametrize("counter", [FixedSize, Pattern, Lines])
def test_counting_does_not_depend_on_how_the_bytes_are_cut(counter: type) -> None:
    message = b"+begin 12\r\nend\r\n"
    argument = {FixedSize: len(message), Pattern: b"+begin", Lines: 2}[counter]
    for pieces in cut(message * 7, range(1, 40)):
        counting = counter(argument)
        assert sum(counting.count(piece) for piece in pieces) == 7


@contextmanager
def a_pipe(*, loses: bool = False) -> Iterator[tuple[socket.socket, socket.socket]]:
    """In place of a server: what is written to the first comes out of the second."""
    given, inside = socket.socketpair()
    taken, out = socket.socketpair()

    def move() -> None:
        with inside, out:
            while data := inside.recv(4_096):
                out.sendall(data[:-1] if loses else data)

    thread = threading.Thread(target=move)
    thread.start()
    with given, taken:
        yield given, taken
    thread.join(10)


class _Bytes:
    """Each byte is a message."""

    confirms = False

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.most_at_once = 0

    def messages(self, count: int) -> bytes:
        self.most_at_once = max(self.most_at_once, count)
        return b"m" * count

    def confirmed(self, data: bytes) -> int:
        return 0

    def received(self, data: bytes) -> tuple[int, bytes]:
        return len(data), b""


def _spent_nothing() -> Spent:
    return Spent(0.0, 0.0)


class _Silent(_Bytes):
    """Sends nothing, whatever it is asked for."""

    def messages(self, count: int) -> bytes:
        return b""


def test_the_load_never_has_more_under_way_than_its_window() -> None:
    shape = Shape(copies=1, window=10, warm_up_s=0.05, seconds=0.2)
    with a_pipe() as (given, taken):
        producer = _Bytes(given)
        sample = run([producer], [_Bytes(taken)], shape, _spent_nothing)
    assert producer.most_at_once <= 10
    assert sample.deliveries == sample.messages > 10
    assert sample.latencies_s


def test_a_server_that_lets_nobody_in_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            near, _ = listener.accept()
            with near:
                near.recv(1_000)

        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(ConnectionError, match="the server closed the connection"):
            greet(listener.getsockname()[1], "somebody")
        thread.join(10)


def test_a_lost_message_is_no_figure_but_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmqp_bench.broker.loop._STALL_S", 0.3)
    shape = Shape(copies=1, window=4, warm_up_s=0.05, seconds=5)
    with a_pipe(loses=True) as (given, taken), pytest.raises(LoadError, match="nothing moves"):
        run([_Bytes(given)], [_Bytes(taken)], shape, _spent_nothing)


def test_a_load_that_stood_still_was_divided_by() -> None:
    """A broker that waits for a consumer that never reads delivers nothing: no figure either."""
    shape = Shape(copies=1, window=4, warm_up_s=0.05, seconds=0.2)
    with a_pipe() as (given, taken), pytest.raises(LoadError, match=r"nothing moved for 0\.2 s"):
        run([_Silent(given)], [_Bytes(taken)], shape, _spent_nothing)


def test_a_broker_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PLACES, "compiled", "build/nowhere")
    with pytest.raises(StartError, match="make compiled"):
        start("tmqp", "compiled", tmp_path)


def test_a_port_is_free_and_the_core_is_one_of_ours() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", free_port()))
    assert server_core() >= 0


def test_acknowledges_of_jetstream_survive_any_cut() -> None:
    text = b"".join(
        [b"MSG deliver 1 $JS.ACK.S.C.1.%d.%d.99.0 5\r\nhello\r\n" % (n, n) for n in range(1, 9)]
    )
    for pieces in cut(text, range(1, 90)):
        taker = StreamSubscriber.__new__(StreamSubscriber)
        taker._rest = b""
        found = [taker.received(piece) for piece in pieces]
        assert sum(count for count, _ in found) == 8
        acks = b"".join([answer for _, answer in found])
        assert acks.count(b"PUB $JS.ACK.S.C.1.") == 8
        assert b"PUB $JS.ACK.S.C.1.8.8.99.0 0\r\n\r\n" in acks


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "broadcast",
        "push-acks",
        "push-acks-4",
        "round-robin",
        "round-robin-window",
        "round-robin-credit",
        "round-robin-1",
        "fed",
        "request-16",
        "pull-100",
        "push-4194304",
    ],
)
def test_our_server_under_load(name: str) -> None:
    plan = BrokerPlan((name,), 1, 0.2, False, ("interpreted",))
    results = compare_brokers(plan, lambda _: None)
    assert not results.missing
    ((key, figures),) = results.figures.items()
    assert key == (name, "tmqp, interpreted")
    assert figures.rate > 0
    assert figures.cpu_ns > 0
    assert 0 <= figures.kernel_ns <= figures.cpu_ns
    assert figures.memory_bytes[0] > 1_000_000


def test_the_command_prints_data(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--workload", "push-acks", "--rounds", "1", "--seconds", "0.1", "--json"]
    assert main(["brokers", *arguments, "--build", "interpreted"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["figures"][0]["contender"] == "tmqp, interpreted"
    assert data["figures"][0]["deliveries_per_s"][0] > 0


def test_help_lists_every_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["brokers", "--help"])
    text = capsys.readouterr().out
    for workload in WORKLOADS:
        assert f"  {workload.name} " in text


def test_workloads_are_chosen_by_name_and_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def note(plan: BrokerPlan, _progress: object) -> BrokerResults:
        asked.append(plan.workloads)
        return BrokerResults(plan)

    monkeypatch.setattr("tmqp_bench.broker.command.compare_brokers", note)
    for arguments in (
        [],
        ["--group", "pull"],
        ["--group", "pull", "--group", "request", "--workload", "broadcast"],
    ):
        assert main(["brokers", *arguments]) == 1  # nothing could be measured
    requests = ("request-1", "request-16", "request-256")
    assert asked == [
        tuple(workload.name for workload in WORKLOADS),
        ("pull-1", "pull-100"),
        ("broadcast", "pull-1", "pull-100", *requests),
    ]


def test_every_aim_names_a_contender() -> None:
    for workload in WORKLOADS:
        titles = [contender.title for contender in workload.contenders]
        for aim in workload.aims:
            assert aim.peer in titles
        for cost in workload.costs:
            assert cost.workload in [each.name for each in WORKLOADS]


@pytest.mark.parametrize(
    ("rates", "reached", "passed"),
    [
        ((100.0, 96.0), "1.04 x", True),
        ((100.0, 90.0), "1.11 x", False),
        ((None, 90.0), "not measured", None),
    ],
)
def test_what_a_message_costs_is_judged_by_another_workload_of_the_run(
    rates: tuple[float | None, float], reached: str, passed: bool | None
) -> None:
    names = ("push-acks", "round-robin")
    results = BrokerResults(BrokerPlan(names, 1, 1.0, False, ("compiled",)))
    for name, rate in zip(names, rates, strict=True):
        if rate is not None:
            sample = Sample(int(rate), int(rate), 1.0, 1.0, 0.5, [])
            results.figures[name, "tmqp"] = Figures([sample], [1])
    (verdict,) = [each for each in verdicts(results) if "at most 1.05 x push 1 to 1" in each.aim]
    assert (verdict.reached, verdict.passed) == (reached, passed)


def test_only_the_interpreted_build_is_judged_as_that() -> None:
    """A second contender that is compiled as well was."""
    titles = [each.title for w in WORKLOADS if w.name == "watched-push" for each in w.contenders]
    results = BrokerResults(BrokerPlan(("watched-push",), 1, 1.0, False, ("compiled",)))
    for title in titles:
        results.figures["watched-push", title] = Figures([Sample(1, 1, 1.0, 1.0, 0.5, [])], [1])
    assert [each.reached for each in verdicts(results)] == ["1.00 x"]


@pytest.mark.long
def test_a_server_is_watched_until_it_ends(tmp_path: Path) -> None:
    server = start("tmqp", "interpreted+watched", tmp_path)
    beside = server.beside
    assert beside is not None, "metrics and console were answered"
    assert beside.poll() is None
    server.stop()
    assert beside.poll() is not None
    with pytest.raises(OSError, match="no admin door answers"):
        begin(free_port(), server_core())


def test_a_peer_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_kwargs: None)
    assert version_of("nats") is None


@pytest.mark.parametrize("depth", [10, 5_000])
def test_a_full_queue_stays_as_full_while_it_is_measured(depth: int) -> None:
    found = measure_depth(depth, 2, 50)
    assert found["depth"] == depth
    assert 0 < found["ns"] < 1e9


def test_the_command_measures_depths(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["depth", "--build", "interpreted", "--most", "1000", "--rounds", "1"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["depth"] for each in found] == [10, 1_000]
    with pytest.raises(SystemExit):
        main(["depth", "--most", "few"])


def test_the_memory_of_waiting_messages_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["waiting", "--build", "interpreted", "--messages", "50000"]) == 0
    rows = capsys.readouterr().out.splitlines()[-5:]
    sizes = {int(at_once): int(size) for at_once, size in [row.split() for row in rows]}
    assert [*sizes] == [1, 4, 16, 64, 400]
    assert all(130 < each < 300 for each in sizes.values()), sizes


def test_pushes_and_answers_are_measured_without_a_network(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["dealing", "--build", "interpreted", "--passes", "1"]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()[-5:]]
    assert [(row[0], row[1]) for row in rows] == [
        *[("push", "1")] * 2,
        ("roundrobin", "1"),
        *[("roundrobin", "4")] * 2,
    ]
    assert all(int(row[3]) > 0 and int(row[4]) > 0 for row in rows)


def test_idle_connections_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    found = idle.measure("tmqp", "interpreted", idle._ours, 50)
    assert found["after_bytes"] > found["before_bytes"] > 1_000_000
    with pytest.raises(SystemExit):
        main(["idle", "--connections", "1"])
    assert "connections are 10..100000" in capsys.readouterr().err


def test_a_hard_limit_that_is_too_low_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 1_024))
    monkeypatch.setattr("resource.setrlimit", lambda *_: pytest.fail("it cannot help"))
    assert main(["idle"]) == 1
    said = capsys.readouterr().err
    assert "10000 connections need 10100 open files, and the hard limit is 1024" in said
    assert "--connections 924" in said


def test_a_soft_limit_is_raised_for_the_server_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (60, 5_000))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    monkeypatch.setattr(idle, "_OURS", {"tmqp, interpreted": idle._OURS["tmqp, interpreted"]})
    assert main(["idle", "--connections", "20"]) == 0
    assert raised == [(120, 5_000)]
    assert "20 idle connections" in capsys.readouterr().out
