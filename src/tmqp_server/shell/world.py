"""World effects: decisions of the shell that need sockets or threads.

The shell appends them to one list, in order.  The code that drives it carries out each one exactly
once and reports the result by a call of :class:`~tmqp_server.shell.turn.Turn`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final

from tmqp._compat import mypyc_attr
from tmqp_server.access.gate import Question
from tmqp_server.engine.effects import CallHttp, TellHandler
from tmqp_server.hub.questions import StorageQuestion

__all__ = [
    "DEBUG",
    "ERROR",
    "INFO",
    "INTERNAL_ERROR",
    "WARNING",
    "Abandon",
    "Ask",
    "Call",
    "CatchUp",
    "Close",
    "CloseStore",
    "Dial",
    "DrainEnded",
    "Drained",
    "GoOn",
    "HangUp",
    "LinkOutput",
    "Log",
    "ReadBatch",
    "Resume",
    "Secure",
    "StartWriting",
    "StopListening",
    "Tell",
    "Wake",
    "Wire",
    "WorldEffect",
    "WriteBatch",
    "why_broken",
]

#: The levels of log lines, with the numbers of Python's logging.
DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40
#: The reason for the end of a connection because of a bug.
INTERNAL_ERROR: Final = "an internal error"


@mypyc_attr(allow_interpreted_subclasses=True)
class Wire:
    """One connection as the shell sees it; ``peer`` is its address, if known.  ``is_exact`` says
    that it reports accepted bytes immediately: then the unsent bytes are known when it breaks.
    """

    peer: str = ""
    is_exact: bool = False

    def send(self, data: bytes) -> int:
        """Send as much as possible without waiting; must not call the shell.

        :returns: how many bytes were accepted.
        :raises OSError: if the connection is broken.
        """
        raise NotImplementedError


def why_broken(error: OSError) -> str:
    """Return why a connection is broken, as text: that of the system error, or its name."""
    return error.strerror or str(error) or type(error).__name__


@final
class StartWriting:
    """Send each :meth:`Turn.piece` of a session until there is none."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Resume:
    """Resume reading from a session that was told to wait."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Secure:
    """Change a session's connection to TLS, with this side as the server; call :meth:`Turn.secured`
    when that is done, or :meth:`Turn.broken` if it failed.  Waiting bytes are sent encrypted."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Drained:
    """A session that :meth:`Turn.send` refused for the moment takes bytes again, or ended."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Close:
    """Close the connection of a session that has ended."""

    __slots__ = ("reason", "session")

    def __init__(self, session: int, reason: str) -> None:
        self.session = session
        self.reason = reason


@final
class GoOn:
    """Let others have their turn, then call :meth:`Turn.go_on`."""

    __slots__ = ()


@final
class Wake:
    """:meth:`Turn.next_deadline` now returns an earlier time than at the last call."""

    __slots__ = ()


@final
class Ask:
    """Have the server's own code decide; the answer goes to :meth:`Turn.decided`."""

    __slots__ = ("question",)

    def __init__(self, question: Question) -> None:
        self.question = question


@final
class Call:
    """Make an HTTP call; the answer goes to :meth:`Turn.answered`."""

    __slots__ = ("call", "wanted_at")

    def __init__(self, call: CallHttp) -> None:
        self.call = call
        self.wanted_at = 0.0


@final
class Tell:
    """Call a channel's event handler; report the end with :meth:`Turn.told`."""

    __slots__ = ("notification",)

    def __init__(self, notification: TellHandler) -> None:
        self.notification = notification


@final
class Abandon:
    """Abandon work that is no longer awaited.  It still reports its end."""

    __slots__ = ("work",)

    def __init__(self, work: Ask | Call | Tell) -> None:
        self.work = work


@final
class WriteBatch:
    """Let the store write the batch that :meth:`Turn.take_batch` returns when the store can begin;
    report the result with :meth:`Turn.written`.  ``at_once``: it need not wait for the rest of this
    round.
    """

    __slots__ = ("at_once",)

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once


@final
class ReadBatch:
    """Let the store answer these questions in order; the answers go to :meth:`Turn.read`."""

    __slots__ = ("questions",)

    def __init__(self, questions: Sequence[StorageQuestion]) -> None:
        self.questions = questions


@final
class CatchUp:
    """Let the store do its deferred work; report the result with :meth:`Turn.caught_up`."""

    __slots__ = ()


@final
class CloseStore:
    """Close the store; ``clean`` if everything was written; then :meth:`Turn.store_closed`."""

    __slots__ = ("clean",)

    def __init__(self, clean: bool) -> None:
        self.clean = clean


@final
class Dial:
    """Connect to the master with this number; the object identifies this connection until its end.
    Report the connection with :meth:`Turn.link_dialled`, received bytes with
    :meth:`Turn.link_read`, and a failure or the end with :meth:`Turn.link_failed`.
    """

    __slots__ = ("link",)

    def __init__(self, link: int) -> None:
        self.link = link


@final
class LinkOutput:
    """Send each :meth:`Links.piece` to a master until there is none."""

    __slots__ = ("dial",)

    def __init__(self, dial: Dial) -> None:
        self.dial = dial


@final
class HangUp:
    """Close a connection to a master, or stop trying to connect."""

    __slots__ = ("dial",)

    def __init__(self, dial: Dial) -> None:
        self.dial = dial


@final
class StopListening:
    """Accept no more connections, except from operators."""

    __slots__ = ()


@final
class DrainEnded:
    """The server has drained; if it ``stops``, end it."""

    __slots__ = ("stops",)

    def __init__(self, stops: bool) -> None:
        self.stops = stops


@final
class Log:
    """A line for the log.  ``session`` is the session that it concerns, 0 for none; ``error`` adds
    a traceback; ``topic`` is the logger's name after ``tmqp_server.``.
    """

    __slots__ = ("error", "level", "session", "text", "topic")

    def __init__(
        self,
        level: int,
        text: str,
        session: int = 0,
        error: Exception | None = None,
        topic: str = "shell",
    ) -> None:
        self.level = level
        self.text = text
        self.session = session
        self.error = error
        self.topic = topic


WorldEffect: TypeAlias = (
    StartWriting
    | Resume
    | Secure
    | Drained
    | Close
    | GoOn
    | Wake
    | Ask
    | Call
    | Tell
    | Abandon
    | WriteBatch
    | ReadBatch
    | CatchUp
    | CloseStore
    | Dial
    | LinkOutput
    | HangUp
    | StopListening
    | DrainEnded
    | Log
)
