"""The lines that users of NSQ type, as they type them: its quick start, and notes of a team."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tmqp
import tmqp_nsq
from tests.certificates import make_certificate
from tests.ports import free_port
from tests.project import ROOT
from tests.tmqp_nsq.running import Shell, shell

pytestmark = [pytest.mark.cold, pytest.mark.long]


def start_daemons(run: Shell) -> None:
    """The first lines of the quick start, each with the ports of this test."""
    ports = run.ports
    run.start(
        "nsqlookupd",
        f"--tcp-address=127.0.0.1:{ports[4160]}",
        f"--http-address=127.0.0.1:{ports[4161]}",
    )
    run.start(
        "nsqd --lookupd-tcp-address=127.0.0.1:4160",
        f"--tcp-address=127.0.0.1:{ports[4150]}",
        f"--http-address=127.0.0.1:{ports[4151]}",
        "--broadcast-address=127.0.0.1",
    )
    run.start(
        "nsqadmin --lookupd-http-address=127.0.0.1:4161",
        f"--http-address=127.0.0.1:{ports[4171]}",
    )
    for port in (4151, 4161, 4171):
        run.answers(port)


def written(folder: Path, topic: str) -> str:
    """The lines of a topic's files."""
    return "".join(path.read_text() for path in sorted(folder.glob(f"{topic}.*.log")))


def test_the_quick_start(tmp_path: Path) -> None:
    with shell(tmp_path) as run:
        start_daemons(run)
        assert run.run("curl -d 'hello world 1' 'http://127.0.0.1:4151/pub?topic=test'") == "OK"
        output = tmp_path / "out"
        output.mkdir()
        line = "nsq_to_file --topic=test --lookupd-http-address=127.0.0.1:4161"
        run.start(line, f"--output-dir={output}", "--sync-interval=200ms")
        run.run("curl -d 'hello world 2' 'http://127.0.0.1:4151/pub?topic=test'")
        run.run("curl -d 'hello world 3' 'http://127.0.0.1:4151/pub?topic=test'")
        text = "hello world 1\nhello world 2\nhello world 3\n"
        run.until("the file has all", lambda: written(output, "test") == text)
        assert "nsqadmin" in run.run("curl -s http://127.0.0.1:4171/")
        path = "http://127.0.0.1:4171/api/topics/test/nsq_to_file"

        def is_finished() -> bool:
            row = json.loads(run.run(f"curl -s {path}"))
            numbers = [row.get(name) for name in ("message_count", "depth", "in_flight_count")]
            return numbers == [3, 0, 0] and row["clients"][0]["finish_count"] == 3

        run.until("nsqadmin shows three finished messages", is_finished)
        assert run.stop("nsq_to_file") == 0
        assert run.stop("nsqadmin") == 0
        assert run.stop("nsqd") == 0
        assert run.stop("nsqlookupd") == 0


def test_the_lines_of_the_notes(tmp_path: Path) -> None:
    with shell(tmp_path) as run:
        start_daemons(run)
        create = "curl -X POST http://127.0.0.1:4151/topic/create?topic="
        for topic in ("latestTopic", "OneToOne", "oneToOne", "OnetoOne"):
            assert run.run(create + topic) == ""
        # A stray blank: curl posts to an empty topic, and then to a host called NewTopic.
        stray = 'curl -d "hello world" http://127.0.0.1:4151/pub?topic= NewTopic'
        assert run.run(stray) == '{"message":"INVALID_TOPIC"}'
        assert run.run('curl -d "hello world" http://127.0.0.1:4151/pub?topic=NewTopic') == "OK"
        assert "[OneToOne" in run.run("curl http://127.0.0.1:4151/stats")
        assert run.run("curl -X POST http://127.0.0.1:4151/topic/delete?topic=latestTopic") == ""
        wanted = {"OneToOne", "oneToOne", "OnetoOne", "NewTopic"}

        def topics() -> set[str]:
            answer = json.loads(run.run("curl -X GET http://127.0.0.1:4161/topics"))
            return set(answer["topics"]) - {"latestTopic"}

        run.until("the lookupd has all topics", lambda: topics() == wanted)
        # Three topics that differ in capitals only, and what each has.
        for topic in ("OneToOne", "oneToOne", "OnetoOne"):
            line = f'curl -d "for {topic}" http://127.0.0.1:4151/pub?topic={topic}'
            assert run.run(line) == "OK"
            answer = run.run(f"curl -s 'http://127.0.0.1:4151/stats?format=json&topic={topic}'")
            (row,) = json.loads(answer)["topics"]
            assert (row["topic_name"], row["message_count"], row["depth"]) == (topic, 1, 1)
        run.run('curl -d \'{"path":"/"}\' http://127.0.0.1:4151/put?topic=api_requests')
        output = tmp_path / "out"
        output.mkdir()
        archive = (
            "/usr/local/bin/nsq_to_file --nsqd-tcp-address=127.0.0.1:4150 --topic=api_requests"
            " --channel=archive"
        )
        run.start(archive, f"--output-dir={output}", "--sync-interval=200ms")
        text = '{"path":"/"}\n'
        run.until("the archive has the request", lambda: written(output, "api_requests") == text)
        assert run.stop("nsq_to_file") == 0


@pytest.mark.parametrize("compression", ["snappy", "deflate"])
def test_a_server_that_wants_tls(compression: str, tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    with shell(tmp_path) as run:
        ports, https = run.ports, free_port()
        run.start(
            f"nsqd --tls-cert={certificate} --tls-key={key} --tls-required=true",
            f"--tcp-address=127.0.0.1:{ports[4150]}",
            f"--http-address=127.0.0.1:{ports[4151]}",
            f"--https-address=127.0.0.1:{https}",
        )
        secure = f"curl -s --cacert {certificate} https://localhost:{https}"
        run.until("HTTPS answers", lambda: run.run(f"{secure}/ping") == "OK")
        refused = json.loads(run.run("curl -s --max-time 10 http://127.0.0.1:4151/stats"))
        assert refused == {"message": "TLS_REQUIRED", "https_port": https}
        assert run.run(f"{secure}/pub?topic=t -d secret") == "OK"
        output = tmp_path / "out"
        output.mkdir()
        run.start(
            f"nsq_to_file --nsqd-tcp-address=localhost:{ports[4150]} --topic=t --sync-interval=1s",
            f"--output-dir={output}",
            "--consumer-opt=tls_v1",
            f"--consumer-opt=tls_root_ca_file,{certificate}",
            f"--consumer-opt={compression}",
        )
        run.until("the file has the message", lambda: written(output, "t") == "secret\n")
        assert run.stop("nsq_to_file") == 0


def test_the_topology(tmp_path: Path) -> None:
    """Two brokers, two lookupds; one of each stops, and no event is lost or counted twice."""
    places = dict.fromkeys(
        str(Path(each.__file__ or "").parent.parent) for each in (tmqp_nsq, tmqp)
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples/nsq/topology.py"), str(tmp_path / "topology")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "two brokers: 30 events counted, 30 archived",
        "one stopped: 60 events counted, 60 archived",
        "it is back:  90 events counted, 90 archived",
    ]
