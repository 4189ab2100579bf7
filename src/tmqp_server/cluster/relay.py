"""This server's part in a cluster: who is a node, what masters get, and what slaves may send.

Theory of operation.  The hub shows it every command of every session before the broker gets it
(:class:`tmqp_server.hub.relaying.Relay`).

* A *Connect* of type ``server`` is a slave's.  It is accepted as a node if this server takes slaves
  and the token is right, and refused otherwise: no other client may have that type in a cluster
  (F133).
* A command of a *node* is carried out if it passes the filter for what is accepted.  It is not
  forwarded: so nothing can circulate, whatever the connections are (specification, "Clusters").
* A command of a *client* is sent to every master if it passes the filter for what is forwarded, and
  then carried out here ("after sending the message to its masters, slave node processes the
  message").

Copies for CC arrive here as separate pushes with their own ids, so they are forwarded one by one
and are the same everywhere; a server makes no copies of a node's messages.

Decisions (F63) are sent to masters and slaves; those of other nodes are not forwarded.
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
    """Counts what this server and the others have exchanged."""

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
        #: Forwarded messages of clients, and decisions.
        self.forwarded = 0
        #: Those that a filter has not let pass.
        self.held_back = 0
        #: Those that had no hop left (F11), or that nobody could write for a node.
        self.spent = 0
        #: Messages of nodes, and decisions, carried out here.
        self.accepted = 0
        #: Those that a filter has rejected.
        self.rejected = 0
        #: Operations that nodes may not request.
        self.refused_operations = 0
        #: Connections of type ``server`` that were refused.
        self.refused_nodes = 0
        #: Exceptions of a filter, each of which counts as False.
        self.filter_errors = 0


class ClusterRelay:
    """One server's part in a cluster.

    :param name: its name for other nodes.
    :param token: the token that slaves must send.
    :param takes_slaves: whether others may connect to it as nodes.
    :param links: the connections to its masters.
    :param forward: the filter for what masters get.
    :param accept: the filter for what other nodes send.
    :param custom: a filter in Python, applied after these.
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
        """Handle a session's command: accept or refuse nodes, and forward what clients send.
        Return None to carry the command out.
        """
        if isinstance(command, Connect):
            return self.admit(number, command)
        if number in self._nodes:
            return self._meet_node(number, command)
        if self.links:
            self._pass_on(door, command)
        return None

    def forget(self, number: int) -> None:
        """Forget a session that has ended."""
        self._nodes.pop(number, None)

    def take_error(self) -> Exception | None:
        """Return the exception that the filter in Python has raised since the last call, if any."""
        error, self._filter_error = self._filter_error, None
        return error

    # -- slaves ---------------------------------------------------------------------------------

    def recognises(self, command: Connect) -> bool:
        """Whether this is the connect of a node, by its type and token."""
        information = command.properties
        if command.client_type != NODE_CLIENT_TYPE or not self._takes_slaves:
            return False
        if not isinstance(information, ConnectionInformation):
            return False
        given = information.token.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(given, self._token)

    def admit(self, number: int, command: Connect) -> Sequence[Effect] | None:
        """Accept or refuse a node.  Return the refusal; None for an accepted node and for other
        clients.

        The access rules may have decided that the client is a node (``command.node``).
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
        """Whether a message or decision of another node is carried out here; counted in either
        case.
        """
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
        """Whether a command that a link has received from a master is carried out here."""
        passing = passing_of(command) if isinstance(command, ApplyDecision) else None
        return passing is None or self.accepts(passing)

    def _blame(self, error: Exception) -> bool:
        self.statistics.filter_errors += 1
        self._filter_error = error
        return False

    # -- masters --------------------------------------------------------------------------------

    def _pass_on(self, door: Door, command: Command) -> None:
        """Forward a client's command to the masters, if the filters let it pass."""
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
        """Send a decision to all connected nodes: to masters here, to slaves through their
        sessions.
        """
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
