"""Base classes of commands: help with examples, `--debug`, and one sentence for every error."""

from __future__ import annotations

import gc
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any, Final

import click
from click.shell_completion import CompletionItem

from standfast.cli.command_table import Entry
from standfast.cli.exit_codes import UNWRITTEN, Exit, exit_of
from standfast.cli.hints import in_commands, next_step
from standfast.errors import ConfigurationError, StandfastError

_NO_NUMBER: Final = re.compile(r" is not a valid integer(?: range)?(?=\.|$)")
_BREAK: Final = re.compile(r"\s*\n\s*")
_DEBUG: Final = "standfast.debug"
ASKS_A_SERVER: Final = "standfast.server"
"""Keys of the click context: whether to print tracebacks, and whether a server is used."""


def _note_debug(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - as click calls it
    if value:
        context.meta[_DEBUG] = True


def _debug_option() -> click.Option:
    return click.Option(
        ["--debug"], is_flag=True, expose_value=False, callback=_note_debug, help="Show the traceback of an error."
    )


class CliCommand(click.Command):
    """One command."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = tuple(examples)
        """Calls of it, as they are typed."""
        self.params.append(_debug_option())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples come last, where the eye falls first."""
        del ctx
        with formatter.section("Examples"):
            for each in self.examples:
                formatter.write_text(each)


class CliCommandGroup(click.Group):
    """Several commands about one thing. A command that is not there is answered with one that is alike."""

    command_class = CliCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from standfast.expressions.model.suggestions import (
                suggestion,  # Its package brings the whole language along.
            )

            told = suggestion(args[0], self.list_commands(ctx))
            ctx.fail(f"there is no command {args[0]!r}{told}")
        return super().resolve_command(ctx, args)


CliCommandGroup.group_class = CliCommandGroup


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by their names; each is loaded when it is taken."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {each.name: each for each in entries}
        self._taken: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._taken:
            module, _, attribute = self.entries[name].home.partition(":")
            with _uncollected():
                self._taken[name] = getattr(import_module(f"standfast.cli.{module}"), attribute)
        return self._taken[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._taken[name] = command

    def __delitem__(self, name: str) -> None:
        del self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self.entries, **self._taken})

    def __len__(self) -> int:
        return len({**self.entries, **self._taken})


@contextmanager
def _uncollected() -> Iterator[None]:
    """Suspend garbage collection during imports: there is no garbage yet, and the search takes a quarter of the time."""
    is_wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_wanted:
            gc.enable()


class Root(CliCommandGroup):
    """The root command: it prints each error as a sentence, and returns its exit code."""

    def __init__(self, *arguments: Any, sections: Mapping[str, Sequence[Entry]], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands = self.shelf = LazyCommands(each for entries in sections.values() for each in entries)
        self.sections = {title: [each.name for each in entries] for title, entries in sections.items()}
        """Command names by topic."""
        self.params.append(_debug_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse options before the command; a command's option at this place gets a hint."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if any(name in option.opts for each in self.commands.values() for option in each.params):
                ctx.fail(f"{name} stands behind the command, as in: {ctx.command_path} list {name} …")
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by topic."""
        del ctx
        entries = self.shelf.entries
        width = max(map(len, entries), default=0)
        for title, names in self.sections.items():
            with formatter.section(title):
                limit = formatter.width - width - 6
                formatter.write_dl([(name.ljust(width), _shortened(entries[name], limit)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions without importing all commands."""
        known = sorted(name for name in self.shelf.entries if name.startswith(incomplete))
        told = [CompletionItem(name, help=_shortened(self.shelf.entries[name])) for name in known]
        return [*told, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Parse the command line and run the command. Characters that the terminal cannot show are escaped."""
        for each in (sys.stdout, sys.stderr):
            if isinstance(each, io.TextIOWrapper):
                each.reconfigure(errors="backslashreplace")
        return super().main(*arguments, **options)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Parse options before the first command; NO_COLOR, which click ignores, turns colours off."""
        try:
            context = super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise _mistyped(error) from error
        if os.environ.get("NO_COLOR"):
            context.color = False
        return context

    def invoke(self, ctx: click.Context) -> object:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _mistyped(error) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # Click handles them; the reader of a pipe may stop at any line.
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the outermost handler
            ctx.exit(
                _tell(error, with_traceback=ctx.meta.get(_DEBUG, False), is_remote=ctx.meta.get(ASKS_A_SERVER, False))
            )


Root.group_class = CliCommandGroup


def _shortened(entry: Entry, limit: int = 45) -> str:
    """As much of its sentence as there is room for."""
    return click.Command(entry.name, help=entry.told).get_short_help_str(limit)


class InvalidUsage(click.ClickException):
    """A usage error, printed like any other error."""

    exit_code = Exit.WRONG

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self._remedy = remedy

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the mistake, and the usage of the command."""
        del file
        complain(self.message, code=ConfigurationError.code, remedy=self._remedy)


def _mistyped(error: click.UsageError) -> click.ClickException:
    """Return a usage error as a sentence; a group without a command prints its commands."""
    context = error.ctx
    if context is None or type(error).__name__ == "NoArgsIsHelpError":  # Which older releases of click do not have.
        return error
    told = _BREAK.sub(" ", _NO_NUMBER.sub(" is no whole number", error.format_message())).removesuffix(".")
    if isinstance(context.command, click.Group):
        return InvalidUsage(told, f"`{context.command_path} --help` lists the commands")
    usage = " ".join([context.command_path, *context.command.collect_usage_pieces(context)])
    return InvalidUsage(told, f"{usage}; `{context.command_path} --help` tells more")


def _tell(error: BaseException, *, with_traceback: bool, is_remote: bool) -> Exit:
    """Print the error and the remedy; return the exit code."""
    code = exit_of(error)
    if with_traceback:
        traceback.print_exception(error)
    match error:
        case StandfastError():
            reason = getattr(error, "reason", "")
            is_told = bool(reason) and str(error).endswith(f"[{reason}]")
            complain(str(error), code="" if is_told else error.code, remedy=next_step(error, is_remote=is_remote))
        case KeyboardInterrupt():
            complain("interrupted")
        case TimeoutError():
            complain(str(error) or "it took too long", remedy="ask again, or give it more time")
        case OSError() if error.errno in UNWRITTEN:
            complain(
                f"what there is to say cannot be written: {error.strerror}", remedy="make room, or send it elsewhere"
            )
        case _:
            told = f"{type(error).__name__}: {error}"
            complain(
                told, code="unexpected", remedy="this should not happen: call it again with --debug, and report it"
            )
    return code


def complain(message: str, *, code: str = "", remedy: str = "") -> None:
    """Print one sentence on standard error, with its code, and the next step below."""
    from standfast.expressions.model.characters import visible  # As above.

    told = "\n".join(visible(line) for line in in_commands(message).splitlines())
    click.echo(f"{told} [{code}]" if code else told, err=True)
    if remedy:
        click.echo(f"  → {visible(remedy)}", err=True)


def end(code: Exit) -> None:
    """End the command with an exit code of its own."""
    if code is not Exit.DONE:
        click.get_current_context().exit(code)


def verb(name: str, *examples: str) -> Callable[[Callable[..., Any]], CliCommand]:
    """Decorator: a command by this name, with examples of it."""
    return click.command(name, cls=CliCommand, examples=examples)


def verbs(name: str) -> Callable[[Callable[..., Any]], CliCommandGroup]:
    """Decorator: a group of commands by this name."""
    return click.group(name, cls=CliCommandGroup)


def is_terminal() -> bool:
    """Return whether output goes to a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()  # A closed stream has no terminal.
