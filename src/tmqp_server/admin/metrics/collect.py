"""Collects the metrics of a server, in portions, and only once for all requests within a second.

Theory of operation.  A :class:`Page` is one answer in the making.  The request that waits for it
calls :meth:`Page.go_on`, which works on one portion and returns when to call it again.  The first
portions follow each other at once; a page of many portions leaves nine tenths of the time to the
event loop.  Requests that arrive while a page is made, or within a second of its beginning, get the
same page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from typing import Final, final

from tmqp_server.admin.limits import limits_near
from tmqp_server.admin.metrics.catalogue import (
    BY_NAME,
    CLUSTER_COUNTERS,
    QUEUE_COUNTERS,
    READERS,
    REFUSED_PUSHES,
)
from tmqp_server.admin.metrics.exposition import OPENMETRICS, Family, Row, series_of, written
from tmqp_server.admin.metrics.requests import RequestTally
from tmqp_server.admin.places import Places
from tmqp_server.admin.world import AdminWorld
from tmqp_server.engine.events import event_name
from tmqp_server.engine.model.histograms import SHORT_BOUNDS_US, Histogram
from tmqp_server.engine.operations.survey import QueueChoice, QueueSample, Survey
from tmqp_server.replication.view import GROUP_ROLES
from tmqp_server.shell.draining import SERVING
from tmqp_server.shell.peers import Pressure
from tmqp_server.shell.rates import RATES
from tmqp_server.shell.turn import Turn

__all__ = ["Collector", "Page"]

#: For how many seconds requests get the same page.
_SHARED_S: Final = 1.0
#: Portions that follow each other at once, and the pause before each further one.
_HURRIED: Final = 8
_PAUSE_S: Final = 0.005

#: The size of one portion; a step without output is a portion.
_PORTION_CHARACTERS: Final = 8_192

_Families = Iterator[Family]


@final
class Page:
    """One answer; ``text`` is complete once :meth:`go_on` has returned infinity."""

    def __init__(self, steps: Iterator[str], began_s: float, collected: Histogram) -> None:
        self.began_s = began_s
        self._collected = collected
        self.text = b""
        self.done = False
        self._steps = steps
        self._pieces: list[str] = []
        self._portions = 0
        self._due = began_s

    def go_on(self, now: float) -> float:
        """Work on the next portion, if it is time.  Return when to call again; infinity: never."""
        if self.done:
            return math.inf
        if now < self._due:
            return self._due
        size = 0
        while size < _PORTION_CHARACTERS:
            piece = next(self._steps, None)
            if piece is None:
                self.text = "".join(self._pieces).encode()
                self._pieces.clear()
                self.done = True
                self._collected.observe(now - self.began_s)
                return math.inf
            self._pieces.append(piece)
            size += len(piece) or _PORTION_CHARACTERS
        self._portions += 1
        self._due = now if self._portions < _HURRIED else now + _PAUSE_S
        return self._due


@final
class Collector:
    """Makes pages of metrics.

    :param choices: the queues with separate metrics, at most *max_queues* of them.
    """

    def __init__(self, world: AdminWorld, choices: Sequence[QueueChoice], max_queues: int) -> None:
        self._world = world
        self._choices = choices
        self._max_queues = max_queues
        self._pages: dict[int, Page] = {}
        self._collected = Histogram(SHORT_BOUNDS_US)
        #: The counters of the admin door, and the sessions of its browsers.
        self.requests = RequestTally()
        self.logins: Sized = ()
        self.places: Places | None = None
        #: Seconds to add to the engine's time to get Unix time; None without exemplars.
        self.exemplars_offset_s: float | None = None
        #: First deliveries of messages that have not waited, as reported last.
        self._at_once = 0

    def page(self, form: int, now: float) -> Page:
        """The page to answer with: one that is being made, one begun within this second, or a new
        one.
        """
        page = self._pages.get(form)
        if page is None or (page.done and now - page.began_s >= _SHARED_S):
            page = self._pages[form] = Page(self._steps(form, now), now, self._collected)
        return page

    def _steps(self, form: int, now: float) -> Iterator[str]:
        turn = self._world.turn
        assert turn is not None, "nobody can ask before there is one"
        if self.exemplars_offset_s is not None:
            turn.hub.broker.keep_exemplars()
        survey = turn.hub.broker.survey(self._choices, self._max_queues)
        while not survey.go_on(now):
            yield ""
        yield ""
        pressure = turn.pressure()
        while not pressure.go_on():
            yield ""
        series = 1
        for family in self._families(turn, survey, pressure):
            series += series_of(family)
            yield from written(family, form)
        yield from written(Family("metrics_series", [_one(series)]), form)
        if form == OPENMETRICS:
            yield "# EOF\n"

    def _of_group(self) -> _Families:
        """The state of replication, if this server is in a group."""
        group = self._world.group
        if group is None:
            return
        view = group()
        roles: list[Row] = [((role,), int(role == view.role)) for role in GROUP_ROLES]
        yield Family("replication_role", roles)
        yield Family("replication_epoch", [_one(view.epoch)])
        yield Family("replication_applied", [_one(view.applied)])
        yield Family("replication_behind", [_one(view.behind)])

    # -- the families, in the order of the catalogue -------------------------------------------

    def _families(self, turn: Turn, survey: Survey, pressure: Pressure) -> _Families:
        yield from self._of_process(turn)
        yield from _of_connections(turn, pressure)
        yield from self._of_messages(turn, survey)
        yield from _of_queues(survey)
        yield from self._of_memory(survey, pressure)
        yield from self._of_storage(turn, survey)
        expiry = _if_known(self._world.certificate_expires_s())
        yield Family("tls_certificate_expiry_timestamp_seconds", expiry)
        levels = survey.levels()
        told = sorted(turn.hub.notified.items())
        yield Family("events", [((event_name(event),), count) for event, count in told])
        yield Family("events_lost", [_one(turn.lost_events + levels["events_skipped"])])
        yield Family("router_failures", [_one(turn.router_failures)])
        calls: list[Row] = [((how,), n) for how, n in sorted(turn.calls.counts.items())]
        yield Family("http_binding_calls", calls)
        yield Family("http_binding_seconds", [_one(turn.calls.seconds)])
        cluster = self._world.cluster
        if cluster is not None:
            passed: list[Row] = [((what,), getattr(cluster, what)) for what in CLUSTER_COUNTERS]
            yield Family("cluster_messages", passed)
            yield Family("cluster_buffer_bytes", [_one(self._world.cluster_waiting())])
        yield from self._of_group()
        lines: list[Row] = [((level,), n) for level, n in sorted(self._world.log_lines.items())]
        yield Family("log_lines", lines)
        yield Family("log_suppressed", [_one(turn.unlogged)])
        world = self._world
        auditor = turn.hub.auditor
        counts = {} if auditor is None else auditor.counts
        audited: list[Row] = [
            ((action, "allowed" if allowed else "refused"), count)
            for (action, allowed), count in sorted(counts.items())
        ]
        yield Family("audit_records", audited)
        yield Family("audit_failing", [_one(int(world.audit_fails()))])
        yield Family("config_reload_success", [_one(int(not world.last_reload_failed))])
        reloads: list[Row] = [((how,), count) for how, count in world.reloads.items()]
        yield Family("config_reloads", reloads)
        yield from self._of_web()
        if survey.samples:
            yield Family("metrics_queues_left_out", [_one(survey.left_out)])

    def _of_web(self) -> _Families:
        tally = self.requests
        yield Family("http_requests", sorted(tally.requests.items()))
        seconds: list[Row] = [((route,), tally.seconds[route]) for route in sorted(tally.seconds)]
        yield Family("http_request_seconds", seconds)
        yield Family("websockets", [_one(tally.websockets)])
        yield Family("event_streams", [_one(tally.streams)])
        yield Family("admin_sessions", [_one(len(self.logins))])
        yield Family("metrics_collect_seconds", [_one(self._collected)])
        places = self.places
        if places is not None:
            yield Family("admin_requests_at_work", [_one(len(places.at_work))])
            yield Family("admin_requests_waiting", [_one(len(places.line))])
            yield Family("admin_requests_refused", [_one(places.refused)])
            yield Family("admin_busy_seconds", [_one(places.share.spent_s)])
            yield Family("admin_pauses", [_one(places.share.pauses)])

    def _of_process(self, turn: Turn) -> _Families:
        world = self._world
        facts = world.facts()
        build = tuple([world.build[key] for key in BY_NAME["build_info"].labels])
        yield Family("build_info", [(build, 1)])
        yield Family("start_time_seconds", [_one(world.started_s)])
        yield Family("ready", [_one(int(not world.problems()))])
        draining = turn.draining
        yield Family("draining", [_one(int(draining.state != SERVING))])
        yield Family("draining_unacknowledged", [_one(draining.in_flight)])
        yield Family("process_cpu_seconds", _if_known(facts.cpu_s))
        yield Family("process_resident_memory_bytes", _if_known(facts.resident_bytes))
        yield Family("process_open_fds", _if_known(facts.open_fds))
        yield Family("process_max_fds", _if_known(facts.max_fds))
        yield Family("event_loop_lag_seconds", [_one(turn.tally.lag)])
        yield Family("turn_seconds", [_one(turn.pulse.seconds())])
        yield Family("slow_turns", [_one(turn.pulse.slow_count)])
        if world.floor_bytes:
            yield Family("storage_bytes", _if_known(facts.storage_bytes))
            yield Family("storage_free_bytes", _if_known(facts.free_bytes))
            yield Family("storage_floor_bytes", [_one(world.floor_bytes)])
            made_s = None if world.backups is None else world.backups.complete_s
            yield Family("storage_backup_timestamp_seconds", _if_known(made_s))

    def _of_messages(self, turn: Turn, survey: Survey) -> _Families:
        doors = sorted(survey.doors.items())
        yield Family("sessions", [((door,), each.sessions) for door, each in doors])
        yield Family("subscriptions", [((door,), each.subscriptions) for door, each in doors])
        yield Family("messages_received", [((door,), each.pushed) for door, each in doors])
        yield Family("messages_delivered", [((door,), each.delivered) for door, each in doors])
        acknowledges: list[Row] = []
        for door, each in doors:
            acknowledges.append(((door, "positive"), each.acknowledged))
            acknowledges.append(((door, "negative"), each.negative_acks))
            acknowledges.append(((door, "unknown"), each.unknown_acks))
        yield Family("acknowledges", acknowledges)
        confirms = [(("positive",), survey.confirms), (("negative",), survey.negative_confirms)]
        yield Family("confirms", confirms)
        yield Family("confirms_skipped", [_one(survey.levels()["confirms_skipped"])])
        refused = dict.fromkeys([*REFUSED_PUSHES.values(), "other"], 0)
        for code, count in survey.refusals.items():
            refused[REFUSED_PUSHES.get(code, "other")] += count
        yield Family("pushes_refused", [((reason,), count) for reason, count in refused.items()])
        converted: list[Row] = [((door,), n) for door, n in sorted(self._world.conversions.items())]
        yield Family("conversions", converted)
        yield Family("router_published", [_one(survey.published)])
        latency = Family("push_to_delivery_seconds", [_one(self._latency(survey))])
        latency.exemplars = survey.exemplars
        latency.offset_s = self.exemplars_offset_s or 0.0
        yield latency
        yield Family("push_to_confirm_seconds", [_one(turn.tally.confirm)])

    def _latency(self, survey: Survey) -> Histogram:
        """The observed waits, and a wait of 0 for each first delivery of a message that has not
        waited.
        """
        found = survey.latency
        counters = survey.total.counters
        at_once = counters.sent - counters.redelivered - sum(found.counts)
        # Both numbers are read at different times; the difference must never fall.
        self._at_once = max(self._at_once, at_once)
        found.count(0, self._at_once)
        return found

    def _of_memory(self, survey: Survey, pressure: Pressure) -> _Families:
        levels = survey.levels()
        limits = self._world.limits
        rows: list[Row] = [
            (("messages",), levels["message_bytes"]),
            (("state",), levels["state_bytes"]),
            (("unsynced",), levels["unsynced_bytes"]),
            (("outbound",), pressure.waiting),
        ]
        yield Family("memory_used_bytes", rows)
        most = [(("all",), limits.max_total_bytes), (("unsynced",), limits.max_unsynced_bytes)]
        yield Family("memory_limit_bytes", most)
        ratios: list[Row] = [
            ((each["name"],), each["used"] / each["limit"])
            for each in limits_near(self._world, levels)
            if each["limit"]
        ]
        yield Family("limit_used_ratio", ratios)
        reached: list[Row] = [((name,), n) for name, n in sorted(survey.limits_reached.items())]
        yield Family("limit_reached", reached)

    def _of_storage(self, turn: Turn, survey: Survey) -> _Families:
        if turn.saving is None:
            return
        tally = turn.tally
        yield Family("storage_saving", [_one(int(self._world.saves()))])
        yield Family("storage_failures", [_one(tally.failures)])
        yield Family("storage_write_seconds", [_one(tally.write)])
        if self._world.syncs is not None:
            yield Family("storage_sync_seconds", [_one(self._world.syncs)])
        yield Family("storage_read_seconds", [_one(tally.read)])
        yield Family("storage_batch_messages", [_one(tally.batch)])
        unsynced = survey.levels()["unsynced_messages"]
        yield Family("storage_unsynced_messages", [_one(unsynced)])


def _one(value: float | Histogram) -> Row:
    """The row of a metric without labels."""
    return ((), value)


def _if_known(value: float | None) -> list[Row]:
    return [] if value is None else [_one(value)]


def _of_connections(turn: Turn, pressure: Pressure) -> _Families:
    tally = turn.tally
    doors = sorted(tally.doors.items())
    there = turn.open_by_door()
    yield Family("connections", [((door,), there[door]) for door, _ in doors])
    yield Family("connections_opened", [((door,), each.opened) for door, each in doors])
    closed: list[Row] = []
    for door, each in doors:
        closed += [((door, reason), count) for reason, count in sorted(each.closed.items())]
    yield Family("connections_closed", closed)
    refused: list[Row] = [((why,), count) for why, count in sorted(tally.refused.items())]
    yield Family("connections_refused", refused)
    yield Family("connections_blocked", [_one(pressure.blocked)])
    yield Family("slow_consumers", [_one(turn.slow_consumers.count)])
    yield Family("outbound_waiting_bytes", [_one(pressure.waiting)])
    yield Family("received_bytes", [((door,), each.received_bytes) for door, each in doors])
    yield Family("sent_bytes", [((door,), each.sent_bytes) for door, each in doors])
    decided: list[Row] = []
    for door, each in doors:
        decided += [((door, "admitted"), each.admitted), ((door, "refused"), each.denied)]
    broken: list[Row] = []
    for door, each in doors:
        broken += [((door, rule), count) for rule, count in sorted(each.violations.items())]
    yield Family("protocol_errors", broken)
    yield Family("authentications", decided)
    yield Family("rate_waits", [((rate,), tally.waits.get(rate, 0)) for rate in RATES])
    shaken: list[Row] = [((how,), count) for how, count in sorted(tally.handshakes.items())]
    yield Family("tls_handshakes", shaken)
    gate = turn.hub.gate
    denied = {} if gate is None else gate.denied
    rights: list[Row] = [((right,), count) for right, count in sorted(denied.items())]
    yield Family("permission_denied", rights)


def _of_queues(survey: Survey) -> _Families:
    total = survey.total
    levels = survey.levels()
    yield Family("channels", [_one(levels["channels"])])
    yield Family("queues", [_one(survey.queues)])
    yield Family("routers", [_one(levels["routers"])])
    yield Family("transactions", [_one(levels["transactions"])])
    yield Family("readers", [((kind,), levels[kind]) for kind in READERS])
    yield Family("queues_messages", _states((), total))
    yield Family("queues_oldest_age_seconds", [_one(total.oldest_age_s)])
    yield Family("queues_without_consumers", [_one(survey.without)])
    for field, name, _ in QUEUE_COUNTERS:
        yield Family(f"queues_{name}", [_one(getattr(total.counters, field))])
    chosen: list[tuple[tuple[str, ...], QueueSample]] = [
        ((each.channel, str(each.queue_id)), each) for each in survey.samples
    ]
    rest = survey.rest()
    if rest is not None:
        chosen.append((("(others)", ""), rest))
    rows: list[Row] = []
    for labels, each in chosen:
        rows += _states(labels, each)
    yield Family("queue_messages", rows)
    yield Family("queue_bytes", [(labels, each.taken_bytes) for labels, each in chosen])
    ages: list[Row] = [(labels, each.oldest_age_s) for labels, each in chosen]
    yield Family("queue_oldest_age_seconds", ages)
    yield Family("queue_consumers", [(labels, each.consumers) for labels, each in chosen])
    for field, name in (
        ("received", "received"),
        ("deliveries", "delivered"),
        ("done", "done"),
        ("ack_timeouts", "ack_timeouts"),
        ("dead", "dead"),
        ("refused", "refused"),
    ):
        counted: list[Row] = [(labels, getattr(each.counters, field)) for labels, each in chosen]
        yield Family(f"queue_{name}", counted)


def _states(labels: tuple[str, ...], sample: QueueSample) -> list[Row]:
    return [
        ((*labels, "waiting"), sample.waiting),
        ((*labels, "spilled"), sample.on_disk),
        ((*labels, "deferred"), sample.deferred),
        ((*labels, "in_flight"), sample.unanswered),
    ]
