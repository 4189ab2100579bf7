"""Who asks the API: tokens, cookies, what another page cannot send, and which hosts there are."""

from __future__ import annotations

import re

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from tests.tmqp_server.admin.api_stage import ApiStage, Caller
from tests.tmqp_server.doors.http.stage import Answer
from tests.tmqp_server.peers import push
from tmqp.codec import FrameDecoder
from tmqp.constants import PREAMBLE, MessageType
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.limits import Limits
from tmqp_server.access.gate import AUTHENTICATE, Question
from tmqp_server.admin.api.logins import WebLogIns
from tmqp_server.admin.api.pace import Pace
from tmqp_server.engine.commands import Connect, Credentials

LOGIN = {"token": "good"}


class Guarded(ApiStage):
    """The token "good" may see the server, "fair" may log in, and nobody else may."""

    def __init__(self, **options: object) -> None:
        super().__init__(guarded=True, **options)
        self.known = {"good", "fair"}
        self.tokens: dict[int, str] = {}
        self.asked: list[str] = []
        self.policy = self.judge

    def judge(self, question: Question) -> bool:
        if question.right == AUTHENTICATE:
            command = question.command
            assert isinstance(command, Connect)
            shown = command.credentials
            self.tokens[question.session] = "" if shown is None else shown.secret
            return self.tokens[question.session] in self.known
        self.asked.append(question.right)
        return self.tokens[question.session] == "good"


def log_in(stage: ApiStage, **fields: str) -> tuple[str, Answer]:
    """The cookie of a new session, and the answer that brought it."""
    answer = stage.caller(**fields).ask("POST", "/api/v1/session", LOGIN)
    assert answer.status == 201
    return answer.headers["Set-Cookie"].partition(";")[0], answer


def test_a_token_says_who_asks() -> None:
    stage = Guarded()
    assert stage.caller(Authorization="Bearer good").get("/api/v1/server").status == 200
    assert stage.caller(Authorization="Bearer fair").get("/api/v1/server").status == 403
    refused = stage.caller().get("/api/v1/server")
    assert refused.status == 401
    assert refused.headers["Www-Authenticate"] == 'Bearer realm="tmqp"', "browsers ask for Basic"


def test_a_log_in_makes_a_session() -> None:
    stage = Guarded()
    cookie, answer = log_in(stage)
    said = answer.headers["Set-Cookie"]
    assert re.fullmatch("tmqp-2680=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Strict", said)
    caller = stage.caller(Cookie=f"other=1; {cookie}")
    assert caller.get("/api/v1/server").status == 200
    session = caller.get("/api/v1/session").json
    assert (session["session"], session["csrf"]) == (True, answer.json["csrf"])


def test_the_cookie_of_a_server_at_another_port_is_none_of_this_one() -> None:
    """A browser that was logged in at one server was told by its neighbour that its session was
    over, and could not use it."""
    stage = Guarded()
    cookie, _ = log_in(stage, Host="127.0.0.1:8161")
    assert cookie.startswith("tmqp-8161=")
    assert (
        stage.caller(Cookie=cookie).get("/api/v1/session").json["detail"]
        != "the session is over: log in again"
    )
    assert stage.caller(Cookie=cookie, Host="127.0.0.1:8161").get("/api/v1/server").status == 200
    own, _ = log_in(stage, Host="127.0.0.1")
    assert own.startswith("tmqp=")


def test_a_wrong_token_makes_none() -> None:
    stage = Guarded()
    answer = stage.caller().ask("POST", "/api/v1/session", {"token": "bad"})
    assert (answer.status, "Set-Cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"x",
        b"[]",
        b"[" * 2_000,
        {},
        {"token": 1},
        {"token": ""},
        {"user": "a"},
        {"token": "good", "more": 1},
    ],
)
def test_a_log_in_that_cannot_be_read_is_refused(body: object) -> None:
    assert Guarded().caller().ask("POST", "/api/v1/session", body).status == 400


def change(caller: Caller, **fields: str) -> int:
    """The status of a request that changes something."""
    return caller.ask("DELETE", "/api/v1/session", **fields).status


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"X-Tmqp-Csrf": "0" * 32},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
    ],
    ids=str,
)
def test_a_cookie_alone_changes_nothing(fields: dict[str, str]) -> None:
    """A page of another site can have the browser send the cookie, but not what proves itself."""
    stage = Guarded()
    cookie, answer = log_in(stage)
    proof = {"X-Tmqp-Csrf": answer.json["csrf"]} if fields else {}
    given = {**proof, **fields}
    assert change(stage.caller(Cookie=cookie, **given)) == 403
    assert stage.caller(Cookie=cookie).get("/api/v1/session").status == 200, "it goes on"


def test_a_page_of_the_server_logs_out() -> None:
    stage = Guarded()
    cookie, answer = log_in(stage)
    fields = {"X-Tmqp-Csrf": answer.json["csrf"], "Sec-Fetch-Site": "same-origin"}
    assert change(stage.caller(Cookie=cookie, **fields)) == 204
    assert stage.caller(Cookie=cookie).get("/api/v1/session").status == 401


