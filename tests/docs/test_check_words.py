"""The check of words: findings in names and in prose, and exceptions."""

import pytest

import check_words
from check_words import check, files, main, split_name


def find_words(tmp_path, text, name="example.py"):
    """(line, word, kind) of each finding in a file with this text."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return [(finding.line, finding.word, finding.kind) for finding in check(file, tmp_path)]


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("def _told(x): ...", "told"),
        ("def update(*, _is_told_elsewhere): ...", "told"),
        ("class FleetTeller: ...", "teller"),
        ("class Door: ...", "door"),
        ("class DoorGuard: ...", "door"),
        ("self.roster = 1", "roster"),
        ("with f() as crew: ...", "crew"),
        ("import numpy as desk", "desk"),
        ("rows = [1 for own in keys]", "own"),
        ("if (found := f()): ...", "found"),
        ("learnt: int", "learnt"),
        ("AT_ONCE = 5", "at once"),
        ("_MOST = 5", "most"),
        ("EVERY, LONG = 1, 2", "every"),
        ("go_on = 1", "go on"),
        ("def side_by_side(): ...", "side by side"),
        ("whole_number = 1", "whole number"),
        ("def of(x): ...", "of"),
        ("def of_json(x): ...", "of json"),
        ("def sealed(x): ...", "sealed"),
        ("try: ...\nexcept ValueError as nobody: ...", "nobody"),
        ("match x:\n    case [shelf, *room]: ...", "shelf"),
    ],
)
def test_forbidden_names(tmp_path, code, word):
    assert word in [word for _, word, kind in find_words(tmp_path, code) if kind == "name"]


@pytest.mark.parametrize(
    "code",
    [
        "burst_guard = BurstGuard = RequestGuard = 1",  # established
        "github = GitHub = dashboard = replace = keyboard = 1",  # other words
        "bets = ADWIN = gamma = 1",  # of the literature
        "MOST_POINTS = every = long = patience = 1",  # rules for constants that consist of the word
        "not_found = is_there = 1",  # rules for whole names
        "sealed = 1",  # a rule for functions
        "def from_json(x): ...",
        "x.told()",  # a use: the definition is reported
        "print('told')",  # a key, not a message
        "d = {'told': 1}",
    ],
)
def test_allowed_names(tmp_path, code):
    assert find_words(tmp_path, code) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("nothing is told twice", "told"),
        ("the checkpoint says nothing of it", "says"),
        ("begins anew", "anew"),
        ("the stream goes on", "goes on"),
        ("what the points came to", "came to"),
        ("somebody else", "somebody"),
        ("a column is found by itself", "by itself"),
        ("lost for good", "for good"),
        ("spoilt targets", "spoilt"),
        ("never deaf, never fooled", "deaf"),
        ("run in turn", "in turn"),
        ("eight streams side by side", "side by side"),
        ("keys are texts", "texts"),
        ("must be a whole number", "whole number"),
        ("a store of its own", "of its own"),
        ("there is no file", "there is no"),
        ("the file is not there", "is not there"),
        ("20 ns a point", "ns a point"),
        ("what was learnt", "learnt"),
        ("no knobs", "knobs"),
        ("in another directory", "directory"),
        ("alarms to web hooks", "web hooks"),
    ],
)
def test_forbidden_prose(tmp_path, text, word):
    assert (1, word, "docstring") in find_words(tmp_path, f'"""{text}."""')
    assert (2, word, "message") in find_words(tmp_path, f"n = 1\nprint(f'{text} {{n}}')")
    assert (2, word, "comment") in find_words(tmp_path, f"n = 1\nm = 2  # {text}")
    assert (3, word, "page") in find_words(tmp_path, f"# Title\n\nHere {text}.\n", "page.md")
    assert (1, word, "comment") in find_words(tmp_path, f"// {text}", "page.js")
    assert (1, word, "message") in find_words(tmp_path, f'show("{text}");', "page.js")


@pytest.mark.parametrize(
    "text",
    [
        "the user is asked for a token",
        "multiplied by itself",
        "for good reason",
        "the burst guard",
        "one point per second, a point of the stream, long streams, most of them",
        "headroom and warehouses",
        "[errno 21] is a directory: x, or a `directory`, a webhook",
        "`told` and `side by side`",
        "see [the page](room/door.md) or https://example.org/room",
    ],
)
def test_allowed_prose(tmp_path, text):
    assert find_words(tmp_path, f"# Title\n\nHere {text}.\n", "page.md") == []
    assert find_words(tmp_path, f'"""Here {text}."""') == []


def test_finding_has_the_line_of_the_word(tmp_path):
    text = '"""First line.\n\nThe second: nothing\nis told.\n"""\n\nx = 1\ntold = 2\n'
    assert find_words(tmp_path, text) == [(4, "told", "docstring"), (8, "told", "name")]


def test_phrase_across_lines_is_found(tmp_path):
    assert find_words(tmp_path, "The streams run side\nby side.\n", "page.md") == [(1, "side by side", "page")]


def test_examples_are_code(tmp_path):
    text = '"""Sum.\n\n>>> told = say("is there no room")\n>>> told\n\'nobody is told\'\n"""\n'
    assert find_words(tmp_path, text) == [(3, "told", "name")]
    page = "Text.\n\n```python\nroom = 1\n```\n\n```python\n>>> desk = 1\n\n```\n\n```text\ntold\n```\n"
    assert find_words(tmp_path, page, "page.md") == [(4, "room", "name"), (8, "desk", "name")]


