"""``tmqp completion``: the script that teaches a shell the commands and their options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command(
    epilog="""\b
Examples:
  eval "$(tmqp completion bash)"                                  # in ~/.bashrc
  tmqp completion fish > ~/.config/fish/completions/tmqp.fish
"""
)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these"
    click.echo(kind(context.find_root().command, {}, "tmqp", "_TMQP_COMPLETE").source())
