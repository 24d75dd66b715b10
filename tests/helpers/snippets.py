"""The pieces of code in pages: fenced blocks by their language, and commands, indented ones included."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "lab/README.md")), *ROOT.glob("docs/**/*.md")]
)
FENCED = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^|\n)\n((?: {4}.*\n|\n)+)")
PROMPT = re.compile(r"^\s*(?:\$ )?")
PROGRAM = re.compile(r"(?:^|[|;&] *|\w+=\S+ )limpet (?!learns)(?=\S)")


class Block(NamedTuple):
    """A piece of code: its page, its line there, the language it is said to be in, and its text."""

    page: Path
    line: int
    language: str
    text: str


def name_of(block) -> str:
    """For the names of tests."""
    return f"{block.page.relative_to(ROOT)}:{block.line}"


def fenced(page: Path) -> list[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, one.start()) + 1, one[2], one[3]) for one in FENCED.finditer(text)]


def commands(page: Path) -> list[Block]:
    """The lines of a page, in blocks of shell or indented, that call limpet."""
    text = page.read_text(encoding="utf-8")
    shell = [block for block in fenced(page) if block.language in ("sh", "console")]
    rest = FENCED.sub(lambda one: re.sub(r"[^\n]", "", one[0]), text)
    shell += [Block(page, rest.count("\n", 0, one.start(1)) + 1, "", one[1]) for one in INDENTED.finditer(rest)]
    found = []
    for block in shell:
        for nth, line in enumerate(block.text.splitlines()):
            if block.language == "console" and not line.startswith("$ "):
                continue
            line = PROMPT.sub("", line)
            if PROGRAM.search(line):
                found.append(Block(page, block.line + nth, "sh", line))
    return found


def words(line: str) -> list[str]:
    """What comes after `limpet` in a line of shell, up to the next command or redirection."""
    after = line[PROGRAM.search(line).end() :]
    found = shlex.split(after, comments=True)
    ends = [i for i, word in enumerate(found) if word in ("|", ">", ">>", "&", "…")]
    return found[: min(ends, default=len(found))]
