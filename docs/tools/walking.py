"""Follow a page word by word: save its files, run its commands, compare their output.

`python docs/tools/walking.py docs/start-here.md` runs the commands that need no new environment with the packages
installed here, and writes their output into the page.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FILE = re.compile(r"[Ss]ave this as `([^`]+)`")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ENVIRONMENT = ("python3 -m venv ", ". ", "pip install ")  # commands that create and activate an environment
MARK = "-- output of command"
PICTURE = re.compile(r"data:image/png;base64,([^\"' ]+)")


@dataclass(frozen=True)
class Typed:
    """A command, its output on the page, and the files to be saved before it."""

    command: str
    shown: str
    files: dict[str, str]


def steps(page: str) -> list[Typed]:
    r"""Return the commands of a page, in order.

    >>> page = "Save this as `a.py`:\n\n```python\nprint(1)\n```\n\n```console\n$ python a.py\n1\n$ ls\na.py\n```\n"
    >>> for step in steps(page):
    ...     print(step)
    Typed(command='python a.py', shown='1\n', files={'a.py': 'print(1)\n'})
    Typed(command='ls', shown='a.py\n', files={})
    """
    typed: list[Typed] = []
    files: dict[str, str] = {}
    before = 0
    for block in BLOCK.finditer(page):
        if block[1] == "python" and not block[2].startswith(">>> "):  # those are run by doctest
            *_, name = FILE.findall(page[before : block.start()])
            files[name] = block[2]
        elif block[1] == "console":
            for piece in re.split(r"^\$ ", block[2], flags=re.MULTILINE)[1:]:
                command, _, shown = piece.partition("\n")
                typed.append(Typed(command, shown, files))
                files = {}
        before = block.end()
    return typed


def walk(page: str, folder: Path, environment: dict[str, str], *, here: bool = False) -> list[tuple[Typed, str]]:
    """Run the commands of a page in a folder; return each with its output. here: without creating an environment."""
    typed = [step for step in steps(page) if not (here and step.command.startswith(ENVIRONMENT))]
    script = "set -e\n"
    for i, step in enumerate(typed):
        for name, text in step.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        script += f'echo "{MARK} {i}"\n{step.command}\n'
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    printed = re.split(rf"^{MARK} \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    if done.returncode:
        raise RuntimeError(f"{typed[len(printed) - 1].command}: {done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    return list(zip(typed, printed, strict=True))


def environment_here() -> dict[str, str]:
    """Return variables with which `python` and `limpet` are those of this environment."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "80"}


def with_output(page: str, results: list[tuple[Typed, str]]) -> str:
    """Return the page with the output of the commands."""
    end = 0
    for step, printed in results:
        old = f"$ {step.command}\n{step.shown}"
        new = f"$ {step.command}\n" + "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        at = page.index(old, end)
        page = page[:at] + new + page[at + len(old) :]
        end = at + len(new)
    return page


if __name__ == "__main__":
    path = Path(sys.argv[1])
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        path.write_text(with_output(text, walk(text, Path(name), environment_here(), here=True)), encoding="utf-8")
        report = Path(name) / "report.html"
        pictures = PICTURE.findall(report.read_text(encoding="utf-8")) if report.exists() else []
    picture = path.parent / "pictures" / f"{path.stem}.png"
    if f"({picture.relative_to(path.parent)})" in text:
        picture.write_bytes(max(map(base64.b64decode, pictures), key=lambda png: png[16:20]))  # the widest
