"""``tmqp-server curve-keys``: generates a pair of keys for ZeroMQ's CURVE."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.secrets import read_secret, write_secret
from tmqp_wires.zmtp.boxes import Cryptography
from tmqp_wires.zmtp.keys import KEY_BYTES, key_file, key_text, secret_key_in
from tmqp_wires.zmtp.sodium import sodium

__all__ = ["curve_keys"]


@click.command("curve-keys")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--public", is_flag=True, help="Only print the public key of an existing FILE.")
def curve_keys(file: Path, public: bool) -> None:
    r"""Generate keys for ZeroMQ's CURVE: write the pair to FILE and print the public key.

    Only the owner can read FILE, and an existing FILE is not overwritten.  ZeroMQ programs can read
    it, too (pyzmq: zmq.auth.load_certificate).

    \b
    Example:
      tmqp-server curve-keys server.key     curve_secret_key_file = "server.key"
      tmqp-server curve-keys client.key     public_key = "..." of [[access.tokens]]
    """
    try:
        cryptography = sodium()
        secret = secret_key_in(read_secret(str(file))) if public else _new(cryptography, file)
    except (ConfigError, ModuleNotFoundError) as error:
        _fail(str(error))
    except FileExistsError:
        _fail(f"{file} already exists; --public prints its public key")
    except OSError as error:
        _fail(f"cannot write {file}: {error.strerror}")
    except ValueError as error:
        _fail(f"{file}: {error}")
    else:
        click.echo(key_text(cryptography.public_key(secret)))


def _new(cryptography: Cryptography, file: Path) -> bytes:
    secret = cryptography.random(KEY_BYTES)
    write_secret(file, key_file(cryptography.public_key(secret), secret))
    return secret


def _fail(text: str) -> None:
    click.echo(f"tmqp-server: {text}", err=True)
    sys.exit(2)
