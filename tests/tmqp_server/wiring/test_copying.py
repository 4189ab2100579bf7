"""Copies for other servers of a group: read in blocks, and removed when nobody wants them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from tests.waiting import until
from tmqp.references import DATABASE_NAME
from tmqp_server.wiring import copying
from tmqp_server.wiring.copying import BLOCK_BYTES, Copies

pytestmark = [pytest.mark.cold, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

#: A copy of two blocks.
DATA = bytes(range(256)) * (BLOCK_BYTES // 256) + b"end"


def make(target: Path) -> None:
    target.mkdir()
    (target / DATABASE_NAME).write_bytes(DATA)


async def copied(_data: str, target: Path) -> tuple[bool, str]:
    make(target)
    return True, ""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "run_backup", copied)
    monkeypatch.setattr(copying, "_LOOK_S", 0.001)


def copies_of(directory: Path, tasks: anyio.abc.TaskGroup) -> Copies:
    def start(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        tasks.start_soon(work)

    return Copies(str(directory), "g/0", start)


def name_of(copies: Copies) -> str:
    assert copies.last is not None
    name: str = copies.last["id"]
    return name


def is_made(copies: Copies) -> bool:
    return copies.last is not None and copies.last["complete"]


async def read(copies: Copies, offset: int) -> bytes | None:
    block = copies.read(name_of(copies), offset)
    assert block is not None
    await until(lambda: block.done)
    return block.data


async def test_a_copy_is_read_in_blocks_until_it_is_removed(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        copies = copies_of(tmp_path, tasks)
        assert copies.begin()
        assert not copies.begin(), "there is one at a time"
        assert copies.read(name_of(copies), 0) is None, "it is being made"
        await until(lambda: is_made(copies))
        found = [await read(copies, at) for at in (0, BLOCK_BYTES, len(DATA))]
        assert found == [DATA[:BLOCK_BYTES], b"end", b""]
        (tmp_path / "copy" / DATABASE_NAME).unlink()
        assert await read(copies, 0) is None
        assert not copies.remove("another")
        assert copies.remove(name_of(copies))
        assert copies.last is None
        assert not (tmp_path / "copy").exists()


async def test_a_copy_that_nobody_reads_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_MOST_IDLE_S", 0.0)
    async with anyio.create_task_group() as tasks:
        copies = copies_of(tmp_path, tasks)
        copies.begin()
        await until(lambda: copies.last is None)
        assert not (tmp_path / "copy").exists()
        assert copies.begin(), "there can be another one"


async def test_a_copy_that_is_given_up_while_it_is_made_is_removed_then(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        copies = copies_of(tmp_path, tasks)
        copies.begin()
        assert copies.remove(name_of(copies))
        assert not copies.begin(), "it is still being made"
        await until(lambda: copies.last is None)


async def test_what_an_earlier_life_has_left_is_removed(tmp_path: Path) -> None:
    make(tmp_path / "copy")
    async with anyio.create_task_group() as tasks:
        copies_of(tmp_path, tasks)
    assert not (tmp_path / "copy").exists()
