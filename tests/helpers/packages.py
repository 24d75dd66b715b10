"""Wheels, built from what git knows of; and empty environments that they are installed into."""

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
NOT_OURS = shutil.ignore_patterns(".*", "__pycache__", "*.nb[ic]", "dist", "build", "site", "reproduction", "*.html")
OF_THE_DEVELOPER = ("PYTHON", "VIRTUAL_ENV", "LIMPET_", "PYTEST_", "MYPY", "COLUMNS")


def tracked() -> list[str]:
    """The files that git tracks, or would if they were added; none where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return []
    return sorted(name for name in found.split("\0") if name and (ROOT / name).is_file())


def exported(folder: Path) -> Path:
    """A copy of the sources without anything that was left lying about in the working folder."""
    names = tracked()
    if not names:
        return shutil.copytree(ROOT, folder, ignore=NOT_OURS)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


def build(sources: Path, out: Path, *options: str) -> None:
    """`python -m build`."""
    checked([sys.executable, "-m", "build", "--outdir", str(out), *options, str(sources)], cwd=sources)


def checked(command: list[str], cwd: Path) -> str:
    """What a command prints; if it fails, so does the test, and tells what it printed."""
    done = subprocess.run(command, cwd=cwd, env=plain_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def plain_environment(**more: str) -> dict[str, str]:
    """The environment variables without those of somebody who develops limpet."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_THE_DEVELOPER)}
    return kept | {name: str(value) for name, value in more.items()}


@dataclass(frozen=True)
class Environment:
    """A virtual environment: nothing of the one that the tests run in can be seen from it."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def command(self, words: list[str]) -> list[str]:
        """Words to run, the first of which may be the name of one of its programs."""
        own = self.folder / "bin" / str(words[0])
        return [str(own) if own.exists() else str(words[0]), *map(str, words[1:])]

    def variables(self, **env: str) -> dict[str, str]:
        """The environment variables of what runs in it."""
        return plain_environment(PATH=f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", **env)

    def run(self, command: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end; what it prints comes as text."""
        return subprocess.run(
            self.command(command), cwd=cwd, env=self.variables(**env), capture_output=True, text=True, check=False
        )

    def start(self, command: list[str], cwd: Path, **env: str) -> subprocess.Popen[str]:
        """Begins a command; what it says comes by its standard error."""
        return subprocess.Popen(
            self.command(command), cwd=cwd, env=self.variables(**env), stderr=subprocess.PIPE, text=True
        )

    def install(self, *words: str) -> None:
        """`pip install`, by a pip from outside: an empty environment has none."""
        self.pip("install", "--quiet", "--no-compile", *words)

    def pip(self, *words: str) -> str:
        """What pip prints."""
        return checked([sys.executable, "-m", "pip", "--python", str(self.python), *words], cwd=self.folder)

    def installed(self) -> dict[str, Distribution]:
        """The packages in it, by their names in small letters."""
        (site,) = self.folder.glob("lib/python3*/site-packages")
        return {one.metadata["Name"].lower().replace("_", "-"): one for one in distributions(path=[str(site)])}


def empty_environment(
    folder: Path, wheel: Path, extras: str = "", python: str | Path = sys.executable, *, besides: tuple[str, ...] = ()
) -> Environment:
    """An environment with the wheel, these extras ("plots,files"), what they need, and nothing more.

    besides: further packages, which users bring themselves.
    """
    checked([str(python), "-m", "venv", "--without-pip", str(folder)], cwd=wheel.parent)
    environment = Environment(folder)
    environment.install(f"{wheel}[{extras}]" if extras else str(wheel), *besides)
    return environment


def metadata_of(wheel: Path) -> Message:
    """What a wheel says of itself."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def extras_of(wheel: Path) -> set[str]:
    """The names of its extras."""
    return set(metadata_of(wheel).get_all("Provides-Extra", []))


@cache
def interpreter(version: str) -> str | None:
    """A Python of this version, such as "3.12": on the path, or one of pyenv's; None if there is none that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"versions/{version}.*/bin/python"))]
    for candidate in filter(None, [sys.executable, *named]):
        told = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", told], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return str(candidate)
    return None
