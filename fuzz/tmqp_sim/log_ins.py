"""The judge of log-ins: of an address that was refused, one at a time, and not before its pause.

As long as nobody of an address was refused, several are asked about at once.  The pause behind a
refusal begins with a quarter of a second and doubles up to four seconds, from the twentieth on up
to a minute; who was not refused for a minute begins again.
"""

from __future__ import annotations

from typing import Final

from tmqp_sim.world import Violation, World

__all__ = ["LogInJudge"]

_FIRST_PAUSE_S: Final = 0.25
_LONG_PAUSE_S: Final = 4.0
_LONGEST_PAUSE_S: Final = 60.0
_MANY: Final = 20
_FORGIVEN_AFTER_S: Final = 60.0
_AT_ONCE: Final = 16
_SLACK_S: Final = 1e-6


class _Address:
    """What was asked about the clients of one address, and answered."""

    def __init__(self) -> None:
        self.refusals = 0
        self.free_at = 0.0
        self.asked: set[int] = set()


class LogInJudge:
    """The log-ins of one server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._addresses: dict[str, _Address] = {}
        self._hosts: dict[int, str] = {}

    def begin(self) -> None:
        """A life begins, and remembers nothing."""
        self._addresses.clear()
        self._hosts.clear()

    def asked(self, session: int, host: str) -> None:
        """Somebody is asked whether a client may log in.

        :raises Violation: when that is too early.
        """
        now = self._world.now
        address = self._addresses.setdefault(host, _Address())
        self._hosts[session] = host
        self._forgive(address, now)
        if not address.refusals and len(address.asked) >= _AT_ONCE:
            raise Violation("log-ins", f"{len(address.asked)} of {host} are decided at once")
        if address.refusals:
            self._world.mark("log-in asked about behind refusals of its address")
            if now < address.free_at - _SLACK_S:
                text = f"{host} was refused {address.refusals} times"
                raise Violation("log-ins", f"{text}, and tries again before its pause is over")
            if address.asked:
                raise Violation("log-ins", f"{host} tries twice at a time, and was refused")
        address.asked.add(session)

    def decided(self, session: int, *, allowed: bool) -> None:
        """The answer has come, or nobody waits for it any more and it is a refusal."""
        now = self._world.now
        address = self._leaves(session)
        if address is None or allowed:
            return
        self._forgive(address, now)
        address.refusals += 1
        doubled = address.refusals - 1
        pause_s = min(_FIRST_PAUSE_S * 2.0**doubled, _LONG_PAUSE_S)
        if address.refusals >= _MANY:
            pause_s = min(_LONG_PAUSE_S * 2.0 ** (address.refusals - _MANY), _LONGEST_PAUSE_S)
        address.free_at = max(address.free_at, now + pause_s)

    def gone(self, session: int) -> None:
        """A connection has ended while somebody was asked about it."""
        self._leaves(session)

    def _leaves(self, session: int) -> _Address | None:
        address = self._addresses.get(self._hosts.pop(session, ""))
        if address is not None:
            address.asked.discard(session)
        return address

    @staticmethod
    def _forgive(address: _Address, now: float) -> None:
        if now >= address.free_at + _FORGIVEN_AFTER_S:
            address.refusals = 0
