"""``qp.hazards.lint``: finds races inside parallel loops."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from quadpy.core.importing import import_late
from quadpy.core.public import public

if TYPE_CHECKING:
    from quadpy.jit.kernel import Kernel
    from quadpy.jit.lint import LintReport


@public
def lint(what: Kernel | ModuleType, **given: Any) -> LintReport:
    """Checks ``what``, a kernel or all kernels of a module, for races inside parallel loops, without running them.

    ``given`` sets types that annotations leave open, as in ``Kernel.compile``, such as
    ``x=qp.types.ndarray(dtype=qp.f32, ndim=1)``.
    The report has ``races``, each with two iterations that certainly collide; ``unknown``, which ``debug=True`` checks when
    a kernel runs; ``checked``, all arrays of all loops; and ``skipped``, the kernels that cannot be compiled as they stand.

    Raises:
        ArgumentError: it is neither a kernel nor a module.
    """
    report: LintReport = import_late("quadpy.jit.lint").lint(what, **given)  # loads the compiler
    return report
