"""Configuration files, and settings that go together."""

from __future__ import annotations

import difflib
import inspect
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from limpet.cli.options import (
    MIN_OPTION_VALUES,
    OPTION_CHOICES,
    OPTIONS,
    SPARK_COMMAND,
    SPARK_OPTIONS,
    Option,
    get_options,
)
from limpet.exceptions import InvalidInputError


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, and the source; those of its table [spark] by themselves."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path} is not TOML: {error}") from None
    table = _read_table(str(path), table, OPTIONS, (SPARK_COMMAND,))
    if SPARK_COMMAND in table:
        if not isinstance(table[SPARK_COMMAND], dict):
            raise InvalidInputError(f"{path}: expected a table [{SPARK_COMMAND}], got {table[SPARK_COMMAND]!r}")
        table[SPARK_COMMAND] = _read_table(
            f"{path}: [{SPARK_COMMAND}]", table[SPARK_COMMAND], get_options(SPARK_COMMAND)
        )
    return table


def _read_table(
    where: str, table: dict[str, Any], settings: Sequence[Option], tables: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The settings of a table, each as its flag would have given it."""
    table = {name.replace("-", "_"): value for name, value in table.items()}
    known = {option.name: option for option in settings}
    for name, value in table.items():
        if name == "source":
            if not isinstance(value, str):
                raise InvalidInputError(f"{where}: source: expected a text, got {value!r}")
        elif name in known:
            table[name] = _to_kind(f"{where}: {name}", value, known[name].kind)
        elif name not in tables:
            suggestions = difflib.get_close_matches(name, [*known, "source"], 1)
            raise InvalidInputError(
                f"{where}: there is no setting {name!r}" + (f"; is it {suggestions[0]!r}?" if suggestions else "")
            )
    return table


def _to_kind(where: str, value: Any, kind: Any) -> Any:
    """A value of a file as the flag would have given it."""
    if kind == list[str]:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    elif kind is Path and isinstance(value, str):
        return Path(value)
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif kind is str and isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    elif kind in (bool, int) and type(value) is kind:
        return value
    expected = {list[str]: "a list of texts", float: "a number", int: "a whole number", bool: "true or false"}
    raise InvalidInputError(f"{where}: expected {expected.get(kind, 'a text')}, got {value!r}")


def validate_options(values: dict[str, Any]) -> dict[str, Any]:
    """The values, lists with commas taken apart; an error for one that cannot be."""
    for name, choices in OPTION_CHOICES.items():
        if values.get(name) is not None and values[name] not in choices:
            raise InvalidInputError(
                f"--{name.replace('_', '-')}: expected one of {', '.join(choices)}, got {values[name]!r}"
            )
    if values.get("columns"):
        values["columns"] = [part.strip() for text in values["columns"] for part in text.split(",") if part.strip()]
    for name, minimum in MIN_OPTION_VALUES.items():
        if isinstance(values.get(name), int | float) and not values[name] >= minimum:
            raise InvalidInputError(
                f"--{name.replace('_', '-')}: expected a number from {minimum:g} on, got {values[name]}"
            )
    components = values.get("components")
    if components != "auto" and not (str(components).isdigit() and int(str(components)) > 0):
        raise InvalidInputError(f"--components: expected a whole number or auto, got {components!r}")
    return values


# Commands whose flags are the settings.


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
        config_help = "Read settings from a TOML file; `limpet init` writes one."
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
