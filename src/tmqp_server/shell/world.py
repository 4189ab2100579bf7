"""World effects: what the shell decided and only somebody with sockets or threads can do.

The shell appends them to one list, in the order in which they came to be.  Whoever drives it
carries each out exactly once and reports the result by a call of
:class:`~tmqp_server.shell.turn.Turn`.
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
    "TellSaved",
    "Wake",
    "Wire",
    "WorldEffect",
    "WriteBatch",
    "why_broken",
]

#: How important a log line is; the numbers are those of Python's logging.
DEBUG: Final = 10
INFO: Final = 20
WARNING: Final = 30
ERROR: Final = 40
#: Why a connection ends that failed for a bug.
INTERNAL_ERROR: Final = "an internal error"


@mypyc_attr(allow_interpreted_subclasses=True)
class Wire:
    """One connection as the shell sees it; ``peer`` is where it comes from, if that is known.

    ``is_exact`` says that what it took is told at once: then what has not left is known when it
    breaks.
    """

    peer: str = ""
    is_exact: bool = False

    def send(self, data: bytes) -> int:
        """Send what can be sent without waiting; must not call the shell.

        :returns: how many bytes were taken, 0 for none.
        :raises OSError: when the connection is broken.
        """
        raise NotImplementedError


def why_broken(error: OSError) -> str:
    """Why a connection is broken, in words: a system error may bring some, or only its name."""
    return error.strerror or str(error) or type(error).__name__


@final
class StartWriting:
    """Bytes wait for a session: send :meth:`Turn.piece` after piece until there is none."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Resume:
    """Read again from a session that was told to wait."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Secure:
    """Change a session's connection to TLS, with this side as the server; :meth:`Turn.secured`
    hears when that is done, :meth:`Turn.broken` that it failed.  What waits to be sent is sent
    encrypted."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Drained:
    """A session that :meth:`Turn.send` refused for the moment takes bytes again, or has ended."""

    __slots__ = ("session",)

    def __init__(self, session: int) -> None:
        self.session = session


@final
class Close:
    """A session is over: close its connection."""

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
    """:meth:`Turn.next_deadline` is now earlier than when it was last asked for."""

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
    """Tell a channel's event handler; :meth:`Turn.told` hears how it went."""

    __slots__ = ("notification",)

    def __init__(self, notification: TellHandler) -> None:
        self.notification = notification


@final
class Abandon:
    """Nobody waits for this any more: end the work on it.  It still reports its end."""

    __slots__ = ("work",)

    def __init__(self, work: Ask | Call | Tell) -> None:
        self.work = work


@final
class WriteBatch:
    """Have the store write the batch that :meth:`Turn.take_batch` gives when it can begin;
    :meth:`Turn.written` hears how it went, at once if the batch is empty.

    ``at_once`` says that it need not wait for what else comes in this round.
    """

    __slots__ = ("at_once",)

    def __init__(self, at_once: bool = False) -> None:
        self.at_once = at_once


@final
class TellSaved:
    """Call :meth:`Turn.tell_saved`, now that the next batch has begun."""

    __slots__ = ()


@final
class ReadBatch:
    """Have the store answer these questions in order; the answers go to :meth:`Turn.read`."""

    __slots__ = ("questions",)

    def __init__(self, questions: Sequence[StorageQuestion]) -> None:
        self.questions = questions


@final
class CatchUp:
    """Have the store do what it left for later; :meth:`Turn.caught_up` hears how it went."""

    __slots__ = ()


@final
class CloseStore:
    """Close the store; ``clean`` if everything was written; then :meth:`Turn.store_closed`."""

    __slots__ = ("clean",)

    def __init__(self, clean: bool) -> None:
        self.clean = clean


@final
class Dial:
    """Connect to a master, the one of this number; it stands for this connection to its end.

    :meth:`Turn.link_dialled` hears of the connection, :meth:`Turn.link_read` of what comes,
    :meth:`Turn.link_failed` that there is none, or none any more.
    """

    __slots__ = ("link",)

    def __init__(self, link: int) -> None:
        self.link = link


@final
class LinkOutput:
    """Bytes wait for a master: send piece after piece (:meth:`Links.piece`) until there is none."""

    __slots__ = ("dial",)

    def __init__(self, dial: Dial) -> None:
        self.dial = dial


@final
class HangUp:
    """Close a connection to a master, or try no longer to have one."""

    __slots__ = ("dial",)

    def __init__(self, dial: Dial) -> None:
        self.dial = dial


@final
class StopListening:
    """Accept no more connections, but for those of operators."""

    __slots__ = ()


@final
class DrainEnded:
    """The server has drained; if it ``stops``, end it."""

    __slots__ = ("stops",)

    def __init__(self, stops: bool) -> None:
        self.stops = stops


@final
class Log:
    """A line for the log.  ``session`` is whose, 0 for nobody's; ``error`` brings its traceback;
    ``topic`` is the logger's name behind ``tmqp_server.``."""

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
    | TellSaved
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
