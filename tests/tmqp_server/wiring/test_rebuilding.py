"""A server of a group is rebuilt from a copy of another one's store, over the HTTP API."""

from __future__ import annotations

import functools
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from click.testing import CliRunner

from tests.tmqp_server.replication.shared_logs import Way
from tests.tmqp_server.wiring.test_replicating import (
    ASYNCIO,
    DURABLE,
    Group,
    admin_url,
    hand_over,
    leads,
    reported,
)
from tests.waiting import until
from tmqp.references import DATABASE_NAME
from tmqp_client import connect
from tmqp_server.__main__ import main
from tmqp_server.commands import rebuild as command
from tmqp_server.settings.replication import ReplicationConfig
from tmqp_server.storage.log import ListMembers, Members
from tmqp_server.storage.port import KeepChannel, StoreBatch, StoreError
from tmqp_server.storage.sqlite import SqliteStore, back_up
from tmqp_server.storage.sqlite.replicated import ReplicatedStore
from tmqp_server.wiring import copying, rebuilding
from tmqp_server.wiring.app import Server
from tmqp_server.wiring.rebuilding import Rebuilder, RebuildError, can_follow

pytestmark = pytest.mark.cold

#: Nobody listens there.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Group:
    for name in ("_PAUSE_S", "_LOOK_S", "_HOLD_S"):
        monkeypatch.setattr(rebuilding, name, 0.001)
    monkeypatch.setattr(rebuilding, "_MOST_FAILURES", 3)
    monkeypatch.setattr(copying, "run_backup", in_a_thread(copied))
    return Group(tmp_path, monkeypatch)


def copied(data: str, target: Path) -> tuple[bool, str]:
    """A copy as the command makes it."""
    back_up(Path(data), target)
    return True, ""


def in_a_thread(
    make: Callable[[str, Path], tuple[bool, str]],
) -> Callable[[str, Path], object]:
    @functools.wraps(make)
    async def run(data: str, target: Path) -> tuple[bool, str]:
        return await anyio.to_thread.run_sync(make, data, target)

    return run


def rebuilder(group: Group, directory: Path, told: list[str], *copies: str) -> Rebuilder:
    config = ReplicationConfig(log="etcd://e:1/g", node="b", copies=copies)
    return Rebuilder(config, "tmq://b:1", directory, Way(group.log), told.append)


async def lose(group: Group, server: Server) -> None:
    """Have a group whose log begins behind its first entries."""
    await until(leads(server))
    async with connect(str(server.addresses[0])) as client:
        await client.create_queue("c", 1, DURABLE, status="push")
        for number in range(20):
            await client.push("c", 1, b"%d" % number)
    await until(lambda: reported(group) > 1)
    group.log.server.first = reported(group) + 1


@ASYNCIO
async def test_a_server_that_lost_too_much_is_rebuilt_joins_and_leads(
    group: Group, tmp_path: Path
) -> None:
    async with group.server("a") as first:
        await lose(group, first)
        async with group.server("b"):
            await until(lambda: "b" in group.over)
        assert "it needs a new copy: tmqp-server rebuild" in group.over.pop("b")
        assert not can_follow(tmp_path / "b", Way(group.log))
        told: list[str] = []
        run = rebuilder(group, tmp_path / "b", told, NOWHERE, admin_url(first))
        number = await anyio.to_thread.run_sync(run.rebuild)
        assert number >= group.log.server.first - 1
        assert len(told) == 1
        assert NOWHERE in told[0]
        assert first.world.copies is not None
        assert first.world.copies.last is None, "it was removed"
        assert not (tmp_path / "b" / "rebuilt").exists()
        members = group.log.ask(ListMembers())
        assert isinstance(members, Members)
        held = {each.node: each.applied for each in members.members}
        assert held["b"] == group.log.server.first - 1, "the log is held for it"
        async with group.server("b") as second:
            await hand_over(first, second, 20)
    assert group.over == {}


def damaged(data: str, target: Path) -> tuple[bool, str]:
    copied(data, target)
    with closing(sqlite3.connect(target / DATABASE_NAME)) as db:
        db.execute("UPDATE channels SET options = x'7b'")
        db.commit()
    return True, ""


def alone(_data: str, target: Path) -> tuple[bool, str]:
    """A copy of a store that is in no group."""
    single(target)
    return True, ""


def single(directory: Path) -> None:
    with closing(SqliteStore(directory, floor_bytes=1)) as store:
        store.recover()
        batch = StoreBatch()
        batch.changes.append(KeepChannel("c", b"{}"))
        store.write(batch, 1)


def impossible(_data: str, _target: Path) -> tuple[bool, str]:
    return False, "the disk is full"


