"""Check the sdist and the wheel: complete, clean, with correct metadata."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

import limpet
from helpers.packages import (
    ROOT,
    build_distribution,
    list_tracked_files,
    make_clean_environment,
    read_extras,
    read_metadata,
)

pytestmark = pytest.mark.package

NOT_IN_SDIST = re.compile(r"\.(ci|github)/|\.gitignore$|\.pre-commit-config\.yaml$")  # of use in the repository only
INTERNAL_EXTRAS = {"dev", "docs", "local"}  # for developers; the README does not name them


@pytest.fixture(scope="module")
def sdist(distribution):
    (path,) = distribution.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return folder / sdist.name.removesuffix(".tar.gz")


def list_names(wheel):
    with ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_wheel_contains_only_the_package(wheel):
    ours = {name.removeprefix("src/") for name in list_tracked_files() if name.startswith("src/")}
    assert {name for name in list_names(wheel) if ".dist-info/" not in name} == ours
    assert {"limpet/py.typed", "limpet/server/static/page.html", "limpet/server/static/base.css"} <= ours


def test_wheel_does_not_contain_the_lab(wheel):
    assert not [name for name in list_names(wheel) if re.search(r"limpet_lab|bench|paper|baselines|harness", name)]


def test_the_wheel_has_the_licences(wheel):
    licences = {name.partition("licenses/")[2] for name in list_names(wheel) if "/licenses/" in name}
    vendored = {f"src/limpet/server/static/vendor/{name}/LICENSE" for name in ("swagger-ui", "uplot")}
    assert licences == {"LICENSE"} | vendored


def test_sdist_contains_all_tracked_files(unpacked):
    names = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    assert names - {"PKG-INFO", ".gitignore"} == {name for name in list_tracked_files() if not NOT_IN_SDIST.match(name)}


def test_wheels_from_the_tree_and_from_the_sdist_are_equal(wheel, tmp_path):
    build_distribution(ROOT, tmp_path, "--wheel")
    (other,) = tmp_path.glob("*.whl")
    assert list_names(other) == list_names(wheel)


def test_the_tests_can_be_run_from_the_sdist(unpacked):
    """All tests are collected, and some are run."""
    paths = ":".join(str(unpacked / name) for name in ("src", "tests", "lab/src"))
    for words in (["--collect-only", "tests"], ["tests/metrics"]):
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
        environment = make_clean_environment(PYTHONPATH=paths)
        completed = subprocess.run(command, cwd=unpacked, env=environment, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]


def test_the_metadata_of_the_wheel(wheel):
    metadata = read_metadata(wheel)
    assert (metadata["Name"], metadata["Version"]) == ("limpet", limpet.__version__)
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata["Requires-Python"] == ">=3.11"
    pythons = {
        entry.rpartition(" ")[2] for entry in metadata.get_all("Classifier") if re.search(r"Python :: 3\.\d", entry)
    }
    assert pythons == {"3.11", "3.12", "3.13", "3.14"}
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert (
        metadata.get_payload(decode=True).decode().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    )
    core = {re.split(r"[<>=; ]", entry)[0] for entry in metadata.get_all("Requires-Dist") if "extra ==" not in entry}
    assert core == {"numpy", "numba", "typer", "rich"}


def test_the_readme_lists_the_extras(wheel):
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (listed,) = re.findall(r"[Ee]xtras are (.*?)\. ", text)
    assert set(re.findall(r"`(\w+)`", listed)) == read_extras(wheel) - INTERNAL_EXTRAS


def test_wheel_does_not_contain_paths_of_the_build_machine(wheel):
    with ZipFile(wheel) as archive:
        contents = [archive.read(name) for name in archive.namelist()]
    for folder in (ROOT, Path.home() / ".cache", Path(sys.prefix)):
        assert not any(str(folder).encode() in text for text in contents), folder
