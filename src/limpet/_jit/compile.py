"""Compile kernels, cache them between processes, and call them at low cost.

A kernel is a plain function (`@kernel`), which remains callable from Python; `jit_entry_point` compiles the entry
points that call kernels. Numba's file cache stores the result, in the package's folder or, if that is read-only, in
the user's cache. Numba checks only the file of the entry point to decide whether a cached result is stale;
`source_fingerprint` digests all sources of the kernels, so that an edit to a model never runs stale code.

Numba's cache key includes the variables that an entry point closes over: plain functions of a module by name, nested
functions by their code. A compiled function or an intrinsic among them carries a number that is new in every process,
which would make every look-up a miss: a kernel must be marked with `@kernel`, never with `@njit`.

Numba numbers the cached results of one entry point, and processes that compile different models of the same family at
the same time may take the same number: one of them would later load the other's machine code. `uniquify_cache_name`
gives each entry point separate files, whose names include the fingerprint of the sources.

Numba's key of a function depends on whether Python had compiled its file before: the first process on new sources and
the second would each compile every kernel. `normalize_code_object` makes the keys equal.
"""

from __future__ import annotations

import hashlib
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

# Numba prepares every function for separate calls: it optimizes it with all its callees and emits machine code. Kernels
# are only ever inlined into entry points, which are optimized as a whole, so that for nested kernels this would be
# repeated at each level and never used. A kernel is therefore lowered to LLVM and not compiled further.


class _UnoptimizedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into an entry point and optimized there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):  # type: ignore[misc]
    _name = "lower_kernel"

    def run_pass(self, state: Any) -> bool:
        """Lower the function and register it for the compiled code that calls it."""
        state.library = _UnoptimizedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        name: Any = [].append  # Numba's key: it must be a builtin, and each list has a separate one
        state.targetctx.insert_user_function(name, lowered.fndesc, [state.library])
        state["cr"] = _LowerResult(lowered.fndesc, lowered.call_helper, cfunc=name, env=lowered.env)
        return True


class _KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with the last step replaced: kernels are only lowered."""

    def define_pipelines(self) -> list[Any]:
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
    """Mark a plain function as callable from compiled code.

    It is always inlined into its caller: a call that passes flat arrays costs more than most kernels do. It remains
    callable from Python, unless it uses `exp`, `log` or `fma` of `limpet._jit.math`.
    """
    normalize_code_object(function)
    options = {"forceinline": True, "no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
    jitable: Function = register_jitable(**options)(function)
    jitable.is_kernel = True  # type: ignore[attr-defined]
    return jitable


def is_kernel(function: Any) -> bool:
    """Return whether compiled code may call a function."""
    return getattr(function, "is_kernel", False)


def jit_entry_point(
    function: Callable[..., Any], allocates: bool = False, releases_gil: bool = False
) -> Callable[..., Any]:
    """Return an entry point that is compiled at its first call and cached on disk.

    An entry point that does not allocate is compiled without reference counts, which take longer than the arithmetic.
    One that releases the interpreter's lock lets threads run several streams at once, at 50 ns per call.
    No `fastmath`: it reorders sums, and equal streams would no longer give equal bits.
    """
    normalize_code_object(function)
    options = {"error_model": "numpy", "_nrt": allocates, "nogil": releases_gil}
    uniquify_cache_name(function)
    try:
        dispatcher: Callable[..., Any] = njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's is writable
        _CompilationListener.is_cached = False
        dispatcher = njit(**options)(function)
    return dispatcher


def normalize_code_object(function: Callable[..., Any]) -> None:
    """Give a function the code object that it has when read from a bytecode file.

    Equal strings in it may be one object or several, and digests of the code depend on this.
    """
    function.__code__ = marshal.loads(marshal.dumps(function.__code__))


def uniquify_cache_name(function: Callable[..., Any]) -> None:
    """Append a digest of captured variables and kernels to the name, used for files."""
    digest = hashlib.sha256()
    if function.__closure__:
        digest.update(dumps(tuple(cell.cell_contents for cell in function.__closure__)))  # as in Numba's key
    if _find_called_kernels(function):
        digest.update(source_fingerprint([function]).encode())
    elif not function.__closure__:
        return
    function.__qualname__ += f"-{digest.hexdigest()[:16]}"


def unchecked_entry_point(dispatcher: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return the machine-code entry point for arguments of these types.

    It saves about 80 ns per call. Callers must pass the same types and contiguity: nothing is checked.
    """
    signature = tuple(typeof(argument) for argument in arguments)
    dispatcher.compile(signature)  # type: ignore[attr-defined]
    return dispatcher.overloads[signature].entry_point  # type: ignore[attr-defined]


@cache
def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _find_called_kernels(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return the kernels among the globals and captured variables of a function."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    return [piece for piece in (*cells, *named) if is_kernel(piece)]


@cache
def _package_sources() -> frozenset[str]:
    package = Path(__file__).parent.parent
    return frozenset(
        str(path) for subpackage in ("_jit", "core", "models") for path in (package / subpackage).rglob("*.py")
    )


def source_fingerprint(functions: Iterable[Callable[..., Any]]) -> str:
    """Return a digest of the sources of limpet, these functions and their kernels."""
    paths = set(_package_sources())
    seen: set[Callable[..., Any]] = set()
    pending = list(functions)
    while pending:
        function = pending.pop()
        if function not in seen:
            seen.add(function)
            pending += _find_called_kernels(function)
            path = function.__code__.co_filename
            if os.path.isfile(path):  # a function defined in a console has no file; Numba hashes its code
                paths.add(path)
    return hashlib.sha256("".join(map(_file_digest, sorted(paths))).encode()).hexdigest()


class _CompilationListener(event.Listener):  # type: ignore[misc]
    """Announce compilations on standard error, once per target."""

    announced_targets: ClassVar[set[str]] = set()
    is_cached: ClassVar[bool] = True

    def __init__(self, target: str) -> None:
        self.target = target

    def on_start(self, event: Any) -> None:
        if self.target not in self.announced_targets and not os.environ.get("LIMPET_QUIET"):
            self.announced_targets.add(self.target)
            frequency = "once" if self.is_cached else "in each process: no folder is writable, set NUMBA_CACHE_DIR"
            sys.stderr.write(f"limpet: compiling {self.target} for this machine, {frequency} (some seconds) …\n")
            sys.stderr.flush()

    def on_end(self, event: Any) -> None:
        """Ignore the end of a compilation."""


@contextmanager
def announce_compilation(target: str) -> Iterator[None]:
    """Announce compilations, not loads from the cache, within a block."""
    with event.install_listener("numba:compile", _CompilationListener(target)):
        yield
