"""The verdicts on a case, and how several become one."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

__all__ = ["ACCEPTED", "FAILURES", "Level", "Verdict", "worst"]


class Level(StrEnum):
    """How binding the requirement of a case is (RFC 2119)."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"
    OBSERVED = "observed"  # what the original does, without a rule that requires it


class Verdict(StrEnum):
    """What a case found, from good to bad; ERROR is the tool's own fault."""

    PASS = "pass"
    INFORMATIONAL = "informational"  # nothing to judge: a fact was recorded
    NON_STRICT = "non-strict"  # allowed, not preferred
    EXCUSED = "excused"  # a failure that the implementer has explained
    UNIMPLEMENTED = "unimplemented"  # the peer said that it does not have this
    UNCLEAN = "unclean"  # the right behaviour, the wrong end of the connection
    WRONG_CODE = "wrong-code"  # the right reaction, the wrong code
    FAIL = "fail"
    HANG = "hang"  # the peer did not answer, not even a ping
    CRASH = "crash"  # the peer could not be reached afterwards
    ERROR = "error"  # the tool failed: not counted against the peer


_ORDER: Final = {verdict: position for position, verdict in enumerate(Verdict)}

#: Verdicts that count against the peer.
FAILURES: Final = frozenset(
    {Verdict.FAIL, Verdict.WRONG_CODE, Verdict.UNCLEAN, Verdict.HANG, Verdict.CRASH}
)
#: Verdicts with which a case is no obstacle to conformance.
ACCEPTED: Final = frozenset(
    {Verdict.PASS, Verdict.INFORMATIONAL, Verdict.NON_STRICT, Verdict.EXCUSED}
)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts; PASS if there are none."""
    return max(verdicts, key=_ORDER.__getitem__, default=Verdict.PASS)
