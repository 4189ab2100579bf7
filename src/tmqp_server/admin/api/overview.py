"""The server in numbers: counted in portions, and only once for all requests within a second."""

from __future__ import annotations

import math
from typing import Final, final

from tmqp_server.admin.api.shapes import histogram_item
from tmqp_server.admin.limits import limits_near
from tmqp_server.admin.world import AdminWorld
from tmqp_server.engine.operations.survey import Survey
from tmqp_server.shell.peers import Pressure
from tmqp_server.shell.turn import Turn

__all__ = ["Overview", "Overviews", "turn_of"]

#: For how many seconds requests get the same numbers.
_SHARED_S: Final = 1.0
#: Portions that follow each other at once, and the pause before each further one.
_HURRIED: Final = 8
_PAUSE_S: Final = 0.005


def turn_of(world: AdminWorld) -> Turn:
    """The turn of the server, which exists as soon as clients can send requests."""
    assert world.turn is not None, "nobody can ask before there is one"
    return world.turn


@final
class Overview:
    """One count of everything; ``value`` is None until it is complete."""

    def __init__(self, world: AdminWorld, now: float, offset_s: float) -> None:
        self.value: dict[str, object] | None = None
        self.began_s = now
        self._world = world
        self._offset_s = offset_s
        self._survey = turn_of(world).hub.broker.survey()
        self._pressure: Pressure | None = None
        self._portions = 0
        self._due = now

    def go_on(self, now: float) -> float:
        """Work on the next portion, if it is time.  Return when to call again; infinity: never."""
        if self.value is not None:
            return math.inf
        if now < self._due:
            return self._due
        if self._pressure is None:
            if self._survey.go_on(now):
                self._pressure = turn_of(self._world).pressure()
        elif self._pressure.go_on():
            self.value = _shown(self._world, self._survey, self._pressure, now, self._offset_s)
            return math.inf
        self._portions += 1
        self._due = now if self._portions < _HURRIED else now + _PAUSE_S
        return self._due


@final
class Overviews:
    """Starts and shares the counts of everything."""

    def __init__(self, world: AdminWorld) -> None:
        self._world = world
        self._last: Overview | None = None

    def take(self, now: float, offset_s: float) -> Overview:
        """The count to show: one that is being made, one begun within this second, or a new one."""
        last = self._last
        if last is None or (last.value is not None and now - last.began_s >= _SHARED_S):
            last = self._last = Overview(self._world, now, offset_s)
        return last


def _doors(turn: Turn, survey: Survey) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    there = turn.open_by_door()
    for name, tally in sorted(turn.tally.doors.items()):
        found[name] = {
            "connections": there[name],
            "opened": tally.opened,
            "received_bytes": tally.received_bytes,
            "sent_bytes": tally.sent_bytes,
        }
    for name, each in survey.doors.items():
        found.setdefault(name, {}).update(
            messages_received=each.pushed, messages_delivered=each.delivered
        )
    return found


def _shown(
    world: AdminWorld, survey: Survey, pressure: Pressure, now: float, offset_s: float
) -> dict[str, object]:
    turn = turn_of(world)
    levels = survey.levels()
    facts = world.facts()
    problems = world.problems()
    total, counters = survey.total, survey.total.counters
    return {
        "version": world.build["version"],
        "build": world.build["build"],
        "python": world.build["python"],
        "started_at_ms": int(world.started_s * 1_000),
        "now_ms": int((now + offset_s) * 1_000),
        "uptime_s": int(max(now + offset_s - world.started_s, 0.0)),
        "ready": not problems,
        "draining": world.draining,
        "saving": world.saves() if turn.saving is not None else None,
        "role": None if world.group is None else world.group().role,
        "problems": problems,
        "limits_near": [each["name"] for each in limits_near(world, levels) if each["near"]],
        "channels": levels["channels"],
        "queues": survey.queues,
        "queues_without_consumers": survey.without,
        "clients": levels["sessions"],
        "connections": world.connections(),
        "connections_blocked": pressure.blocked,
        "outbound_waiting_bytes": pressure.waiting,
        "messages": {
            "waiting": total.waiting,
            "spilled": total.on_disk,
            "deferred": total.deferred,
            "in_flight": total.unanswered,
            "oldest_age_s": round(total.oldest_age_s, 3),
        },
        "counts": {
            "received": counters.received,
            "sent": counters.sent,
            "deliveries": counters.deliveries,
            "done": counters.done,
            "redelivered": counters.redelivered,
            "expired": counters.expired,
            "dead": counters.dead,
            "dropped": counters.dropped,
            "refused": counters.refused,
            "damaged": counters.damaged,
            "confirms": survey.confirms,
        },
        "doors": _doors(turn, survey),
        "memory_used_bytes": levels["message_bytes"] + levels["state_bytes"],
        "memory_limit_bytes": world.limits.max_total_bytes,
        "disk_bytes": facts.storage_bytes,
        "disk_free_bytes": facts.free_bytes,
        "disk_floor_bytes": world.floor_bytes,
        "lag_us": histogram_item(turn.tally.lag),
        "process": {
            "cpu_s": facts.cpu_s,
            "resident_bytes": facts.resident_bytes,
            "open_fds": facts.open_fds,
            "max_fds": facts.max_fds,
        },
    }
