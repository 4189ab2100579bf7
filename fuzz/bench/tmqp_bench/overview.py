"""Measures what the specification's overview promises, and a channel with every queue it can have.

The overview speaks of thousands of consumers of one broadcast in 300 MB, and of thousands of
messages a second in 100 MB; "Protocol Limitations" of 65,535 queues in a channel.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import selectors
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tmqp.codec import FrameDecoder
from tmqp.constants import (
    OP_CREATE_QUEUE,
    OP_JOIN,
    OP_QUEUE_INFORMATION,
    OP_REMOVE_CHANNEL,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_SERVER,
)
from tmqp.frames import Frame
from tmqp_bench.broker import tmqp_wire
from tmqp_bench.broker.processes import ServerProcess, StartError, free_port
from tmqp_bench.codec import PLACES, ROOT

__all__ = ["add_arguments", "broadcast", "many_queues", "run"]

_HELP: Final = """\
Measures the claims of the specification's overview on this machine: one broadcast queue with many
consumers, and one channel with as many queues as there are ids.  For both it says how long it
takes and how much memory the server holds.
"""
_EXAMPLES: Final = """\
examples (make compiled first, for the compiled build):
  PYTHONPATH=fuzz/bench python -m tmqp_bench overview
  PYTHONPATH=src:fuzz/bench python -m tmqp_bench overview --build interpreted --consumers 500
