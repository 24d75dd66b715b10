"""Options that flags, variables LIMPET_COMMAND_OPTION or a TOML file may give, and a template of that file."""

from __future__ import annotations

import difflib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from limpet._format import join_names
from limpet._validation import invalid_param_error
from limpet.exceptions import InvalidInputError

SPARK = "spark"  # the command with a separate table in the file
LOCAL_COMMANDS = ("detect", "watch", "serve")
COMMANDS = (*LOCAL_COMMANDS, SPARK)
Command = TypeVar("Command", bound=Callable[..., None])


class Option(NamedTuple):
    """An option: its type, its default, its declaration by typer, and an example for the template."""

    kind: Any
    default: Any
    declaration: Any
    example: Any


SOURCE = Option(str, None, None, None)  # an argument of every command that reads a file
OPTIONS_BY_COMMAND: dict[str, dict[str, Option]] = {}  # of limpet.cli.options


def with_options(options: dict[str, Option]) -> Callable[[Command], Command]:
    """Declare options as parameters of a function, which receives them as `**values`; its docstring is the help."""

    def declare(function: Command) -> Command:
        *parameters, _ = inspect.signature(function, eval_str=True).parameters.values()
        for name, (kind, default, declaration, _) in options.items():
            annotation: Any = Annotated[kind | None if default is None else kind, declaration]
            parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            parameters.append(parameter.replace(annotation=annotation))
        vars(function)["__signature__"] = inspect.Signature(parameters)
        # A paragraph is one line; indented lines, and one after \b, stay as they are.
        function.__doc__ = re.sub(r"(?<=[^\n\b])\n(?=\S)", " ", inspect.getdoc(function) or "")
        return function

    return declare


def configurable(app: typer.Typer, name: str) -> Callable[[Command], Command]:
    """Make a command of a function whose options a file, or variables LIMPET_COMMAND_OPTION, may give."""

    def register(function: Command) -> Command:
        environment = {"auto_envvar_prefix": f"LIMPET_{name.upper()}"}
        return app.command(context_settings=environment)(with_options(OPTIONS_BY_COMMAND[name])(function))

    return register


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the values of a file the defaults of the options: the callback of --config."""
    if path is not None:
        shared, spark = read_config(path)
        if SPARK in context.command_path.split()[-2:]:  # limpet, the command and its subcommand
            local_options, spark_options = _get_options(*LOCAL_COMMANDS), _get_options(SPARK)
            is_shared = {name: local_options[name] is spark_options.get(name) for name in shared}
            shared = {name: value for name, value in shared.items() if is_shared[name]} | spark
        context.default_map = shared
        context.meta["config"] = path
    return path


def get_origin_name(context: typer.Context, param: typer.CallbackParam) -> str:
    """Return the name of an option as the user wrote it: the flag, or the file and the key."""
    source = context.get_parameter_source(str(param.name))
    if source is not None and source.name == "DEFAULT_MAP":
        return f"{context.meta['config']}: {param.name}"
    return param.opts[0] if param.opts else str(param.name)


def read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the values of a file: those at the top, and those of the table [spark]."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{path}: must be TOML: {error}.") from None
    spark = table.pop(SPARK, {})
    if not isinstance(spark, dict):
        raise invalid_param_error(f"{path}: {SPARK}", f"must be a table [{SPARK}]", spark)
    return _read_table(str(path), table, *LOCAL_COMMANDS), _read_table(f"{path}: [{SPARK}]", spark, SPARK)


def make_config_template() -> str:
    """Return a configuration file with every option in a comment."""
    lines = [
        "# Options of `limpet detect`, `watch`, `serve` and `spark score`; use it with --config limpet.toml.",
        "# The keys are the names of the flags. Flags and LIMPET_* variables take precedence over this file.",
        "",
        "# A file, a directory, - for standard input, or nats://host:4222/subject, mqtt://host/topic, kafka://host/topic.",
        '# source = "nats://127.0.0.1:4222/sensors"',
        *_make_template_lines(*LOCAL_COMMANDS),
        "",
        "# === `limpet spark score` ===",
        "# Options of this command only. They take precedence over those above.",
        "# [spark]",
        *_make_template_lines(SPARK),
    ]
    return "\n".join(lines) + "\n"


def _get_options(*commands: str) -> dict[str, Option]:
    """Return what a file may give to some commands; the first command that has an option counts."""
    options = {"source": SOURCE}
    for command in commands:
        for name, option in OPTIONS_BY_COMMAND[command].items():
            options.setdefault(name, option)
    return {name: option for name, option in options.items() if name != "config"}


def _read_table(where: str, table: dict[str, Any], *commands: str) -> dict[str, Any]:
    """Check the keys and the types of a table."""
    options, values = _get_options(*commands), {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in options:
            matches = difflib.get_close_matches(name, options, 1)
            names = join_names(sorted(options), max_names=99)
            advice = f"Did you mean {matches[0]!r}?" if matches else f"The keys are {names}."
            raise InvalidInputError(f"{where}: {name}: is not an option. {advice}")
        values[name] = _convert(f"{where}: {name}", value, options[name].kind)
    return values


def _convert(where: str, value: Any, kind: Any) -> Any:
    """Return a value of a file as the type of its option."""
    if kind == list[str]:
        value = [value] if isinstance(value, str) else value
        accepted = isinstance(value, list) and all(isinstance(item, str) for item in value)
        expected = "a list of strings"
    elif kind is bool:
        accepted, expected = isinstance(value, bool), "true or false"
    elif kind in (int, float):
        accepted = isinstance(value, int | kind) and not isinstance(value, bool)
        expected = "an integer" if kind is int else "a number"
    else:
        accepted = isinstance(value, str | int | float) and not isinstance(value, bool)
        value, expected = str(value) if accepted else value, "a string"
    if not accepted:
        raise invalid_param_error(where, f"must be {expected}", value)
    return value


def _make_template_lines(*commands: str) -> Iterator[str]:
    options = {name: option for name, option in _get_options(*commands).items() if option is not SOURCE}
    panels: dict[str, dict[str, Option]] = {}
    for name, option in options.items():
        panels.setdefault(option.declaration.rich_help_panel, {})[name] = option
    for panel, options in panels.items():
        heading = ["", f"# --- {panel} ---"]
        for name, option in options.items():
            users = [command for command in COMMANDS if OPTIONS_BY_COMMAND[command].get(name) is option]
            if len(users) > 1 and commands == (SPARK,):
                continue
            yield from heading
            heading = []
            default = option.declaration.show_default
            default = default if isinstance(default, str) else option.default
            default_text = "" if default in (None, True, False, "") else f" Default: {default}."
            is_partial = len(users) < len(COMMANDS) and users != [SPARK]
            scope = f" ({join_names([f'`{user}`' for user in users], 'and')} only)" if is_partial else ""
            example = json.dumps(option.example, default=str)
            yield from ("", f"# {option.declaration.help}{default_text}{scope}", f"# {name} = {example}")
