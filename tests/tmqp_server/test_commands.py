"""The commands about a data directory, as processes: what they print, how they end."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import ROOT
from tests.tmqp_server.storage.stores import EVER, NOW_US, batch, kept, message, owed
from tmqp_server.storage.port import (
    KeepChannel,
    KeepCursor,
    KeepMark,
    KeepQueue,
    KeepRouter,
    Retention,
    TopologyChange,
)
from tmqp_server.storage.sqlite import SqliteStore, back_up


def run(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-m", "tmqp_server", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        input=stdin,
        check=False,
    )
    assert "Traceback" not in ended.stderr
    return ended


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A store with two queues, one of which keeps what is settled."""
    folder = tmp_path / "data"
    made = SqliteStore(folder, floor_bytes=0)
    made.recover()
    changes: list[TopologyChange] = [
        KeepChannel("orders", b'{"a":1}'),
        KeepQueue(1, "orders", 7, b"\xff\x00", Retention(10**6, 5, retain_for_readers=False)),
        KeepQueue(4, "orders", 8, b"{}", Retention()),
        KeepRouter("r", b"\xff"),
        KeepCursor("x", 1, 3),
        KeepMark("nightly", 41, NOW_US),
    ]
    made.write(batch(*changes), NOW_US)
    bodies = [b"plain", "hé\n".encode(), b"\xff\x00", b""]
    messages = [message(n, bodies[n % 4], attempts=n % 3) for n in range(1, 2_501)]
    made.write(batch(appended={1: messages, 4: messages[:10]}), NOW_US)
    made.write(batch(settled={1: [2, 3, 2_400], 4: [1, 9, 10]}), NOW_US)
    made.close(clean=True)
    return folder


def contents(folder: Path) -> list[str]:
    made = SqliteStore(folder, floor_bytes=0)
    found = made.recover(looking=True)
    found.store_id = ""
    lines = [repr(found)]
    for key in (1, 4):
        lines.append(repr((owed(made, key), kept(made, key))))
        lines.extend(repr(m) for m in made.fetch(key, 0, EVER, 10**6, EVER, 0))
    made.close(clean=False)
    return lines


def damage(folder: Path) -> None:
    db = sqlite3.connect(folder / "messages.sqlite3")
    with db:
        changed = db.execute(
            "UPDATE bodies SET block = CAST(substr(block, 1, 9000) || x'01' ||"
            " substr(block, 9002) AS BLOB) WHERE id = 1"
        )
        assert changed.rowcount == 1
    db.close()


def test_check_finds_nothing_wrong_and_changes_nothing(data: Path) -> None:
    before = (data / "messages.sqlite3").read_bytes()
    ended = run("check", data)
    assert ended.returncode == 0
    assert ended.stdout.startswith("all is well: 1 channel, 2 queues, 2,504 messages owed")
    assert (data / "messages.sqlite3").read_bytes() == before


def test_check_names_what_is_damaged(data: Path) -> None:
    damage(data)
    ended = run("check", data)
    assert ended.returncode == 1
    assert "damaged: messages 1 to 1024 of queue 1" in ended.stdout
    assert "1 problem; readable:" in ended.stdout


@pytest.mark.parametrize("command", ["check", "export"])
def test_what_cannot_be_read_is_one_line_and_status_2(
    data: Path, tmp_path: Path, command: str
) -> None:
    ended = run(command, tmp_path / "nothing")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"tmqp-server: there is no store in {tmp_path / 'nothing'}\n"
    made = SqliteStore(data)
    ended = run(command, data)
    made.close(clean=True)
    assert ended.returncode == 2
    assert f"in use by process {os.getpid()}; make a copy first" in ended.stderr
    (data / "messages.sqlite3").write_bytes(b"garbage" * 1_000)
    ended = run(command, data)
    assert ended.returncode == 2
    assert "file is not a database" in ended.stderr


