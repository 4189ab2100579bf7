"""Clients that speak HTTP: one that publishes, many requests at once, and one that takes messages.

Each writes its requests with h11's client role, and expects the answers in the order of its
requests: an answer that belongs to another request is a violation.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import h11

from tmqp_client.config import ClientLimits
from tmqp_server.doors.http.limits import HttpLimits
from tmqp_sim.consumers import Habits
from tmqp_sim.history import Place, Receipt, Sent
from tmqp_sim.host import WEB
from tmqp_sim.network import End, Link
from tmqp_sim.producers import Producer
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation

__all__ = ["WEB_LIMITS", "HttpLine", "WebProducer", "WebPuller", "open_line"]

#: What one peer may cost.
WEB_LIMITS: Final = HttpLimits(
    idle_timeout_s=4.0,
    head_timeout_s=3.0,
    body_timeout_s=5.0,
    max_unanswered=4,
    websocket_ping_interval_s=3.0,
)

#: An answer that comes later than its request's own wait and this is given up.
_GRACE_S: Final = 3.0
_PATIENCE_S: Final = 2.0
_LONGEST_PATIENCE_S: Final = 16.0
_PROBE_EVERY_S: Final = 2.0
_TAKE_EVERY_S: Final = 0.3
_TAKE_WAIT_S: Final = 0.5


class Asked:
    """One request: what it is about, who hears its answer, and where it stands in all that the
    client sends: its first byte, its body, and what follows it."""

    __slots__ = ("begins", "body_at", "due", "ends", "hear", "what")

    def __init__(self, what: object, hear: Callable[[int, Any], None], due: float) -> None:
        self.what = what
        self.hear = hear
        self.due = due
        self.begins = self.body_at = self.ends = 0


class HttpLine:
    """One connection over HTTP, and the requests that wait for their answers.

    :param lost: called when the connection is over.
    """

    def __init__(self, simulation: Stage, link: Link, lost: Callable[[], None]) -> None:
        self.world = simulation.world
        self.link = link
        self.end: End | None = link.client
        self.asked: deque[Asked] = deque()
        #: The text of the answer that was read last, and the cookie that it has set.
        self.text = ""
        self.cookie = ""
        self._lost = lost
        self._unsent = b""
        self._received = b""
        self._said = 0
        self._intakes: list[tuple[float, int]] = []
        link.intakes = self._intakes
        link.client.owner = self

    def ask(
        self,
        target: str,
        body: bytes | None,
        what: object,
        hear: Callable[[int, Any], None],
        wait_s: float,
        method: str = "",
        more: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Send a request: POST, or GET if there is nothing to be said, or another one.

        :param more: further fields of its head.
        """
        machine = h11.Connection(h11.CLIENT)
        method = method or ("GET" if body is None else "POST")
        body = body or b""
        fields = [("Host", "sim"), ("Content-Length", str(len(body))), *more]
        head = machine.send(h11.Request(method=method, target=target, headers=fields)) or b""
        self._unsent += head + body
        asked = Asked(what, hear, self.world.now + wait_s + _GRACE_S)
        asked.begins = self._said
        asked.body_at = asked.begins + len(head)
        self._said = asked.ends = asked.body_at + len(body)
        self.asked.append(asked)
        self.world.at(asked.due, self._check, asked)
        self.writable()

    def _check(self, asked: Asked) -> None:
        """Give the connection up if its answer has not come."""
        if self.end is not None and asked in self.asked:
            self.world.mark("HTTP answer did not come in time")
            self.cut("no answer")

    def cut(self, reason: str) -> None:
        """End the connection from this side."""
        if self.end is not None:
            self.end.closed = True
            self.end = None
            self.link.cut(0.0, 0.05, reason)
            self._over()

    def _over(self) -> None:
        self.end = None
        self._lost()

    # -- as the owner of its end ----------------------------------------------------------------

    def writable(self) -> None:
        """Send as far as there is room."""
        if self.end is not None:
            self._unsent = self.end.send_all(self._unsent)

    def readable(self) -> None:
        """Read the answers that have come."""
        while self.end is not None:
            data = self.end.read()
            if data is None:
                return
            if not data:
                self.end.close()
                self._over()
                return
            self._received += data
            while self._read_one():
                pass

    def _read_one(self) -> bool:
        """Read one answer; False if it is not complete."""
        if not self._received or self.end is None:
            return False
        machine = h11.Connection(h11.CLIENT)
        machine.send(h11.Request(method="POST", target="/", headers=[("Host", "sim")]))
        machine.send(h11.EndOfMessage())
        machine.receive_data(self._received)
        status, body, self.cookie = 0, b"", ""
        while True:
            event = machine.next_event()
            if event is h11.NEED_DATA:
                return False
            if isinstance(event, h11.Response):
                status = event.status_code
                for name, value in event.headers:
                    if name == b"set-cookie":
                        self.cookie = value.decode().partition(";")[0]
            elif isinstance(event, h11.Data):
                # It says bytes and is a bytearray, which compiled code would refuse.
                body += bytes(cast("Any", event).data)
            elif isinstance(event, h11.EndOfMessage):
                break
        self._received = machine.trailing_data[0]
        if not self.asked:
            if status == 408:
                return True  # it was given up while it wrote
            raise Violation("HTTP", f"link {self.link.number}: {status} answers nothing")
        self.text = body.decode()
        asked = self.asked.popleft()
        if status == 408 and not self._was_slow(asked):
            raise Violation("HTTP", f"link {self.link.number}: 408 answers what came in time")
        asked.hear(status, json.loads(body) if body.startswith(b"{") else None)
        return True

    def _was_slow(self, asked: Asked) -> bool:
        """Whether the server had to wait too long for the head of a request, or for its body."""
        first_at = self._read_at(asked.begins + 1)
        head_at = self._read_at(asked.body_at)
        return (
            head_at >= first_at + WEB_LIMITS.head_timeout_s
            or self._read_at(asked.ends) >= head_at + WEB_LIMITS.body_timeout_s
        )

    def _read_at(self, size: int) -> float:
        """When the server had read so many bytes; now, if it has not."""
        for at, more in self._intakes:
            size -= more
            if size <= 0:
                return at
        return self.world.now

    def broken(self, reason: str) -> None:
        """The connection broke."""
        if self.end is not None:
            self._over()


