"""``/server/slow`` and ``/clients/{client}/trace``: slow turns and consumers, and the trace of a
client.
"""

from __future__ import annotations

from typing import Any, Final

from tmqp_server.access.rights import MANAGE_CLIENTS
from tmqp_server.admin.api.overview import turn_of
from tmqp_server.admin.api.running import for_observers, for_right, managing
from tmqp_server.admin.api.shapes import unix_ms
from tmqp_server.admin.api.table import Api, Operation, body_of, integer
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, problem
from tmqp_server.engine.commands import AskRight, Manage, SeeServer
from tmqp_server.hub.tracing import LONGEST_S, MOST_TRACES, Trace

__all__ = ["SLOWNESS_OPERATIONS"]

_NO_CLIENT: Final = "no client with this id is connected"
_NO_TRACE: Final = "this client is not traced"


def _tell_slow(api: Api, exchange: Exchange) -> Handler:
    """The last slow turns, the latest first, and the consumers that are slow now."""

    def answer(now: float) -> object:
        turn = turn_of(api.world)
        offset_s = exchange.client.offset_s
        turns = [
            {
                "at_ms": unix_ms(each.at, offset_s),
                "took_ms": round(each.took_s * 1_000, 3),
                "session": each.session,
                "session_ms": round(each.session_s * 1_000, 3),
                "peer": each.peer,
            }
            for each in reversed(turn.pulse.slow)
        ]
        consumers: list[dict[str, Any]] = []
        for number, since in sorted(turn.slow_consumers.since().items(), key=lambda each: each[1]):
            out = turn.outbound(number)
            if out is not None:
                consumers.append(
                    {
                        "session": number,
                        "peer": out.wire.peer,
                        "waiting_bytes": out.bytes,
                        "blocked_s": round(now - since, 3),
                    }
                )
        return {
            "slow_turn_ms": round(turn.pulse.slow_s * 1_000, 3),
            "count": turn.pulse.slow_count,
            "turns": turns,
            "consumers": consumers,
        }

    return for_observers(exchange, answer)


def _trace(api: Api, exchange: Exchange) -> Handler:
    client_id = exchange.wanted.text("client")
    seconds = body_of(exchange.wanted, {"seconds": int}).get("seconds", int(LONGEST_S))
    if not 1 <= seconds <= LONGEST_S:
        raise BadRequest(422, f"seconds must be a whole number from 1 to {LONGEST_S:.0f}")

    def carry_out() -> HttpResponse:
        hub = turn_of(api.world).hub
        number = hub.broker.surveying.number_of(client_id)
        if not number:
            return problem(404, _NO_CLIENT)
        trace = hub.tracer.begin(client_id, number, float(seconds), exchange.now)
        if trace is None:
            return problem(409, f"{MOST_TRACES} clients are traced already")
        return HttpResponse.json(201, _shown(trace, 0, exchange))

    number = exchange.client.number
    after = {"seconds": seconds}
    manage = Manage(number, None, MANAGE_CLIENTS, "begin-trace", client_id, after)
    return managing(api, exchange, manage, carry_out)


def _tell_trace(api: Api, exchange: Exchange) -> Handler:
    client_id = exchange.wanted.text("client")
    after = exchange.wanted.count("after", 0, 0, 2**53)

    def answer(_body: object) -> HttpResponse:
        trace = turn_of(api.world).hub.tracer.find(client_id, exchange.now)
        if trace is None:
            return problem(404, _NO_TRACE)
        return HttpResponse.json(200, _shown(trace, after, exchange))

    return for_right(exchange, MANAGE_CLIENTS, answer)


def _end_trace(api: Api, exchange: Exchange) -> Handler:
    client_id = exchange.wanted.text("client")

    def carry_out() -> HttpResponse:
        if not turn_of(api.world).hub.tracer.stop(client_id):
            return problem(404, _NO_TRACE)
        return HttpResponse(204)

    manage = Manage(exchange.client.number, None, MANAGE_CLIENTS, "end-trace", client_id)
    return managing(api, exchange, manage, carry_out)


def _shown(trace: Trace, after: int, exchange: Exchange) -> dict[str, object]:
    offset_s = exchange.client.offset_s
    lines = [
        {
            "number": line.number,
            "at_ms": unix_ms(line.at, offset_s),
            "way": line.way,
            "what": line.what,
            "head": line.head,
        }
        for line in trace.after(after)
    ]
    return {
        "client": trace.client_id,
        "running": trace.session != 0,
        "ends_at_ms": unix_ms(trace.until_s, offset_s),
        "count": trace.count,
        "lines": lines,
    }


SLOWNESS_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="getSlow",
        method="GET",
        path="/server/slow",
        summary="The last slow turns of the event loop, and slow consumers.",
        begin=_tell_slow,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Slow",
        cli=("slowlog",),
    ),
    Operation(
        name="beginTrace",
        method="POST",
        path="/clients/{client}/trace",
        summary="Trace a client's requests and answers for 5 minutes, without message contents.",
        begin=_trace,
        rights=("manage-clients",),
        commands=(Manage,),
        action="begin-trace",
        body="Tracing",
        answer="Trace",
        status=201,
        failures=(404, 409, 422),
        cli=("trace",),
    ),
    Operation(
        name="getTrace",
        method="GET",
        path="/clients/{client}/trace",
        summary="The trace of a client, its last 1,000 lines.",
        begin=_tell_trace,
        rights=("manage-clients",),
        commands=(AskRight,),
        query=(integer("after", "Only lines after this number.", 0, 2**53, 0),),
        answer="Trace",
        failures=(404,),
        cli=("trace",),
    ),
    Operation(
        name="endTrace",
        method="DELETE",
        path="/clients/{client}/trace",
        summary="Stop tracing a client, and drop the trace.",
        begin=_end_trace,
        rights=("manage-clients",),
        commands=(Manage,),
        action="end-trace",
        status=204,
        failures=(404,),
        cli=("trace",),
    ),
)
