"""The configuration of the door of goMS: the limits of one peer, and its options."""

from __future__ import annotations

from dataclasses import dataclass

from tmqp_server.doors.tables import check_positive

__all__ = ["GomsLimits", "GomsOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GomsLimits:
    """The limits of one peer.

    :raises ValueError: when a value is not positive.
    """

    max_message_bytes: int = 1_048_576
    """Bytes of one JSON object; a larger one ends the connection without an answer."""

    max_topics: int = 1_000
    """Topics of one request; further ones are ignored."""

    max_early_bytes: int = 2_097_152
    """Bytes that a client may send before the server has accepted it; more end the connection."""

    def __post_init__(self) -> None:
        check_positive(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GomsOptions:
    """What a server does for clients of goMS."""

    topics: tuple[str, ...] = ()
    """The topics that clients may register to, in lower case.  ``tmqp-server goms-config`` reads
    them from the original's files."""

    echo: str = "dialect"
    """Whether a sender that is registered to a topic gets its own message: ``yes``, ``no``, or
    ``dialect``, as the programs of the sender's dialect do: yes for ``type``, no for
    ``messagetype``."""

    def __post_init__(self) -> None:
        if self.echo not in ("yes", "no", "dialect"):
            raise ValueError(f"echo must be yes, no or dialect, not {self.echo!r}")
        for topic in self.topics:
            if topic != topic.lower():
                raise ValueError(f"topics must be in lower case, not {topic!r}")