def test_a_log_in_from_another_page_is_refused() -> None:
    caller = Guarded().caller(Origin="http://evil.example")
    assert caller.ask("POST", "/api/v1/session", LOGIN).status == 403


def test_a_session_ends_when_its_token_is_taken_away() -> None:
    stage = Guarded()
    cookie, _ = log_in(stage)
    stage.known.remove("good")
    assert stage.caller(Cookie=cookie).get("/api/v1/server").status == 401


@pytest.mark.parametrize(("pause_s", "times", "status"), [(1_700, 20, 200), (1_900, 1, 401)])
def test_a_session_is_over_when_it_is_not_used(pause_s: int, times: int, status: int) -> None:
    stage = Guarded()
    cookie, answer = log_in(stage)
    for _ in range(times):
        stage.now += pause_s
        stage.turn.on_deadline(stage.now)
        stage.attend()
        answer = stage.caller(Cookie=cookie).get("/api/v1/session")
    assert answer.status == status


def test_a_session_lasts_twelve_hours_at_most() -> None:
    logins = WebLogIns(bytes)
    cookie, _ = logins.open(Credentials("token", "t"), 0.0)
    for now in range(0, 43_200, 1_000):
        assert logins.find(cookie, now) is not None
    assert logins.find(cookie, 43_201.0) is None


def test_the_oldest_session_of_a_token_goes_for_the_eleventh() -> None:
    numbers = iter(range(100))
    logins = WebLogIns(lambda size: bytes([next(numbers)] * size))
    cookies = [logins.open(Credentials("token", "t"), 0.0)[0] for _ in range(11)]
    other, _ = logins.open(Credentials("token", "u"), 0.0)
    assert [logins.find(each, 1.0) is not None for each in [*cookies, other]] == [False] + 11 * [
        True
    ]


def test_a_connection_may_change_hands_and_keeps_no_rights_of_the_one_before() -> None:
    """A proxy, or a browser in which somebody else has logged in, sends requests of several."""
    stage = Guarded()
    caller = stage.caller()
    for _ in range(2):
        assert caller.get("/api/v1/server", Authorization="Bearer good").status == 200
        assert caller.get("/api/v1/server", Authorization="Bearer fair").status == 403
    assert stage.asked == ["see-server"] * 4
    assert caller.get("/api/v1/server", Authorization="Bearer bad").status == 401


def test_requests_of_several_that_come_at_once_are_answered_in_order() -> None:
    stage = Guarded()
    caller = stage.caller()
    tokens = ["good", "fair", "good", "good", "fair"]
    head = "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
    stage.say(caller.number, "".join([head % token for token in tokens]).encode())
    assert [caller.take().status for _ in tokens] == [200, 403, 200, 200, 403]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:2680", 200),
        ("127.0.0.1", 200),
        ("[::1]:2680", 200),
        ("queue.example", 200),
        ("evil.example", 403),
        ("evil.example:2680", 403),
    ],
)
def test_a_name_that_somebody_else_lets_point_here_is_refused(host: str, status: int) -> None:
    stage = ApiStage(hosts=("queue.example",))
    assert stage.caller(Host=host).get("/api/v1/session").status == status
    assert stage.caller(Host=host).get("/healthz").status == 200


def test_every_answer_tells_a_browser_to_be_careful() -> None:
    stage = Guarded()
    for target in ("/api/v1/session", "/nothing", "/metrics", "/healthz"):
        headers = stage.caller().get(target).headers
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_a_problem_has_a_type_and_the_id_of_its_request() -> None:
    answer = ApiStage().caller().get("/api/v1/nothing")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["type"] == "/problems/not-found"
    assert answer.json["instance"] == answer.headers["X-Request-Id"]


# --- WebSocket -----------------------------------------------------------------------------------

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol": "tmqp",
}


class Socket:
    """A WebSocket with TMQP inside; ``fields`` are those of the upgrade."""

    def __init__(self, stage: ApiStage, **fields: str) -> None:
        self.caller = stage.caller()
        self.caller.send("GET", "/api/v1/ws", **UPGRADE, **fields)
        self.status = int(bytes(self.caller.wire.sent).split()[1])
        self.caller.wire.sent.clear()
        self._machine = Connection(ConnectionType.CLIENT)

    def say(self, *said: bytes) -> list[Frame]:
        """Send bytes of TMQP; returns what came back, without the preamble."""
        stage, number = self.caller.stage, self.caller.number
        stage.say(number, self._machine.send(BytesMessage(data=b"".join(said))))
        self._machine.receive_data(bytes(self.caller.wire.sent))
        self.caller.wire.sent.clear()
        found = b"".join(
            [bytes(each.data) for each in self._machine.events() if isinstance(each, BytesMessage)]
        )
        return FrameDecoder(Limits()).feed(found.removeprefix(PREAMBLE))


