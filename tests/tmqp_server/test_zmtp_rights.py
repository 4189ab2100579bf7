"""What sockets of ZeroMQ may do: of all rights, one is missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
import zmq

from tests.tmqp_server.all_but_one import all_but_one
from tests.tmqp_server.zmtp_sockets import Sockets, in_thread, sockets
from tmqp_server import running
from tmqp_server.access import rights

DOOR: Final[dict[str, Any]] = {"protocol": "zmtp", "listen": ["127.0.0.1:0"]}
#: What a socket needs, and a right that none of these does.
MISSING: Final = (rights.PUSH, rights.JOIN, rights.REMOVE_QUEUE)
#: For how long nothing comes where nothing may.
QUIET_MS: Final = 300

#: It is libzmq that is asynchronous here; what the server runs on is no matter.
pytestmark = pytest.mark.parametrize("anyio_backend", ["asyncio"])

_Result = TypeVar("_Result")


async def with_both(work: Callable[[Sockets, Sockets], _Result], missing: str) -> _Result:
    """Sockets that may do everything, and such as may do all but one thing."""
    async with running(all_but_one(DOOR, missing)) as server:
        full, limited = [int(each.rpartition(":")[2]) for each in server.door_addresses()][-2:]

        def both(found: Sockets) -> _Result:
            with sockets(limited) as others:
                return work(found, others)

        return await in_thread(both, full)


def all_of(socket: zmq.Socket[bytes]) -> list[bytes]:
    """What comes, until nothing does."""
    found: list[bytes] = []
    while socket.poll(QUIET_MS):
        found.append(socket.recv())
    return found


@pytest.mark.parametrize("missing", MISSING)
async def test_a_push_socket_needs_push_and_a_pull_socket_join(missing: str) -> None:
    def work(full: Sockets, limited: Sockets) -> tuple[list[bytes], list[bytes]]:
        limited.make(zmq.PUSH).send(b"limited")
        full.make(zmq.PUSH).send(b"full")
        pull = full.make(zmq.PULL)
        came = [pull.recv(), *all_of(pull)]
        pull.close(linger=0)
        push, other, later = full.make(zmq.PUSH), limited.make(zmq.PULL), list[bytes]()
        for _ in range(5):  # one may be sent to the socket that has just been closed
            push.send(b"later")
            later += all_of(other)
            if later:
                break
        return sorted(came), later[:1]

    came, later = await with_both(work, missing)
    assert came == ([b"full"] if missing == rights.PUSH else [b"full", b"limited"])
    assert later == ([] if missing == rights.JOIN else [b"later"])


@pytest.mark.parametrize("missing", MISSING)
async def test_a_pub_socket_needs_push_and_a_sub_socket_join(missing: str) -> None:
    def work(full: Sockets, limited: Sockets) -> list[list[bytes]]:
        subscribers = [each.make(zmq.SUB) for each in (full, limited)]
        for each in subscribers:
            each.subscribe(b"")
        publishers = [each.make(zmq.PUB) for each in (full, limited)]
        time.sleep(0.3)
        for name, each in zip((b"full", b"limited"), publishers, strict=True):
            each.send(name)
        return [sorted(all_of(each)) for each in subscribers]

    by_full, by_limited = await with_both(work, missing)
    published = [b"full"] if missing == rights.PUSH else [b"full", b"limited"]
    assert by_full == published
    assert by_limited == ([] if missing == rights.JOIN else published)


@pytest.mark.parametrize("missing", MISSING)
async def test_a_req_socket_needs_push_and_a_rep_socket_join(missing: str) -> None:
    def work(full: Sockets, limited: Sockets) -> tuple[list[bytes], bytes, list[bytes]]:
        asker, worker = limited.make(zmq.REQ), full.make(zmq.REP)
        asker.send(b"question")
        asked = all_of(worker)
        if asked:
            worker.send(b"answer")
        answer = asker.recv()
        worker.close(linger=0)
        full.make(zmq.REQ).send(b"another")
        return asked, answer, all_of(limited.make(zmq.REP))

    asked, answer, another = await with_both(work, missing)
    if missing == rights.PUSH:
        assert (asked, answer) == ([], b"TMQP-ERROR 401")
    else:
        assert (asked, answer) == ([b"question"], b"answer")
    assert another == ([] if missing == rights.JOIN else [b"another"])
