"""How kernels are compiled, cached between processes, and called with little overhead.

A kernel's pieces are plain functions (`@kernel`), which stay callable from Python; `compiled` makes the entry
points out of them. Numba's own file cache keeps the result, in the package's folder or, where that is read-only,
in the user's cache. Numba looks only at the file of the entry point to see whether a cached result is stale;
`fingerprint` adds everything it is made of, so that an edit to a model is never answered by yesterday's code.

Numba also looks at the variables that an entry point encloses: plain functions of a module by their name, functions
made inside another one by their code. A compiled function or an intrinsic among them carries a number that is new in
every process, and nothing would ever be found in the cache: a piece must be a `@kernel`, never an `@njit` function.

Numba numbers the cached results of one entry point, and processes that compile different models of the same make at the
same time may take the same number: later one would be given the other's machine code. `named_apart` gives every one
files of its own.

What Numba tells functions apart by depends on whether Python had compiled their file before: the first process on new
sources and the second would each compile every kernel. `as_read_from_file` makes them look the same.
"""

from __future__ import annotations

import hashlib
import inspect
import marshal
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit, typeof
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.serialize import dumps
from numba.core.typed_passes import NativeLowering
from numba.extending import register_jitable

# Pieces of compiled code: functions that are only ever inlined into others.
#
# Numba makes every function ready to be called by itself: it optimises it together with all that it calls, and writes its
# machine code. For a kernel of a kernel of a kernel that is done again at each level, and none of it is used: what
# runs is the entry point, which is optimised as a whole. A piece is translated for LLVM and left at that.


class _UnoptimizedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code, which will be optimised there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):  # type: ignore[misc]
    _name = "lower_kernel"

    def run_pass(self, state: Any) -> bool:
        """Translates, and makes it known to compiled code that calls it."""
        state.library = _UnoptimizedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name: Any = [].append  # what Numba knows it by: it must be a builtin, and every list has one of its own
        state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
        return True


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """How a kernel is compiled."""

    def define_pipelines(self) -> list[Any]:
        """Numba's own way, up to the last step."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [
            (_LowerKernel if pass_ is NativeLowering else pass_, reason) for pass_, reason in manager.passes
        ]
        manager._finalized = False
        manager.finalize()
        return [manager]


Vector = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Marks a plain function as one that compiled code may call.

    It is inlined into its caller, always: a call that passes flat arrays costs more than what most kernels do. It
    remains a plain function for Python, where it can be called unless it uses `elementary.exp`, `log` or `fma`.
    """
    normalize_code_object(function)
    jitable: Function = register_jitable(forceinline=True, no_cfunc_wrapper=True, pipeline_class=KernelCompiler)(
        function
    )
    jitable.is_kernel = True  # type: ignore[attr-defined]
    return jitable


def is_kernel(function: Any) -> bool:
    """Whether compiled code may call this function."""
    return getattr(function, "is_kernel", False)


def jit_entry_point(
    function: Callable[..., Any], allocates: bool = False, releases_gil: bool = False
) -> Callable[..., Any]:
    """Compiles an entry point at its first call, cached on disk where any folder can be written.

    One that does not allocate is compiled without reference counts, which take more time than the arithmetic.
    One that releases the interpreter's lock lets threads run several streams at once; it costs each call some 50 ns.
    No `fastmath`: it reorders sums, and equal streams would no longer give equal bits.
    """
    normalize_code_object(function)
    options = {"error_model": "numpy", "_nrt": allocates, "nogil": releases_gil}
    uniquify_cache_name(function)
    try:
        dispatcher: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to write to: neither the package's nor the user's
        _CompilationListener.is_cached = False
        dispatcher = njit(**options)(function)
    return dispatcher


def normalize_code_object(function: Callable[..., Any]) -> None:
    """Gives a function the code that it has where Python reads it from its file of bytecode.

    Equal texts in it are one object or several; a digest of it depends on which, and the two ways differ.
    """
    function.__code__ = marshal.loads(marshal.dumps(function.__code__))


def uniquify_cache_name(function: Callable[..., Any]) -> None:
    """Puts a digest of what an entry point encloses into its name, of which Numba makes the names of its files."""
    if function.__closure__:
        enclosed = dumps(tuple(cell.cell_contents for cell in function.__closure__))  # as Numba tells them apart
        function.__qualname__ += f"-{hashlib.sha256(enclosed).hexdigest()[:16]}"


def unchecked_entry_point(dispatcher: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """The machine-code entry point for arguments of these types, without the type look-up of each call.

    It saves about 80 ns a call. The caller must keep to the types (and contiguity) given here: nothing is checked.
    """
    signature = tuple(typeof(argument) for argument in arguments)
    dispatcher.compile(signature)  # type: ignore[attr-defined]
    entry_point: Callable[..., Any] = dispatcher.overloads[signature].entry_point  # type: ignore[attr-defined]
    return entry_point


@cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _find_called_kernels(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """The kernels among the globals that a function names and the variables that it encloses."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [function.__globals__.get(name) for name in code.co_names]
    return [piece for piece in (*cells, *named) if is_kernel(piece)]


def source_fingerprint(functions: Iterable[Callable[..., Any]]) -> str:
    """A digest of the source files that kernels are made of: limpet's own, and those of the given functions."""
    package = Path(__file__).parent.parent
    paths = {str(path) for subpackage in ("_jit", "core", "models") for path in (package / subpackage).rglob("*.py")}
    seen: set[Callable[..., Any]] = set()
    pending = list(functions)
    while pending:
        function = pending.pop()
        if function not in seen:
            seen.add(function)
            pending += _find_called_kernels(function)
            path = inspect.getsourcefile(function)
            if path and os.path.isfile(path):  # a function typed into a console has no file; Numba hashes its code
                paths.add(path)
    return hashlib.sha256("".join(map(_file_digest, sorted(paths))).encode()).hexdigest()


class _CompilationListener(event.Listener):  # type: ignore[misc]
    """Says on standard error that the machine is compiling, once for each thing: a first call may take seconds."""

    announced_targets: ClassVar[set[str]] = set()
    is_cached: ClassVar[bool] = True

    def __init__(self, target: str) -> None:
        self.target = target

    def on_start(self, event: Any) -> None:
        if self.target not in self.announced_targets and not os.environ.get("LIMPET_QUIET"):
            self.announced_targets.add(self.target)
            frequency = (
                "once" if self.is_cached else "anew in each process: no cache can be written, set NUMBA_CACHE_DIR"
            )
            sys.stderr.write(f"limpet: compiling {self.target} for this machine, {frequency} (some seconds) …\n")
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Nothing to say when it is done."""


@contextmanager
def announce_compilation(target: str) -> Iterator[None]:
    """Within this block a compilation (not a load from the cache) is announced."""
    with event.install_listener("numba:compile", _CompilationListener(target)):
        yield
