"""What nsqd as a program does where the recorded answers of the original say so."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

import pytest

from tests.tmqp_nsq.running import Shell, shell

pytestmark = [pytest.mark.cold, pytest.mark.long]


def start(run: Shell, name: str, *more: str) -> None:
    ports = run.ports
    addresses = (
        f"--tcp-address=127.0.0.1:{ports[4150]}",
        f"--http-address=127.0.0.1:{ports[4151]}",
    )
    run.start("nsqd", *addresses, f"--data-path={run.folder}", *more, name=name)


def frame(sock: socket.socket) -> tuple[int, bytes]:
    """The next frame: its type, and what it says."""
    stream = sock.makefile("rb", buffering=0)

    def exactly(count: int) -> bytes:
        found = b""
        while len(found) < count:
            more = stream.read(count - len(found))
            assert more, "the server has closed the connection"
            found += more
        return found

    size, kind = struct.unpack(">II", exactly(8))
    return kind, exactly(size - 4)


def test_order_where_nothing_is_kept_in_memory(tmp_path: Path) -> None:
    """Recorded answers, 15: first in, first out; and nothing comes of a message put off."""
    with shell(tmp_path) as run:
        start(run, "nsqd", "--mem-queue-size=0")
        run.answers(4151)
        with socket.create_connection(("127.0.0.1", run.ports[4150]), timeout=20) as sock:
            sock.sendall(b"  V2SUB s15 x\n")
            assert frame(sock) == (0, b"OK")
            for number in range(5):
                run.run(f"curl -s -d {number} 'http://127.0.0.1:4151/pub?topic=s15'")
            sock.sendall(b"RDY 5\n")
            told = [frame(sock)[1] for _ in range(5)]
            assert [(text[8:10], text[26:]) for text in told] == [
                (b"\0\1", b"%d" % number) for number in range(5)
            ]
            for text in told:
                sock.sendall(b"FIN " + text[10:26] + b"\n")
            run.run("curl -s -d later 'http://127.0.0.1:4151/pub?topic=s15&defer=60000'")
            sock.settimeout(0.3)
            with pytest.raises(TimeoutError):
                sock.recv(1)


def test_a_second_nsqd_with_the_same_data_path_ends(tmp_path: Path) -> None:
    """Recorded answers, 16: with status 1, and one line that says whose the path is."""
    with shell(tmp_path) as run:
        start(run, "nsqd")
        run.answers(4151)
        run.start("nsqd", f"--data-path={tmp_path}", "--tcp-address=127.0.0.1:0", name="second")
        run.until("the second ends", lambda: run.has_ended("second"))
        assert run.stop("second") == 1
        said = (tmp_path / "second.log").read_text()
        assert "in use" in said
        assert "Traceback" not in said
        run.answers(4151)
