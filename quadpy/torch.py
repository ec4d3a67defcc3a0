"""Kernels as operators of torch: ``qp.torch.custom_op(kernel)``."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from quadpy.core.derivatives import Derivative
from quadpy.core.dtypes import u1
from quadpy.core.messages import counted
from quadpy.core.public import public
from quadpy.errors import ArgumentError, QuadpyError
from quadpy.jit.annotations import parameters_of
from quadpy.jit.kernel import Kernel
from quadpy.jit.parameters import Argument, ArrayParameter, ScalarParameter
from quadpy.runtime.device.current import current_config
from quadpy.runtime.streams.stream import Stream

if TYPE_CHECKING:
    import torch as pytorch  # type: ignore[import-not-found, unused-ignore]  # an optional dependency

__all__ = ["custom_op"]

Tensor: TypeAlias = "pytorch.Tensor"
_Input: TypeAlias = "ArrayParameter | ScalarParameter"
Made: TypeAlias = "str | Callable[..., Tensor]"
"""How an output is made: like the input of this name, or by a function of all inputs."""

_DEVICES: Final = {"cpu": "cpu", "cuda": "cuda", "amdgpu": "cuda"}
"""The name of each backend's devices in torch, whose HIP devices are named as CUDA's."""


@public
def custom_op(
    kernel: Kernel,
    /,
    *,
    name: str = "",
    outputs: Mapping[str, Made] | None = None,
    backward: Kernel | Literal["auto"] | None = None,
    **types: Argument,
) -> Callable[..., Any]:
    """``kernel`` as an operator of torch, which ``torch.compile(fullgraph=True)`` accepts.

    The operator has the parameters of the kernel: a tensor for each array, a number for each scalar.  It runs on the
    current stream of torch.  quadpy derives from the kernel which tensors the operator changes.

    Args:
        kernel: a kernel without a result that writes no fields.
        name: the name of the operator, as ``library::operator``; by default ``quadpy::`` and the name of the kernel.
        outputs: arrays that the operator makes and returns instead of taking them.  The value is the name of an input,
            whose shape and dtype the output has (it begins as zeros), or a function that makes a tensor of all inputs.
        backward: a kernel for the gradients, of an operator with ``outputs``.  Its parameters are matched by name: inputs
            of this kernel; ``grad_y``, the gradient of output ``y``; and ``grad_x``, into which it writes (or, as it
            begins with zeros, adds) the gradient of input ``x``.  torch can differentiate it once more.  With ``"auto"`` it is
            ``kernel.grad``, which torch can differentiate once more, too.
        types: what annotations leave open, as for ``Kernel.compile``: ``x=qp.types.ndarray(dtype=qp.f32, ndim=2)``, or the
            value of a ``template()`` parameter.

    Returns:
        The operator, a ``torch.library.CustomOpDef``.

    Raises:
        ArgumentError: a parameter that torch cannot pass, an output that the kernel does not write, a name without a library, gradients
            without outputs, or a backward kernel that changes what it reads.
        QuadpyError: torch is not installed, or refuses the operator.
        CompilationError: the kernel itself is at fault.
    """
    for given in (kernel, *(() if backward in (None, "auto") else (backward,))):
        if not isinstance(given, Kernel):
            raise ArgumentError(f"a torch operator needs a kernel, not {given!r}", hint="decorate it with @qp.kernel")
    label = name or f"quadpy::{kernel.source.name}"
    if not re.fullmatch(r"\w+::\w+", label):
        raise ArgumentError(f"a torch operator cannot have the name {name!r}", hint='name="library::operator"')
    forward = _Call.of(kernel, dict(outputs or {}), types)
    op = forward.registered(label)
    if backward is not None:
        _require_differentiable(forward)
        if isinstance(backward, Kernel):
            _register_gradients(op, forward, backward, types)
        else:
            _register_adjoint(op, forward)
    return op  # type: ignore[no-any-return, unused-ignore]  # torch is untyped where it is not installed


@dataclass(frozen=True)
class _Call:
    """A kernel whose arguments torch passes.

    inputs   the parameters that the operator has, in order
    passed   those that the kernel has, too
    outputs  how each array that the operator returns is made
    given    values of compile-time parameters
    mutated  the inputs that the kernel changes
    """

    kernel: Kernel
    inputs: tuple[ArrayParameter | ScalarParameter, ...]
    passed: tuple[str, ...]
    outputs: dict[str, Made]
    given: dict[str, Argument]
    mutated: tuple[str, ...]

    @staticmethod
    def of(kernel: Kernel, outputs: dict[str, Made], types: dict[str, Argument], also: Iterable[_Input] = ()) -> _Call:
        """``also`` are inputs of the operator that the kernel may lack."""
        source = kernel.source
        code = kernel.compile("cpu", **types)
        written = code.written
        if code.results:
            raise ArgumentError(
                f"{source.name} returns a number, which the host waits for", source.span,
                hint="let it write an array instead",
            )  # fmt: skip
        if fields := sorted(array for array in written if array.startswith("$")):
            raise ArgumentError(
                f"{source.name} writes {counted(len(fields), 'field')}, which torch cannot see", source.span,
                hint="pass these fields as arrays",
            )  # fmt: skip
        inputs: list[_Input] = []
        for parameter in parameters_of(source, current_config()):
            if isinstance(parameter, (ArrayParameter, ScalarParameter)):
                if parameter.name not in outputs:
                    inputs.append(parameter)
            elif parameter.name not in types:
                raise ArgumentError(
                    f"{source.name}: torch cannot pass the parameter {parameter.name!r}: it only passes tensors and numbers",
                    source.span, hint=f"give its value to custom_op: {parameter.name}=…",
                )  # fmt: skip
        passed = tuple(parameter.name for parameter in inputs)
        inputs += [parameter for parameter in also if parameter.name not in passed]
        arrays = {parameter.name for parameter in inputs if isinstance(parameter, ArrayParameter)}
        given = {k: v for k, v in types.items() if k not in arrays and k not in outputs}
        call = _Call(kernel, tuple(inputs), passed, outputs, given, tuple(p.name for p in inputs if p.name in written))
        call._require_outputs(written, arrays)
        return call

    def _require_outputs(self, written: set[str], arrays: set[str]) -> None:
        for name, like in self.outputs.items():
            if name not in written:
                raise ArgumentError(f"{self.kernel.source.name} writes no array {name!r}", self.kernel.source.span)
            if like not in arrays if isinstance(like, str) else not callable(like):
                raise ArgumentError(
                    f"the output {name!r} should be like {like!r}, which is not a tensor among the inputs",
                    self.kernel.source.span, hint="name an input, or give a function of the inputs that makes a tensor",
                )  # fmt: skip

    def registered(self, label: str) -> Any:
        """The operator, under this name."""
        library = _torch().library
        try:
            op = library.custom_op(label, self.run, mutates_args=self.mutated, schema=self.schema())
        except (RuntimeError, ValueError) as error:
            raise QuadpyError(f"torch refuses {label}: {error}", self.kernel.source.span) from error
        op.register_fake(self.made_outputs)
        if self.mutated:  # torch would take the inputs as unchanged; its register_autograd refuses such operators
            op._setup_context_fn = self.refuse_gradients  # noqa: SLF001 - it has no public name
        return op

    def refuse_gradients(self, ctx: object, inputs: object, output: object) -> None:  # torch passes them by these names
        """Called where torch records for gradients."""
        raise ArgumentError(
            f"{self.kernel.source.name} has changed {', '.join(self.mutated)}: torch has no gradients of that, and an input requires them",
            self.kernel.source.span, hint="call it with torch.no_grad(), pass x.detach(), or let it return an array: outputs=",
        )  # fmt: skip

    def schema(self) -> str:
        """The operator's parameters in torch's language."""
        parts = []
        for number, parameter in enumerate(self.inputs):
            if isinstance(parameter, ScalarParameter):
                kind = "bool" if parameter.type == u1 else "float" if parameter.type.is_float else "int"
            else:
                kind = f"Tensor(a{number}!)" if parameter.name in self.mutated else "Tensor"
            parts.append(f"{kind} {parameter.name}")
        results = ", ".join(["Tensor"] * len(self.outputs))
        return f"({', '.join(parts)}) -> {results if len(self.outputs) == 1 else f'({results})'}"

    def made_outputs(self, *inputs: Any) -> Any:
        """New tensors for the outputs; also what torch knows of the operator's results when it traces."""
        torch = _torch()
        by_name = dict(zip([parameter.name for parameter in self.inputs], inputs, strict=True))
        made = tuple(
            torch.zeros_like(by_name[like], memory_format=torch.contiguous_format)
            if isinstance(like, str)
            else like(*inputs)
            for like in self.outputs.values()
        )
        return None if not made else made[0] if len(made) == 1 else made

    def run(self, *inputs: Any) -> Any:
        """Runs the kernel on the current stream of torch, and returns its outputs."""
        made = self.made_outputs(*inputs)
        tensors = () if made is None else made if isinstance(made, tuple) else (made,)
        by_name = dict(zip([parameter.name for parameter in self.inputs], inputs, strict=True))
        passed = {name: by_name[name] for name in self.passed} | dict(zip(self.outputs, tensors, strict=True))
        plain = {name: value.detach() if hasattr(value, "detach") else value for name, value in passed.items()}
        with _current_stream() as stream:
            self.kernel(**plain, **self.given, stream=stream)
        return made


