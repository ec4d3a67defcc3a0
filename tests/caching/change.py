"""A program that reads something of its surroundings, which may change."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Change"]

_HEAD = """
import numpy as np
import quadpy as qp
import cfg
from cfg import *
F64 = qp.types.ndarray(dtype=qp.f64, ndim=1)
"""
_KERNEL = """
@qp.kernel
def k(o: F64, p: F64{parameters}){returns}:
    for i in o:
        {body}
        o[i] += 0 * p[i]
"""


@dataclass(frozen=True)
class Change:
    """``first`` and ``second`` are the versions of ``cfg``; ``results`` what the kernel gives for them.

    recorded    whether a warm start without change finds the code without a trace
    late        whether ``cfg`` can change under a kernel that was called: then code that is compiled later for the same
                signature still gives the first result
    """

    name: str
    body: str
    first: str
    second: str
    results: tuple[float, float] = (1, 2)
    setup: str = ""
    parameters: str = ""
    arguments: str = ""
    returns: str = ""
    whole: str = ""
    recorded: bool = True
    late: bool = True

    @property
    def text(self) -> str:
        """The module with the kernel."""
        kernel = self.whole or _KERNEL.format(parameters=self.parameters, body=self.body, returns=self.returns)
        return f"# {self.name}\n{_HEAD}{self.setup}\n{kernel}\ndef run(o, p):\n    return k(o, p{self.arguments})\n"
