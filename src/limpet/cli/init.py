"""`limpet init`: write a template of the configuration file."""

from __future__ import annotations

import json
from collections.abc import Iterator

from limpet._format import join_names
from limpet.cli.options import LOCAL_COMMANDS, OPTIONS_BY_COMMAND, SOURCE, SPARK, Option, get_options


def make_config_template() -> str:
    """Return a configuration file with every option in a comment."""
    lines = [
        "# Options of `limpet detect`, `watch`, `serve` and `spark score`; use it with --config limpet.toml.",
        "# The keys are the names of the flags. Flags and LIMPET_* variables take precedence over this file.",
        "",
        "# A file, a folder, - for standard input, or nats://host:4222/subject, mqtt://host/topic, kafka://host/topic.",
        '# source = "nats://127.0.0.1:4222/sensors"',
        *_make_template_lines(*LOCAL_COMMANDS),
        "",
        "# === `limpet spark score` ===",
        "# Options of this command only. They take precedence over those above.",
        "# [spark]",
        *_make_template_lines(SPARK),
    ]
    return "\n".join(lines) + "\n"


def _make_template_lines(*commands: str) -> Iterator[str]:
    options = {name: option for name, option in get_options(*commands).items() if option is not SOURCE}
    panels: dict[str, dict[str, Option]] = {}
    for name, option in options.items():
        panels.setdefault(option.declaration.rich_help_panel, {})[name] = option
    for panel, options in panels.items():
        heading = ["", f"# --- {panel} ---"]
        for name, option in options.items():
            users = [command for command in OPTIONS_BY_COMMAND if OPTIONS_BY_COMMAND[command].get(name) is option]
            if len(users) > 1 and commands == (SPARK,):
                continue
            yield from heading
            heading = []
            default = option.declaration.show_default
            default = default if isinstance(default, str) else option.default
            default_text = "" if default in (None, True, False, "") else f" Default: {default}."
            is_partial = len(users) < len(OPTIONS_BY_COMMAND) and users != [SPARK]
            scope = f" ({join_names([f'`{user}`' for user in users], 'and')} only)" if is_partial else ""
            example = json.dumps(option.example, default=str)
            yield from ("", f"# {option.declaration.help}{default_text}{scope}", f"# {name} = {example}")