def open_line(
    simulation: Stage,
    name: str,
    lost: Callable[[], None],
    *,
    host: str = WEB,
    accepted_s: float = 0.0,
) -> HttpLine:
    """Open a connection over HTTP.

    :param name: the client's.
    :param lost: called when the connection is over.
    :param host: how the hosts of such clients begin.
    :param accepted_s: after so many seconds the server accepts it.
    """
    link = simulation.network.open()
    link.host = f"{host}{name} {link.number}"
    line = HttpLine(simulation, link, lost)
    simulation.world.after(accepted_s, simulation.server.accept, link)
    return line


def _of_place(place: Place) -> str:
    return f"/api/v1/channels/{place.channel}/queues/{place.queue_id}"


class WebProducer(Producer):
    """Publishes by HTTP: several requests wait for their answers at one time."""

    def __init__(self, simulation: Stage, name: str, limits: ClientLimits, window: int) -> None:
        super().__init__(simulation, name, limits, window)
        self._line: HttpLine | None = None

    @property
    def usable(self) -> bool:
        """Whether it has a connection."""
        return self._line is not None and self._line.end is not None

    @property
    def link(self) -> Link:
        """The link it is connected by."""
        assert self._line is not None
        return self._line.link

    def connect(self) -> None:
        """Open a connection, if there is none."""
        if self.usable or self.retired:
            return
        accepted_s = self.random.random() * 0.02
        self._line = open_line(self.simulation, self.name, self._gone, accepted_s=accepted_s)
        self.world.mark("HTTP producer connected")
        self.world.after(_PROBE_EVERY_S, self._probe, self._line)
        self.work()

    def _probe(self, line: HttpLine) -> None:
        """See from time to time whether the connection is alive."""
        if line is self._line and line.end is not None:
            if not line.asked:
                line.ask("/healthz", None, None, lambda _status, _body: None, 0.0)
            self.world.after(_PROBE_EVERY_S, self._probe, line)

    def _gone(self) -> None:
        """What was not answered is published again."""
        self._line = None
        self.forgets()
        self.reconnect_soon()

    def work(self) -> None:
        """Publish what may be published."""
        while self.usable and self.ready and len(self.under_way) < self.window:
            line = self._line
            assert line is not None
            sent = self.ready.popleft()
            if sent.uid in self.under_way:
                continue
            wait_s = min(_PATIENCE_S * 2**sent.pushes, _LONGEST_PATIENCE_S)
            sent.pushes += 1
            self.under_way[sent.uid] = sent
            priority = "high" if sent.high else "normal"
            target = f"{_of_place(sent.place)}/messages?id={sent.uid}&priority={priority}"

            def hear(status: int, body: Any, sent: Sent = sent) -> None:
                self._heard(sent, status, body)

            line.ask(f"{target}&wait={wait_s}", sent.payload(), sent, hear, wait_s)

    def _heard(self, sent: Sent, status: int, body: Any) -> None:
        """The answer to the oldest request.

        :raises Violation: when it is not about that request.
        """
        if status in (201, 202) and body["id"] != sent.uid:
            raise Violation("HTTP", f"{self.name}: {body['id']} is answered for {sent.uid}")
        self.world.note("answered", self.name, sent.uid, status)
        self.world.mark(f"HTTP publish answered with {status}")
        self.under_way.pop(sent.uid, None)
        if status == 201:
            sent.confirms += 1
            sent.last_life = self.link.life
        elif not sent.asks:
            pass  # nobody tells more about these
        elif status in (202, 403, 404, 408, 409, 503) or _waited_for_others(
            self.simulation, status
        ):
            # 408: it was suspended (seed 101731)
            self.ready.appendleft(sent)
            self.try_later()
            return
        else:
            raise Violation("HTTP", f"{self.name}: {sent.uid} is answered with {status}: {body}")
        self.work()


