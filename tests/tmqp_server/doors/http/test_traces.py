"""Fields of HTTP that tell of traces, and the messages that are published with them."""

from __future__ import annotations

from tests.tmqp_server.doors.http.stage import QUEUE, Stage
from tests.tmqp_server.peers import operation
from tmqp.constants import OP_JOIN


def test_the_trace_of_a_request_is_that_of_its_message() -> None:
    stage = Stage()
    consumer = stage.open_native("ann")
    consumer.say(operation(OP_JOIN, "orders"))
    peer = stage.open()
    trace, other = (f"00-{digit * 32}-b7ad6b7169203331-01" for digit in "ab")
    fields = ("Traceparent", trace), ("tracestate", "shop=1")
    peer.ask("POST", f"{QUEUE}/messages?id=m1", b"", *fields)
    peer.ask("POST", f"{QUEUE}/messages?id=m2", b"", *fields, ("Tmqp-Header-traceparent", other))
    [_, first, second] = consumer.frames()
    assert first.headers == [("traceparent", trace), ("tracestate", "shop=1")]
    assert second.header("traceparent") == other
    assert [name for name, _ in second.headers].count("traceparent") == 1