@ASYNCIO
async def test_a_copy_that_is_of_no_use_leaves_the_directory_as_it_was(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "_MOST_FAILURES", 1)
    ReplicatedStore(tmp_path / "b", floor_bytes=1).close()
    before = (tmp_path / "b" / DATABASE_NAME).read_bytes()
    async with group.server("a") as first:
        await lose(group, first)
        for make, reason in (
            (damaged, "is damaged"),
            (alone, "not replicated"),
            (impossible, "the disk is full"),
        ):
            monkeypatch.setattr(copying, "run_backup", in_a_thread(make))
            run = rebuilder(group, tmp_path / "b", [], admin_url(first))
            with pytest.raises(RebuildError, match=reason):
                await anyio.to_thread.run_sync(run.rebuild)
            assert (tmp_path / "b" / DATABASE_NAME).read_bytes() == before
            assert not (tmp_path / "b" / "rebuilt").exists()
            assert first.world.copies is not None
            await until(lambda: first.world.copies.last is None)  # type: ignore[union-attr]


@ASYNCIO
async def test_a_copy_of_another_group_is_refused(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilding, "_MOST_FAILURES", 1)
    async with group.server("a") as first:
        await until(leads(first))
        config = ReplicationConfig(log="etcd://e:1/x", node="b", copies=(admin_url(first),))
        run = Rebuilder(config, "tmq://b:1", tmp_path / "b", Way(group.log), lambda _: None)
        with pytest.raises(RebuildError, match="it is in the group g/0"):
            await anyio.to_thread.run_sync(run.rebuild)


class Odd(BaseHTTPRequestHandler):
    """Answers everything with the same bytes."""

    said = b""

    def do_POST(self) -> None:
        """Answer."""
        self.send_response(202)
        self.send_header("Content-Length", str(len(self.said)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(self.said)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"{}", "cannot be read: KeyError"),
        (b"[1]", "cannot be read: TypeError"),
        (b"<html>", "cannot be read: JSONDecodeError"),
        (b" " * (3 << 20), "too long"),
    ],
)
def test_a_server_that_answers_something_else_is_passed_over(
    group: Group,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: bytes,
    reason: str,
) -> None:
    monkeypatch.setattr(rebuilding, "_MOST_FAILURES", 1)
    monkeypatch.setattr(Odd, "said", said)
    with HTTPServer(("127.0.0.1", 0), Odd) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(RebuildError, match=reason):
            rebuilder(group, tmp_path / "b", [], url).rebuild()
        thread.join()


def test_a_log_that_never_answers_is_given_up(group: Group, tmp_path: Path) -> None:
    run = rebuilder(group, tmp_path / "b", [], NOWHERE)
    way = Way(group.log)
    way.is_cut = True
    run._log = way
    with pytest.raises(RebuildError, match="the log does not answer"):
        run.rebuild()


def test_a_directory_that_a_server_has_open_is_not_touched(group: Group, tmp_path: Path) -> None:
    with (
        closing(ReplicatedStore(tmp_path / "b", floor_bytes=1)),
        pytest.raises(StoreError, match="is in use by"),
    ):
        rebuilder(group, tmp_path / "b", [], NOWHERE).rebuild()


def test_the_command_rebuilds_only_what_needs_it_and_what_belongs_to_a_group(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "open_log", lambda _config: Way(group.log))
    config = tmp_path / "tmqp.toml"

    def run(data: str, *options: str, copies: str = NOWHERE) -> tuple[int, str]:
        config.write_text(
            f'listen = ["tmq://127.0.0.1:0"]\ndata = "{tmp_path / data}"\n[replication]\n'
            f'log = "etcd://e:1/g"\nnode = "b"\ncopies = ["{copies}"]\n',
            encoding="utf-8",
        )
        done = CliRunner().invoke(main, ["rebuild", "-c", str(config), *options])
        return done.exit_code, done.output

    assert run("b", "--if-needed") == (0, f"{tmp_path / 'b'} needs no copy\n")
    code, said = run("b")
    assert code == 2
    assert f"no copy from {NOWHERE}" in said
    code, said = run("b", "--from", "http://127.0.0.1:10")
    assert "no copy from http://127.0.0.1:10" in said
    single(tmp_path / "alone")
    code, said = run("alone")
    assert code == 2
    assert "is not replicated" in said
    (tmp_path / "b" / DATABASE_NAME).write_bytes(b"no database" * 100)
    code, said = run("b", "--if-needed")
    assert f"no copy from {NOWHERE}" in said, "what is damaged needs a copy"
    code, said = run("b", copies="ftp://x")
    assert code == 2
    assert "is not http://HOST:PORT" in said
    config.write_text("", encoding="utf-8")
    done = CliRunner().invoke(main, ["rebuild", "-c", str(config)])
    assert (done.exit_code, "there is no [replication]" in done.output) == (2, True)
