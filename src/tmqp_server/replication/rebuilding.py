"""How a server gets a copy of its group's store when the log no longer has what the server needs.

Theory of operation.  A copy of another server's disk reaches up to some entry of the log, and it
takes a while to fetch.  Meanwhile the leader would trim the log beyond that entry, because no known
member needs the next ones, and the copy would be useless.  So the log is *held* first: the server
reports, as a member does, that it has the trimmed entries and no others, and checks that no more
were trimmed until then.  From then on, the leader and its successors keep the log for this server.
It reports again from time to time while it fetches the copy.

In the end, the copy is *compared* with the log: it is usable only if the log has the entry after
the copy's last one.  It is not if it comes from a server that is itself behind, or if the log could
not be held any longer; then the log is held again, and another copy is fetched.

A program that is interrupted leaves only its report behind, and begins again.
"""

from __future__ import annotations

from typing import Final, final

from tmqp_server.storage.log import (
    Entries,
    ListMembers,
    LogAnswer,
    LogRequest,
    Member,
    Members,
    ReadEntries,
    Report,
)

__all__ = ["COPYING", "READY", "Rebuilding"]

#: States: which reports there were of this server, what the log has, holding it, whether it is
#: held, fetching a copy, whether the copy is of use, done.
_LISTING: Final = 0
_LOOKING: Final = 1
_HOLDING: Final = 2
_CHECKING: Final = 3
COPYING: Final = 4
_COMPARING: Final = 5
READY: Final = 6


@final
class Rebuilding:
    """Fetches one copy.

    :param node: the server's name in its group; it must not be running.
    :param address: where clients reach it.

    Attributes: ``state``; in all states except ``COPYING`` and ``READY``, send :attr:`request` to
    the log, again and again until it answers.
    """

    __slots__ = ("_address", "_copied", "_held", "_node", "_reports", "state")

    def __init__(self, node: str, address: str) -> None:
        self.state: int = _LISTING
        self._node = node
        self._address = address
        self._held = 0
        self._copied = 0
        self._reports = 0

    @property
    def request(self) -> LogRequest:
        """The request to the log; while a copy is fetched, the report that holds the log."""
        if self.state == _LISTING:
            return ListMembers()
        if self.state == _LOOKING:
            return ReadEntries(0, 1)
        if self.state == _CHECKING:
            return ReadEntries(self._held, 1)
        if self.state == _COMPARING:
            return ReadEntries(self._copied, 1)
        return Report(Member(self._node, self._address, self._held, self._reports))

    def answered(self, answer: LogAnswer) -> None:
        """Handle the log's answer to :attr:`request`."""
        if self.state == _LISTING:
            assert isinstance(answer, Members), "a list of members has one kind of answer"
            known = [each.reports for each in answer.members if each.node == self._node]
            self._reports = max(known, default=0)
            self.state = _LOOKING
        elif self.state == _HOLDING:
            self.state = _CHECKING
        elif self.state != COPYING:
            assert isinstance(answer, Entries), "so has a read"
            self._looked(answer.first)

    def _looked(self, first: int) -> None:
        """Continue with ``first``, the lowest number that the log has."""
        needed = (self._copied if self.state == _COMPARING else self._held) + 1
        if self.state == _LOOKING or first > needed:
            self._held = first - 1
            self._reports += 1
            self.state = _HOLDING
        else:
            self.state = READY if self.state == _COMPARING else COPYING

    def hold_on(self) -> None:
        """Make :attr:`request` a new report, to be sent once, because the copy takes time."""
        assert self.state == COPYING, "it is held for a copy"
        self._reports += 1

    def copied(self, number: int) -> None:
        """Note a complete copy, and the number of its last entry of the log."""
        assert self.state == COPYING, "nothing else is waited for"
        self._copied = number
        self.state = _COMPARING
