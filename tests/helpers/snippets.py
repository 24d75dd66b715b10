"""Code in pages: fenced blocks by language, and commands, also in indented blocks."""

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
    """A block of code: page, line, declared language, text."""

    page: Path
    line: int
    language: str
    text: str


def name_of(block) -> str:
    """Return the id of a test."""
    return f"{block.page.relative_to(ROOT)}:{block.line}"


def fenced(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, match.start()) + 1, match[2], match[3]) for match in FENCED.finditer(text)]


def commands(page: Path) -> list[Block]:
    """Return the lines of shell blocks and indented blocks that call limpet."""
    text = page.read_text(encoding="utf-8")
    shell = [block for block in fenced(page) if block.language in ("sh", "console")]
    rest = FENCED.sub(lambda match: re.sub(r"[^\n]", "", match[0]), text)
    shell += [Block(page, rest.count("\n", 0, match.start(1)) + 1, "", match[1]) for match in INDENTED.finditer(rest)]
    lines = []
    for block in shell:
        for offset, line in enumerate(block.text.splitlines()):
            if block.language == "console" and not line.startswith("$ "):
                continue
            line = PROMPT.sub("", line)
            if PROGRAM.search(line):
                lines.append(Block(page, block.line + offset, "sh", line))
    return lines


def words(line: str) -> list[str]:
    """Return the arguments of `limpet` in a shell line, up to the next command or redirection."""
    arguments = shlex.split(line[PROGRAM.search(line).end() :], comments=True)
    ends = [i for i, word in enumerate(arguments) if word in ("|", ">", ">>", "&", "…")]
    return arguments[: min(ends, default=len(arguments))]