def _require_differentiable(forward: _Call) -> None:
    if forward.mutated or not forward.outputs:
        what = f"changes {', '.join(forward.mutated)}" if forward.mutated else "has no outputs"
        raise ArgumentError(
            f"{forward.kernel.source.name} {what}, and torch has no gradients for an operator that changes its inputs",
            forward.kernel.source.span, hint='let it return an array: outputs={"y": "x"}',
        )  # fmt: skip


def _register_adjoint(op: Any, call: _Call) -> None:
    """Let ``kernel.grad`` compute the gradients of ``op``, which runs ``call``."""
    torch, names = _torch(), [parameter.name for parameter in call.inputs]
    arrays = [parameter.name for parameter in call.inputs if isinstance(parameter, ArrayParameter)]
    arriving = [f"grad_{output}" for output in call.outputs]

    def run(*values: Any) -> Any:
        """From the inputs, the outputs and the gradients of these: those of the tensors among the inputs."""
        known = dict(zip([*names, *call.outputs, *arriving], values, strict=True))
        passed = {name: known[name] for name in (*call.passed, *call.outputs)}
        for name in (*arrays, *call.outputs):
            if name in passed:
                is_output = name in call.outputs
                passed[name] = plain = known[name].detach().clone() if is_output else known[name].detach()
                if plain.is_floating_point():
                    plain.grad = known[f"grad_{name}"].clone() if is_output else torch.zeros_like(plain)
        with _current_stream() as stream:
            call.kernel.grad(**passed, **call.given, stream=stream)
        found = (getattr(passed.get(name), "grad", None) for name in arrays)
        made = tuple(
            torch.zeros_like(known[n]) if each is None else each for n, each in zip(arrays, found, strict=True)
        )
        return made if len(made) != 1 else made[0]

    def fake(*values: Any) -> Any:
        made = tuple(torch.empty_like(value) for name, value in zip(names, values, strict=False) if name in arrays)
        return made if len(made) != 1 else made[0]

    outputs = "".join(f", Tensor {name}" for name in (*call.outputs, *arriving))
    results = ", ".join(["Tensor"] * len(arrays))
    parameters = call.schema().rpartition(" -> ")[0][1:-1]
    schema = f"({parameters}{outputs}) -> {results if len(arrays) == 1 else f'({results})'}"
    gradients = torch.library.custom_op(f"{op._qualname}_adjoint", run, mutates_args=(), schema=schema)  # noqa: SLF001 - it has no public name
    gradients.register_fake(fake)

    _register_second(gradients, call, names, arrays, schema.rpartition(" -> ")[0][1:-1])
    op.register_autograd(
        functools.partial(_adjoints, gradients, names, arrays),
        setup_context=lambda ctx, inputs, output: _keep(
            ctx, (*inputs, *(output if isinstance(output, tuple) else (output,)))
        ),
    )


