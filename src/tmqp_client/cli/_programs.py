"""Runs the user's programs for messages and requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

import anyio
from anyio.abc import ByteSendStream, Process

__all__ = ["output_of", "status_of"]


async def output_of(command: Sequence[str], payload: bytes) -> tuple[int, bytes]:
    """Run a command on a payload; return its exit status and its output.

    :raises OSError: if it cannot be started.
    """
    pieces: list[bytes] = []
    async with (
        await anyio.open_process(list(command), stderr=None) as process,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_feed, process, payload)
        assert process.stdout is not None, "it is a pipe"
        async for piece in process.stdout:
            pieces.append(piece)
        status = await process.wait()
    return status, b"".join(pieces)


async def status_of(command: Sequence[str], payload: bytes, variables: Mapping[str, str]) -> int:
    """Run a command on a payload; return its exit status.  It inherits this program's output.

    A command that is cancelled is killed.

    :param variables: further variables of its environment.
    :raises OSError: if it cannot be started.
    """
    environment = {**os.environ, **variables}
    async with await anyio.open_process(
        list(command), stdout=None, stderr=None, env=environment
    ) as process:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_feed, process, payload)
        return await process.wait()


async def _feed(process: Process, payload: bytes) -> None:
    """Write a command's input.  Many do not read it, and end before all of it is written."""
    stdin: ByteSendStream | None = process.stdin
    assert stdin is not None, "it is a pipe"
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError):
        await stdin.send(payload)
    with suppress(anyio.BrokenResourceError, BrokenPipeError):
        await stdin.aclose()
