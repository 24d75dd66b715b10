"""Caches between processes: found again, never stale, and not needed."""

import marshal
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config, event
from numba.core.serialize import dumps

import limpet
from limpet._jit.compile import jit_entry_point, kernel
from limpet.core import Constant
from limpet.core.algorithm import make_stream_kernels
from limpet.models import GaussianMixture

SCRIPT = """
import sys
import numba.core.event as event
import numpy as np
import limpet as lp
from limpet.models import *
from limpet.core import *
sys.path.insert(0, EXAMPLES)
from exponential import Exponential
for text, width, counts in MODELS:
    with event.install_recorder("numba:compile") as recorder:
        model = eval(text)
        y = np.random.default_rng(0).normal(size=(60, width))
        learner = lp.SRA(model, gamma=6.0) if isinstance(model, int) else lp.StochasticApproximation(model)
        if learner.model.supervised:
            learner.process(y, (y[:, 0] > 0).astype(float))
        else:
            learner.process(np.abs(y).round() if counts else y)
            learner.update([1.0] * width)
            learner.update([1.0] * width)
    assert learner.n_seen >= 60
    print(len(recorder.buffer))
"""
EXAMPLES = str(Path(__file__).parents[2] / "docs" / "how-to")
QUICK_MODEL = ("LinearRegression()", 2, False)  # a model and its width that do not take long to compile


