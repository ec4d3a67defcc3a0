"""Derivatives of kernels: tapes for gradients, forward mode, functions with derivatives of their own."""

from quadpy.ad.arrays import clear_all_gradients
from quadpy.ad.checkpoints import checkpoint
from quadpy.ad.custom import custom, grad_for, grad_replaced, no_grad
from quadpy.ad.forward import FwdMode
from quadpy.ad.functions import gradcheck, value_and_grad
from quadpy.ad.implicit import implicit
from quadpy.ad.memory import memory
from quadpy.ad.number import Number
from quadpy.ad.tape import Tape
from quadpy.intrinsics import BUILTINS

stop = BUILTINS["ad.stop"]

__all__ = [
    "FwdMode", "Number", "Tape", "checkpoint", "clear_all_gradients", "custom", "grad_for", "grad_replaced", "gradcheck", "implicit", "memory", "no_grad", "stop", "value_and_grad",
]  # fmt: skip
