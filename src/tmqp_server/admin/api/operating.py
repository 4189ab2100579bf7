"""Changes to the server itself: log level, TLS, backups; and its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tmqp_server.access.rights import MANAGE_SERVER
from tmqp_server.admin.api.running import for_observers, managing
from tmqp_server.admin.api.table import Api, Operation, body_of, integer, word
from tmqp_server.doors.http.exchange import Exchange, Handler
from tmqp_server.doors.http.messages import BadRequest, HttpResponse, problem
from tmqp_server.engine.commands import Manage, SeeServer
from tmqp_server.settings.log import LEVELS

__all__ = ["OPERATING_OPERATIONS", "manage_server"]

#: The largest number of a log line that a request may have.
_MOST_LINES: Final = 10**15 - 1


def manage_server(
    api: Api,
    exchange: Exchange,
    action: str,
    carry_out: Callable[[], HttpResponse],
    after: Mapping[str, object] | None = None,
    before: Mapping[str, object] | None = None,
) -> Handler:
    """Change something on the server, for clients that may manage it.

    :param action: one of ``access/auditing.py``'s ``MANAGED``.
    :param before: the value before the change, for the audit.
    :param after: the new value, for the audit.
    """
    number = exchange.client.number
    manage = Manage(number, None, MANAGE_SERVER, action, after=after, before=before)
    return managing(api, exchange, manage, carry_out)


# --- The log --------------------------------------------------------------------------------------


def _tell_log(api: Api, exchange: Exchange) -> Handler:
    request = exchange.wanted
    most = request.count("max", 100, 1, 1_000)
    after = request.count("after", 0, 0, _MOST_LINES)
    least = LEVELS.index(request.word("level", LEVELS))

    def answer(_now: float) -> object:
        lines = api.world.log()
        found = [
            dict(each) for each in lines if each["number"] > after and _rank(each["level"]) >= least
        ]
        return {"items": found[-most:], "last": lines[-1]["number"] if lines else 0}

    return for_observers(exchange, answer)


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def _tell_level(api: Api, exchange: Exchange) -> Handler:
    return for_observers(exchange, lambda _now: {"level": api.world.log_level()})


def _set_level(api: Api, exchange: Exchange) -> Handler:
    level = body_of(exchange.wanted, {"level": str}).get("level", "")
    if level not in LEVELS:
        raise BadRequest(422, f"level must be one of {', '.join(LEVELS)}")

    def carry_out() -> HttpResponse:
        api.world.set_log_level(level)
        return HttpResponse.json(200, {"level": level})

    before = {"level": api.world.log_level()}
    return manage_server(api, exchange, "set-log-level", carry_out, {"level": level}, before)


# --- TLS ------------------------------------------------------------------------------------------


def _shown_tls(api: Api) -> dict[str, Any]:
    world = api.world
    settings = world.tls()
    expires_s = world.certificate_expires_s()
    return {
        "enabled": settings is not None,
        "certificate_expires_at_ms": None if expires_s is None else int(expires_s * 1_000),
        "minimum_version": None if settings is None else settings["minimum_version"],
        "ciphers": None if settings is None else settings["ciphers"],
        "client_certificates": None if settings is None else settings["client_certificates"],
    }


def _tell_tls(api: Api, exchange: Exchange) -> Handler:
    return for_observers(exchange, lambda _now: _shown_tls(api))


def _renew_tls(api: Api, exchange: Exchange) -> Handler:
    def carry_out() -> HttpResponse:
        if api.world.tls() is None:
            return problem(409, "this server has no certificate")
        wrong = api.world.renew_tls()
        if wrong:
            return problem(409, f"the old certificate stays in use: {wrong}")
        return HttpResponse.json(200, _shown_tls(api))

    return manage_server(api, exchange, "renew-tls", carry_out)


# --- Backups --------------------------------------------------------------------------------------


def _shown_backup(api: Api) -> dict[str, Any]:
    desk = api.world.backups
    return {
        "possible": bool(desk is not None and desk.possible and api.options.backups),
        "last": None if desk is None or desk.last is None else dict(desk.last),
    }


def _tell_backup(api: Api, exchange: Exchange) -> Handler:
    return for_observers(exchange, lambda _now: _shown_backup(api))


def _begin_backup(api: Api, exchange: Exchange) -> Handler:
    def carry_out() -> HttpResponse:
        desk = api.world.backups
        if desk is None or not desk.possible:
            return problem(501, "this server keeps nothing: it has no data directory")
        if not api.options.backups:
            return problem(501, "[admin] backups is not set, so there is no directory for backups")
        if not desk.begin(api.options.backups):
            return problem(409, "a backup is being made")
        return HttpResponse.json(202, _shown_backup(api))

    return manage_server(api, exchange, "backup", carry_out)


OPERATING_OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        name="getLog",
        method="GET",
        path="/logs",
        summary="The last lines of the log, the newest last.",
        begin=_tell_log,
        rights=("see-server",),
        commands=(SeeServer,),
        query=(
            integer("max", "How many.", 1, 1_000, 100),
            integer("after", "Only lines after the line with this number.", 0, _MOST_LINES, 0),
            word("level", "The lowest level.", *LEVELS),
        ),
        answer="LogLines",
    ),
    Operation(
        name="getLogLevel",
        method="GET",
        path="/server/log-level",
        summary="The log level.",
        begin=_tell_level,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="LogLevel",
    ),
    Operation(
        name="setLogLevel",
        method="PUT",
        path="/server/log-level",
        summary="Change the log level until the next reload of the configuration.",
        begin=_set_level,
        rights=("manage-server",),
        commands=(Manage,),
        action="set-log-level",
        body="NewLogLevel",
        answer="LogLevel",
        failures=(422,),
    ),
    Operation(
        name="getTls",
        method="GET",
        path="/server/tls",
        summary="How connections are encrypted, and when the certificate expires.",
        begin=_tell_tls,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Tls",
    ),
    Operation(
        name="renewTls",
        method="POST",
        path="/server/tls",
        summary="Read the certificate again; open connections keep theirs.",
        begin=_renew_tls,
        rights=("manage-server",),
        commands=(Manage,),
        action="renew-tls",
        answer="Tls",
        failures=(409,),
    ),
    Operation(
        name="getBackup",
        method="GET",
        path="/server/backup",
        summary="The state of the last backup that was started over the API.",
        begin=_tell_backup,
        rights=("see-server",),
        commands=(SeeServer,),
        answer="Backup",
    ),
    Operation(
        name="beginBackup",
        method="POST",
        path="/server/backup",
        summary="Start a backup in the directory from the configuration.",
        begin=_begin_backup,
        rights=("manage-server",),
        commands=(Manage,),
        action="backup",
        answer="Backup",
        status=202,
        failures=(409, 501),
    ),
)
