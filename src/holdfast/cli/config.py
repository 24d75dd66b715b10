"""Configuration files, and settings that go together."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.cli.settings import CHOICES, LEAST, SETTINGS, SPARK, Setting, settings_of
from holdfast.errors import BadInputError


def read_config(path: Path) -> dict[str, Any]:
    """The settings in a TOML file, and the source; those of its table [spark] by themselves."""
    try:
        kept = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path} is not TOML: {error}") from None
    kept = _read(str(path), kept, SETTINGS, (SPARK,))
    if SPARK in kept:
        if not isinstance(kept[SPARK], dict):
            raise BadInputError(f"{path}: expected a table [{SPARK}], got {kept[SPARK]!r}")
        kept[SPARK] = _read(f"{path}: [{SPARK}]", kept[SPARK], settings_of(SPARK))
    return kept


def _read(
    where: str, kept: dict[str, Any], settings: Sequence[Setting], tables: tuple[str, ...] = ()
) -> dict[str, Any]:
    """The settings of a table, each as its flag would have given it."""
    kept = {name.replace("-", "_"): value for name, value in kept.items()}
    known = {one.name: one for one in settings}
    for name, value in kept.items():
        if name == "source":
            if not isinstance(value, str):
                raise BadInputError(f"{where}: source: expected a text, got {value!r}")
        elif name in known:
            kept[name] = _as_kind(f"{where}: {name}", value, known[name].kind)
        elif name not in tables:
            near = difflib.get_close_matches(name, [*known, "source"], 1)
            raise BadInputError(f"{where}: there is no setting {name!r}" + (f"; is it {near[0]!r}?" if near else ""))
    return kept


def _as_kind(where: str, value: Any, kind: Any) -> Any:
    """A value of a file as the flag would have given it."""
    if kind == list[str]:
        value = [value] if isinstance(value, str) else value
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
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
    raise BadInputError(f"{where}: expected {expected.get(kind, 'a text')}, got {value!r}")


def checked(values: dict[str, Any]) -> dict[str, Any]:
    """The values, lists with commas taken apart; an error for one that cannot be."""
    for name, choices in CHOICES.items():
        if values.get(name) is not None and values[name] not in choices:
            raise BadInputError(
                f"--{name.replace('_', '-')}: expected one of {', '.join(choices)}, got {values[name]!r}"
            )
    if values.get("columns"):
        values["columns"] = [part.strip() for one in values["columns"] for part in one.split(",") if part.strip()]
    for name, least in LEAST.items():
        if isinstance(values.get(name), int | float) and not values[name] >= least:
            raise BadInputError(f"--{name.replace('_', '-')}: expected a number from {least:g} on, got {values[name]}")
    components = values.get("components")
    if components != "auto" and not (str(components).isdigit() and int(str(components)) > 0):
        raise BadInputError(f"--components: expected a whole number or auto, got {components!r}")
    return values
