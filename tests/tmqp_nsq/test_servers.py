"""The flags of nsqd and nsqlookupd as configurations of the server, and the push to statsd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.certificates import make_certificate
from tests.waiting import until
from tmqp_nsq.addresses import Address
from tmqp_nsq.flags import FlagError, parse
from tmqp_nsq.listening import serve_web
from tmqp_nsq.nodes.statsd import StatsdPush, packets
from tmqp_nsq.nsqd import nsqd_config
from tmqp_nsq.nsqlookupd import lookupd_config
from tmqp_nsq.server_flags import NSQD, NSQLOOKUPD
from tmqp_nsq.starting import hostname
from tmqp_nsq.statistics import push_statistics
from tmqp_nsq.web import Request, Response, WebServer, json_response
from tmqp_server import ServerConfig

pytestmark = pytest.mark.cold


def config(*words: str) -> ServerConfig:
    return nsqd_config(parse(NSQD, words))


def test_without_flags_nsqd_is_the_originals() -> None:
    made = config()
    assert made.data == os.getcwd()  # noqa: PTH109 - a text is compared
    assert made.listen == ()
    tcp, http = made.doors
    assert [str(each) for each in (*tcp.listen, *http.listen)] == [
        "tmq://0.0.0.0:4150",
        "tmq://0.0.0.0:4151",
    ]
    assert tcp.options["broadcast_address"] == hostname()
    assert tcp.options["mem_queue_size"] == 10_000
    assert tcp.options["msg_timeout_ms"] == 60_000
    assert tcp.limits == {
        "max_msg_size": 1_048_576,
        "max_body_size": 5_242_880,
        "max_rdy_count": 2_500,
    }
    assert made.access.kind == "open"
    assert tcp.options["e2e_processing_latency_percentiles"] == []


def test_percentiles_of_the_latency_reach_the_door() -> None:
    words = [
        "--e2e-processing-latency-percentile=1.0,0.99",
        "--e2e-processing-latency-window-time=2m",
    ]
    options = config(*words).doors[0].options
    assert options["e2e_processing_latency_percentiles"] == [1.0, 0.99]
    assert options["e2e_processing_latency_window_time_ms"] == 120_000


def test_flags_reach_the_doors(tmp_path: Path) -> None:
    words = [f"--data-path={tmp_path}", "--http-address=", "--tcp-address=/run/nsqd.sock"]
    words += ["--max-heartbeat-interval=10s", "--mem-queue-size=0", "--snappy=false"]
    words += ["--lookupd-tcp-address=a:1", "--lookupd-tcp-address=b:2", "--max-msg-timeout=2h"]
    words += ["--auth-http-address=auth:4181", "--auth-http-request-method=POST"]
    made = config(*words, "--max-msg-size=33554432")
    (door,) = made.doors
    assert door.listen[0].socket_path == "/run/nsqd.sock"
    assert door.options["heartbeat_interval_ms"] == 10_000
    assert door.options["mem_queue_size"] == 1
    assert door.options["snappy"] is False
    assert door.options["nsqlookupd_tcp_addresses"] == ["a:1", "b:2"]
    assert door.options["auth_required"] is True
    assert made.access.kind == "tmqp_server:NsqAuthServer"
    assert made.access.arguments["addresses"] == ["auth:4181"]
    assert made.access.arguments["method"] == "post"
    assert made.broker.max_message_bytes > 33_554_432
    assert made.broker.max_acknowledge_timeout_ms == 7_200_000
    assert made.data == str(tmp_path)


def test_tls(tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    pair = (f"--tls-cert={certificate}", f"--tls-key={key}")
    tcp, https, http = config(*pair).doors
    assert https.tls
    assert str(https.listen[0]) == "tmqs://0.0.0.0:4152"
    assert tcp.options["tls_required"] is False
    assert http.options == {}
    tcp, _, http = config(*pair, "--tls-required=true").doors
    assert tcp.options["tls_required"] is True
    assert http.options == {"https_port": 4152}
    tcp, _, http = config(*pair, "--tls-required=tcp-https").doors
    assert tcp.options["tls_required"] is True
    assert http.options == {}
    made = config(
        *pair, "--tls-client-auth-policy=require-verify", f"--tls-root-ca-file={certificate}"
    )
    assert [each.tls_client_auth for each in made.doors[:2]] == ["require-verify"] * 2
    assert not made.tls.require_client_certificate
    assert made.doors[0].options["tls_required"] is True


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--tls-cert=x"], "--tls-cert and --tls-key go together"),
        (["--tls-required"], "flag needs an argument"),
        (["--tls-required=1"], "need --tls-cert and --tls-key"),
        (["--tls-client-auth-policy=require"], "needs --tls-root-ca-file"),
        (["--msg-timeout=0"], "--msg-timeout must be at least 1ms, not 0s"),
        (["--e2e-processing-latency-percentile=0.5,2"], "must be above 0 and at most 1.0, not 2"),
        (["--max-rdy-count=0"], "--max-rdy-count must be positive, not 0"),
        (["--tcp-address=4150"], "--tcp-address must be HOST:PORT"),
        (["--broadcast-tcp-port=65536"], "--broadcast-tcp-port must be 0 to 65535, not 65536"),
        (["--broadcast-http-port=-1"], "--broadcast-http-port must be 0 to 65535, not -1"),
        (["--lookupd-tcp-address=x"], "--lookupd-tcp-address must be HOST:PORT"),
        (["--auth-http-address=x"], "--auth-http-address must be HOST:PORT"),
    ],
)
def test_what_nsqd_cannot_be(words: list[str], text: str) -> None:
    with pytest.raises(FlagError, match=text):
        config(*words)


def test_nsqlookupd() -> None:
    made = lookupd_config(parse(NSQLOOKUPD, ["--tombstone-lifetime=10s", "-http-address=:4161"]))
    tcp, http = made.doors
    assert tcp.limits == {"inactive_producer_timeout_s": 300.0, "tombstone_lifetime_s": 10.0}
    assert tcp.options == {"broadcast_address": hostname()}
    assert [str(each) for each in (*tcp.listen, *http.listen)] == [
        "tmq://0.0.0.0:4160",
        "tmq://0.0.0.0:4161",
    ]
    with pytest.raises(FlagError, match="--tombstone-lifetime must be positive"):
        lookupd_config(parse(NSQLOOKUPD, ["--tombstone-lifetime=0s"]))


STATS = {
    "topics": [
        {
            "topic_name": "t",
            "message_count": 5,
            "message_bytes": 50,
            "depth": 2,
            "backend_depth": 1,
            "channels": [
                {
                    "channel_name": "c#ephemeral",
                    "message_count": 4,
                    "requeue_count": 1,
                    "timeout_count": 2,
                    "in_flight_count": 3,
                    "client_count": 1,
                    "e2e_processing_latency": {
                        "count": 1,
                        "percentiles": [{"quantile": 0.99, "value": 7}],
                    },
                }
            ],
        },
        {"topic_name": "gone#ephemeral", "message_count": 1},
    ],
    "memory": {"heap_objects": 9, "gc_total_runs": 3},
}


def test_what_is_pushed_to_statsd() -> None:
    push = StatsdPush("nsq.%s")
    lines = push.lines("10.0.0.1:4151", STATS)
    host = b"nsq.10_0_0_1_4151."
    assert lines[:4] == [
        host + b"topic.t.message_count:5|c\n",
        host + b"topic.t.message_bytes:50|c\n",
        host + b"topic.t.depth:2|g\n",
        host + b"topic.t.backend_depth:1|g\n",
    ]
    channel = host + b"topic.t.channel.c#ephemeral."
    for line in (b"requeue_count:1|c\n", b"in_flight_count:3|g\n", b"clients:1|g\n"):
        assert channel + line in lines
    assert channel + b"e2e_processing_latency_99:7|g\n" in lines
    assert host + b"mem.heap_objects:9|g\n" in lines
    again = push.lines("10.0.0.1:4151", STATS)
    assert host + b"topic.t.message_count:0|c\n" in again
    assert host + b"topic.t.depth:2|g\n" in again
    reset = {"topics": [{"topic_name": "t", "message_count": 2}]}
    assert host + b"topic.t.message_count:2|c\n" in push.lines("10.0.0.1:4151", reset)


def test_what_is_left_out() -> None:
    lines = StatsdPush("", memory=False, ephemeral=False).lines("a:1", STATS)
    assert lines[0] == b"topic.t.message_count:5|c\n"
    assert not [line for line in lines if b"ephemeral" in line or b"mem." in line]


async def test_statistics_are_pushed_by_udp(tmp_path: Path) -> None:
    async def answer(request: Request) -> Response:
        if request.path == "/info":
            return json_response(200, {"broadcast_address": "h", "http_port": 4151})
        return json_response(200, STATS if request.query == {"format": "json"} else None)

    path = str(tmp_path / "stats.sock")
    async with (
        await anyio.create_udp_socket(local_host="127.0.0.1") as udp,
        anyio.create_task_group() as group,
    ):
        await serve_web(Address("", 0, path), WebServer(answer).serve, group)
        local: Any = udp.extra(anyio.abc.SocketAttribute.local_address)  # noqa: S610
        statsd = Address("127.0.0.1", int(local[1]))
        push = StatsdPush("nsq.%s")

        async def run() -> None:
            await push_statistics(path, push, statsd, interval_s=0.01, packet_bytes=100)

        group.start_soon(run)
        with anyio.fail_after(20):
            packet, _ = await udp.receive()
        group.cancel_scope.cancel()
    assert packet.startswith(b"nsq.h_4151.topic.t.message_count:5|c\n")
    assert len(packet) <= 100


async def test_statistics_that_cannot_be_pushed_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        await push_statistics(
            str(tmp_path / "none"),
            StatsdPush(""),
            Address("127.0.0.1", 9),
            interval_s=0.01,
            packet_bytes=100,
        )

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: "cannot push statistics to 127.0.0.1:9" in caplog.text)
        group.cancel_scope.cancel()


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30), st.integers(1, 100))
def test_packets_have_every_line_once(lines: list[bytes], most: int) -> None:
    parts = packets(lines, most)
    assert b"".join(parts) == b"".join(lines)
    assert all(len(part) <= most or part in lines for part in parts)
