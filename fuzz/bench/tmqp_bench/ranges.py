"""The measurement of range reads: a server that has kept a queue, and a blocking reader."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from tmqp.blocks import StoredMessage, decode_block, head_of, index_end
from tmqp.constants import TYPE_QUEUE_MESSAGE, TYPE_SERVER
from tmqp.extensions import OP_READ_RANGE
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp_bench.broker.processes import ServerProcess, StartError, free_port, server_core
from tmqp_bench.codec import PLACES, ROOT
from tmqp_server.engine.options import ChannelOptions, QueueOptions
from tmqp_server.storage.port import KeepChannel, KeepQueue, StoreBatch
from tmqp_server.storage.sqlite import SqliteStore
from tmqp_server.storage.topology import channel_to_bytes, queue_to_bytes, retention_of

__all__ = ["add_arguments", "run"]

_HELP: Final = """\
Measures how fast what a server keeps of a queue is read again: a data directory is filled, a server
opens it, and a reader asks for one range after another over loopback, several at once.

The reader receives and counts: it walks over the heads of blocks and looks at nothing else, or
compares every checksum with --verify.  "consumed" messages are settled and retained, "owed" ones
wait for a consumer.  The best of the rounds counts.  CPU is that of the server's process, with the
kernel's part; the reader's own stands beside it.
"""
_EXAMPLES: Final = """\
examples (with build/compiled, after make compiled; with src for the interpreted build):
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench ranges
  PYTHONPATH=build/compiled:fuzz/bench python -m tmqp_bench ranges --payload 1024 --verify
  PYTHONPATH=src:fuzz/bench python -m tmqp_bench ranges --build interpreted --messages 20000
