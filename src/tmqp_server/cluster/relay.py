"""This server's part in a cluster: who is a node, what goes to masters, what slaves may bring.

Theory of operation.  The hub shows it every command of every session before the broker gets it
(:class:`tmqp_server.hub.relaying.Relay`).

* A *Connect* of type ``server`` is a slave's.  It is let in as a node if this server takes slaves
  and the token is right, and refused otherwise: nobody else may bear that type in a cluster (F133).
* What a *node* brings is carried out if it passes the filter for what is accepted.  It goes to
  nobody else: so nothing goes round, whatever the connections are (specification, "Clusters").
* What a *client* says goes to every master if it passes the filter for what is forwarded, and then
  its way here ("after sending the message to its masters, slave node processes the message").

Copies for CC are pushes of their own with ids of their own when they come here, so they are passed
on one by one and are the same everywhere; a server makes no copies of what a node brings.

Decisions (F63) go to masters and slaves; those of other nodes are not told on.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from tmqp.constants import NODE_CLIENT_TYPE, ResultCode
from tmqp.hello import ConnectionInformation
from tmqp_server.cluster.filters import NodeFilter, Passing, PatternFilter, passing_of
from tmqp_server.cluster.link import LinkState, MasterLink
from tmqp_server.doors.native.nodes import decision_frame
from tmqp_server.doors.port import Door
from tmqp_server.engine.commands import (
    ApplyDecision,
    Command,
    Connect,
    Decline,
    Disconnect,
    SendDirect,
)
from tmqp_server.engine.effects import Effect, Refuse, Reply, TellNodes

__all__ = ["HOST_PROPERTY", "ClusterRelay", "ClusterStatistics"]

#: The property of the connection information in which a slave says on which machine it is (F69).
HOST_PROPERTY = "Node-Host"
_MAX_HOST_CHARACTERS = 255

_UNAUTHORIZED = int(ResultCode.UNAUTHORIZED)
_CONFLICT = int(ResultCode.CONFLICT)


class ClusterStatistics:
    """What passed between this server and the others."""

    __slots__ = (
        "accepted",
        "filter_errors",
        "forwarded",
        "held_back",
        "refused_nodes",
        "refused_operations",
        "rejected",
        "spent",
    )

    def __init__(self) -> None:
        #: Messages of clients, and decisions, given to the links.
        self.forwarded = 0
        #: Those of them a filter kept here.
        self.held_back = 0
        #: Those that had no hop left (F11), or that nobody could write for a node.
        self.spent = 0
        #: Messages of nodes, and decisions, carried out here.
        self.accepted = 0
        #: Those a filter refused.
        self.rejected = 0
        #: Operations that nodes have no business with.
        self.refused_operations = 0
        #: Connections of type ``server`` that were refused.
        self.refused_nodes = 0
        #: Times a filter raised, which counts as no.
        self.filter_errors = 0


class ClusterRelay:
    """One server's part in a cluster.

    :param name: what the other nodes know it by.
    :param token: what a slave must say.
    :param takes_slaves: whether others may connect to it as nodes.
    :param links: the connections to its masters.
    :param forward: what goes to them.
    :param accept: what slaves may bring.
    :param custom: a filter in Python, asked after these.
    """

    def __init__(
        self,
        name: str,
        token: str,
        takes_slaves: bool,
        links: Sequence[MasterLink],
        forward: PatternFilter,
        accept: PatternFilter,
        custom: NodeFilter | None = None,
    ) -> None:
        self.name = name
        self.links = tuple(links)
        self.statistics = ClusterStatistics()
        self._filter_error: Exception | None = None
        self._token = token.encode("utf-8", "surrogatepass")
        self._takes_slaves = takes_slaves
        self._forward = forward
        self._accept = accept
        self._custom = custom
        #: The sessions of slaves, in the order of connecting.
        self._nodes: dict[int, None] = {}

    def meet(
        self, number: int, door: Door, command: Command, now: float
    ) -> Sequence[Effect] | None:
        """Look at what a session asks; None lets it go its way."""
        if isinstance(command, Connect):
            return self.admit(number, command)
        if number in self._nodes:
            return self._meet_node(number, command)
        if self.links:
            self._pass_on(door, command)
        return None

    def forget(self, number: int) -> None:
        """A session is over."""
        self._nodes.pop(number, None)

    def take_error(self) -> Exception | None:
        """What the filter in Python raised since the last call, if it did."""
        error, self._filter_error = self._filter_error, None
        return error

    # -- slaves ---------------------------------------------------------------------------------

    def recognises(self, command: Connect) -> bool:
        """Whether it is a node's, by type and token."""
        information = command.properties
        if command.client_type != NODE_CLIENT_TYPE or not self._takes_slaves:
            return False
        if not isinstance(information, ConnectionInformation):
            return False
        given = information.token.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self._token)

    def admit(self, number: int, command: Connect) -> Sequence[Effect] | None:
        """Let a node in, if it is one; None for all others as well.

        Whoever decides about clients may have decided that it is a node (``command.node``).
        """
        if command.client_type != NODE_CLIENT_TYPE and not command.node:
            return None
        information = command.properties
        host = ""
        if isinstance(information, ConnectionInformation):
            host = information.properties.get(HOST_PROPERTY, "")
        code = 0
        if not self._takes_slaves or not (command.node or self.recognises(command)):
            code = _UNAUTHORIZED
        elif command.client_id == self.name:
            code = _CONFLICT
        if code:
            self.statistics.refused_nodes += 1
            return [Refuse(number, command.request, code, command.client_id)]
        command.node = True
        command.authenticated = True
        # A slave that comes back must not wait until its broken connection was noticed.
        command.take_over = True
        command.host = host.strip()[:_MAX_HOST_CHARACTERS]
        self._nodes[number] = None
        return None

    def _meet_node(self, number: int, command: Command) -> Sequence[Effect] | None:
        if isinstance(command, (Decline, Disconnect)):
            return None
        passing = passing_of(command)
        if passing is None:
            self.statistics.refused_operations += 1
            request: object = getattr(command, "request", None)
            return [] if request is None else [Reply(number, request, _UNAUTHORIZED)]
        return None if self.accepts(passing) else []

    def accepts(self, passing: Passing) -> bool:
        """Whether what another node said is carried out here; it is counted either way."""
        good = self._accept.passes(passing)
        if good and self._custom is not None:
            try:
                good = self._custom.accepts(passing)
            except Exception as error:  # noqa: BLE001 - user code hurts its own message only
                good = self._blame(error)
        if good:
            self.statistics.accepted += 1
        else:
            self.statistics.rejected += 1
        return good

    def heed(self, command: Command) -> bool:
        """Whether what a link brings from a master is carried out here."""
        passing = passing_of(command) if isinstance(command, ApplyDecision) else None
        return passing is None or self.accepts(passing)

    def _blame(self, error: Exception) -> bool:
        self.statistics.filter_errors += 1
        self._filter_error = error
        return False

    # -- masters --------------------------------------------------------------------------------

    def _pass_on(self, door: Door, command: Command) -> None:
        """Give what a client said to the masters, if the filters let it."""
        passing = passing_of(command)
        if passing is None or not self._forwards(passing):
            return
        data = door.encode_for_node(command)
        if data is None:
            self.statistics.spent += 1
            return
        self.statistics.forwarded += 1
        for link in self.links:
            link.offer(data)
            if isinstance(command, SendDirect) and link.state == LinkState.UP:
                command.elsewhere = True

    def _forwards(self, passing: Passing) -> bool:
        good = self._forward.passes(passing)
        if good and self._custom is not None:
            try:
                good = self._custom.forwards(passing)
            except Exception as error:  # noqa: BLE001 - as above
                good = self._blame(error)
        if not good:
            self.statistics.held_back += 1
        return good

    def tell(self, effect: TellNodes) -> tuple[bytes, Sequence[int]]:
        """Tell all nodes connected of a decision: masters here, slaves through their sessions."""
        command = ApplyDecision(effect.channel, effect.queue_id, effect.message_id, effect.positive)
        passing = passing_of(command)
        assert passing is not None, "decisions are passed on"
        if not (self.links or self._nodes) or not self._forwards(passing):
            return b"", ()
        data = decision_frame(effect).raw
        self.statistics.forwarded += 1
        for link in self.links:
            link.offer(data)
        return data, tuple(self._nodes)