def run_learners(*models, **environment):
    """Run learners in a separate process: (compilations for each, its standard error)."""
    code = f"EXAMPLES, MODELS = {EXAMPLES!r}, {models!r}\n{SCRIPT}"
    env = {k: v for k, v in os.environ.items() if k not in ("LIMPET_QUIET", "NUMBA_CACHE_DIR")}
    result = subprocess.run(
        [sys.executable, "-c", code], env={**env, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return [int(count) for count in result.stdout.split()], result.stderr


MODEL_GROUPS = [
    [("2", 1, False), QUICK_MODEL, ("Exponential()", 1, True)],
    [
        ("GaussianMixture(2, ConjugatePrior(weight=0.1), 1.0, 'diagonal')", 3, False),
        ("LogisticRegression()", 2, False),
        ("PoissonMixture(1)", 1, True),
    ],
]


@pytest.mark.parametrize(
    "models", [MODEL_GROUPS[0], pytest.param(MODEL_GROUPS[1], marks=pytest.mark.long)], ids=["common", "rare"]
)
def test_a_second_process_does_not_compile_again(models, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    compilations, messages = run_learners(*models, **cache)
    assert len(compilations) == len(models)
    assert all(compilations)
    assert messages.count("compiling") == len(models)
    assert run_learners(*models, **cache) == ([0] * len(models), "")


def test_kernels_are_optimized_only_as_parts_of_an_entry_point(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))  # or an earlier run of the test has compiled it

    @kernel
    def inner(x):
        return x + 1.0

    @kernel
    def outer(x):
        return 2.0 * inner(x)

    def entry(x):
        return outer(x) - 4.0

    with event.install_recorder("numba:run_pass") as recorder:
        assert jit_entry_point(entry)(3.0) == 4.0
    names = [pass_event.data["name"] for _, pass_event in recorder.buffer if pass_event.is_start]
    finished = [name for name in names if name.startswith("native_lowering")]
    assert len(finished) == 1
    assert "entry" in finished[0]
    assert sum(name.startswith("lower_kernel") for name in names) == 2


def test_no_two_kernels_share_a_file_of_the_cache():
    """Numba numbers the results of first entry point: processes compiling two of them at once would mix them up."""
    models = [GaussianMixture(1), GaussianMixture(2), GaussianMixture(2, smoothing=1.0)]
    algorithms = [
        make_stream_kernels(m.kernels(d), n, Constant.rule, 9) for m in models for d in (1, 3) for n in ("mean", "full")
    ]
    files = {algorithm.run._cache._impl.filename_base for algorithm in algorithms}
    assert len(files) == len(algorithms) == 12


FACTORY_SOURCE = """
import math
from limpet._jit.compile import jit_entry_point, kernel

def factory(width, power=3.0):
    @kernel
    def inner(y, work):
        for width_of_it in range(width):
            work[width_of_it] = y[width_of_it] ** power + 1234.5
        return math.nan

    @kernel
    def outer(y, work):
        score = inner(y, work)
        return score + 1234.5

    def run(y, work):
        return outer(y, work)

    return jit_entry_point(run)
"""


def test_cached_kernels_are_reused_from_bytecode(tmp_path):
    """The first process compiles code from the source, later ones read it from a bytecode file."""
    source = tmp_path / "factory.py"
    source.write_text(FACTORY_SOURCE)
    text_code = compile(FACTORY_SOURCE, str(source), "exec")
    entry_points = []
    for code in (text_code, marshal.loads(marshal.dumps(text_code))):
        namespace = {"__name__": "factory", "__file__": str(source)}
        exec(code, namespace)
        entry_points.append(namespace["factory"](2))
    first, other = entry_points
    assert first._cache._impl.filename_base == other._cache._impl.filename_base
    captured = [dumps(tuple(cell.cell_contents for cell in entry.py_func.__closure__)) for entry in entry_points]
    assert captured[0] == captured[1]  # also part of Numba's key


def copy_package(tmp_path):
    """Copy the package to a folder where nothing can be cached next to the sources."""
    package = tmp_path / "site" / "limpet"
    shutil.copytree(Path(limpet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for subpackage in ("core", "models"):
        (package / subpackage / "__pycache__").write_text(
            "a file, so that no folder can be made here, not even by root"
        )
    return {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}


def test_read_only_package_folder_and_an_edited_model(tmp_path):
    """Numba checks only the file of the entry point; a change in any other file must count as well."""
    environment = {**copy_package(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    compilations, _ = run_learners(QUICK_MODEL, **environment)
    assert compilations[0] > 0
    assert run_learners(QUICK_MODEL, **environment) == ([0], "")
    source = tmp_path / "site" / "limpet" / "models" / "regression.py"
    source.write_text(source.read_text() + "\n# edited\n")
    compilations, _ = run_learners(QUICK_MODEL, **environment)
    assert compilations[0] > 0
    (tmp_path / "blocked").write_text("")
    nowhere = {**environment, "XDG_CACHE_HOME": str(tmp_path / "blocked"), "HOME": str(tmp_path / "blocked")}
    compilations, _ = run_learners(QUICK_MODEL, **nowhere)
    assert compilations[0] > 0


def test_an_edited_helper_of_a_custom_model_is_recompiled(tmp_path):
    """A kernel in another file, which the model's kernels call."""
    (tmp_path / "helper.py").write_text("from limpet.core import kernel\n@kernel\ndef bonus():\n    return 1.0\n")
    source = (Path(EXAMPLES) / "exponential.py").read_text()
    source = source.replace("return log(m)", "return bonus() + log(m)").replace(
        "import limpet as lp", "import limpet as lp\nfrom helper import bonus"
    )
    (tmp_path / "exponential.py").write_text(source)
    code = "import limpet as lp, numpy as np\nfrom exponential import Exponential\n"
    code += "m = lp.SRA(rho=0.01, model=Exponential())\nm.process(np.ones(20))\nprint(m.score(1.0))"
    scores = []
    for bonus in ("1.0", "1000.0"):
        helper = tmp_path / "helper.py"
        helper.write_text(helper.read_text().replace("1.0", bonus))
        result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        scores.append(float(result.stdout))
    assert scores[1] - scores[0] == pytest.approx(999.0)


def test_importing_the_command_line_imports_nothing_heavy():
    code = "import sys, limpet.cli; print([m for m in ('numpy', 'numba', 'matplotlib', 'river') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
