"""Commands whose flags are the settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.config import read_config, validate_options
from holdfast.cli.settings import OPTIONS, SPARK_OPTIONS, Option, get_options
from holdfast.errors import InvalidInputError


def options_command(
    command: str, argument_help: str, metavar: str, is_required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function body(source, values): an argument, a flag for each setting, and --config.

    What is on the command line goes before what is in the file. needed: whether there has to be a source; else it may
    be empty.
    """

    def decorate(body: Callable[[str, dict[str, Any]], None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            values = {option.name: option.default for option in get_options(command)}
            source = given["source"]
            if given["config"] is not None:
                config = read_config(given["config"])
                command_config = config.pop(command, {})
                source = source or command_config.pop("source", None) or config.pop("source", None)
                shared_names = {option.name for option in OPTIONS if command in option.commands}
                values |= {name: value for name, value in config.items() if name in shared_names} | command_config
            values |= {name: value for name, value in given.items() if name in values and value is not None}
            if not source and is_required:
                raise InvalidInputError(f"{metavar} is missing: name it, or give a --config that has a `source`")
            body(source or "", validate_options(values))

        parameters = [
            _make_parameter(
                "source", str | None, None, typer.Argument(help=argument_help, metavar=metavar, show_default=False)
            )
        ]
        parameters += map(_make_option_parameter, get_options(command))
        config_help = "Read settings from a TOML file; `holdfast init` writes one."
        parameters.append(
            _make_parameter(
                "config",
                Path | None,
                None,
                typer.Option(help=config_help, rich_help_panel="Running", metavar="FILE", show_default=False),
            )
        )
        return _set_signature(run, parameters, body)

    return decorate


def option_group(group: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a flag for each setting of a group to a command, whose function takes them together as `values`."""
    options = [option for option in SPARK_OPTIONS if option.group == group]

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:
            explicit = {option.name: given.pop(option.name) for option in options}
            values = {
                option.name: option.default if explicit[option.name] is None else explicit[option.name]
                for option in options
            }
            body(**given, values=values)

        body_parameters = inspect.signature(body, eval_str=True).parameters.values()
        parameters = [
            *(parameter for parameter in body_parameters if parameter.name != "values"),
            *map(_make_option_parameter, options),
        ]
        return _set_signature(run, parameters, body)

    return decorate


def _set_signature(
    run: Callable[..., None], parameters: list[inspect.Parameter], body: Callable[..., None]
) -> Callable[..., None]:
    """The function as a command of these parameters, with the name of another."""
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__name__, run.__doc__ = body.__name__, body.__doc__
    return run


def _make_option_parameter(option: Option) -> inspect.Parameter:
    """The flag of a setting; None means that it was not said."""
    default = f" (default: {option.default})" if option.default not in (None, False, "") else ""
    typer_option = typer.Option(
        *(option.flags or (f"--{option.name.replace('_', '-')}",)),
        help=option.help + default,
        rich_help_panel=option.group,
        show_default=False,
        metavar=None if option.kind is bool else option.metavar,
    )
    return _make_parameter(option.name, option.kind | None, None, typer_option)


def _make_parameter(name: str, kind: Any, default: Any, typer_option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, typer_option]
    )
