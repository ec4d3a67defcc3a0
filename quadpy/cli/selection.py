"""The kernels, argument types and targets that a command line selects.

Imports nothing that ``import quadpy`` does not load, so no LLVM.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from quadpy.cli.loading import load_kernels
from quadpy.core.dtypes import BY_NAME
from quadpy.core.target import AMD_ARCHS, TargetSpec, parse_target
from quadpy.errors import ArgumentError
from quadpy.hostmath import NDArrayType, type_of
from quadpy.jit.annotations import parameters_of
from quadpy.jit.compile_time_parameters import ContainerParameter, Declared, TemplateParameter, TensorParameter
from quadpy.jit.kernel import Kernel
from quadpy.jit.parameters import ArrayParameter
from quadpy.runtime.device.current import current_config, set_config

_ARRAY: Final = re.compile(r"(?P<scalar>[a-z]+\d+)(?P<element>(?:x[1-9]\d?){0,2})\[(?P<ndim>\d{1,2})\]")


class Selected(NamedTuple):
    """A kernel, the name under which it was found, and the argument types from the command line."""

    name: str
    kernel: Kernel
    given: dict[str, Any]


def add_kernel_arguments(
    parser: argparse.ArgumentParser, metavar: str = "MODULE[:KERNEL]",
    what: str = "a kernel of a module (package.module:kernel) or file (file.py:kernel); without a name, all kernels",
) -> None:  # fmt: skip
    parser.add_argument("kernels", metavar=metavar, help=what)
    parser.add_argument(
        "--arg", action="append", default=[], metavar="NAME=TYPE", dest="arguments",
        help="types that annotations leave open: x=f32[2] for a two-dimensional array, p=f32x3[1] for an array of vectors, "
        "n=3 or self=Solver(8) for a compile-time value (an expression in the kernel's module)",
    )  # fmt: skip
    parser.add_argument("--fast-math", action="store_true", help="compile as with qp.init(fast_math=True)")
    parser.add_argument("--debug", action="store_true", help="compile as with qp.init(debug=True), with checks")


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    targets = parser.add_mutually_exclusive_group(required=True)
    targets.add_argument("--target", metavar="T[,T...]", help="targets such as gfx942, gfx1100:w64, cpu, cpu:x86-64-v3")
    targets.add_argument("--all-amd", action="store_true", help="every AMD target")


def targets_of(args: argparse.Namespace) -> list[TargetSpec]:
    """The targets without duplicates.

    Raises:
        UnknownTargetError: there is no such target.
    """
    names = list(AMD_ARCHS) if args.all_amd else args.target.split(",")
    return list(dict.fromkeys(map(parse_target, names)))


def select(args: argparse.Namespace) -> list[Selected]:
    """The kernels that the command line selects.

    Raises:
        KernelSourceError, KernelNameError: there is no such module, file or kernel.
        ArgumentError: an ``--arg`` that applies to none of the kernels.
    """
    kernels = load_kernels(args.kernels)
    configure(args)
    options = dict(map(_split, args.arguments))
    selected = [Selected(name, kernel, _given(kernel, options)) for name, kernel in kernels.items()]
    for name in options:
        if not any(name in each.given for each in selected):
            raise ArgumentError(
                f"--arg {name}: {', '.join(kernels)} has no such parameter, or its annotation is complete",
                hint="--arg is for arrays without dtype or ndim and for template() parameters",
            )
    return selected


def configure(args: argparse.Namespace) -> None:
    """Let kernels be compiled as ``--fast-math`` and ``--debug`` say."""
    if args.fast_math:
        set_config(current_config()._replace(fast_math=True))
    if args.debug:
        set_config(current_config()._replace(debug=True))


def _split(option: str) -> tuple[str, str]:
    name, equals, text = option.partition("=")
    if not (name and equals and text):
        raise ArgumentError(f"--arg {option} is not NAME=TYPE", hint="for example --arg 'x=f32[2]' or --arg n=3")
    return name, text


def _given(kernel: Kernel, options: Mapping[str, str]) -> dict[str, Any]:
    """The values that ``options`` gives to the parameters that annotations leave open."""
    names = [each.name for each in parameters_of(kernel.source, current_config()) if _is_open(each)]
    return {name: _value(name, options[name], kernel) for name in names if name in options}


def _is_open(parameter: Declared) -> bool:
    match parameter:
        case ArrayParameter():
            return parameter.declared() is None
        case _:
            return isinstance(parameter, (TemplateParameter, TensorParameter, ContainerParameter))


def _value(name: str, text: str, kernel: Kernel) -> Any:
    match = _ARRAY.fullmatch(text)
    if match and match["scalar"] in BY_NAME:
        element = tuple(map(int, match["element"].split("x")[1:]))
        return NDArrayType(type_of(BY_NAME[match["scalar"]], element), int(match["ndim"]))
    if text in BY_NAME:
        return BY_NAME[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    try:
        return eval(text, kernel.source.fn.__globals__)  # noqa: S307  (the user's own command line)
    except Exception:  # noqa: BLE001  (it may raise anything)
        raise ArgumentError(
            f"--arg {name}={text} is neither an array type nor an expression in the kernel's module",
            hint="write arrays as f32[2] or f32x3[1]: the scalar type, the element's shape, the number of dimensions",
        ) from None
