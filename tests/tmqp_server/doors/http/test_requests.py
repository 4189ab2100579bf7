"""HTTP/1.1 itself: what is read, refused, answered, in which order, and when a connection ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tmqp_server.doors.http.stage import QUEUE, HttpPeer, Stage, request
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_server.doors.http.messages import BadRequest, parse_query, split_path
from tmqp_server.doors.http.routes import Route, RouteTable

_ALIVE = request("GET", "/healthz")


def test_a_connection_answers_one_request_after_the_other() -> None:
    peer = Stage().open()
    for _ in range(3):
        assert peer.ask("GET", "/healthz").body == b"alive\n"
    assert not peer.over


def test_pipelined_requests_are_answered_in_order() -> None:
    peer = Stage().open()
    bodies = [f"{number}".encode() for number in range(40)]  # more than may wait for answers
    targets = [f"{QUEUE}/messages?id=m{number}" for number in range(40)]
    peer.say(*[request("POST", t, b) for t, b in zip(targets, bodies, strict=True)])
    assert [each.json["id"] for each in peer.answers("POST")] == [f"m{n}" for n in range(40)]


def test_the_answer_of_a_later_request_waits_for_the_earlier_one() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = stage.open()
    peer.say(request("POST", f"{QUEUE}/messages?id=a", b"1"), _ALIVE)
    assert peer.raw() == b""
    stage.save()
    first, second = peer.answers()
    assert (first.status, first.json) == (201, {"id": "a"})
    assert second.body == b"alive\n"


def test_a_refused_publish_waits_for_its_turn_among_pipelined_ones() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = stage.open()
    peer.say(
        request("POST", f"{QUEUE}/messages?id=a", b"1"),
        request("POST", f"{QUEUE}/messages?priority=odd", b"2"),
        request("POST", f"{QUEUE}/messages?id=c", b"3"),
    )
    assert peer.raw() == b""
    stage.save()
    assert [each.status for each in peer.answers("POST")] == [201, 400, 201]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # no Host
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),  # TLS
        (b"TMQP/2.0 \x10\x20\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n", 404),  # unfolded by the parser
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: \x00\r\n\r\n", 400),
        (b"GET /healthz#x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\nHost: a\n\n", 400),
        (b"GET /healthz HTTP/1.1\r\nHost: a\nB: c\r\n\r\n", 400),
        (b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        (b"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /api/../healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /api/%2e%2E/healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz;a=b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET //healthz HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /%ff HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz?a=%f HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /healthz?strange=1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"PUT /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nExpect: wonders\r\n\r\n", 417),
        (b"POST " + QUEUE.encode() + b"/messages HTTP/1.1\r\nHost: a\r\n\r\n", 411),
        (b"GET /api/v1/ws HTTP/1.1\r\nHost: a\r\n\r\n", 426),
        (b"GET /healthz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (b"GET http://here/healthz HTTP/1.1\r\nHost: here\r\n\r\n", 200),
        (b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: here\r\n\r\n", 200),
    ],
)
def test_each_bad_request_has_its_answer(data: bytes, status: int) -> None:
    answer = Stage().open().say(data).answer()
    assert answer.status == status
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == status
        assert "Traceback" not in answer.json["detail"]


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 5,6\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -1\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"Content-Length: 5\n\r\n",
    ],
)
def test_a_body_whose_end_is_doubtful_is_refused_and_nothing_behind_it_is_read(
    fields: bytes,
) -> None:
    peer = Stage().open()
    head = f"POST {QUEUE}/messages HTTP/1.1\r\nHost: a\r\n".encode()
    peer.say(head + fields + b"\r\n0\r\n\r\n", _ALIVE)
    answers = peer.answers("POST")
    assert [each.status // 100 for each in answers] in ([4], [5])
    assert answers[0].headers["connection"] == "close"
    assert peer.stage.broker.statistics().queues == 0


@pytest.mark.parametrize(
    "body",
    [b"5\nhello\r\n0\r\n\r\n", b"-1\r\n", b"g\r\n", b"5\r\nhelloo\r\n0\r\n\r\n", b"5" * 20_000],
)
def test_a_broken_chunk_is_refused(body: bytes) -> None:
    peer = Stage().open()
    head = f"POST {QUEUE}/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert peer.say(head.encode() + body).answer("POST").status in (400, 431)
    assert peer.stage.broker.statistics().queues == 0


def test_a_chunked_body_is_read() -> None:
    stage = Stage()
    peer = stage.open()
    head = f"POST {QUEUE}/messages HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    peer.say(head.encode(), b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: x\r\n\r\n", _ALIVE)
    assert [each.status for each in peer.answers("POST")] == [201, 200]
    [queue] = stage.broker.queues()
    assert queue.bytes > 5


def test_a_client_that_waits_for_it_is_told_to_send_its_body() -> None:
    peer = Stage().open()
    peer.say(request("POST", f"{QUEUE}/messages", None, ("Content-Length", "2"),
                     ("Expect", "100-continue")))  # fmt: skip
    assert peer.raw() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert peer.say(b"hi").answer("POST").status == 201


def test_a_client_that_waits_with_too_large_a_body_sends_nothing() -> None:
    peer = Stage(HttpLimits(max_body_bytes=10)).open()
    peer.say(request("POST", f"{QUEUE}/messages", None, ("Content-Length", "11"),
                     ("Expect", "100-continue")))  # fmt: skip
    assert peer.answer("POST").status == 413


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_its_limit_is_refused_before_it_is_kept(*, chunked: bool) -> None:
    stage = Stage(HttpLimits(max_body_bytes=1_000, max_linger_bytes=100_000))
    for size, status in ((1_000, 201), (1_001, 413)):
        peer = stage.open()
        body = b"x" * size
        field = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(size))
        peer.say(request("POST", f"{QUEUE}/messages", None, field))
        if chunked:
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)
        session = stage.hub._sessions[peer.number]
        for at in range(0, len(body), 100):
            peer.say(body[at : at + 100])
            assert session.held_bytes() <= 1_100
        assert peer.answer("POST").status == status


def test_the_rest_of_a_refused_body_is_dropped_for_a_while() -> None:
    stage = Stage(HttpLimits(max_body_bytes=10, linger_timeout_s=2.0, max_linger_bytes=5_000))
    peer = stage.open()
    peer.say(request("POST", f"{QUEUE}/messages", None, ("Content-Length", "9000")), b"x" * 100)
    assert peer.answer("POST").status == 413
    peer.say(b"x" * 4_000)
    assert not peer.over
    peer.say(b"x" * 4_000)
    assert peer.is_over("a request was refused")
    late = stage.open()
    late.say(request("POST", f"{QUEUE}/messages", None, ("Content-Length", "9000")))
    stage.sleep(1.9)
    assert not late.over
    stage.sleep(0.2)
    assert late.is_over("a request was refused")


def test_each_limit_of_a_head_holds() -> None:
    limits = HttpLimits(max_target_bytes=100, max_head_bytes=1_000, max_header_fields=5)
    stage = Stage(limits)
    assert stage.open().ask("GET", "/" + "a" * 99).status == 404
    assert stage.open().ask("GET", "/" + "a" * 100).status == 414
    assert stage.open().say(b"GET /" + b"a" * 1_200).answer().status == 414
    few = [(f"f{n}", "x") for n in range(4)]
    assert stage.open().ask("GET", "/healthz", None, *few).status == 200
    assert stage.open().ask("GET", "/healthz", None, *few, ("g", "x")).status == 431
    assert stage.open().say(b"GET / HTTP/1.1\r\nA: " + b"x" * 1_000).answer().status == 431


def test_a_slow_head_and_a_slow_body_are_given_up() -> None:
    stage = Stage(HttpLimits(head_timeout_s=5.0, body_timeout_s=7.0))
    head, body = stage.open(), stage.open()
    head.say(b"GET ")
    body.say(request("POST", f"{QUEUE}/messages", None, ("Content-Length", "3")), b"x")
    stage.sleep(4.9)
    head.say(b"/")  # one byte at a time buys no time
    assert head.raw() == b""
    stage.sleep(0.2)
    assert head.answer().status == 408
    assert body.raw() == b""
    stage.sleep(2.0)
    assert body.answer("POST").status == 408
    stage.sleep(3.0)
    assert head.over
    assert body.over


def test_an_idle_connection_is_closed() -> None:
    stage = Stage(HttpLimits(idle_timeout_s=10.0))
    silent, busy = stage.open(), stage.open()
    stage.sleep(9.0)
    busy.ask("GET", "/healthz")
    stage.sleep(2.0)
    assert silent.over == "no request came for a while"
    assert not busy.over
    stage.sleep(9.0)
    assert busy.over


def test_who_waits_for_an_answer_is_not_idle() -> None:
    stage = Stage(HttpLimits(idle_timeout_s=1.0, max_wait_s=30.0))
    stage.make_queue("orders", 1, "pull")
    peer = stage.open().say(request("POST", f"{QUEUE}/deliveries?wait=20"))
    stage.sleep(19.0)
    assert not peer.over
    stage.sleep(1.1)
    assert peer.answer("POST").items == []


@pytest.mark.parametrize(
    ("http", "fields", "stays"),
    [
        ("1.1", [], True),
        ("1.1", [("Connection", "close")], False),
        ("1.0", [], False),
        ("1.0", [("Connection", "keep-alive")], False),  # not offered to old clients
    ],
)
def test_a_connection_stays_as_its_client_asks(
    http: str, fields: list[tuple[str, str]], *, stays: bool
) -> None:
    peer = Stage().open().say(request("GET", "/healthz", None, *fields, http=http), _ALIVE)
    assert len(peer.answers()) == 1 + stays
    assert bool(peer.over) is not stays


def test_an_answer_to_head_is_that_to_get_without_its_body() -> None:
    peer = Stage().open()
    answer = peer.ask("HEAD", "/healthz")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-length"] == "6"
    assert peer.ask("GET", "/healthz").body == b"alive\n"


def test_options_and_405_name_the_methods() -> None:
    peer = Stage().open()
    assert peer.ask("OPTIONS", "/healthz").headers["allow"] == "GET, HEAD, OPTIONS"
    assert peer.ask("OPTIONS", f"{QUEUE}/messages").headers["allow"] == "GET, HEAD, OPTIONS, POST"
    assert peer.ask("OPTIONS", "*").status == 204
    assert peer.ask("OPTIONS", "/nothing").status == 404
    refused = peer.ask("DELETE", f"{QUEUE}/messages")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")
    assert not peer.over


def test_a_compressed_body_is_refused() -> None:
    answer = Stage().open().ask("POST", f"{QUEUE}/messages", b"x", ("Content-Encoding", "gzip"))
    assert answer.status == 415


def test_too_many_pipelined_requests_end_the_connection() -> None:
    stage = Stage(HttpLimits(max_pipelined_bytes=1_000), storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=a", b"1"), _ALIVE)
    for _ in range(100):
        peer.say(_ALIVE)
    assert peer.over == "too many pipelined requests"


def test_the_end_of_the_server_is_told_to_who_waits() -> None:
    stage = Stage(storage=True)
    stage.make_queue("orders", 1, "push", durable=True)
    peer = stage.open().say(request("POST", f"{QUEUE}/messages?id=a", b"1"), _ALIVE)
    stage.hub.close(peer.number, "the server stops", stage.now)
    stage.settle()
    assert [each.status for each in peer.answers("POST")] == [503, 503]
    assert peer.over == "the server stops"


_SCRIPT = b"".join(
    [
        request("POST", f"{QUEUE}/messages?id=a&wait=1", b"one", ("Content-Type", "text/plain")),
        request("POST", f"{QUEUE}/deliveries?ack=manual&max=5"),
        f"POST {QUEUE}/messages?id=b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\ntwo\r\n0\r\n\r\n".encode(),
        request("HEAD", "/healthz"),
        request("POST", f"{QUEUE}/deliveries/a/ack"),
        request("GET", "/%6eothing"),
        request("POST", f"{QUEUE}/messages?id=c", b"three"),
        request("POST", f"{QUEUE}/deliveries?max=5&ack=manual"),
        request("GET", "/healthz", None, ("Connection", "close")),
    ]
)


def _run(*pieces: bytes) -> HttpPeer:
    stage = Stage()
    stage.make_queue("orders", 1, "pull")
    peer = stage.open()
    for piece in pieces:
        peer.say(piece)
    return peer


@pytest.mark.parametrize("at", range(1, len(_SCRIPT), 29))
def test_where_the_stream_is_cut_changes_nothing(at: int) -> None:
    whole, cut = _run(_SCRIPT), _run(_SCRIPT[:at], _SCRIPT[at:])
    assert cut.raw() == whole.raw()
    assert cut.over == whole.over


def test_byte_by_byte_the_answers_are_the_same() -> None:
    whole = _run(_SCRIPT)
    single = _run(*[_SCRIPT[at : at + 1] for at in range(len(_SCRIPT))])
    assert single.raw() == whole.raw()
    assert whole.raw().count(b"HTTP/1.1 ") == 9


@given(st.lists(st.binary(max_size=200), max_size=8), st.integers(0, len(_SCRIPT)))
def test_whatever_comes_is_answered_or_ends_the_connection(chunks: list[bytes], at: int) -> None:
    peer = _run(_SCRIPT[:at], *chunks)  # a fault in the door fails the stage
    peer.stage.sleep(200.0)
    assert peer.over


@given(st.binary(max_size=40))
def test_a_path_is_decoded_once_or_refused(target: bytes) -> None:
    try:
        segments, _ = split_path(b"/" + target)
    except BadRequest:
        return
    assert "" not in segments
    assert "." not in segments
    assert ".." not in segments


def test_an_escaped_slash_and_an_escaped_percent_belong_to_a_name() -> None:
    assert split_path(b"/a%2Fb/%2525/x%3By?q=1") == (("a/b", "%25", "x;y"), b"q=1")
    assert parse_query(b"a=1+2&b=%26&a=3&c") == {"a": "3", "b": "&", "c": ""}
    with pytest.raises(BadRequest):
        parse_query(b"&".join([b"a=1"] * 65))


def test_fixed_segments_win_over_parameters() -> None:
    table = RouteTable(
        [
            Route("GET", "/a/{name}", lambda _: None),
            Route("GET", "/a/fixed", lambda _: None),
            Route("GET", "/a/{number:int}/b", lambda _: None),
        ]
    )
    assert table.find("GET", ("a", "fixed"))[0].template == "/a/fixed"
    assert table.find("HEAD", ("a", "other"))[1] == {"name": "other"}
    assert table.find("GET", ("a", "12", "b"))[1] == {"number": 12}
    for path in (("a", "x", "b"), ("a", "1" * 10, "b"), ("a", "\u0663", "b"), ("a",)):
        with pytest.raises(BadRequest, match="404"):
            table.find("GET", path)


def test_a_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="max_body_bytes must be positive"):
        HttpLimits(max_body_bytes=0)