def test_tmqp_is_spoken_over_a_websocket_with_the_rights_of_its_token() -> None:
    """What another door refuses is refused here."""
    stage = Guarded()
    socket = Socket(stage, Origin="http://127.0.0.1:2680")
    assert socket.status == 101
    hello = ConnectionInformation("browser", token="fair").encode()
    accepted = socket.say(PREAMBLE, Frame.build(MessageType.SERVER, "", 101, hello).raw)
    assert [each.content_type for each in accepted] == [202]
    assert stage.tokens[socket.caller.number] == "fair"
    answers = socket.say(push("c", 1, "m", pending_response=True).raw)
    assert [(each.type, each.content_type) for each in answers] == [(MessageType.RESPONSE, 401)]
    assert stage.asked == ["push"]


def test_a_websocket_of_another_page_is_refused() -> None:
    """A browser lets any page open one."""
    assert Socket(Guarded(), Origin="http://evil.example").status == 403


# --- Pages of other origins ----------------------------------------------------------------------


TOOLS = "https://tools.example.org"


def test_a_page_of_another_origin_sees_answers_only_where_the_options_name_it() -> None:
    stage = ApiStage(origins=(TOOLS,))
    named = stage.caller(Origin=TOOLS).get("/api/v1/queues")
    assert named.headers["Access-Control-Allow-Origin"] == TOOLS
    assert named.headers["Vary"] == "Origin"
    assert "Access-Control-Allow-Credentials" not in named.headers
    for origin in ("https://tools.example.org.evil.example", "http://tools.example.org", "null"):
        other = stage.caller(Origin=origin).get("/api/v1/queues")
        assert "Access-Control-Allow-Origin" not in other.headers
    none = ApiStage().caller(Origin=TOOLS).get("/api/v1/queues")
    assert not [each for each in none.headers if each.startswith(("Access", "Vary"))]


def test_a_browser_is_told_beforehand_what_such_a_page_may_send() -> None:
    stage = ApiStage(origins=(TOOLS,))
    fields = {"Origin": TOOLS, "Access-Control-Request-Method": "PUT"}
    told = stage.caller(**fields).ask("OPTIONS", "/api/v1/channels/c/queues/1").headers
    assert "PUT" in told["Access-Control-Allow-Methods"]
    assert "Authorization" in told["Access-Control-Allow-Headers"]


def test_such_a_page_has_no_use_of_a_session() -> None:
    stage = ApiStage(origins=(TOOLS,), guarded=True)
    caller = stage.caller()
    logged_in = caller.ask("POST", "/api/v1/session", {"token": "t"})
    cookie = logged_in.headers["Set-Cookie"].partition(";")[0]
    seen: list[object] = []

    def judge(question: Question) -> bool:
        if isinstance(question.command, Connect):
            seen.append(question.command.credentials)
        return True

    stage.policy = judge
    stage.caller(Cookie=cookie, Origin=TOOLS).get("/api/v1/queues")
    assert seen == [None], "the cookie was not looked at"
    other = stage.caller(Origin=TOOLS).ask("POST", "/api/v1/session", {"token": "t"})
    assert other.status == 403


@pytest.mark.parametrize("wrong", ["*", "https://a.example/", "a.example", "https://*.a.example"])
def test_an_origin_is_exact(wrong: str) -> None:
    with pytest.raises(ValueError, match="origins"):
        ApiStage(origins=(wrong,))


# --- How fast ------------------------------------------------------------------------------------


def test_who_asks_too_fast_is_told_when_to_come_again() -> None:
    pace = Pace(50)
    refused = 0
    for number in range(130):
        answer = pace.meet(b"ann", f"10.0.0.{number}", 1, 5.0)
        refused += answer is not None
    assert refused == 30, "a burst of two seconds, whatever the addresses"
    late = pace.meet(b"ann", "10.0.0.1", 10, 5.0)
    assert late is not None
    assert (late.status, (b"Retry-After", b"1") in late.headers) == (429, True)
    assert pace.meet(b"ann", "10.0.0.1", 10, 5.2) is None
    assert pace.meet(b"bob", "10.0.0.9", 1, 5.0) is None


def test_one_address_with_many_clients_is_no_faster() -> None:
    pace = Pace(1)
    answers = [pace.meet(b"%d" % each, f"2001:db8::{each:x}", 1, 5.0) for each in range(1, 9)]
    assert [each is None for each in answers] == [True, True] + [False] * 6


def test_this_machine_and_who_sets_no_bound_are_not_slowed_and_little_is_kept() -> None:
    pace = Pace(1)
    assert all(pace.meet(b"a", "127.0.0.1", 10, 5.0) is None for _ in range(50))
    assert all(Pace(0).meet(b"a", "10.0.0.1", 10, 5.0) is None for _ in range(50))
    for number in range(5_000):
        pace.meet(b"%d" % number, f"10.0.{number // 256}.{number % 256}", 1, 5.0)
    assert len(pace._buckets) == 2_048


def test_a_request_that_looks_at_much_counts_as_ten() -> None:
    stage = ApiStage(requests_per_s=10)
    stage.wire_peer = "10.1.2.3:4000"
    caller = stage.caller()
    assert caller.get("/api/v1/queues?sort=name").status == 200
    assert caller.get("/api/v1/queues?sort=name").status == 200
    refused = caller.get("/api/v1/queues")
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
