"""Tensors of torch that require gradients, on a tape: arrays over the same memory, whose gradients become those of the tensors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from quadpy.ad.arrays import overlap
from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED
from quadpy.runtime.arrays.foreign_host import requires_grad
from quadpy.runtime.arrays.ndarray import NDArray, from_dlpack


class Tensors:
    """The arrays of one tape over tensors; each tensor has one gradient, whatever the elements of its arrays are."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, tuple[int, ...]], NDArray] = {}
        self._found: dict[int, tuple[Any, Any, int]] = {}  # the tensor, its gradient, and its version

    def array_of(self, tensor: Any, element: tuple[int, ...] = ()) -> NDArray:
        """The array over the memory of ``tensor``.

        Raises:
            ArgumentError: torch computes it from other tensors, or its memory cannot be shared, or another one shares it.
        """
        if not tensor.is_contiguous():
            raise ArgumentError(
                f"a tensor of shape {tuple(tensor.shape)} and strides {tensor.stride()} is passed on a tape, which needs contiguous memory", call_site(),
                hint="pass x.detach().contiguous().requires_grad_()",
            )  # fmt: skip
        if not tensor.is_leaf:
            raise ArgumentError(
                "a tensor that torch has computed from others is passed on a tape, which gives these no gradients", call_site(),
                hint='pass x.detach().requires_grad_(), or let torch differentiate: qp.torch.custom_op(…, backward="auto")',
            )  # fmt: skip
        plain = tensor.detach()
        if any(each is not tensor and _share_memory(each, tensor) for each, _, _ in self._found.values()):
            raise ArgumentError(
                f"two tensors on a tape share memory; one has the shape {tuple(tensor.shape)}: what is written to one has no gradient as the other",
                call_site(), hint="pass one tensor to all kernels, or a clone()",
            )  # fmt: skip
        if id(tensor) not in self._found:
            self._found[id(tensor)] = tensor, plain.new_zeros(plain.shape), tensor._version  # noqa: SLF001 - it has no public name
        if (made := self._arrays.get((id(tensor), element))) is None:
            made = self._arrays[id(tensor), element] = from_dlpack(plain, element)
            made.grad = from_dlpack(self._found[id(tensor)][1], element)
            DIFFERENTIATED.add(made)
        return made

    def arrays_in(self, args: tuple[Any, ...], views: Sequence[Any]) -> tuple[Any, ...]:
        """``args`` with arrays in place of tensors, or ``args`` itself; ``views`` are those of the call."""
        if any(map(_has_inside, args)):
            raise ArgumentError("a tensor that requires a gradient is inside another argument of a kernel on a tape", call_site(),
                                hint="pass it as an argument of its own, or x.detach()")  # fmt: skip
        if not any(map(requires_grad, args)):
            return args
        elements = {view.pointer: view.type_key[3] for view in views}
        return tuple(self.array_of(e, elements.get(e.data_ptr(), ())) if requires_grad(e) else e for e in args)

    def require_unchanged(self) -> None:
        """Raise ArgumentError if torch has changed a tensor since the tape used it first."""
        for tensor, _, version in self._found.values():
            if tensor._version != version:  # noqa: SLF001 - as above
                raise ArgumentError(
                    f"torch has changed a tensor of shape {tuple(tensor.shape)} after kernels on the tape have used it", call_site(),
                    hint="change it before the tape or after it",
                )  # fmt: skip

    def give(self, *, clears: bool) -> None:
        """Set the gradients of all tensors, or add to them; torch's later work on a GPU comes after that of the tape."""
        for array in self._arrays.values():
            for each in (array, array.grad) if array.device is not None else ():
                sys.modules["torch"].from_dlpack(each)  # makes torch's current stream wait
        for tensor, gradient, _ in self._found.values():
            if tensor.grad is None:
                tensor.grad = gradient
            elif clears:
                tensor.grad.copy_(gradient)
            else:
                tensor.grad.add_(gradient)


def _share_memory(one: Any, other: Any) -> bool:
    ranges = ((each.data_ptr(), each.data_ptr() + each.nbytes) for each in (one, other))
    return overlap(*ranges)


def _has_inside(given: Any) -> bool:
    members = fields(given) if is_dataclass(given) and not isinstance(given, type) else ()
    found = (getattr(given, each.name, None) for each in members)
    return any(requires_grad(each) or _has_inside(each) for each in found)
