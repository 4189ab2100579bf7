"""A program with gnsq, the client for gevent: run by ``python -m gevent.monkey``."""

from __future__ import annotations

import sys
from typing import Any

import gevent  # type: ignore[import-untyped]
import gevent.fileobject  # type: ignore[import-untyped]
import gnsq  # type: ignore[import-untyped]
from gnsq.errors import NSQException  # type: ignore[import-untyped]

from tests.interop.nsq.python.lines import decide, say, settings, told

GIVEN = settings()
LONGEST_S = 5.0


def options() -> dict[str, Any]:
    """How to connect."""
    chosen: dict[str, Any] = {}
    if GIVEN["ca"]:
        chosen["tls_v1"] = True
        chosen["tls_options"] = {"ca_certs": GIVEN["ca"], "cert_reqs": 2}
    if GIVEN["compression"]:
        chosen[GIVEN["compression"]] = True
    if GIVEN["auth"]:
        chosen["auth_secret"] = GIVEN["auth"].encode()
    return chosen


def handle(_consumer: gnsq.Consumer, message: gnsq.Message) -> None:
    """Do with a message what its body says."""
    body = message.body.decode()
    say(message=body, attempts=message.attempts)
    todo = decide(body, message.attempts)
    if todo == "again":
        message.requeue(0, backoff=False)
    elif todo != "fine":
        message.enable_async()
    if todo == "slow":
        message.touch()
        gevent.spawn_later(0.6, message.touch)
        gevent.spawn_later(1.2, message.touch)
        gevent.spawn_later(1.6, message.finish)


def consume(topic: str, channel: str) -> gnsq.Consumer:
    """Begin to consume."""
    consumer = gnsq.Consumer(
        topic,
        channel,
        [] if GIVEN["lookupd"] else GIVEN["nsqd"],
        GIVEN["lookupd"],
        message_handler=handle,
        max_in_flight=10,
        lookupd_poll_interval=1,
        max_backoff_duration=1,
        **options(),
    )
    consumer.start(block=False)
    return consumer


class Layered:
    """Publishes over a connection with TLS or compression.

    gnsq's own producer fails there: the first answer in the new layer comes before it expects any.
    """

    def __init__(self) -> None:
        host, _, port = GIVEN["nsqd"][0].rpartition(":")
        self._connection = gnsq.NsqdTCPClient(host, int(port), **options())
        self._connection.connect()
        self._connection.identify()

    def publish(self, topic: str, body: bytes, **_options: object) -> None:
        self._connection.publish(topic, body)
        self._connection.check_ok()

    def multipublish(self, topic: str, bodies: list[bytes], **_options: object) -> None:
        self._connection.multipublish(topic, bodies)
        self._connection.check_ok()


def producing() -> Any:
    """Make a producer."""
    if GIVEN["ca"] or GIVEN["compression"]:
        return Layered()
    producer = gnsq.Producer(GIVEN["nsqd"], max_backoff_duration=1, **options())
    producer.start()
    return producer


def publish(producer: Any, line: dict[str, Any]) -> None:
    """Publish, and say how it went."""
    bodies = [body.encode() for body in line["bodies"]]
    topic = line["topic"]
    try:
        if line["do"] == "defer":
            producer.publish(topic, bodies[0], defer=line["ms"], timeout=LONGEST_S)
        elif len(bodies) == 1:
            producer.publish(topic, bodies[0], timeout=LONGEST_S)
        else:
            producer.multipublish(topic, bodies, timeout=LONGEST_S)
    except NSQException as error:
        say(refused=repr(error))
    else:
        say(did="publish")


def main() -> None:
    producer = None
    consumers = []
    for line in told():
        if line["do"] == "consume":
            consumers.append(consume(line["topic"], line["channel"]))
            say(did="consume")
            continue
        if producer is None:
            producer = producing()
        publish(producer, line)


# Standard input blocks the thread, and with it every greenlet, unless gevent reads it.
sys.stdin = gevent.fileobject.FileObject(sys.stdin.buffer, "r")
main()
