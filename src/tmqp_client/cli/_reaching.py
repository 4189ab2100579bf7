"""Examines step by step whether a server can be reached: host name, TCP, TLS and certificate."""

from __future__ import annotations

import ipaddress
import socket

import anyio

from tmqp.address import Address
from tmqp_client import ConnectFailed
from tmqp_client._io.transport import open_transport
from tmqp_client.cli._certificates import CertificateError, look_at
from tmqp_client.cli._findings import BAD, GOOD, WARNING, Report

__all__ = ["reach"]

#: The remaining days of a certificate below which there is a warning, and a problem.
_DAYS_SOON = 14.0
_DAYS_NOW = 3.0


async def reach(report: Report, address: Address, timeout_s: float) -> bool:
    """Return whether the server can be reached; report each step as a finding."""
    if address.socket_path:
        return await _open(report, address, timeout_s)
    if not await _resolve(report, address, timeout_s):
        return False
    plain = Address(address.host, address.port)
    if not await _open(report, plain, timeout_s):
        return False
    if address.tls:
        return await _secure(report, address, timeout_s)
    if not address.is_local:
        words = "the connection, including the token, is not encrypted"
        report.say("tls", WARNING, words, "use an address tmqs://")
    return True


async def _resolve(report: Report, address: Address, timeout_s: float) -> bool:
    """Whether the host's name has an address."""
    try:
        ipaddress.ip_address(address.host)
    except ValueError:
        pass
    else:
        return True
    try:
        with anyio.fail_after(timeout_s):
            found = await anyio.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or str(error) or "no answer in time"
        remedy = "check how it is written, and this machine's DNS"
        report.say("name", BAD, f"{address.host}: {words}", remedy)
        return False
    places = ", ".join(dict.fromkeys(str(place[0]) for *_, place in found))
    report.say("name", GOOD, f"{address.host} is {places}")
    return True


async def _open(report: Report, address: Address, timeout_s: float) -> bool:
    """Whether a server listens."""
    before_s = anyio.current_time()
    try:
        transport = await open_transport(address, timeout_s)
    except ConnectFailed as error:
        remedy = "is the server running, does it listen there, does a firewall refuse it?"
        report.say("socket", BAD, str(error), remedy)
        return False
    took_ms = (anyio.current_time() - before_s) * 1_000
    await transport.aclose()
    report.say("socket", GOOD, f"{address} accepts connections, after {took_ms:.1f} ms")
    return True


async def _secure(report: Report, address: Address, timeout_s: float) -> bool:
    """Whether the certificate is accepted, and for how long."""
    try:
        with anyio.fail_after(timeout_s):
            found = await look_at(address)
    except CertificateError as error:
        report.say("tls", BAD, str(error))
        return False
    except OSError as error:  # a timeout is one
        report.say("tls", BAD, f"the handshake failed: {str(error) or 'no answer in time'}")
        return False
    words = f"{found.protocol}, the certificate is valid for {found.days_left:.0f} more days"
    soon = found.days_left < _DAYS_SOON
    level = BAD if found.days_left < _DAYS_NOW else WARNING if soon else GOOD
    report.say("tls", level, words, "renew it, and send the server SIGHUP" if soon else "")
    return True
