"""What is kept of messages, read without a door of theirs."""

from __future__ import annotations

import subprocess
import sys

from tmqp_server.doors.bodies import LateBodies
from tmqp_server.doors.goms.message import GomsBodies
from tmqp_server.doors.http.bodies import HttpBodies
from tmqp_server.doors.nsq.message import NsqBodies
from tmqp_server.doors.openwire.message import OpenwireBodies
from tmqp_server.doors.port import OwnBodies
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.doors.smq.message import SmqBodies, SmqMessage
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_server.doors.throttr.message import ThrottrBodies
from tmqp_server.doors.zmtp.message import ZmtpBodies


def test_the_registry_names_and_numbers_protocols_as_they_do_themselves() -> None:
    kinds = {kind.name: kind for kind in DoorRegistry() if kind.number}
    for own in (
        GomsBodies(),
        HttpBodies(),
        NsqBodies(),
        OpenwireBodies(),
        SmqBodies(),
        StompBodies(),
        ThrottrBodies(),
        ZmtpBodies(),
    ):
        kind = kinds.pop(own.name)
        bodies = kind.bodies()
        assert (bodies.name, bodies.number) == (kind.name, kind.number) == (own.name, own.number)
    (native,) = kinds.values()
    assert (native.bodies().name, native.bodies().number) == (native.name, native.number)


def test_late_bodies_are_made_once_when_a_message_needs_them() -> None:
    made: list[OwnBodies] = []

    def make() -> SmqBodies:
        bodies = SmqBodies()
        made.append(bodies)
        return bodies

    late = LateBodies("smq", 8, make)
    assert made == []
    wire = SmqMessage("channel", b"body")
    assert late.letter(wire).body == b"body"
    assert late.with_headers(wire, [("a", "b")]) == (wire, 0)
    assert len(made) == 1


def test_a_server_without_small_and_admin_doors_does_not_load_what_they_need() -> None:
    code = """
import sys
from tmqp_server.admin.world import AdminWorld
from tmqp_server.wiring.watched import make_registry
[kind.bodies() for kind in make_registry(AdminWorld()) if kind.number]
doors = ("goms", "openwire", "smq", "stomp", "throttr")
paths = [name.split(".") for name in sys.modules if name.endswith(".message")]
print([path for path in paths if path[-2] in doors])
print([name for name in sys.modules if name.startswith(("tmqp_server.admin.api.", "h11"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n[]\n"
