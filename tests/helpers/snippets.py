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


def get_block_id(block) -> str:
    """Return the id of a test."""
    return f"{block.page.relative_to(ROOT)}:{block.line}"


def find_fenced_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [Block(page, text.count("\n", 0, match.start()) + 1, match[2], match[3]) for match in FENCED.finditer(text)]


def find_commands(page: Path) -> list[Block]:
    """Return the lines of shell blocks and indented blocks that call limpet."""
    text = page.read_text(encoding="utf-8")
    blocks = [block for block in find_fenced_blocks(page) if block.language in ("sh", "console")]
    outside = FENCED.sub(lambda match: re.sub(r"[^\n]", "", match[0]), text)
    blocks += [
        Block(page, outside.count("\n", 0, match.start(1)) + 1, "", match[1]) for match in INDENTED.finditer(outside)
    ]
    lines = []
    for block in blocks:
        for offset, line in enumerate(block.text.splitlines()):
            if block.language == "console" and not line.startswith("$ "):
                continue
            line = PROMPT.sub("", line)
            if PROGRAM.search(line):
                lines.append(Block(page, block.line + offset, "sh", line))
    return lines


def split_arguments(line: str) -> list[str]:
    """Return the arguments of `limpet` in a shell line, up to the next command or redirection."""
    arguments = shlex.split(line[PROGRAM.search(line).end() :], comments=True)
    stops = [i for i, word in enumerate(arguments) if word in ("|", ">", ">>", "&", "…")]
    return arguments[: min(stops, default=len(arguments))]
