"""Check names and prose against the words of the style guide in CONTRIBUTING.md; `make lint` runs it.

Prints `file:line: word → suggestion` for each finding and exits with 1 if there is any. Checked are

- Python: names that are defined there (modules, functions, classes, parameters, variables, attributes), string literals
  of more than one word, docstrings, comments; under src/limpet, the length of the first line of each docstring;
- scripts of the pages under static: identifiers, string literals of more than one word, comments;
- Markdown under docs and at the top of the repository. Code in backticks is not prose; examples are checked as Python;
- every line of HTML, style sheets, templates, and project files such as `pyproject.toml` and workflows.

Usage: python docs/tools/check_words.py [--summary] [--kinds name,message,…] [PATH …]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import doctest
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CODE = ("src", "lab", "tests", "asv_benchmarks", "docs")
PAGES = ("docs/**/*.md", "*.md", "*.yml", ".*.yaml", "*.toml", "*.cff", ".github/**/*.*", "Makefile", ".ci/run")
EXCLUDED_FOLDERS = {"vendor", "__pycache__", "node_modules"}
EXCLUDED_FILES = {"check_words.py", "test_check_words.py"}  # which quote the words
PACKAGE = "src/limpet/"
MAX_SUMMARY_CHARS = 79

KINDS = ("name", "message", "docstring", "comment", "page")
PROSE = {"message", "docstring", "comment", "page"}

# Where a rule applies. Names are split into words first: `AT_ONCE`, `at_once` and `AtOnce` are all "at once".
ANYWHERE = "anywhere"  # a word or phrase, in names and in prose
IN_PROSE = "in prose"  # a word or phrase in prose
IN_NAMES = "in names"  # a word of a name
WHOLE_NAME = "whole name"  # a name that consists of this
CONSTANT = "constant"  # a name in capitals that consists of this
FUNCTION = "function"  # the name of a function or method that consists of this


class Rule(NamedTuple):
    """A word to avoid.

    words: a regular expression for lower-case text; a space stands for any white space.
    allowed: an expression for contexts in which the word is established: a match inside such a context is no finding.
    """

    where: str
    words: str
    instead: str
    allowed: str = ""


RULES = (
    # Speech, for data
    Rule(ANYWHERE, "tell|tells|telling|teller|tellers|told", "return, report, format, describe"),
    Rule(ANYWHERE, "say|says|said|saying", "state, report, specify"),
    Rule(
        ANYWHERE,
        "ask|asks|asked|asking",
        "request, query, require; as a name: keys, options",
        allowed="frequently asked|(?:users?|readers?|maintainers?|contributors?) (?:is|are) asked",
    ),
    Rule(ANYWHERE, "answer|answers|answered|answering", "response, result; respond, return"),
    Rule(ANYWHERE, "heard|hears", "received, receives"),
    Rule(IN_NAMES, "understood|understands", "inferred, parsed; schema"),
    Rule(ANYWHERE, "(?:look|looks|looked|looking) (?:at|over|upon)", "inspect, check, examine"),
    # Roles in a story, for parts of a program
    Rule(ANYWHERE, "crew|crews", "backend"),
    Rule(ANYWHERE, "roster|rosters", "membership"),
    Rule(ANYWHERE, "desk|desks", "processor"),
    Rule(ANYWHERE, "keeper|keepers", "writer, store", allowed="zoo keeper"),
    Rule(ANYWHERE, "board|boards", "registry"),
    Rule(ANYWHERE, "hub|hubs", "notifier, event source", allowed="git hub"),
    Rule(ANYWHERE, "door|doors", "access control, middleware"),
    Rule(
        ANYWHERE,
        "guard|guards|guarded|guarding",
        "check, protection, middleware",
        allowed="burst guards?|request guards?",
    ),
    Rule(ANYWHERE, "shelf|shelves", "cache"),
    Rule(ANYWHERE, "room|rooms", "capacity, space; module, workspace, temporary folder"),
    Rule(ANYWHERE, "house|houses|household|cellar", "package, repository"),
    Rule(ANYWHERE, "inlet|inlets", "decoder, source"),
    Rule(ANYWHERE, "outlet|outlets", "encoder, sink"),
    Rule(ANYWHERE, "story|stories", "report, localization"),
    Rule(ANYWHERE, "pilot|pilots|piloted|autopilot|autopilots", "automatic learner, Detector; as a name: auto"),
    Rule(IN_NAMES, "feed|feeds", "source reader, history"),
    Rule(IN_NAMES, "peeked", "probed"),
    Rule(IN_NAMES, "turn|turns", "schedule, step"),
    # Idioms
    Rule(ANYWHERE, "anew|afresh", "again, from scratch; re-initialize"),
    Rule(ANYWHERE, "(?:go|goes|going|gone|went) on", "continue, resume"),
    Rule(IN_PROSE, "(?:come|comes|came|coming) (?:to|of)", "result, reach, arrive"),
    Rule(ANYWHERE, "somebody|someone|anybody|everybody", "the user, the caller, a client"),
    Rule(ANYWHERE, "nobody|no one", "passive voice with the agent; as a name: missing, NO_ROW"),
    Rule(ANYWHERE, "whoever|whomever|whatever", "the user, any; name the thing"),
    Rule(
        IN_PROSE, "by (?:itself|themselves)", "automatically", allowed="(?:multiplied|divided) by (?:itself|themselves)"
    ),
    Rule(IN_PROSE, "for good", "permanently", allowed="for good (?:reasons?|measure)"),
    Rule(ANYWHERE, "spoil|spoils|spoilt|spoiled", "corrupt, corrupted"),
    Rule(ANYWHERE, "mend|mends|mended|mending", "fix, fixed"),
    Rule(ANYWHERE, "taste|tastes", "quick run, sample"),
    Rule(ANYWHERE, "knob|knobs", "parameter, setting"),
    Rule(ANYWHERE, "deaf|deafness", "locked out, unresponsive"),
    Rule(ANYWHERE, "fool|fools|fooled|fooling", "mislead, misled"),
    Rule(ANYWHERE, "in turns?|(?:take|takes|took|taking) turns", "sequentially, one after the other"),
    Rule(ANYWHERE, "side by side", "in parallel, batched; next to each other"),
    Rule(ANYWHERE, "texts", "strings"),
    Rule(ANYWHERE, "whole numbers?", "integer, integers"),
    Rule(ANYWHERE, "learnt", "learned; updated, accepted"),
    Rule(
        IN_PROSE,
        "director(?:y|ies)",
        "folder",
        allowed="is a directory|no such file or directory|directory(?: =|=|:)|directories:",  # of systems and tools
    ),
    Rule(IN_PROSE, "web hooks?", "webhook"),
    Rule(IN_PROSE, "of (?:its|their|our|your|my|his|her|one's) own", "own, separate, custom"),
    Rule(IN_PROSE, "there (?:is|are|was|were) (?:no|none|nothing)", "no … exists, … is missing, not found"),
    Rule(IN_PROSE, "(?:is|are|was|were|be|been) (?:not )?there", "exists, is missing, is present"),
    Rule(
        IN_PROSE,
        r"(?:points?|records?|rows?|times?|costs?|bytes|numbers?|requests?|messages?|alarms?|nanoseconds?|microseconds?"
        r"|milliseconds?|seconds?|[kmg]b|ns|µs|us|ms) an? (?:point|record|row|stream|batch|key|second|minute|hour|day)",
        "per: per point, per second",
    ),
    # Names without a role
    Rule(WHOLE_NAME, "own", "part, state"),
    Rule(WHOLE_NAME, "one", "the noun: key, alarm, column"),
    Rule(WHOLE_NAME, "found", "result"),
    Rule(WHOLE_NAME, "there|absent", "present, missing"),
    Rule(WHOLE_NAME, "ways?", "path"),
    Rule(WHOLE_NAME, "places?", "index, path, url"),
    Rule(WHOLE_NAME, "taken", "accepted, used"),
    Rule(WHOLE_NAME, "gaps", "missing"),
    Rule(CONSTANT, "at once", "<noun>_CHUNK_POINTS, READ_BLOCK_BYTES"),
    Rule(CONSTANT, "most", "MAX_<noun>"),
    Rule(CONSTANT, "least", "MIN_<noun>"),
    Rule(CONSTANT, "every", "<noun>_INTERVAL_S, <noun>_INTERVAL_ROWS"),
    Rule(CONSTANT, "patience", "<noun>_TIMEOUT_S, MAX_WAIT_FACTOR"),
    Rule(CONSTANT, "few|many|enough|long|often|seldom", "<noun>_THRESHOLD"),
    Rule(CONSTANT, "surely|rarely|lately|slowly|fresh|apart|together", "<noun>_<unit>"),
    Rule(CONSTANT, "look", "POLL_INTERVAL_S"),
    Rule(CONSTANT, "kept", "MAX_KEPT_<noun>"),
    # Functions: a verb, from_x, to_x, is_x
    Rule(FUNCTION, "of|of .+", "from_x"),
    Rule(FUNCTION, "to|as json", "to_x"),
    Rule(
        FUNCTION,
        "sealed|unsealed|opened|described|joined|framed|numbered|coded|gathered|made|begun|apart|restored|closing|locked"
        "|shown|listed|noted",
        "a verb, or is_x",
    ),
)


class Finding(NamedTuple):
    """A word to avoid. context: the name that it is part of; "" in prose."""

    path: str
    line: int
    kind: str
    word: str
    instead: str
    context: str

    def __str__(self) -> str:
        context = f" ({self.context})" if self.context and self.context.lower() != self.word else ""
        return f"{self.path}:{self.line}: {self.word}{context} → {self.instead}"


class Text(NamedTuple):
    """Something to check. role: of a name, "function" or "other"."""

    kind: str
    line: int
    text: str
    role: str = ""


# The rules


def split_name(name: str) -> str:
    """Split a name into lower-case words.

    >>> split_name("_BurstGuard"), split_name("AT_ONCE"), split_name("parseHTMLPage2"), split_name("docs-page")
    ('burst guard', 'at once', 'parse html page 2', 'docs page')
    """
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+", name)).lower()


@cache
def _expression(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])".replace(" ", r"\s+"))


_ANY = re.compile("|".join(rule.words for rule in RULES).replace(" ", r"\s+"))


def _applies(rule: Rule, text: Text) -> bool:
    if rule.where == ANYWHERE:
        return True
    if text.kind in PROSE:
        return rule.where == IN_PROSE
    is_constant = text.text.isupper() and len(text.text) > 1
    return {IN_NAMES: True, WHOLE_NAME: not is_constant, CONSTANT: is_constant, FUNCTION: text.role == "function"}.get(
        rule.where, False
    )


def findings_in(path: str, text: Text) -> Iterator[Finding]:
    """Apply the rules to a name or a piece of prose."""
    is_prose = text.kind in PROSE
    words = text.text.lower() if is_prose else split_name(text.text)
    if not _ANY.search(words):
        return
    for rule in RULES:
        if not _applies(rule, text):
            continue
        expression = _expression(rule.words)
        if rule.where in (WHOLE_NAME, CONSTANT, FUNCTION):
            matches: Iterable[re.Match[str]] = filter(None, [expression.fullmatch(words)])
        else:
            matches = expression.finditer(words)
        established = [match.span() for match in _expression(rule.allowed).finditer(words)] if rule.allowed else []
        for match in matches:
            if any(begin <= match.start() and match.end() <= end for begin, end in established):
                continue
            line = text.line
            if text.kind != "message":  # whose line breaks are escapes, not lines
                line += words.count("\n", 0, match.start())
            yield Finding(
                path, line, text.kind, " ".join(match[0].split()), rule.instead, "" if is_prose else text.text
            )


# Python


def names_in(tree: ast.AST, first_line: int = 1) -> Iterator[Text]:
    """Yield the names that a program defines."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1) + first_line - 1
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield Text("name", line, name, "function")
            case (
                ast.ClassDef(name=str(name))
                | ast.arg(arg=str(name))
                | ast.Name(id=str(name), ctx=ast.Store())
                | ast.Attribute(attr=str(name), ctx=ast.Store())
                | ast.alias(asname=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield Text("name", line, name, "other")


def strings_in(tree: ast.AST) -> Iterator[Text]:
    """Yield string literals: docstrings, and messages, which have more than one word."""
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts: set[int] = set()  # of f-strings, which are checked as a whole
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            literals = [part for part in node.values if isinstance(part, ast.Constant)]
            parts |= {id(part) for part in literals}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            if is_message(text):
                yield Text("message", node.lineno, text)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            if id(node) in docstrings:
                yield Text("docstring", node.lineno, node.value)
            elif is_message(node.value):
                yield Text("message", node.lineno, node.value)


def is_message(text: str) -> bool:
    """Whether a string literal has more than one word.

    >>> is_message("could not be opened"), is_message("dropped"), is_message("a-b/c")
    (True, False, False)
    """
    return re.search(r"[^\W\d_]\S*\s+\S*[^\W\d_]", text) is not None


def comments_in(source: str) -> Iterator[Text]:
    """Yield the comments of a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text("comment", token.start[0], token.string.lstrip("# "))


def examples_in(text: str, first_line: int) -> Iterator[Text]:
    """Yield the names defined in the examples of a docstring or a page, which are not prose."""
    sources = []
    for match in FENCED.finditer(text):
        if match["language"] == "python" and ">>> " not in match["code"]:
            sources.append((match["code"], text.count("\n", 0, match.start("code"))))
    with contextlib.suppress(ValueError):  # not an example, though it looks like one
        sources += [(example.source, example.lineno) for example in doctest.DocTestParser().get_examples(text)]
    for source, line in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        yield from names_in(tree, first_line + line)


FENCED = re.compile(r"^ *```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^ *```", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"^[ \t]*>>> .*?(?=^[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
NOT_PROSE = (
    FENCED,
    EXAMPLE,
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"(`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)\1(?!`)", re.DOTALL),  # `code`, within a paragraph
    re.compile(r"(?<=\])\([^)\s]*\)"),  # the target of a link
    re.compile(r"\b[a-z][a-z0-9+.-]*://\S+"),
)


def prose_of(text: str) -> str:
    """Blank out what is not prose, line by line.

    >>> prose_of("the `room` of [rooms](rooms.md)")
    'the        of [rooms]          '
    """
    for expression in NOT_PROSE:
        text = expression.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def read_python(source: str) -> Iterator[Text]:
    """Yield what is checked in a Python file."""
    tree = ast.parse(source)
    yield from names_in(tree)
    yield from comments_in(source)
    for text in strings_in(tree):
        if text.kind == "docstring":
            yield from examples_in(text.text, text.line)
        yield text._replace(text=prose_of(text.text))


def long_summaries_in(path: str, source: str) -> Iterator[Finding]:
    """Report the docstrings whose first line is too long.

    >>> [str(finding) for finding in long_summaries_in("a.py", f"'{80 * 'x'}'")]
    ['a.py:1: first line of 80 characters → at most 79 characters']
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            summary = (ast.get_docstring(node) or "").partition("\n")[0]
            if len(summary) > MAX_SUMMARY_CHARS:
                word, instead = f"first line of {len(summary)} characters", f"at most {MAX_SUMMARY_CHARS} characters"
                yield Finding(path, node.body[0].lineno, "docstring", word, instead, "")


# Other languages

SCRIPT = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"
    r"|[=(,:\[!&|?{};]\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n\[])+/\w*"  # a regular expression
    r"|(?P<name>[A-Za-z_$][\w$]*)",
    re.DOTALL,
)


def read_script(source: str) -> Iterator[Text]:
    """Yield what is checked in a script: each name once, where it is first used."""
    seen = set()
    for match in SCRIPT.finditer(source):
        line = source.count("\n", 0, match.start()) + 1
        if match["comment"]:
            yield Text("comment", line, prose_of(match["comment"]))
        elif match["string"]:
            inserted = re.findall(r"\$\{([^}]*)\}", match["string"])
            text = re.sub(r"\$\{[^}]*\}", "{}", match["string"])
            if is_message(text):
                yield Text("message", line, prose_of(text) if text[0] != "`" else text)
            names = [name for code in inserted for name in re.findall(r"[A-Za-z_$][\w$]*", code)]
        else:
            names = [match["name"]] if match["name"] else []
        for name in [] if match["comment"] else names:
            if name not in seen:
                seen.add(name)
                yield Text("name", line, name, "other")


def read_page(source: str) -> Iterator[Text]:
    """Yield what is checked in a Markdown page."""
    yield from examples_in(source, 1)
    yield Text("page", 1, prose_of(source))


def read_lines(source: str) -> Iterator[Text]:
    """Yield what is checked in any other file: all of it."""
    yield Text("page", 1, prose_of(source))


READERS = {".py": read_python, ".js": read_script, ".md": read_page}
READERS |= dict.fromkeys((".html", ".css", ".j2", ".yml", ".yaml", ".toml", ".cff", ""), read_lines)


# Files


def files(paths: Iterable[Path] = ()) -> list[Path]:
    """Return the files to check, by default all."""
    pages = [page for pattern in PAGES for page in ROOT.glob(pattern)]
    chosen = list(paths) or [*(ROOT / folder for folder in CODE), *pages]
    listed = {
        file
        for path in chosen
        for file in (path.rglob("*") if path.is_dir() else [path])
        if file.suffix in READERS
        and file.is_file()
        and file.name not in EXCLUDED_FILES
        and not EXCLUDED_FOLDERS & set(file.parts)
    }
    return sorted(listed)


def check(file: Path, root: Path) -> list[Finding]:
    """Return the findings in the name and the content of a file."""
    path = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    name = file.parent.name if file.name == "__init__.py" else file.stem
    source = file.read_text(encoding="utf-8")
    pieces = [Text("name", 1, name, "module"), *READERS[file.suffix](source)]
    findings = {finding for text in pieces for finding in findings_in(path, text)}
    if file.suffix == ".py" and path.startswith(PACKAGE):
        findings.update(long_summaries_in(path, source))
    return sorted(findings)


def package_of(path: str) -> str:
    """Return the part of the repository that a file is counted under.

    >>> package_of("src/limpet/fleet/fleet.py"), package_of("src/limpet/__init__.py"), package_of("README.md")
    ('limpet/fleet', 'limpet', '.')
    """
    parts = path.split("/")[:-1]
    parts = parts[parts.index("src") + 1 :] if "src" in parts else parts
    return "/".join(parts[:2]) or "."


def summary(findings: Iterable[Finding]) -> str:
    """Count findings by package and kind."""
    counts = Counter((package_of(finding.path), finding.kind) for finding in findings)
    packages = sorted({package for package, _ in counts})
    rows = [(package, [counts[package, kind] for kind in KINDS]) for package in packages]
    rows.append(("all", [sum(counts[package, kind] for package in packages) for kind in KINDS]))
    lines = [f"{'':24}" + "".join(f"{kind:>11}" for kind in (*KINDS, "all"))]
    lines += [f"{name:24}" + "".join(f"{count:>11}" for count in (*numbers, sum(numbers))) for name, numbers in rows]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="Check names and prose against the words of the style guide.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders; default: all")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"what to check; default: {','.join(KINDS)}")
    parser.add_argument("--summary", action="store_true", help="count findings by package instead of listing them")
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"--kinds: must be some of {', '.join(KINDS)}, got {', '.join(sorted(unknown))}")
    findings = [
        finding
        for file in files(path.resolve() for path in options.paths)
        for finding in check(file, ROOT)
        if finding.kind in kinds
    ]
    print(summary(findings) if options.summary else "\n".join(map(str, findings)))
    if findings:
        print(f"{len(findings)} findings; the style guide is in CONTRIBUTING.md", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
