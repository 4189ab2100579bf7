"""Who may change something, and who is notified of it (N152, N156)."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import logging
import time
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx

from tmqp_nsq.flags import FlagError, FlagValues
from tmqp_nsq.web import Request

__all__ = ["Notifier", "Permissions", "is_same_origin"]

logger = logging.getLogger("tmqp_nsq.admin")

_WAITING: Final = 100


class Permissions:
    """Who is an administrator, and from where the configuration may be changed."""

    def __init__(self, values: FlagValues) -> None:
        """Read the flags.

        :raises FlagError: if the network is not one.
        """
        self._users = frozenset(values.texts("admin-user"))
        self._header = values.text("acl-http-header")
        network = values.text("allow-config-from-cidr")
        try:
            self._network = ipaddress.ip_network(network, strict=False) if network else None
        except ValueError as error:
            raise FlagError(f"--allow-config-from-cidr must be a network: {error}") from None

    def user(self, request: Request) -> str:
        """The user whom a proxy has named."""
        return request.header(self._header)

    def is_admin(self, request: Request) -> bool:
        """Whether a client may change something; without administrators everybody may."""
        return not self._users or self.user(request) in self._users

    def may_configure(self, request: Request) -> bool:
        """Whether a client's address is in the network for ``/config``."""
        if self._network is None:
            return True
        try:
            address = ipaddress.ip_address(request.remote.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address) in self._network


def is_same_origin(request: Request) -> bool:
    """Whether a change was asked for by our own page or by a program, not by another site.

    A browser names the site whose page sends a request; a proxy may name the host that the browser
    knows.
    """
    site = request.header("sec-fetch-site")
    if site:
        return site in ("same-origin", "none")
    origin = request.header("origin")
    if not origin:
        return True
    hosts = {request.header("host"), request.header("x-forwarded-host")}
    return urlsplit(origin).netloc in hosts - {""}


def _basic_user(request: Request) -> str:
    scheme, _, word = request.header("authorization").partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(word, validate=True).decode("utf-8").partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""


class Notifier:
    """Posts what was done to the endpoint of ``--notification-http-endpoint``.

    Actions do not wait for the endpoint.  At most 100 notifications wait; further ones are dropped
    and logged.
    """

    def __init__(self, endpoint: str, client: httpx.AsyncClient, host: str) -> None:
        self._endpoint = endpoint
        self._client = client
        self._host = host
        self._send, self._receive = anyio.create_memory_object_stream[bytes](_WAITING)

    def notify(
        self, request: Request, action: str, *, topic: str = "", channel: str = "", node: str = ""
    ) -> None:
        """Tell of an action."""
        if not self._endpoint:
            return
        scheme = request.header("x-forwarded-proto") or "http"
        fields: dict[str, Any] = {
            "action": action,
            "topic": topic,
            "channel": channel,
            "node": node,
            "timestamp": int(time.time()),
            "user": _basic_user(request),
            "remote_ip": request.header("x-real-ip") or request.remote,
            "user_agent": request.header("user-agent"),
            "url": f"{scheme}://{request.header('host')}{request.path}",
            "via": self._host,
        }
        try:
            self._send.send_nowait(json.dumps(fields, separators=(",", ":")).encode())
        except anyio.WouldBlock:
            logger.error("notification of %s dropped: %d wait", action, _WAITING)

    async def run(self) -> None:
        """Post notifications, one after the other, until cancelled."""
        async with self._send, self._receive:
            async for body in self._receive:
                try:
                    answer = await self._client.post(
                        self._endpoint, content=body, headers={"Content-Type": "application/json"}
                    )
                    if not answer.is_success:
                        logger.error("notification endpoint answered %d", answer.status_code)
                except (httpx.HTTPError, OSError) as error:
                    logger.error("notification failed: %s", error)
