"""Derivatives of kernels: tapes for gradients, forward mode, functions with derivatives of their own."""

import quadpy.ad.turns  # noqa: F401 - tapes call it
from quadpy.ad.checkpoints import checkpoint
from quadpy.ad.checks import gradcheck
from quadpy.ad.copies import clear_all_gradients
from quadpy.ad.custom import custom, grad_for, grad_replaced, no_grad
from quadpy.ad.forward import FwdMode
from quadpy.ad.functions import hvp, jvp, value_and_grad, vjp
from quadpy.ad.implicit import implicit
from quadpy.ad.matrices import hessian, jacobian
from quadpy.ad.memory import memory
from quadpy.ad.number import Number, Value
from quadpy.ad.tape import Tape
from quadpy.intrinsics import BUILTINS

stop = BUILTINS["ad.stop"]

__all__ = [
    "FwdMode", "Number", "Tape", "Value", "checkpoint", "clear_all_gradients", "custom", "grad_for", "grad_replaced", "gradcheck", "hessian", "hvp", "implicit", "jacobian", "jvp", "memory", "no_grad", "stop", "value_and_grad", "vjp",
]  # fmt: skip
