"""How far the members of a group have read, and which entries of the log no member needs any more.

Theory of operation.  Each member reports the last entry that its disk has.  The leader may trim
what all of them have.  A member that has not reported for ``forget_s``, by the leader's clock, does
not count: it may have to be rebuilt with a copy when it returns.  Nor does one that is more than
``most_kept`` entries behind, or behind at all when the log has little room left: a slow disk must
not fill up the log, because then the whole group could not write. A new leader gives every member
the whole time again, because it does not know for how long a member has been silent.
"""

from __future__ import annotations

from typing import final

from tmqp_server.storage.log import Member

__all__ = ["MemberTable"]


@final
class MemberTable:
    """The members as a leader knows them.

    :param forget_s: how long a silent member is waited for.
    :param most_kept: how many entries are kept for a member that is behind.
    """

    __slots__ = ("_forget_s", "_heard", "_is_full", "_most_kept", "members")

    def __init__(self, forget_s: float, most_kept: int) -> None:
        self._forget_s = forget_s
        self._most_kept = most_kept
        self._is_full = False
        self.members: list[Member] = []
        #: For each node, how many reports it has made, and when this number was first seen.
        self._heard: dict[str, tuple[int, float]] = {}

    def learn(self, members: list[Member], now: float, is_full: bool = False) -> None:
        """Take the members' reports, and whether the log has little room left."""
        self._is_full = is_full
        for each in members:
            before = self._heard.get(each.node)
            if before is None or before[0] != each.reports:
                self._heard[each.node] = (each.reports, now)
        self.members = members  # last: another thread may look

    def silent_s(self, node: str, now: float) -> float:
        """For how long a known member has not reported."""
        return now - self._heard[node][1]

    def needed(self, node: str, own: int, now: float) -> int:
        """The first entry that a member needs.

        :param node: the leader, which itself has all entries up to ``own``.
        """
        if self._is_full:
            return own + 1
        least = own
        for each in self.members:
            if each.node != node and self.silent_s(each.node, now) <= self._forget_s:
                least = min(least, each.applied)
        return max(least, own - self._most_kept) + 1