def _register_second(op: Any, call: _Call, names: list[str], arrays: list[str], parameters: str) -> None:
    """Let the tangent of ``kernel.grad`` compute the gradients of ``op``, which computes those of the arrays.

    Along ``ways``, what arrives at those gradients, the gradient of the inputs is the tangent of the adjoint, since second
    derivatives are symmetric; that of the adjoints which ``op`` takes is the tangent of the outputs.
    """
    torch, outputs = _torch(), list(call.outputs)

    def run(*values: Any) -> Any:
        """From the arguments of ``op`` and the ways: the gradients of the arrays, and of the adjoints of the outputs."""
        count = len(names) + 2 * len(outputs)
        known = dict(zip(names, values, strict=False))
        adjoints = dict(zip(outputs, values[len(names) + len(outputs) : count], strict=True))
        ways = dict(zip(arrays, values[count:], strict=True))
        made = call.made_outputs(*values[: len(names)])
        known |= dict(zip(outputs, made if isinstance(made, tuple) else (made,), strict=True))
        passed = {name: known[name] for name in (*call.passed, *outputs)}
        for name in (*arrays, *outputs):
            if name in passed and passed[name].is_floating_point():
                passed[name] = plain = passed[name].detach()
                plain.grad = adjoints[name].clone() if name in adjoints else torch.zeros_like(plain)
                plain.dual = ways[name].contiguous() if name in ways else torch.zeros_like(plain)
                plain.grad.dual = torch.zeros_like(plain)
        with _current_stream() as stream:
            call.kernel.derivative(Derivative("dual"))(**passed, **call.given, stream=stream)
            tangents = [getattr(passed[name], "dual", passed[name]).clone() for name in outputs]
            call.kernel.derivative(Derivative("grad.dual"))(**passed, **call.given, stream=stream)
        found = (getattr(getattr(passed.get(name), "grad", None), "dual", None) for name in arrays)
        return (
            *(torch.zeros_like(known[n]) if d is None else d for n, d in zip(arrays, found, strict=True)),
            *tangents,
        )

    def fake(*values: Any) -> Any:
        given = [value for name, value in zip(names, values, strict=False) if name in arrays]
        return tuple(map(torch.empty_like, (*given, *values[len(names) : len(names) + len(outputs)])))

    ways = "".join(f", Tensor way_{name}" for name in arrays)
    schema = f"({parameters}{ways}) -> ({', '.join(['Tensor'] * (len(arrays) + len(outputs)))})"
    second = torch.library.custom_op(f"{op._qualname}_second", run, mutates_args=(), schema=schema)  # noqa: SLF001 - it has no public name
    second.register_fake(fake)

    def refuse(ctx: object, inputs: object, output: object) -> None:  # torch passes them by these names
        raise ArgumentError(
            f"{call.kernel.source.name}: derivatives of third order are not computed", call.kernel.source.span
        )

    second._setup_context_fn = refuse  # noqa: SLF001 - as in ``registered``

    def gradients_of(ctx: Any, *arrived: Any) -> tuple[Any, ...]:
        kept = _kept(ctx)
        given = [value for name, value in zip(names, kept, strict=False) if name in arrays]
        ways = [torch.zeros_like(x) if d is None else d for x, d in zip(given, arrived, strict=True)]
        found = second(*kept, *ways)
        by_name = dict(zip(arrays, found, strict=False))
        of_inputs = (
            by_name.get(name) if getattr(value, "is_floating_point", bool)() else None
            for name, value in zip(names, kept, strict=False)
        )
        return (*of_inputs, *(None for _ in outputs), *found[len(arrays) :])

    op.register_autograd(gradients_of, setup_context=lambda ctx, inputs, output: _keep(ctx, inputs))


