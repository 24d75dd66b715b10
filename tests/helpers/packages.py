"""Build wheels from the files that git tracks, and install them into empty environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[2]
IGNORED_FILES = shutil.ignore_patterns(
    ".*", "__pycache__", "*.nb[ic]", "dist", "build", "site", "reproduction", "*.html"
)
DEVELOPER_VARIABLES = ("PYTHON", "VIRTUAL_ENV", "LIMPET_", "PYTEST_", "MYPY", "COLUMNS")


def list_tracked_files() -> list[str]:
    """Return the files that git tracks or would add; empty without git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return []
    return sorted(name for name in names.split("\0") if name and (ROOT / name).is_file())


def export_sources(folder: Path) -> Path:
    """Copy the sources, without files that git ignores."""
    names = list_tracked_files()
    if not names:
        return shutil.copytree(ROOT, folder, ignore=IGNORED_FILES)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def build_distribution(sources: Path, out: Path, *options: str) -> None:
    """Run `python -m build`."""
    run_checked([sys.executable, "-m", "build", "--outdir", str(out), *options, str(sources)], cwd=sources)


def run_checked(command: list[str], cwd: Path) -> str:
    """Run a command and return its output; fail with its output if it fails."""
    completed = subprocess.run(
        command, cwd=cwd, env=make_clean_environment(), capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, f"{command}: {completed.stdout[-3000:]}\n{completed.stderr[-3000:]}"
    return completed.stdout


def make_clean_environment(**overrides: str) -> dict[str, str]:
    """Return the environment variables without those of a developer."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(DEVELOPER_VARIABLES)}
    return variables | {name: str(value) for name, value in overrides.items()}


@dataclass(frozen=True)
class Environment:
    """A virtual environment, isolated from the one that runs the tests."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def command(self, words: list[str]) -> list[str]:
        """Return the words of a command; the first may be a program of the environment."""
        program = self.folder / "bin" / str(words[0])
        return [str(program) if program.exists() else str(words[0]), *map(str, words[1:])]

    def variables(self, **env: str) -> dict[str, str]:
        """Return the environment variables of its programs."""
        return make_clean_environment(PATH=f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **env)

    def run(self, command: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, with its output as text."""
        return subprocess.run(
            self.command(command), cwd=cwd, env=self.variables(**env), capture_output=True, text=True, check=False
        )

    def start(self, command: list[str], cwd: Path, **env: str) -> subprocess.Popen[str]:
        """Start a command, with its standard error as text."""
        return subprocess.Popen(
            self.command(command), cwd=cwd, env=self.variables(**env), stderr=subprocess.PIPE, text=True
        )

    def install(self, *words: str) -> None:
        """Run `pip install` with a pip from outside, since an empty environment has none."""
        self.pip("install", "--quiet", "--no-compile", *words)

    def pip(self, *words: str) -> str:
        """Run pip and return its output."""
        return run_checked([sys.executable, "-m", "pip", "--python", str(self.python), *words], cwd=self.folder)

    def list_installed(self) -> dict[str, Distribution]:
        """Return its packages by lower-case name."""
        (site,) = self.folder.glob("lib/python3*/site-packages")
        return {
            distribution.metadata["Name"].lower().replace("_", "-"): distribution
            for distribution in distributions(path=[str(site)])
        }


def make_environment(
    folder: Path,
    wheel: Path,
    extras: str = "",
    python: str | Path = sys.executable,
    *,
    extra_packages: tuple[str, ...] = (),
) -> Environment:
    """Create an environment with the wheel, these extras ("plots,files") and their dependencies only.

    besides: further packages to install.
    """
    run_checked([str(python), "-m", "venv", "--without-pip", str(folder)], cwd=wheel.parent)
    environment = Environment(folder)
    environment.install(f"{wheel}[{extras}]" if extras else str(wheel), *extra_packages)
    return environment


def read_metadata(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def read_extras(wheel: Path) -> set[str]:
    """Return the names of its extras."""
    return set(read_metadata(wheel).get_all("Provides-Extra", []))


@cache
def find_interpreter(version: str) -> str | None:
    """Return a Python of this version, such as "3.12", on the path or of pyenv; None if none runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    for candidate in filter(None, [sys.executable, *candidates]):
        script = "import sys; print('%d.%d' % sys.version_info[:2])"
        completed = subprocess.run([candidate, "-c", script], capture_output=True, text=True, check=False)
        if completed.stdout.strip() == version:
            return str(candidate)
    return None
