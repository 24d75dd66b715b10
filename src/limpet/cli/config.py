"""Configuration files: TOML with a key for every option of `detect`, `watch`, `serve` and `spark score`."""

from __future__ import annotations

import difflib
import inspect
import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args

import typer

from limpet._format import join_names
from limpet._validation import invalid_param_error
from limpet.exceptions import InvalidInputError

SPARK = "spark"  # the command with a separate table in the file
COMMANDS = ("detect", "watch", "serve", SPARK)
EXAMPLES: dict[str, Any] = {
    "columns": ["flow"],
    "key": "sensor",
    "time": "time",
    "input_format": "csv",
    "joint": True,
    "n_components": "auto",
    "far": 1e-5,
    "season": 288,
    "lags": 2,
    "memory": "compact",
    "gamma": 6.0,
    "rho": 0.01,
    "beta": 0.1,
    "M": 5.0,
    "norm": "mean",
    "max_keys": 100_000,
    "alarms": ["alarms.jsonl"],
    "points": ["points.db"],
    "checkpoint": "state",
    "checkpoint_interval": "10s",
    "metrics": "127.0.0.1:9464",
    "token_file": "token.txt",
    "open": False,
    "schema": "sensor string, ts timestamp, flow double",
    "option": ["startingOffsets=latest"],
    "watermark": "10 minutes",
    "idle_timeout": "7 days",
    "initial": "fleet.limpet",
    "out": "scored",
    "buckets": 256,
    "files_per_batch": 100,
    "packages": "io.delta:delta-spark_2.13:VERSION",
    "conf": ["a=b"],
    "spark_log": "spark.log",
}
Command = TypeVar("Command", bound=Callable[..., None])
_commands: dict[str, Callable[..., None]] = {}


def configurable(app: typer.Typer, name: str, help: str) -> Callable[[Command], Command]:
    """Make a command of a function whose options a file, or variables LIMPET_COMMAND_OPTION, may give."""

    def register(function: Command) -> Command:
        _commands[name] = function
        environment = {"auto_envvar_prefix": f"LIMPET_{name.upper()}"}
        return app.command(help=help, context_settings=environment)(function)

    return register


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Make the values of a file the defaults of the options: the callback of --config."""
    if path is not None:
        shared, spark = read_config(path)
        names = context.command_path.split()  # limpet, the command and its subcommand
        if SPARK in names[-2:]:
            kinds, spark_kinds = _get_options(*_local_commands()), _get_options(SPARK)
            is_shared = {name: name == "source" or kinds[name] is spark_kinds.get(name) for name in shared}
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
    return _read_table(str(path), table, *_local_commands()), _read_table(f"{path}: [{SPARK}]", spark, SPARK)


def make_config_template() -> str:
    """Return a configuration file with every option in a comment."""
    lines = [
        "# Options of `limpet detect`, `watch`, `serve` and `spark score`; use it with --config limpet.toml.",
        "# The keys are the names of the flags. Flags and LIMPET_* variables take precedence over this file.",
        "",
        "# A file, a directory, - for standard input, or nats://host:4222/subject, mqtt://host/topic, kafka://host/topic.",
        '# source = "nats://127.0.0.1:4222/sensors"',
        *_make_template_lines(*_local_commands()),
        "",
        "# === `limpet spark score` ===",
        "# Options of this command only. They take precedence over those above.",
        "# [spark]",
        *_make_template_lines(SPARK),
    ]
    return "\n".join(lines) + "\n"


def _local_commands() -> list[str]:
    return [name for name in COMMANDS if name != SPARK]


def _get_options(*commands: str) -> dict[str, Any]:
    """Return the annotations of the options of some commands; the first command that has an option counts."""
    options: dict[str, Any] = {}
    for command in commands:
        for name, parameter in inspect.signature(_commands[command], eval_str=True).parameters.items():
            options.setdefault(name, parameter.annotation)
    return {name: kind for name, kind in options.items() if name != "config"}


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
        values[name] = _convert(f"{where}: {name}", value, get_args(options[name])[0])
    return values


def _convert(where: str, value: Any, kind: Any) -> Any:
    """Check a value of a file, which is of the type of the option."""
    if NoneType in get_args(kind):
        kind = get_args(kind)[0]
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
    panel, options_by_command = "", {command: _get_options(command) for command in COMMANDS}
    options = {name: kind for name, kind in _get_options(*commands).items() if name != "source"}
    panels = list(dict.fromkeys(kind.__metadata__[0].rich_help_panel for kind in options.values()))
    for name, kind in sorted(options.items(), key=lambda item: panels.index(item[1].__metadata__[0].rich_help_panel)):
        option = kind.__metadata__[0]
        users = [command for command, others in options_by_command.items() if others.get(name) is kind]
        if len(users) > 1 and commands == (SPARK,):
            continue
        if option.rich_help_panel != panel:
            panel = option.rich_help_panel
            yield from ("", f"# --- {panel} ---")
        default = inspect.signature(_commands[users[0]]).parameters[name].default
        default_text = option.show_default if isinstance(option.show_default, str) else default
        default_text = "" if default_text in (None, True, False, "") else f" Default: {default_text}."
        is_partial = len(users) < len(COMMANDS) and users != [SPARK]
        scope = f" ({join_names([f'`{user}`' for user in users], 'and')} only)" if is_partial else ""
        example = EXAMPLES.get(name, not default if isinstance(default, bool) else default)
        yield from ("", f"# {option.help}{default_text}{scope}", f"# {name} = {json.dumps(example, default=str)}")
