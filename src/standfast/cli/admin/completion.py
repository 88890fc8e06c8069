"""`standfast completion`: print the script by which a shell completes commands and options. Loads no engine."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from standfast.cli.framework import verb


@verb(
    "completion",
    "standfast completion bash",
    "standfast completion fish > ~/.config/fish/completions/standfast.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    """Print the shell completion script of SHELL; load it with `eval` in ~/.bashrc or ~/.zshrc."""
    kind = get_completion_class(shell)
    assert kind is not None
    # That of bash runs bash to check its version; bash itself reports a version before 4.4.
    click.echo(ShellComplete.source(kind(context.find_root().command, {}, "standfast", "_STANDFAST_COMPLETE")))