def test_javascript(tmp_path):
    script = (
        "const answered = (told) => told.room; // nothing\n"
        "const pattern = /it's told/g, address = `/streams/${room}/told`;\n"
        'show(`nobody sees ${deaf}`); show("told");\n'
    )
    assert find_words(tmp_path, script, "page.js") == [
        (1, "answered", "name"),
        (1, "room", "name"),
        (1, "told", "name"),
        (3, "nobody", "message"),
        (3, "deaf", "name"),
    ]


@pytest.mark.parametrize("name", ["page.css", "page.html", "report.html.j2", "project.toml", "site.yml", "Makefile"])
def test_other_files_are_prose(tmp_path, name):
    assert find_words(tmp_path, "/* first\nnobody is told */\n", name) == [(2, "nobody", "page"), (2, "told", "page")]


def test_names_of_modules_and_packages(tmp_path):
    assert find_words(tmp_path, "", "telling.py") == [(1, "telling", "name")]
    assert find_words(tmp_path, "", "learnt.js") == [(1, "learnt", "name")]
    (tmp_path / "shelf").mkdir()
    assert find_words(tmp_path, "", "shelf/__init__.py") == [(1, "shelf", "name")]


def test_names_are_split_into_words():
    assert split_name("_is_toldElsewhere") == "is told elsewhere"
    assert split_name("HTTPSink2") == "http sink 2"
    assert split_name("größe_β") == "größe β"


def test_first_line_of_docstrings_of_the_package(tmp_path):
    file = tmp_path / "src" / "limpet" / "fleet" / "fleet.py"
    file.parent.mkdir(parents=True)
    code = 'class A:\n    """{}"""\n\n    async def f(self):\n        """{}\n\n        {}\n        """\n'
    longest, longer = "x" * 79, "x" * 80
    file.write_text(code.format(longest, longest, longer))
    assert check(file, tmp_path) == []
    file.write_text(code.format(longest, longer, longer))
    assert [str(finding) for finding in check(file, tmp_path)] == [
        "src/limpet/fleet/fleet.py:5: first line of 80 characters → at most 79 characters"
    ]
    assert find_words(tmp_path, f'"""{longer}"""') == []  # only in the package


def test_third_party_files_and_these_tests_are_not_checked(tmp_path):
    for name in ("vendor/told.js", "test_check_words.py", "page.svg", "a/ok.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("told = 1")
    assert [file.name for file in files([tmp_path])] == ["ok.py"]


def test_main(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    (tmp_path / "src" / "limpet" / "fleet").mkdir(parents=True)
    file = tmp_path / "src" / "limpet" / "fleet" / "fleet.py"
    file.write_text("def _told(row):\n    raise ValueError('there is no row')\n")
    assert main([]) == 1
    out, err = capsys.readouterr()
    path = "src/limpet/fleet/fleet.py"
    assert out.splitlines() == [
        f"{path}:1: told (_told) → return, report, format, describe",
        f"{path}:2: there is no → no … exists, … is missing, not found",
    ]
    assert err.startswith("2 findings")
    assert main(["--kinds", "name", str(file)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1
    assert main(["--summary"]) == 1
    assert "limpet/fleet" in capsys.readouterr().out
    file.write_text("def to_dict(row):\n    raise ValueError('row: not found')\n")
    assert main([]) == 0
    with pytest.raises(SystemExit):
        main(["--kinds", "names"])
