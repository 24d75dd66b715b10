"""Pieces of compiled code: functions that are only ever inlined into others.

Numba makes every function ready to be called by itself: it optimises it together with all that it calls, and writes its
machine code. For a kernel of a kernel of a kernel that is done again at each level, and none of it is used: what
runs is the entry point, which is optimised as a whole. A piece is translated for LLVM and left at that.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class _UnoptimizedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into other code, which will be optimised there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerKernel(NativeLowering):  # type: ignore[misc]
    _name = "lower_piece"

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