class WebPuller:
    """Takes messages by HTTP, and acknowledges them on the same connection."""

    def __init__(self, simulation: Stage, name: str, place: Place, habits: Habits) -> None:
        self.simulation = simulation
        self.world = simulation.world
        self.name = name
        self.retired = False
        self._place = place
        self._habits = habits
        self._random = self.world.child(name)
        self._line: HttpLine | None = None

    def connect(self) -> None:
        """Open a connection and ask from time to time."""
        if self.retired or self._line is not None:
            return
        self._line = open_line(self.simulation, self.name, self._gone)
        self.world.mark("HTTP consumer connected")
        self.world.after(_TAKE_EVERY_S, self._take, self._line)

    def _gone(self) -> None:
        self._line = None
        self.world.after(0.1 + self._random.random(), self.connect)

    def retire(self) -> None:
        """Come back no more."""
        self.retired = True
        if self._line is not None:
            self._line.cut("the HTTP client is gone")

    def _take(self, line: HttpLine) -> None:
        if line is not self._line or line.end is None:
            return
        if not line.asked:
            most = self._random.randrange(1, 6)
            wait_s = self._random.choice((0.0, _TAKE_WAIT_S))
            query = f"max={most}&wait={wait_s}&ack=manual"
            target = f"{_of_place(self._place)}/deliveries?{query}"

            def hear(status: int, body: Any) -> None:
                self._taken(line, most, status, body)

            line.ask(target, b"", None, hear, wait_s + _PATIENCE_S)
        self.world.after(_TAKE_EVERY_S, self._take, line)

    def _taken(self, line: HttpLine, most: int, status: int, body: Any) -> None:
        if status in (403, 404, 408, 409, 503) or _waited_for_others(self.simulation, status):
            return
        if status != 200:
            raise Violation("HTTP", f"{self.name}: {status} answers a take: {body}")
        items = body["items"]
        if len(items) > most:
            raise Violation(
                "HTTP", f"{self.name}: {len(items)} messages, and {most} were asked for"
            )
        for item in items:
            uid = item["id"]
            key = self._place.key
            number = line.link.number
            receipt = Receipt(uid, self.name, number, key, self.world.now, False)
            payload = item["text"].encode()
            self.simulation.history.received(receipt, payload, item["source"])
            self.world.mark("HTTP consumer got a message")
            if self._random.randrange(1000) >= self._habits.forget:
                delay_s = self._habits.work_s * self._random.random()
                self.world.after(delay_s, self._acknowledge, line, receipt)

    def _acknowledge(self, line: HttpLine, receipt: Receipt) -> None:
        if line is not self._line or line.end is None:
            return
        target = f"{_of_place(self._place)}/deliveries/{receipt.uid}/ack"
        receipt.answer = "ack"

        def hear(status: int, body: Any) -> None:
            # One that came twice is acknowledged once; of a server that stops nobody knows whether
            # it did that before (seeds 245890, 250741).
            if status not in (204, 404, 408, 503):
                raise Violation("HTTP", f"{self.name}: {status} answers an acknowledge: {body}")

        line.ask(target, b"", receipt.uid, hear, _PATIENCE_S)


def _waited_for_others(simulation: Stage, status: int) -> bool:
    """Whether it was not let in because others of its address were refused: its turn did not come
    within the server's patience (seed 10907)."""
    return status == 401 and bool(simulation.server.paces.shared)