"""
_CHANNEL: Final = "kept"
_QUEUE: Final = 1
_ID_BYTES: Final = 32
_BATCH: Final = 1_000
_PREAMBLE: Final = b"TMQP/2.0"
_ANSWER_S: Final = 60.0
_ANSWER_BYTES: Final = 2_097_152


def add_arguments(commands: Any) -> None:
    """Add the command to those of the benchmarks."""
    parser = commands.add_parser(
        "ranges",
        help="reading stored messages",
        description=_HELP,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--messages", type=_number, default=1_000_000, help="in the queue (default 1000000)"
    )
    parser.add_argument(
        "--payload", type=_number, action="append", help="bytes, again for more (100 and 1024)"
    )
    parser.add_argument("--depth", type=_number, default=4, help="ranges at once (default 4)")
    parser.add_argument("--rounds", type=_number, default=5, help="rounds (default 5)")
    parser.add_argument("--build", choices=tuple(PLACES), default="compiled")
    parser.add_argument("--verify", action="store_true", help="compare every checksum")
    parser.add_argument("--directory", type=Path, help="on the disk to measure (default: here)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")


def _number(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 100_000_000:
        raise argparse.ArgumentTypeError(f"a number is 1..100000000, got {text}")
    return value


def run(options: argparse.Namespace) -> int:
    """Measure, print, and return the exit status."""
    rows: list[dict[str, Any]] = []
    for payload in options.payload or (100, 1_024):
        for consumed in (False, True):
            place = Path(tempfile.mkdtemp(prefix="tmqp-bench-", dir=options.directory or Path()))
            try:
                _fill(place / "data", options.messages, payload, consumed)
                rows.append(_measure(options, place, payload, consumed))
            except KeyboardInterrupt:
                print("interrupted", file=sys.stderr)
                return 130
            except (StartError, OSError) as error:
                print(f"the server could not be measured: {error}", file=sys.stderr)
                return 1
            finally:
                shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(rows, indent=2) if options.json else _table(rows, options))
    return 0


def _fill(directory: Path, count: int, payload: int, consumed: bool) -> None:
    """Write what a server would have written that was pushed so many messages."""
    options = QueueOptions(durable=True, retain_bytes=1 << 50)
    store = SqliteStore(directory)
    store.recover()
    try:
        batch = StoreBatch()
        batch.changes.append(KeepChannel(_CHANNEL, channel_to_bytes(ChannelOptions())))
        kept = queue_to_bytes(options, 0)
        batch.changes.append(KeepQueue(1, _CHANNEL, _QUEUE, kept, retention_of(options)))
        for start in range(1, count + 1, _BATCH):
            now_us = time.time_ns() // 1_000
            sequences = range(start, min(start + _BATCH, count + 1))
            batch.appended[1] = [_message(each, payload, now_us) for each in sequences]
            if consumed:
                batch.settled[1] = list(sequences)
            store.write(batch, now_us)
            batch = StoreBatch()
    finally:
        store.close(clean=True)


def _message(sequence: int, payload: int, now_us: int) -> StoredMessage:
    body = Frame.build(
        TYPE_QUEUE_MESSAGE,
        _CHANNEL,
        _QUEUE,
        os.urandom(payload),
        message_id=f"{sequence:0{_ID_BYTES}}",
        source="bench",
    ).raw
    offset = len(body) - payload
    return StoredMessage(sequence, now_us, 0, 0, 1 << 8, 0, 0, 0, offset, payload, body)


class _Reader:
    """Reads parts of the queue, each by a chain of ranges, all over one connection."""

    def __init__(self, port: int, verify: bool) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(_ANSWER_S)
        self._verify = verify
        self._buffer = bytearray(2 * _ANSWER_BYTES)
        self._have = 0
        hello = Frame.build(TYPE_SERVER, "", 101, ConnectionInformation("reader").encode())
        self._socket.sendall(_PREAMBLE + hello.raw)
        self._need(len(_PREAMBLE))
        self._drop(len(_PREAMBLE))
        _, start, size = self._answer()
        self._drop(start + size)

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def read(self, count: int, depth: int) -> tuple[int, int]:
        """Read all; how many messages, and how many bytes of answers."""
        ends = {f"part-{part}": count * (part + 1) // depth for part in range(depth)}
        for part, name in enumerate(ends):
            self._ask(name, count * part // depth + 1, ends[name])
        messages = total = 0
        open_parts = depth
        while open_parts:
            name, start, size = self._answer()
            found, last = self._count(start, size)
            messages += found
            total += size
            self._drop(start + size)
            if last < ends[name]:
                self._ask(name, last + 1, ends[name])
            else:
                open_parts -= 1
        return messages, total

    def _ask(self, name: str, first: int, last: int) -> None:
        headers = [("Queue-Id", str(_QUEUE)), ("From", str(first)), ("To", str(last))]
        headers.append(("Max-Bytes", str(_ANSWER_BYTES)))
        frame = Frame.build(
            TYPE_SERVER,
            _CHANNEL,
            OP_READ_RANGE,
            message_id=name,
            headers=headers,
            pending_response=True,
        )
        self._socket.sendall(frame.raw)

    def _answer(self) -> tuple[str, int, int]:
        """The id of the next answer, where its payload stands in the buffer, and its size."""
        self._need(16)
        raw = self._buffer
        names = raw[2], raw[3], raw[4]
        code = int.from_bytes(raw[5:7], "little")
        if code not in (0, 202):
            raise OSError(f"the server answered {code}")
        extended = {253: 2, 254: 4, 255: 8}.get(raw[7], 0)
        size = int.from_bytes(raw[8 : 8 + extended], "little") if extended else raw[7]
        start = 8 + extended + sum(names)
        self._need(start + size)
        return raw[8 + extended : 8 + extended + names[0]].decode(), start, size

    def _count(self, start: int, size: int) -> tuple[int, int]:
        """The messages in some blocks, and the last sequence."""
        end = start + size
        messages = last = 0
        while start < end:
            _, _, last, count, body_size = head_of(bytes(self._buffer[start : start + 64]))
            block_end = start + index_end(count) + body_size
            if self._verify:
                decode_block(bytes(memoryview(self._buffer)[start:block_end]))
            messages += count
            start = block_end
        if not messages:
            raise OSError("an answer was empty")
        return messages, last

    def _need(self, size: int) -> None:
        """Receive until so many bytes are there."""
        if size > len(self._buffer):
            self._buffer.extend(bytes(size - len(self._buffer)))
        view = memoryview(self._buffer)
        while self._have < size:
            received = self._socket.recv_into(view[self._have :])
            if not received:
                raise OSError("the server closed the connection")
            self._have += received

    def _drop(self, size: int) -> None:
        """Forget the beginning; what came of the next answer moves there."""
        rest = self._have - size
        self._buffer[:rest] = self._buffer[size : self._have]
        self._have = rest


def _measure(
    options: argparse.Namespace, place: Path, payload: int, consumed: bool
) -> dict[str, Any]:
    port = free_port()
    source = ROOT / PLACES[options.build]
    command = [sys.executable, "-m", "tmqp_server", "-l", f"tmq://127.0.0.1:{port}"]
    command += ["--log-level", "error", "--data", str(place / "data")]
    environment = {"PYTHONPATH": str(source)}
    server = ServerProcess(command, port, server_core(), place / "log", environment, 120.0)
    try:
        reader = _Reader(port, options.verify)
        best: dict[str, Any] = {}
        for _ in range(options.rounds):
            cpu, own, started = server.cpu_s(), time.process_time(), time.perf_counter()
            messages, total = reader.read(options.messages, options.depth)
            seconds = time.perf_counter() - started
            if messages != options.messages:
                raise OSError(f"{messages} messages came, not {options.messages}")
            if not best or seconds < best["seconds"]:
                best = {
                    "payload": payload,
                    "state": "consumed" if consumed else "owed",
                    "messages_per_s": messages / seconds,
                    "bytes_per_s": total / seconds,
                    "server_ns": (server.cpu_s() - cpu) / messages * 1e9,
                    "reader_ns": (time.process_time() - own) / messages * 1e9,
                    "seconds": seconds,
                }
        reader.close()
        best["server_bytes"] = server.memory_bytes()
        return best
    finally:
        server.stop()


def _table(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    lines = [
        f"Range reads, {options.build}, {options.messages:,} messages, {options.depth} at once"
        + (", checksums compared" if options.verify else ""),
        "payload  state     messages/s    MB/s  server CPU ns/message  reader CPU ns/message  RSS",
    ]
    for row in rows:
        lines.append(
            f"{row['payload']:>7}  {row['state']:<8} {row['messages_per_s']:>11,.0f}"
            f" {row['bytes_per_s'] / 1e6:>7,.0f}  {row['server_ns']:>21,.0f}"
            f"  {row['reader_ns']:>21,.0f}  {row['server_bytes'] >> 20:>3} MiB"
        )
    return "\n".join(lines)
