"""The metrics of the server, each declared once.

The exposition, ``docs/metrics.md``, the lint, and the checks of the Grafana dashboard and of the
alert rules are made from this table.  Names are an interface: a released name never changes.

A name here has neither the prefix ``tmqp_`` nor the suffix ``_total``.  No label has a value that a
client chooses: no id, address, header or free text. Channel names are label values only for queues
that the operator has chosen, and ``labels`` says how many values each label can have.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final, final

from tmqp_server.access.auditing import ACTIONS, MANAGED
from tmqp_server.access.rights import RIGHTS
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.replication.view import GROUP_ROLES
from tmqp_server.shell.rates import RATES
from tmqp_server.shell.tallies import CLOSINGS, REFUSALS

__all__ = [
    "BY_NAME",
    "CATALOGUE",
    "CLUSTER_COUNTERS",
    "COUNTER",
    "GAUGE",
    "HISTOGRAM",
    "PREFIX",
    "QUEUE_COUNTERS",
    "READERS",
    "REFUSED_PUSHES",
    "Metric",
]

COUNTER: Final = "counter"
GAUGE: Final = "gauge"
HISTOGRAM: Final = "histogram"
PREFIX: Final = "tmqp_"

#: Doors of one server, for the bound of a label: as many as an operator has configured.
_DOORS: Final = 10
#: Rules that peers can break, and words for limits, at most.
_RULES: Final = 60
_LIMITS: Final = len(fields(EngineLimits)) + 2
#: Templates of the routes of the admin door, at most.
_ROUTES: Final = 120
#: The most queues that are shown, unless ``max_metrics_queues`` says otherwise.
_QUEUES: Final = 1_000


@final
class Metric:
    """One family of time series.

    :param name: without prefix and suffix; if it has a unit, the unit is its last word.
    :param kind: ``COUNTER``, ``GAUGE`` or ``HISTOGRAM``.
    :param text: what it measures, in one or two sentences.
    :param labels: each label and how many values it can have.
    """

    __slots__ = ("kind", "labels", "name", "text")

    def __init__(self, name: str, kind: str, text: str, /, **labels: int) -> None:
        self.name = name
        self.kind = kind
        self.text = text
        self.labels = labels

    @property
    def family(self) -> str:
        """Its name in OpenMetrics."""
        return PREFIX + self.name

    @property
    def full_name(self) -> str:
        """Its name in Prometheus' text format, and in queries."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == COUNTER else ''}"

    @property
    def unit(self) -> str:
        """The unit at the end of its name, empty if it has none."""
        for unit in ("seconds", "bytes", "ratio"):
            if self.name.endswith(f"_{unit}"):
                return unit
        return ""

    @property
    def bound(self) -> int:
        """How many label sets it can have."""
        count = 1
        for values in self.labels.values():
            count *= values
        return count


#: The sums over all queues, those that are gone included: the field of ``QueueCounters``, the end
#: of the name, and the text.
QUEUE_COUNTERS: Final = (
    ("received", "received", "Messages that were pushed into queues."),
    ("sent", "sent", "Messages that were sent to at least one consumer; each time counts."),
    (
        "deliveries",
        "delivered",
        "Deliveries, missed ones included: a message to ten consumers counts as ten.",
    ),
    ("done", "done", "Messages that were consumed."),
    ("redelivered", "redelivered", "Messages that were redelivered."),
    ("requeued", "requeued", "Messages that were put back into their queue."),
    ("expired", "expired", "Messages that expired."),
    ("dead", "dead", "Messages that became dead letters."),
    ("cleared", "cleared", "Messages that were cleared, or removed with their queue."),
    ("dropped", "dropped", "Messages that were dropped: there were no consumers or no room."),
    ("undone", "undone", "Messages of commits and batches that failed."),
    ("ack_timeouts", "ack_timeouts", "Deliveries that were not acknowledged in time."),
    ("negative_acks", "negative_acks", "Negative acknowledgements by consumers."),
    ("unknown_acks", "unknown_acks", "Acknowledgements that matched no delivery."),
    ("skipped", "skipped", "Deliveries that a slow consumer missed."),
    ("missed", "missed", "Deliveries that a door did not forward; they count as skipped, too."),
    ("untracked", "untracked", "Deliveries of broadcasts that were sent and not tracked."),
    ("overflowed", "overflowed", "Messages of ephemeral queues for which there was no room."),
    ("damaged", "damaged", "Messages on disk that can no longer be read."),
    ("refused", "refused", "Pushes that queues did not accept."),
    ("saved", "saved", "Messages that were written to disk."),
    ("errors", "handler_errors", "Failures of delivery handlers, filters and other extensions."),
)

