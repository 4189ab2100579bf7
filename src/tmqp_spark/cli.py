"""The command ``tmqp-spark``."""

from __future__ import annotations

import sys

import anyio
import click

import tmqp
from tmqp.address import parse_address
from tmqp.errors import LocalProtocolError
from tmqp_spark.doctor import (
    Finding,
    check_formats,
    check_java,
    check_package,
    check_python,
    check_server,
)
from tmqp_spark.java import find_java

__all__ = ["doctor", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(tmqp.__version__, prog_name="tmqp-spark")
def main() -> None:
    """TMQP queues and Spark.

    The sources are used in Spark itself: docs/spark.md.
    """


@main.command(
    epilog="""\b
Examples:
  tmqp-spark doctor
  tmqp-spark doctor --address tmq://127.0.0.1:2622"""
)
@click.option("-a", "--address", help="Also see whether a TMQP server answers there.")
def doctor(address: str | None) -> None:
    """Say whether this machine has what Spark and TMQP need together.

    Nothing is installed or changed.  Exit status: 0 everything is there, 1 something is missing.
    """
    findings: list[Finding] = [
        check_python(),
        check_package("pyspark", (4, 2)),
        check_package("pyarrow", (18,)),
        check_package("numpy", (1, 26)),
        check_formats(),
        check_java(find_java()),
    ]
    if address is not None:
        try:
            parse_address(address)
        except LocalProtocolError as error:
            raise click.BadParameter(str(error), param_hint="--address") from error
        findings.append(anyio.run(check_server, address))
    for finding in findings:
        click.echo(f"{'ok' if finding.ok else 'MISSING':8}{finding.what:9}{finding.text}")
    sys.exit(0 if all(finding.ok for finding in findings) else 1)


if __name__ == "__main__":
    main()
