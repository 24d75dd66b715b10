"""Commands whose flags are the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from holdfast.cli.config import checked, read_config
from holdfast.cli.settings import CHOICES, RUNNING, settings_of
from holdfast.errors import BadInputError


def with_settings(command: str, what: str, metavar: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function body(source, values): an argument, a flag for each setting, and --config.

    What is on the command line goes before what is in the file.
    """

    def decorate(body: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            context = click.get_current_context()
            by_hand = {
                name for name in given if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
            }
            values = {one.name: one.default for one in settings_of(command)}
            source = given["source"]
            if given["config"] is not None:
                kept = read_config(given["config"])
                source = source or kept.pop("source", None)
                values |= {name: value for name, value in kept.items() if name in values}
            values |= {name: value for name, value in given.items() if name in values and name in by_hand}
            if not source:
                raise BadInputError(f"give {what}, on the command line or as `source` in the file of --config")
            body(source, checked(values))

        parameters = [
            _parameter("source", str | None, None, typer.Argument(help=what, metavar=metavar, show_default=False))
        ]
        for one in settings_of(command):
            kind = one.kind if isinstance(one.default, bool) else one.kind | None
            choices = f" [{'|'.join(CHOICES[one.name])}]" if one.name in CHOICES and "or" not in one.told else ""
            option = typer.Option(
                *(one.flags or (f"--{one.name.replace('_', '-')}",)),
                help=one.told + choices,
                rich_help_panel=one.group,
                show_default=one.default is not None and not isinstance(one.default, bool),
            )
            parameters.append(_parameter(one.name, kind, one.default, option))
        told = "Read settings from a TOML file; `holdfast init` writes one."
        parameters.append(
            _parameter(
                "config", Path | None, None, typer.Option(help=told, rich_help_panel=RUNNING, show_default=False)
            )
        )
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__name__, run.__doc__ = body.__name__, body.__doc__
        return run

    return decorate


def _parameter(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