#: The counters of a cluster, by their names in ``ClusterStatistics``.
CLUSTER_COUNTERS: Final = (
    "forwarded",
    "held_back",
    "spent",
    "accepted",
    "rejected",
    "refused_operations",
    "refused_nodes",
    "filter_errors",
)

#: Waiting reads, by their names in ``Survey.levels``.
READERS: Final = ("reads", "held_reads", "browses")

#: Reasons of refused pushes by result code.
REFUSED_PUSHES: Final = {
    401: "not_accepted",
    404: "no_queue",
    406: "handler",
    482: "limit",
    503: "busy",
}

_OF_QUEUE: Final = {"channel": _QUEUES, "queue": 1}

CATALOGUE: Final[tuple[Metric, ...]] = (
    # -- the process ----------------------------------------------------------------------------
    Metric(
        "build_info",
        GAUGE,
        "Always 1; the labels say which server this is.",
        version=1,
        python=1,
        build=1,
        backend=1,
    ),
    Metric("start_time_seconds", GAUGE, "When the server started, in Unix time."),
    Metric("ready", GAUGE, "1 if /readyz answers 200, else 0."),
    Metric("draining", GAUGE, "1 while the server accepts no messages: it drains, or has drained."),
    Metric(
        "draining_unacknowledged",
        GAUGE,
        "Deliveries that a draining server waits for, as last counted.",
    ),
    Metric("process_cpu_seconds", COUNTER, "User and system processor time of the process."),
    Metric("process_resident_memory_bytes", GAUGE, "Resident memory of the process."),
    Metric("process_open_fds", GAUGE, "Open file descriptors."),
    Metric("process_max_fds", GAUGE, "File descriptors that may be open."),
    Metric(
        "event_loop_lag_seconds",
        HISTOGRAM,
        "The delay of an event-loop timer that is due every 250 ms.",
    ),
    Metric(
        "turn_seconds",
        HISTOGRAM,
        "Duration of turns of the event loop, from waking up to the next wait; only with asyncio's "
        "event loop.",
    ),
    Metric("slow_turns", COUNTER, "Turns that took longer than slow_turn_ms."),
    # -- connections ----------------------------------------------------------------------------
    Metric("connections", GAUGE, "Open connections.", door=_DOORS),
    Metric("connections_opened", COUNTER, "Connections that were opened.", door=_DOORS),
    Metric(
        "connections_closed",
        COUNTER,
        "Connections that ended, by the reason.",
        door=_DOORS,
        reason=len(CLOSINGS),
    ),
    Metric(
        "connections_refused",
        COUNTER,
        "Connections that were closed before a byte was read: the door does not allow the address, "
        "there are too many in total or from one address, they arrive too fast, the memory is "
        "full, or the socket failed.",
        reason=len(REFUSALS),
    ),
    Metric("connections_blocked", GAUGE, "Connections whose deliveries are paused."),
    Metric(
        "slow_consumers",
        COUNTER,
        "Times that deliveries of a connection were paused for more than a second.",
    ),
    Metric("outbound_waiting_bytes", GAUGE, "Bytes that wait for peers to read."),
    Metric("received_bytes", COUNTER, "Bytes read from connections.", door=_DOORS),
    Metric("sent_bytes", COUNTER, "Bytes written to connections.", door=_DOORS),
    Metric(
        "protocol_errors",
        COUNTER,
        "Connections whose peers broke the protocol, by the rule: one of docs/protocol.md at the "
        "door of TMQP, syntax elsewhere.",
        door=_DOORS,
        rule=_RULES,
    ),
    Metric("authentications", COUNTER, "Logins, accepted or refused.", door=_DOORS, result=2),
    Metric(
        "rate_waits",
        COUNTER,
        "Delays by a rate of [rates]: connections that the server did not read from for a while or "
        "accepted later, and logins that waited for others from their address.",
        rate=len(RATES),
    ),
    Metric("tls_handshakes", COUNTER, "TLS handshakes at the start of connections.", result=2),
    Metric(
        "tls_certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the server's certificate expires, in Unix time.",
    ),
    Metric(
        "permission_denied",
        COUNTER,
        "Commands that were refused because this right was missing; other is a command that needs "
        "several.",
        right=len(RIGHTS) + 1,
    ),
    # -- messages -------------------------------------------------------------------------------
    Metric("sessions", GAUGE, "Clients that are logged in.", door=_DOORS),
    Metric("subscriptions", GAUGE, "Channels that clients have joined.", door=_DOORS),
    Metric("messages_received", COUNTER, "Messages that clients pushed.", door=_DOORS),
    Metric("messages_delivered", COUNTER, "Deliveries to clients.", door=_DOORS),
    Metric("acknowledges", COUNTER, "Acknowledgements by clients.", door=_DOORS, kind=3),
    Metric("confirms", COUNTER, "Confirms and refusals that were sent to producers.", result=2),
    Metric(
        "confirms_skipped",
        COUNTER,
        "Confirms that were not sent because the producer had disconnected.",
    ),
    Metric(
        "pushes_refused",
        COUNTER,
        "Refused pushes, by the reason in the answer: the queue accepts none or the client lacks "
        "the right, the queue does not exist, the handler refused, a limit was reached, or memory "
        "or storage was busy.",
        reason=len(REFUSED_PUSHES) + 1,
    ),
    Metric(
        "conversions",
        COUNTER,
        "Messages that were converted for another door or read by a filter, by the door through "
        "which they arrived.",
        door=_DOORS,
    ),
    Metric("router_published", COUNTER, "Messages that were published to routers."),
    Metric(
        "push_to_delivery_seconds",
        HISTOGRAM,
        "Time from the push of a message to its first delivery. All messages of one delivery count "
        "with the time of the first, so it is an upper bound.",
    ),
    Metric(
        "push_to_confirm_seconds",
        HISTOGRAM,
        "Time from the push of a durable message to the end of the write that stores it. All "
        "messages of one write count with the time of the first.",
    ),
    # -- queues ---------------------------------------------------------------------------------
    Metric("channels", GAUGE, "Channels."),
    Metric("queues", GAUGE, "Queues."),
    Metric("routers", GAUGE, "Routers."),
    Metric("transactions", GAUGE, "Open transactions."),
    Metric(
        "readers",
        GAUGE,
        "Pending reads of clients: waiting for the storage (reads) or for new messages "
        "(held_reads), or browsing a queue (browses).",
        kind=len(READERS),
    ),
    Metric("queues_messages", GAUGE, "Messages in queues.", state=4),
    Metric(
        "queues_oldest_age_seconds",
        GAUGE,
        "Time that the oldest message of all queues has waited since it was accepted or last sent, "
        "or, if it was on disk only, since it was read.",
    ),
    Metric("queues_without_consumers", GAUGE, "Queues with messages and without consumers."),
    *[Metric(f"queues_{name}", COUNTER, text) for _, name, text in QUEUE_COUNTERS],
    Metric("queue_messages", GAUGE, "Messages in a chosen queue.", **_OF_QUEUE, state=4),
    Metric("queue_bytes", GAUGE, "Memory used by the messages of a chosen queue.", **_OF_QUEUE),
    Metric(
        "queue_oldest_age_seconds",
        GAUGE,
        "Time that the oldest message of a chosen queue has waited.",
        **_OF_QUEUE,
    ),
    Metric("queue_consumers", GAUGE, "Clients that have joined its channel.", **_OF_QUEUE),
    Metric("queue_received", COUNTER, "Messages pushed into a chosen queue.", **_OF_QUEUE),
    Metric("queue_delivered", COUNTER, "Deliveries of a chosen queue.", **_OF_QUEUE),
    Metric("queue_done", COUNTER, "Messages of a chosen queue that were consumed.", **_OF_QUEUE),
    Metric("queue_ack_timeouts", COUNTER, "Deliveries not acknowledged in time.", **_OF_QUEUE),
    Metric("queue_dead", COUNTER, "Messages that became dead letters.", **_OF_QUEUE),
    Metric("queue_refused", COUNTER, "Pushes that a chosen queue did not accept.", **_OF_QUEUE),
    # -- memory and limits ----------------------------------------------------------------------
    Metric(
        "memory_used_bytes",
        GAUGE,
        "Memory that the server accounts for: messages, everything else (state), messages that are "
        "being written (unsynced, a part of messages), and bytes to send (outbound, charged to no "
        "client).",
        kind=4,
    ),
    Metric(
        "memory_limit_bytes",
        GAUGE,
        "The limits of all memory (total) and of unsynced messages.",
        kind=2,
    ),
    Metric(
        "limit_used_ratio",
        GAUGE,
        "Used share of a limit of the whole server; 1 means that it is reached.",
        limit=_LIMITS,
    ),
    Metric(
        "limit_reached",
        COUNTER,
        "Refusals because of a limit, by the limit; queue_options are the limits in the options of "
        "queues. Option values out of range are not counted.",
        limit=_LIMITS,
    ),
    # -- storage --------------------------------------------------------------------------------
    Metric("storage_saving", GAUGE, "1 while the storage saves messages, 0 while it fails."),
    Metric("storage_failures", COUNTER, "Writes that failed."),
    Metric("storage_write_seconds", HISTOGRAM, "Duration of a batch, sync included."),
    Metric(
        "storage_sync_seconds",
        HISTOGRAM,
        "Duration of syncs of the log of recent writes; a large batch that goes to the database "
        "at once is synced by SQLite and counts in storage_write_seconds only.",
    ),
    Metric("storage_read_seconds", HISTOGRAM, "Duration of reads from the storage."),
    Metric("storage_batch_messages", HISTOGRAM, "Messages in a batch."),
    Metric("storage_unsynced_messages", GAUGE, "Messages that are not on disk yet."),
    Metric("storage_bytes", GAUGE, "Size of the files of the data directory."),
    Metric("storage_free_bytes", GAUGE, "Free space on the disk of the data directory."),
    Metric("storage_floor_bytes", GAUGE, "Free space below which durable messages are refused."),
    Metric(
        "storage_backup_timestamp_seconds",
        GAUGE,
        "End of the last complete backup made over the API, in Unix time.",
    ),
    # -- further --------------------------------------------------------------------------------
    Metric(
        "events",
        COUNTER,
        "Events of the broker with at least one listener, delivered or not.",
        event=12,
    ),
    Metric("events_lost", COUNTER, "Events that did not reach their handlers or subscribers."),
    Metric("router_failures", COUNTER, "Failures of routers in Python."),
    Metric(
        "http_binding_calls",
        COUNTER,
        "Calls of HTTP bindings, by the class of the status; 5xx includes failed connections, and "
        "given_up is for calls without an answer in time.",
        result=6,
    ),
    Metric(
        "http_binding_seconds",
        HISTOGRAM,
        "Duration of answered calls of HTTP bindings, with the wait for their turn.",
    ),
    Metric(
        "cluster_messages",
        COUNTER,
        "Traffic with the other servers of the cluster: messages and decisions of local clients "
        "that were forwarded, held back by a filter (held_back) or had no hop left (spent); those "
        "of nodes that a filter accepted or rejected; refused operations and connections of nodes; "
        "failures of filters.",
        what=len(CLUSTER_COUNTERS),
    ),
    Metric("cluster_buffer_bytes", GAUGE, "Bytes to send to other servers."),
    Metric(
        "replication_role",
        GAUGE,
        "1 for the role of this server in its group; only in groups, like the metrics below.",
        role=len(GROUP_ROLES),
    ),
    Metric(
        "replication_epoch",
        GAUGE,
        "The number of the leader's claim: it increases with each change of leader.",
    ),
    Metric("replication_applied", GAUGE, "The last entry of the log that this server has applied."),
    Metric("replication_behind", GAUGE, "Entries of the log that this server has not applied yet."),
    Metric("log_lines", COUNTER, "Lines of the log.", level=5),
    Metric(
        "log_suppressed",
        COUNTER,
        "Lines left out of the log because there were too many of their kind.",
    ),
    Metric(
        "audit_records",
        COUNTER,
        "Changes that clients requested, and logins and logouts if clients log in.",
        action=len(ACTIONS) + len(MANAGED) + 3,
        result=2,
    ),
    Metric("audit_failing", GAUGE, "1 while the audit file cannot be written."),
    Metric("config_reload_success", GAUGE, "0 if the last reload of the configuration failed."),
    Metric("config_reloads", COUNTER, "Reloads of the configuration.", result=2),
    Metric(
        "http_requests",
        COUNTER,
        "Requests to the admin door that were answered; a stream of events counts at its end.",
        route=_ROUTES,
        method=8,
        code=5,
    ),
    Metric(
        "http_request_seconds",
        HISTOGRAM,
        "Duration of requests to the admin door, from the head to the end of the answer.",
        route=_ROUTES,
    ),
    Metric("admin_sessions", GAUGE, "Sessions of browsers that are logged in."),
    Metric("websockets", GAUGE, "Open WebSockets of the admin door."),
    Metric("event_streams", GAUGE, "Streams of server-sent events of the admin door."),
    Metric(
        "metrics_collect_seconds",
        HISTOGRAM,
        "Duration of making a page of metrics, with the work done between its portions.",
    ),
    Metric("admin_requests_at_work", GAUGE, "Requests of operators in progress ([admin])."),
    Metric("admin_requests_waiting", GAUGE, "Requests of operators that wait to begin."),
    Metric(
        "admin_requests_refused",
        COUNTER,
        "Requests of operators that got 503 because too many waited.",
    ),
    Metric(
        "admin_busy_seconds",
        COUNTER,
        "Time of the event loop used by requests of operators, with the broker's work.",
    ),
    Metric(
        "admin_pauses",
        COUNTER,
        "Pauses of requests that had used their share of a busy event loop.",
    ),
    Metric("metrics_series", GAUGE, "Time series in this answer."),
    Metric(
        "metrics_queues_left_out", GAUGE, "Chosen queues beyond max_metrics_queues: only summed."
    ),
)

BY_NAME: Final = {metric.name: metric for metric in CATALOGUE}
