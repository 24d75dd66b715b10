"""Docstrings as pages show them: lines `name: meaning` as a list, examples as code, references as they are numbered.

In the source a docstring reads well as it stands; Markdown would run its lines together.
"""

import re
from typing import Any

import griffe

SETTINGS = re.compile(r"^`?[*\w]+`?(?:(?:, | and )`?[*\w]+`?)*: \S")
LEARNT = re.compile(r"(?<=\.)\s+(\w+_): ")  # several on a line, as scikit-learn names what was learnt
UNDERLINED = re.compile(r"^-{3,}$", re.MULTILINE)
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)((?: :.*)?\n(?:[ \t]+\S.*\n?)+)", re.MULTILINE)  # a, b : their type
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?([^`]+)`")


def as_markdown(text: str) -> str:
    r"""The text of a docstring as Markdown.

    >>> print(as_markdown("Learns [1]_.\n\nrho: the step.\nfar: the\n    rate.\n\n.. [1] A paper."))
    Learns [1].
    <BLANKLINE>
    - **rho**: the step.
    - **far**: the
        rate.
    <BLANKLINE>
    [1] A paper.
    >>> print(as_markdown("Adds.\n\nParameters\n----------\na, b : float\n    Numbers.\n"))
    Adds.
    <BLANKLINE>
    Parameters
    ----------
    a : float
        Numbers.
    b : float
        Numbers.
    <BLANKLINE>
    >>> print(as_markdown("coef_: the slopes. scale_: the\n    spread. n_iter_: passes."))
    - **coef_**: the slopes.
    - **scale_**: the
        spread.
    - **n_iter_**: passes.
    >>> as_markdown(">>> 1 + 1\n2")
    '```pycon\n>>> 1 + 1\n2\n```'
    """
    text = ROLE.sub(r"`\1`", text).replace("``", "`").replace("]_", "]")
    if UNDERLINED.search(text):  # numpy's way, which is understood already
        return TOGETHER.sub(_apart, text)
    return "\n\n".join(map(_block, re.split(r"\n\s*\n", text)))


def _block(block: str) -> str:
    if block.lstrip().startswith(">>> "):
        return f"```pycon\n{block}\n```"
    if block.startswith(".. ["):
        return re.sub(r"\s*\n\.\. ", "\n\n", "\n" + block).strip()
    if SETTINGS.match(block):
        block = LEARNT.sub(r"\n\1: ", block)
    lines = block.split("\n")
    first = next((i for i, line in enumerate(lines) if SETTINGS.match(line)), len(lines))
    if not all(SETTINGS.match(line) or line.startswith(" ") for line in lines[first:]):
        return block
    listed = [re.sub(r"^`?([^\s`:][^:`]*)`?:", r"- **\1**:", line) for line in lines[first:]]
    return "\n".join([*lines[:first], *([""] if 0 < first < len(lines) else []), *listed])


def _apart(entry: re.Match[str]) -> str:
    """One entry for each name: told together, all would be shown with the default of the first."""
    return "".join(name + entry[2].rstrip("\n") + "\n" for name in entry[1].split(", "))


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        """Called for each thing that has been read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