def test_a_backup_is_a_data_directory(data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "monday"
    ended = run("backup", data, copy)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"copied {data} to {copy}: 2 queues, 2,504 messages\n"
    names = ["messages.sqlite3", "recent.log", "witness"]
    assert sorted(path.name for path in copy.iterdir()) == names
    assert contents(copy) == contents(data)
    ended = run("backup", data, copy)
    assert ended.returncode == 2
    assert "already has a store" in ended.stderr
    ended = run("backup", tmp_path / "nothing", tmp_path / "other")
    assert ended.returncode == 2
    assert not (tmp_path / "other").exists()


def test_a_backup_of_a_store_in_use_is_of_one_moment(data: Path, tmp_path: Path) -> None:
    before = contents(data)
    made = SqliteStore(data, floor_bytes=0)
    made.recover()
    sequence = 2_500

    def work_on(done: int, total: int) -> None:
        nonlocal sequence
        sequence += 1
        made.write(batch(appended={1: [message(sequence)]}, settled={4: [2]}), NOW_US)

    report = back_up(data, tmp_path / "copy", work_on)
    assert sequence > 2_500
    assert report.problems == []
    assert owed(made, 1)[-1] == sequence
    made.close(clean=True)
    copied = contents(tmp_path / "copy")
    # The server had it open: the copy knows that.
    assert copied[0] == before[0].replace("clean=True", "clean=False", 1)
    assert copied[1:] == before[1:]


def test_a_damaged_store_is_copied_as_it_is(data: Path, tmp_path: Path) -> None:
    damage(data)
    ended = run("backup", data, tmp_path / "copy")
    assert ended.returncode == 1
    assert "damaged, and copied as it is: messages 1 to 1024 of queue 1" in ended.stderr
    assert (tmp_path / "copy" / "messages.sqlite3").exists()


def test_an_export_can_be_imported(data: Path, tmp_path: Path) -> None:
    exported = run("export", data)
    assert exported.returncode == 0
    assert exported.stderr == "exported 2 queues, 2,507 messages\n"
    file = tmp_path / "all.jsonl"
    file.write_text(exported.stdout)
    copy = tmp_path / "copy"
    ended = run("import", copy, file)
    assert (ended.returncode, ended.stderr) == (0, "imported 2 queues, 2,507 messages\n")
    assert contents(copy) == contents(data)
    again = run("export", copy)
    assert again.stdout == exported.stdout
    third = run("import", tmp_path / "third", "-", stdin=exported.stdout)
    assert third.returncode == 0
    assert contents(tmp_path / "third") == contents(data)
    ended = run("import", copy, file)
    assert ended.returncode == 2
    assert "already has a store" in ended.stderr


def test_one_queue_can_be_exported(data: Path) -> None:
    ended = run("export", data, "--queue", "orders/8")
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [line["kind"] for line in lines] == ["head", "channel", "queue"] + ["message"] * 7
    assert [line["sequence"] for line in lines[3:]] == [2, 3, 4, 5, 6, 7, 8]
    assert lines[3]["body_base64"] == "/wA="
    assert lines[4]["body"] == ""
    ended = run("export", data, "-q", "orders/9")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "there is no queue orders/9" in ended.stderr


def test_an_export_stops_at_damage_or_passes_over_it(data: Path) -> None:
    damage(data)
    ended = run("export", data)
    assert ended.returncode == 2
    assert "messages 1 to 1024 of queue 1" in ended.stderr
    ended = run("export", data, "--skip-damaged")
    assert ended.returncode == 0
    assert "skipped: messages 1 to 1024 of queue 1" in ended.stderr
    assert ended.stdout.count('"kind":"message"') == 2_500 - 1_024 + 7


HEAD = '{"kind": "head", "format": "tmqp-server export", "version": 1, "clean": true}\n'
BAD: dict[str, tuple[str, str]] = {
    "nothing": ("", "was not exported by tmqp-server"),
    "something": ("{}", "was not exported by tmqp-server"),
    "newer": (HEAD.replace("1,", "2,"), "has the version 2, this program knows 1"),
    "no json": (HEAD + "\n{", "line 3 is not JSON"),
    "deep": (HEAD + "[" * 100_000, "line 2 is not JSON"),
    "no object": (HEAD + "[]", "line 2 is not a JSON object"),
    "kind": (HEAD + '{"kind": "x"}', "the kind 'x' is not known"),
    "field": (HEAD + '{"kind": "channel"}', "line 2 cannot be understood: KeyError('name')"),
    "number": (HEAD + '{"kind": "message", "queue": "one"}', "line 2 cannot be understood"),
    "base64": (HEAD + '{"kind": "router", "name": "r", "value_base64": "!"}', "line 2 cannot"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_export_is_one_line_and_status_2(tmp_path: Path, name: str) -> None:
    text, reason = BAD[name]
    ended = run("import", tmp_path / "data", "-", stdin=text)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert reason in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_the_help_names_the_commands() -> None:
    ended = run("--help")
    for command in ("backup", "check", "export", "import"):
        assert f"  {command} " in ended.stdout
        about = run(command, "--help").stdout
        assert "Examples:" in about
        assert "Exit status: 0" in about
        assert max(len(line) for line in about.splitlines()) <= 100
    ended = run("chekc")
    assert ended.returncode == 2
    assert "No such command" in ended.stderr


# --- Repairing -----------------------------------------------------------------------------------


def test_a_repair_is_asked_for_twice_and_says_what_it_gives_up(data: Path) -> None:
    damage(data)
    before = (data / "messages.sqlite3").read_bytes()
    ended = run("check", data)
    assert ended.returncode == 1
    assert f"tmqp-server check {data} --repair keeps the readable data" in ended.stderr
    ended = run("check", data, "--repair", stdin="n\n")
    assert ended.returncode == 1
    assert (data / "messages.sqlite3").read_bytes() == before
    ended = run("check", data, "--repair", stdin="y\n")
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[0].startswith("damaged: messages 1 to 1024 of queue 1")
    assert lines[-2].startswith("given up: messages 1 to 1024 of queue 1: ")
    assert lines[-1] == (
        f"repaired: 2 queues, {2_504 - 1_022:,} messages owed; the old files are in"
        f" {data / 'damaged-1'}"
    )
    assert run("check", data).stdout.startswith("all is well")
    assert (data / "damaged-1" / "messages.sqlite3").read_bytes() == before


def test_a_sound_store_is_not_repaired(data: Path) -> None:
    before = (data / "messages.sqlite3").read_bytes()
    ended = run("check", data, "--repair", "--yes")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("all is well")
    assert (data / "messages.sqlite3").read_bytes() == before
    assert not (data / "damaged-1").exists()


def test_check_said_there_is_no_store_when_its_database_was_missing(data: Path) -> None:
    (data / "messages.sqlite3").unlink()
    ended = run("check", data)
    assert ended.returncode == 2
    assert "messages.sqlite3 is missing or empty, but recent.log and witness" in ended.stderr


def test_check_tells_of_a_directory_that_others_can_open(data: Path) -> None:
    data.chmod(0o755)
    ended = run("check", data)
    assert ended.returncode == 0
    assert f"warning: other users can open the data directory {data} (mode 0755)" in ended.stderr


def test_a_server_does_not_start_on_a_damaged_store(data: Path) -> None:
    store = SqliteStore(data, floor_bytes=0)
    store.recover()
    store.write(batch(appended={4: [message(20)]}), NOW_US)
    store.close(clean=False)
    log = data / "recent.log"
    log.write_bytes(b"")
    ended = run("--listen", "tmq://127.0.0.1:0", "--data", data)
    assert (ended.returncode, ended.stdout) == (1, "")
    last = ended.stderr.splitlines()[-2:]
    assert "recent.log: write 3 is missing at its end" in last[0]
    assert "'tmqp-server check' names everything that is damaged" in last[1]
    assert log.read_bytes() == b""
