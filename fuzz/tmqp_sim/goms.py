"""Clients of goMS in both dialects: they register and log out, and send to each other.

They end their connections now and then, in the middle of a line as well, and come back.  Nothing
is sent again.  What must become of messages is in ``goms_books.py``.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from tmqp_sim.goms_books import TOPICS, Entry, GomsBooks
from tmqp_sim.host import GOMS
from tmqp_sim.small_clients import LineClient
from tmqp_sim.stage import Stage
from tmqp_sim.world import Violation
from tmqp_wires.goms import Dialect, ObjectDecoder
from tmqp_wires.goms.codec import ALREADY_REGISTERED, UNKNOWN_TOPIC, request_line

__all__ = ["GomsClient"]

_LONGEST: Final = 8_192
#: What means nothing.
_NONSENSE: Final = (b"\n", b"hello\n", b'{"%s":"what"}\n', b"[]\n", b'{"%s":"send"}\n', b"{}\n")
#: What data end with: all that JSON writes otherwise, and what looks like the end of a message.
_ENDS: Final = ("", "x" * 50, '"}', "\\", "\n{", "\u00fc\u2028", chr(0x1F600), "<&>", '","data":"')


class GomsClient(LineClient):
    """One client.

    :param wanted: whether somebody waits for news when the world is healed.
    :param registers: it registers to topics; otherwise it only sends, which goes in one dialect.
    """

    def __init__(
        self,
        simulation: Stage,
        name: str,
        books: GomsBooks,
        dialect: Dialect,
        restless: float,
        room: int,
        pace_s: float,
        wanted: Callable[[], bool],
        *,
        registers: bool = True,
    ) -> None:
        super().__init__(simulation, name, GOMS, "goMS", restless, room, pace_s)
        self.books = books
        self._dialect = dialect
        self._wanted = wanted
        self._registers = registers
        self.ready: deque[str] = deque()
        self._decoder = ObjectDecoder(_LONGEST)
        #: The topics it is registered to, and those it ever was on this connection.
        self._on: dict[str, None] = {}
        self._ever: set[str] = set()
        #: The errors that must come, in order.
        self._errors: deque[tuple[str, str]] = deque()
        self._tries = 0
        #: Since the world is healed and it is connected: the topics something has come of.
        self._fresh: set[str] = set()
        self._synced = False

    # -- its life -------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether the server has answered on this connection since the world is healed."""
        return self.end is not None and not self.link.dead and self._synced

    @property
    def owes(self) -> int:
        """What is not sent, or not taken, and topics of which nothing has come."""
        under_way = self.books.under_way(self.link) if self.end is not None else 0
        quiet = len(self._on.keys() - self._fresh)
        return len(self.ready) + len(self.unsent) + under_way + quiet + (not self.synced)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for something to come of one of its topics."""
        return bool(self._on.keys() - self._fresh)

    def begins(self) -> None:
        """A new connection."""
        super().begins()
        self._decoder = ObjectDecoder(_LONGEST)
        self._on.clear()
        self._ever.clear()
        self._errors.clear()
        self._fresh.clear()
        self._synced = False

    def greets(self) -> None:
        """Register to some topics."""
        super().greets()
        if self._registers:
            self._register(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS))))

    def lost(self) -> None:
        """Nobody is registered any more."""
        self._on.clear()

    def give(self, name: str) -> None:
        """Something is to be sent."""
        self.ready.append(name)
        self.flush()

    # -- what it says ---------------------------------------------------------------------------

    def work(self) -> None:
        """Change something now and then; when the world is healed, say something to all."""
        draw = self.random
        if self.simulation.healed:
            if not self._synced and not self._errors:
                self._ask()
            if self._wanted() and len(self.unsent) == 0:
                self._tries += 1
                self.ready.append(f"{self.name}-{self._tries}")
        elif draw.random() < 0.1:
            key = self._dialect.value.encode()
            self.unsent += draw.choice(_NONSENSE).replace(b"%s", key)
        elif draw.random() < 0.15:
            self._ask()
        elif self._registers and draw.random() < 0.2:
            self._register(draw.sample(TOPICS, draw.randint(1, len(TOPICS))))
        elif self._registers and draw.random() < 0.15:
            self._log_out(draw.sample(TOPICS, draw.randint(0, 2)))
        self.flush()

    def _say(self, kind: str, topics: list[str] | None = None, data: str | None = None) -> None:
        line = request_line(self._dialect, kind, topics, data)
        if self.random.random() < 0.1 and data is None:
            value = json.loads(line)
            line = json.dumps(value, indent=1).encode() + b"\n"  # as the document shows it
        self.unsent += line

    def _ask(self) -> None:
        """Say what must be answered: that there is no such topic."""
        self._tries += 1
        name = f"nothing-{self._tries}"
        self._errors.append((UNKNOWN_TOPIC, name))
        self._say("register", [name])

    def _register(self, topics: list[str]) -> None:
        again = [topic for topic in topics if topic in self._on]
        if again and self._dialect is Dialect.MESSAGETYPE:
            self._errors.append((ALREADY_REGISTERED, ",".join(again)))
        for topic in topics:
            if topic not in self._on:
                self._on[topic] = None
                self._ever.add(topic)
                self.books.says(self.link, topic, joins=True)
        spelt = [topic.upper() if self.random.random() < 0.2 else topic for topic in topics]
        self._say("register", spelt)

    def _log_out(self, topics: list[str]) -> None:
        """Log out of some topics, or of all."""
        left = [topic for topic in self._on if topic in topics or not topics]
        for topic in left:
            del self._on[topic]
            self.books.says(self.link, topic, joins=False)
        self._say("logout", topics or None)
        self.world.mark("goMS client logged out")

    def more(self) -> bytes:
        """The next messages, if there are some; before that, what it has to say about topics."""
        if not self.ready or self.lingers:
            return b""
        lines = b""
        topics = [self.random.choice(TOPICS)]
        if self.simulation.healed or self.random.random() < 0.2:
            topics = list(TOPICS)
        for _ in range(min(len(self.ready), self.random.choice((1, 3, 8, 30)))):
            lines += self._message(self.ready.popleft(), topics)
        return lines

    def _message(self, name: str, topics: list[str]) -> bytes:
        data = f"{name} {self.random.choice(_ENDS)}"
        echoes = self._dialect is Dialect.TYPE
        for topic in topics:
            if topic in self._on or not echoes:
                self.books.hands(self.link, Entry(name, topic, data, echoes=echoes))
        return request_line(self._dialect, "send", topics, data)

    def go(self) -> None:
        """End the connection; before it is closed in order there may be half a message."""
        super().go()
        if self.lingers and self.random.random() < 0.5:
            self.unsent += request_line(self._dialect, "send", list(TOPICS), "half")[:-4]
            self.world.mark("goMS client closed behind half a line")
            self.flush()

    def closes(self) -> None:
        """All was sent."""
        self.books.streams.closes(self.link)

    # -- what it hears --------------------------------------------------------------------------

    def hears(self, data: bytes) -> None:
        """Take lines."""
        if b"\n\n" in data:
            raise Violation("goms", f"{self.name} gets an empty line, which is the end for some")
        for each in self._decoder.objects(data):
            if self.end is None:
                return
            if not isinstance(each, dict):
                raise Violation("goms", f"{self.name} gets {each!r}")
            self._take(each)

    def _take(self, told: dict[str, Any]) -> None:
        kind = told.pop(self._dialect.value, "")
        is_old = self._dialect is Dialect.TYPE
        if kind == "error":
            code = told.pop("error-code" if is_old else "errorcode", "")
            due = self._errors.popleft() if self._errors else None
            if due != (code, told.pop("error", "")) or told:
                raise Violation("goms", f"{self.name} is told of error {code} {told}, due is {due}")
            self.world.mark("goMS error is right")
            self._synced = self._synced or self.simulation.healed
            return
        topic = ""
        if not is_old:
            topics = told.pop("topics", None)
            if not isinstance(topics, list) or len(topics) != 1:
                raise Violation("goms", f"{self.name} gets a message of {topics!r}")
            topic = topics[0]
        data = told.pop("data", "")
        if kind != "message" or told:
            raise Violation("goms", f"{self.name} gets {kind!r} with {told}")
        entry = self.books.comes(self.link, topic, data)
        if entry.topic not in self._ever:
            raise Violation("goms", f"{self.name} gets {entry.uid}, and never registered there")
        self.world.note("goms", self.name, entry.uid)
        self.world.mark("goMS message came")
        if self.simulation.healed:
            self._fresh.add(entry.topic)
