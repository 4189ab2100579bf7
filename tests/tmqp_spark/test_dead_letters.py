"""Dead letters as a source reads them: where they came from, and how often they were tried."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tmqp_client import sync
from tmqp_spark.arrow import BatchBuilder
from tmqp_spark.options import ConnectionOptions, SourceOptions
from tmqp_spark.ranges import QueueRange, read_range
from tmqp_spark.schema import project
from tmqp_spark.testing import Broker
from tmqp_spark.transport import BrokerLink

SETTINGS = """
[[channels]]
name = "orders"
[[channels.queues]]
id = 7
status = "push"
durable = true
put_back_limit = 2
delivery_handler = "putback-end"
dead_letter = { channel = "dead", queue = 1 }

[[channels]]
name = "dead"
queues = [{ id = 1, status = "pull", durable = true, retain_time_ms = 60000 }]
"""
COLUMNS = [
    ("channel", "string"),
    ("queue", "int"),
    ("timestamp", "timestamp"),
    ("message_id", "string"),
    ("value", "string"),
    ("put_backs", "int"),
    ("hops", "int"),
    ("pushed_channel", "string"),
    ("pushed_queue", "int"),
]


def _dead(broker: Broker) -> list[dict[str, Any]]:
    link = BrokerLink(ConnectionOptions(url=broker.url))
    with sync.connect(broker.url, name="test") as client:
        (state,) = client.offsets("dead")
    wanted = QueueRange("dead", 1, state.incarnation, state.earliest, state.latest + 1)
    projection = project((name, kind, True) for name, kind in COLUMNS)
    builder = BatchBuilder(projection, "dead", 1, state.incarnation, "dead/1")
    found: list[dict[str, Any]] = []
    for portion in read_range(link, wanted, SourceOptions()):
        found += builder.build(portion).to_pylist()
    link.close()
    return found


def test_a_dead_letter_says_where_it_came_from_and_when_it_died(tmp_path: Path) -> None:
    with Broker(tmp_path, SETTINGS) as broker:
        with sync.connect(broker.url, name="test") as client:
            message_id = client.push("orders", 7, b"bad", wait=False)
            client.push("dead", 1, b"pushed there, not dead", wait=False)
        pushed = time.time()
        time.sleep(0.2)
        with sync.connect(broker.url, name="consumer") as client:
            refused = 0
            with client.consume("orders", 7, acknowledge="manual") as messages:
                for message in messages:
                    message.nack()
                    refused += 1
                    if refused == 3:
                        break
        deadline = time.monotonic() + 10
        while len(rows := _dead(broker)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
    alive, dead = sorted(rows, key=lambda row: int(row["hops"]))
    assert (alive["hops"], alive["pushed_channel"], alive["pushed_queue"]) == (0, "dead", 1)
    assert dead["message_id"] == message_id
    assert (dead["channel"], dead["queue"], dead["value"]) == ("dead", 1, "bad")
    assert (dead["hops"], dead["pushed_channel"], dead["pushed_queue"]) == (1, "orders", 7)
    assert dead["timestamp"].timestamp() > pushed
