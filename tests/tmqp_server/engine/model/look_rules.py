"""What the machine of ``test_model.py`` does to look into queues."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.tmqp_server.engine.model.draws import clients
from tests.tmqp_server.engine.model.duel import Duel
from tmqp_server.engine.commands import Browse
from tmqp_server.engine.model.snapshots import BROWSED_ALL

__all__ = ["LookRules"]


class LookRules(RuleBasedStateMachine):
    """The rule; the machine has the rest."""

    duel: Duel

    def session(self, client: int) -> int:
        """The client's connection."""
        raise NotImplementedError

    def place(self, data: st.DataObject, *statuses: int) -> tuple[str, int]:
        """A queue."""
        raise NotImplementedError

    @rule(
        client=clients,
        data=st.data(),
        limit=st.sampled_from([0, 0, 1, 2, 5]),
        max_bytes=st.sampled_from([0, 0, 0, 1, 20, 35]),
        states=st.sampled_from([BROWSED_ALL, BROWSED_ALL, *range(1, BROWSED_ALL)]),
        by_id=st.sampled_from([False, False, True]),
    )
    def look(
        self,
        client: int,
        data: st.DataObject,
        limit: int,
        max_bytes: int,
        states: int,
        by_id: bool,
    ) -> None:
        """All of a queue, then a part of it, from any message on or behind the last one."""
        name, queue_id = self.place(data)
        number = self.session(client)
        self.duel.translator.shown = []
        self.duel.do(Browse(number, "look", name, queue_id, 0, 0, 0, BROWSED_ALL, ""))
        shown = self.duel.translator.shown
        at = data.draw(st.integers(0, len(shown)))
        first = shown[at] if at < len(shown) else max(shown, default=0) + 1
        line = self.duel.model.line(name, queue_id)
        letters = [] if line is None else line.live()
        wanted = data.draw(st.sampled_from(letters)).message_id if by_id and letters else ""
        self.duel.model.skipped = at
        part = (first, limit, max_bytes, states, wanted)
        self.duel.do(Browse(number, "look", name, queue_id, *part))
        self.duel.model.skipped = 0
