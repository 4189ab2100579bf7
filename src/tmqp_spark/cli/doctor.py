"""The command ``tmqp-spark doctor``."""

from __future__ import annotations

import sys

import anyio
import click

from tmqp.address import parse_addresses
from tmqp.errors import LocalProtocolError
from tmqp_spark.doctor import (
    Finding,
    check_broker,
    check_formats,
    check_java,
    check_package,
    check_python,
    check_server,
    check_unix_sockets,
)
from tmqp_spark.java import find_java

__all__ = ["doctor"]


@click.command(
    epilog="""\b
Examples:
  tmqp-spark doctor
  tmqp-spark doctor --address tmq://127.0.0.1:2622"""
)
@click.option("-a", "--address", help="Also check the features and the clock of this broker.")
@click.option("--token", default="", envvar="TMQP_TOKEN", show_envvar=True, help="Client token.")
def doctor(address: str | None, token: str) -> None:
    """Check whether this machine has everything that Spark and TMQP need together.

    Nothing is installed or changed.  Exit status: 0 nothing is missing, 1 something is missing.
    """
    findings: list[Finding] = [
        check_python(),
        check_package("pyspark", (4, 2)),
        check_package("pyarrow", (18,)),
        check_package("numpy", (1, 26)),
        check_formats(),
        check_java(find_java()),
        check_unix_sockets(),
    ]
    if address is not None:
        try:
            parse_addresses(address)
        except LocalProtocolError as error:
            raise click.BadParameter(str(error), param_hint="--address") from error
        server = anyio.run(check_server, address, token)
        findings.append(server)
        if server.ok:
            findings += anyio.run(check_broker, address, token)
    for finding in findings:
        click.echo(f"{'ok' if finding.ok else 'MISSING':8}{finding.what:9}{finding.text}")
    sys.exit(0 if all(finding.ok for finding in findings) else 1)