def _adjoints(gradients: Any, names: list[str], arrays: list[str], ctx: Any, *arrived: Any) -> tuple[Any, ...]:
    kept = _kept(ctx)
    given = [arrived_or.new_zeros(arrived_or.shape) if d is None else d.contiguous()
             for d, arrived_or in zip(arrived, kept[len(names):], strict=True)]  # fmt: skip
    found = gradients(*kept, *given)
    by_name = dict(zip(arrays, found if isinstance(found, (tuple, list)) else (found,), strict=True))
    return tuple(
        by_name[name] if name in by_name and value.is_floating_point() else None
        for name, value in zip(names, kept, strict=False)
    )


def _keep(ctx: Any, values: Iterable[Any]) -> None:
    """Keep numbers and tensors until the way back."""
    values = tuple(values)
    ctx.save_for_backward(*[value for value in values if hasattr(value, "detach")])
    ctx.numbers = [None if hasattr(value, "detach") else value for value in values]


def _kept(ctx: Any) -> list[Any]:
    saved = iter(ctx.saved_tensors)
    return [next(saved) if number is None else number for number in ctx.numbers]


def _register_gradients(op: Any, forward: _Call, backward: Kernel, types: dict[str, Argument]) -> None:
    """Let ``backward`` compute the gradients of ``op``."""
    source = backward.source
    names = [parameter.name for parameter in forward.inputs]
    arriving = [f"grad_{output}" for output in forward.outputs]
    declared = [parameter.name for parameter in parameters_of(source, current_config())]
    given = {name: value for name, value in types.items() if name in declared and name not in names}
    results = {name: name.removeprefix("grad_") for name in declared if name not in {*names, *arriving, *given}}
    if unknown := [name for name, like in results.items() if not name.startswith("grad_") or like not in names]:
        raise ArgumentError(
            f"{source.name}: unknown parameter {unknown[0]!r}", source.span,
            hint=f"name inputs ({', '.join(names)}), {', '.join(arriving)}, or grad_ and the name of an input",
        )  # fmt: skip
    call = _Call.of(backward, dict(results), given, [p for p in forward.inputs if p.name in results.values()])
    if call.mutated:
        raise ArgumentError(
            f"{source.name} changes {', '.join(call.mutated)}, which torch and other operators also use", source.span,
            hint=f"it may write only {', '.join(results) or 'grad_ and the name of an input'}",
        )  # fmt: skip
    gradients = call.registered(f"{op._qualname}_backward")  # noqa: SLF001 - it has no public name
    taken = [parameter.name for parameter in call.inputs]

    def gradients_of(ctx: Any, *arrived: Any) -> tuple[Any, ...]:
        known = dict(zip(names, _kept(ctx), strict=True))
        known |= dict(zip(arriving, arrived, strict=True))
        found = gradients(*(known[name] for name in taken))
        by_input = dict(zip(results.values(), found if isinstance(found, tuple) else (found,), strict=True))
        return tuple(by_input.get(name) for name in names)

    _register_adjoint(gradients, call)
    op.register_autograd(gradients_of, setup_context=lambda ctx, inputs, output: _keep(ctx, inputs))


@contextlib.contextmanager
def _current_stream() -> Iterator[Stream | None]:
    """Torch's current stream on the device that kernels run on; None on the CPU."""
    if _DEVICES[current_config().arch] == "cpu":
        yield None
        return
    with Stream.from_handle(_torch().cuda.current_stream().cuda_stream) as stream:
        yield stream


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise QuadpyError("torch is not installed", hint="see https://pytorch.org") from error
    return torch
