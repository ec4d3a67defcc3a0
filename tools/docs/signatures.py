"""Signatures of public names and methods, as pages show them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from quadpy.intrinsics import Builtin
from quadpy.lang.decorators import Func

_STARS: Final = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def signature_of(name: str, value: Any) -> str:
    if isinstance(value, Builtin):
        return f"{name}({value.row.parameters})"
    fn = value.source.fn if isinstance(value, Func) else value
    if not callable(fn) or (inspect.isclass(fn) and _takes_anything(fn)):
        return name
    signature = inspect.signature(fn)
    signature = _untyped(signature) if isinstance(value, Func) else signature
    result = "" if inspect.isclass(fn) or isinstance(value, Func) else f" -> {signature.return_annotation}"
    parameters = list(_parameters(signature))
    short = f"{name}({', '.join(parameters)}){result}"
    lines = "".join(f"    {parameter},\n" for parameter in parameters)
    return short if len(short) <= 100 else f"{name}(\n{lines}){result}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """The parameters as they would be written."""
    kind = None
    for parameter in signature.parameters.values():
        if kind is parameter.POSITIONAL_ONLY and parameter.kind is not kind:
            yield "/"
        if parameter.kind is parameter.KEYWORD_ONLY and kind not in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL):
            yield "*"
        kind = parameter.kind
        annotation = parameter.annotation
        typed = "" if annotation is parameter.empty else f": {annotation}"
        equal = " = " if typed else "="
        default = "" if parameter.default is parameter.empty else f"{equal}{parameter.default!r}"
        yield f"{_STARS.get(kind, '')}{parameter.name}{typed}{default}"
    if kind is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


def _takes_anything(cls: type) -> bool:
    """Whether users do not make objects of the class by calling it."""
    return issubclass(cls, BaseException) or cls.__init__ is object.__init__ or hasattr(cls, "_member_map_")


def _untyped(signature: inspect.Signature) -> inspect.Signature:
    """Functions of kernels are generic."""
    empty = inspect.Parameter.empty
    kept = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=kept, return_annotation=inspect.Signature.empty)


def method_signature(function: Any) -> inspect.Signature:
    signature = _untyped(inspect.signature(function))
    kept = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    return signature.replace(parameters=kept)
