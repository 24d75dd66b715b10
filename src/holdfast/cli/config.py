"""Configuration files, and settings that go together."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.settings import MIN_OPTION_VALUES, OPTION_CHOICES, OPTIONS, SPARK_COMMAND, Option, get_options
from holdfast.errors import InvalidInputError


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