"""
#: Files that this process and the server need beside their connections.
_OTHER_FILES: Final = 100
_PAYLOAD: Final = b"x" * 100
_PATIENCE_S: Final = 120.0
#: Operations that are sent before their answers are read.
_PORTION: Final = 500
_CONFIGURATION: Final = """\
listen = ["tmq://127.0.0.1:{port}"]
[broker]
max_queues_per_channel = 65536
[connection]
ping_interval_s = 3600
"""


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "overview",
        help="the overview's claims: many consumers of a broadcast, 65,535 queues",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--build", choices=sorted(PLACES), default="compiled")
    parser.add_argument("--consumers", type=_number, default=5_000, help="default 5000")
    parser.add_argument("--messages", type=_number, default=200, help="default 200")
    parser.add_argument("--queues", type=_number, default=65_535, help="default 65535")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _number(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 65_536:
        raise argparse.ArgumentTypeError(f"a number is 1..65536, got {text}")
    return value


@contextlib.contextmanager
def _server(build: str) -> Iterator[ServerProcess]:
    place = ROOT / PLACES[build]
    if not (place / "tmqp_server").is_dir():
        raise StartError(f"there is no {build} build: run make compiled")
    with tempfile.TemporaryDirectory(prefix="tmqp-bench-") as folder:
        port = free_port()
        path = Path(folder) / "tmqp.toml"
        path.write_text(_CONFIGURATION.format(port=port), encoding="utf-8")
        command = [sys.executable, "-m", "tmqp_server", "--config", str(path)]
        log = Path(folder) / "log"
        server = ServerProcess(command, port, None, log, {"PYTHONPATH": str(place)})
        try:
            yield server
        finally:
            server.stop()


def _operation(number: int, channel: str, queue_id: int | None, body: bytes = b"") -> bytes:
    headers = [] if queue_id is None else [("Queue-Id", str(queue_id))]
    return Frame.build(
        TYPE_SERVER, channel, number, body, message_id="o", pending_response=True, headers=headers
    ).raw


def _asked(sock: socket.socket, requests: list[bytes]) -> None:
    """Send operations in portions and read their answers.

    :raises ConnectionError: when one of them fails.
    """
    decoder = FrameDecoder()
    for at in range(0, len(requests), _PORTION):
        portion = requests[at : at + _PORTION]
        sock.sendall(b"".join(portion))
        answers = 0
        while answers < len(portion):
            data = sock.recv(65_536)
            if not data:
                raise ConnectionError("the server closed the connection")
            for frame in decoder.feed(data):
                if frame.type == TYPE_RESPONSE:
                    answers += 1
                    if frame.content_type:
                        raise ConnectionError(f"the server answered {frame.content_type}")


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def many_queues(build: str, count: int) -> dict[str, float]:
    """Times and memory of one channel with that many queues.

    :raises StartError: when the server does not start.
    :raises OSError: when the server does not do what it is asked for.
    """
    with _server(build) as server, tmqp_wire.greet(server.port, "queues") as sock:
        sock.settimeout(_PATIENCE_S)
        before = server.memory_bytes()
        creations = [_operation(OP_CREATE_QUEUE, "all", each) for each in range(count)]
        create_s = _timed(lambda: _asked(sock, creations))
        after = server.memory_bytes()
        looks = [_operation(OP_QUEUE_INFORMATION, "all", each) for each in range(0, count, 100)]
        look_s = _timed(lambda: _asked(sock, looks))
        join_s = _timed(lambda: _asked(sock, [_operation(OP_JOIN, "all", None)]))
        remove_s = _timed(lambda: _asked(sock, [_operation(OP_REMOVE_CHANNEL, "all", None)]))
    return {
        "queues": count,
        "create_s": create_s,
        "look_each_s": look_s / len(looks),
        "join_s": join_s,
        "remove_s": remove_s,
        "before_bytes": before,
        "after_bytes": after,
    }


def _drained(sockets: list[socket.socket], wanted: int) -> None:
    """Read until each socket has had that many bytes."""
    left = dict.fromkeys(range(len(sockets)), wanted)
    with selectors.DefaultSelector() as selector:
        for number, sock in enumerate(sockets):
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_READ, number)
        deadline = time.monotonic() + _PATIENCE_S
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(left)} consumers did not get all messages")
            for key, _ in selector.select(1.0):
                data = key.fileobj.recv(262_144)  # type: ignore[union-attr]
                left[key.data] -= len(data)
                if not data or left[key.data] < 0:
                    raise ConnectionError("a consumer got something else than was pushed")
                if left[key.data] == 0:
                    selector.unregister(key.fileobj)
                    del left[key.data]


def broadcast(build: str, consumers: int, messages: int) -> dict[str, float]:
    """How fast one broadcast queue serves that many consumers, and the server's memory.

    :raises StartError: when the server does not start.
    :raises OSError: when not every consumer gets every message.
    """
    options = b'{"Status":0,"RequestAcknowledge":false}'
    push = Frame.build(TYPE_QUEUE_MESSAGE, "news", 1, _PAYLOAD, message_id="m" * 32).raw
    size = len(push) + len("producer")  # a delivery names its producer
    with _server(build) as server, contextlib.ExitStack() as held:
        producer = held.enter_context(tmqp_wire.greet(server.port, "producer"))
        _asked(producer, [_operation(OP_CREATE_QUEUE, "news", 1, options)])
        before = server.memory_bytes()
        listeners: list[socket.socket] = []
        for number in range(consumers):
            sock = held.enter_context(tmqp_wire.greet(server.port, f"c{number}"))
            _asked(sock, [_operation(OP_JOIN, "news", None)])
            listeners.append(sock)
        joined = server.memory_bytes()
        producer.sendall(push)
        _drained(listeners, size)
        latency_s = 0.0
        began = time.perf_counter()
        for _ in range(messages):
            sent = time.perf_counter()
            producer.sendall(push)
            _drained(listeners, size)
            latency_s = max(latency_s, time.perf_counter() - sent)
        took_s = time.perf_counter() - began
        after = server.memory_bytes()
    return {
        "consumers": consumers,
        "messages": messages,
        "deliveries_per_s": consumers * messages / took_s,
        "slowest_s": latency_s,
        "before_bytes": before,
        "joined_bytes": joined,
        "after_bytes": after,
    }


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    needed = options.consumers + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            print(f"{needed} open files are needed, and the hard limit is {hard}", file=sys.stderr)
            return 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))  # the server inherits it
    try:
        sent = broadcast(options.build, options.consumers, options.messages)
        queues = many_queues(options.build, options.queues)
    except (StartError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"broadcast": sent, "queues": queues}, indent=2))
        return 0
    mb = 1e6
    print(
        f"broadcast to {sent['consumers']:,} consumers, {len(_PAYLOAD)} bytes, {options.build}\n"
        f"  deliveries each second   {sent['deliveries_per_s']:>12,.0f}\n"
        f"  slowest message, to all  {sent['slowest_s'] * 1e3:>12,.1f} ms\n"
        f"  server without consumers {sent['before_bytes'] / mb:>12,.1f} MB\n"
        f"  server with all of them  {sent['joined_bytes'] / mb:>12,.1f} MB\n"
        f"  server at the end        {sent['after_bytes'] / mb:>12,.1f} MB\n"
        f"one channel with {queues['queues']:,} queues\n"
        f"  create them all          {queues['create_s']:>12,.2f} s\n"
        f"  information about one    {queues['look_each_s'] * 1e3:>12,.3f} ms\n"
        f"  join the channel         {queues['join_s'] * 1e3:>12,.1f} ms\n"
        f"  remove the channel       {queues['remove_s']:>12,.2f} s\n"
        f"  server without queues    {queues['before_bytes'] / mb:>12,.1f} MB\n"
        f"  server with all of them  {queues['after_bytes'] / mb:>12,.1f} MB"
    )
    return 0
