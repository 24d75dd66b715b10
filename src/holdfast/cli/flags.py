"""Commands whose flags are the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.config import checked, read_config
from holdfast.cli.settings import SETTINGS, SPARK_SETTINGS, Setting, settings_of
from holdfast.errors import BadInputError


def with_settings(
    command: str, what: str, metavar: str, needed: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function body(source, values): an argument, a flag for each setting, and --config.

    What is on the command line goes before what is in the file. needed: whether there has to be a source; else it may
    be empty.
    """

    def decorate(body: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            values = {one.name: one.default for one in settings_of(command)}
            source = given["source"]
            if given["config"] is not None:
                kept = read_config(given["config"])
                own = kept.pop(command, {})
                source = source or own.pop("source", None) or kept.pop("source", None)
                shared = {one.name for one in SETTINGS if command in one.commands}
                values |= {name: value for name, value in kept.items() if name in shared} | own
            values |= {name: value for name, value in given.items() if name in values and value is not None}
            if not source and needed:
                raise BadInputError(f"{metavar} is missing: name it, or give a --config that has a `source`")
            body(source or "", checked(values))

        parameters = [
            _parameter("source", str | None, None, typer.Argument(help=what, metavar=metavar, show_default=False))
        ]
        parameters += map(_flag, settings_of(command))
        told = "Read settings from a TOML file; `holdfast init` writes one."
        parameters.append(
            _parameter(
                "config",
                Path | None,
                None,
                typer.Option(help=told, rich_help_panel="Running", metavar="FILE", show_default=False),
            )
        )
        return _of_signature(run, parameters, body)

    return decorate


def with_group(group: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a flag for each setting of a group to a command, whose function takes them together as `values`."""
    settings = [one for one in SPARK_SETTINGS if one.group == group]

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            said = {one.name: given.pop(one.name) for one in settings}
            values = {one.name: one.default if said[one.name] is None else said[one.name] for one in settings}
            body(**given, values=values)

        own = inspect.signature(body, eval_str=True).parameters.values()
        parameters = [*(one for one in own if one.name != "values"), *map(_flag, settings)]
        return _of_signature(run, parameters, body)

    return decorate


def _of_signature(
    run: Callable[..., None], parameters: list[inspect.Parameter], body: Callable[..., None]
) -> Callable[..., None]:
    """The function as a command of these parameters, with the name of another."""
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = body.__name__, body.__doc__
    return run


def _flag(one: Setting) -> inspect.Parameter:
    """The flag of a setting; None means that it was not said."""
    default = f" (default: {one.default})" if one.default not in (None, False, "") else ""
    option = typer.Option(
        *(one.flags or (f"--{one.name.replace('_', '-')}",)),
        help=one.told + default,
        rich_help_panel=one.group,
        show_default=False,
        metavar=None if one.kind is bool else one.metavar,
    )
    return _parameter(one.name, one.kind | None, None, option)


def _parameter(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
