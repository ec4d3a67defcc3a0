"""``kernel.save``: a kernel alone in a file, or in a fat binary of HIP's."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from quadpy._version import __version__
from quadpy.core.dtypes import Scalar
from quadpy.core.flow import conditions_of
from quadpy.core.narrow import MOST_NARROW_BYTES
from quadpy.core.target import TargetSpec
from quadpy.errors import ArgumentError, GraphError
from quadpy.graph.saved.manifest import FORMAT
from quadpy.graph.saved.memory import ALIGNED
from quadpy.graph.saved.saving import new_file, store, write_whole
from quadpy.graph.saved.targets import Forms, KernelCode, kernels_to_json, require_storable, targets_of
from quadpy.graph.saved.writer import effects_of, place_of
from quadpy.lang.arguments import ArgType, ArrayArg, ScalarArg, StructArg, VecArg
from quadpy.runtime.device.devices import current_device

if TYPE_CHECKING:
    from quadpy.core.artifact import CodeObject
    from quadpy.jit.compilation import Compiled
    from quadpy.lang.source import FunctionSource

FAT_BINARY: Final = ".hipfb"
_MAGIC: Final = b"__CLANG_OFFLOAD_BUNDLE__"
_PAGE: Final = 4096
_HOST: Final = "host-x86_64-unknown-linux-gnu-"


def save_kernel(
    source: FunctionSource, path: str | os.PathLike[str], targets: Iterable[str] | str | None,
    compiled_for: Callable[..., tuple[Compiled, Mapping[str, ArgType]]],
) -> None:  # fmt: skip
    """See ``Kernel.save``; ``compiled_for`` gives the code of the kernel of ``source``, and the types of its arguments."""
    file, specs = new_file(path), targets_of(targets, current_device())
    fat = file.suffix == FAT_BINARY
    if fat and (other := [str(spec) for spec in specs if spec.family != "amdgpu"]):
        raise ArgumentError(
            f"a fat binary of HIP's is for AMD's GPUs, not for {other[0]}", hint="name the file step.qpk"
        )
    compiled, types = zip(*map(compiled_for, specs), strict=True)
    codes = [each.code for each in compiled]
    name, first = source.name, compiled[0]
    require_storable(codes, name)
    if first.fields:
        raise GraphError(
            f"the kernel {name} names {first.fields[0]!r}, and a file of a kernel alone has no memory", source.span,
            hint="pass an ndarray; or save a graph with this kernel",
        )  # fmt: skip
    if fat:
        write_whole(file, fat_binary([(spec, code.image) for spec, code in zip(specs, codes, strict=True)]))
        return
    passed = {
        each: type for each, type in types[0].items() if isinstance(type, (ArrayArg, ScalarArg, VecArg, StructArg))
    }
    arrays, sizes = _arrays(passed, codes[0])
    conditions = [(each, cast("ArrayArg", passed[each]).type.elem.nbytes) for each in conditions_of(codes[0].flow)]
    forms = [Forms.of(spec, lambda to=spec, **form: compiled_for(to, **form)[0].code) for spec in specs]
    only = KernelCode(0, name, place_of(source.span), conditions, False, forms)
    entries: dict[str, bytes] = {}
    manifest = {
        "format": FORMAT, "quadpy": __version__, "arrays": arrays, "sizes": sizes, "works": [], "guards": [],
        "kernels": kernels_to_json([only], entries), "targets": sorted(map(str, specs)),
        "parameters": {
            "values": [[each, *_kind(type)] for each, type in passed.items()], "result": repr(first.result_shape),
        },
    }  # fmt: skip
    store(file, manifest, entries)


def _arrays(passed: Mapping[str, ArgType], code: CodeObject) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """The parameters that are arrays, each with any extents; and the places of these."""
    effects, sizes, found = effects_of(code), list[list[int]](), list[dict[str, Any]]()
    for name, arg in passed.items():
        if not isinstance(arg, ArrayArg):
            continue
        record, layout = arg.record, arg.type.layout
        places = [[len(found), axis] for axis in range(arg.type.ndim)]
        letters = "".join(letter for letter in "rw" if letter in effects.get(name, ""))
        found.append({
            "name": name, "memory": "bound", "type": repr(record) if record else arg.type.elem.name,
            "element": [] if record else list(arg.type.element), "item": layout.size, "access": letters,
            "shape": [["value", len(sizes) + axis] for axis in range(len(places))], "aligned": ALIGNED,
            "most": MOST_NARROW_BYTES, "data": None,
        })  # fmt: skip
        sizes += places
    return found, sizes


def _kind(arg: ArgType) -> list[str]:
    """How a call passes it: an array; the scalar type and the shape of what is passed by value; or these of a struct's members."""
    match arg:
        case ScalarArg(type=scalar):
            return _by_value(scalar, ())
        case VecArg(shape=shape, type=scalar):
            return _by_value(scalar, shape)
        case ArrayArg():
            return ["array"]
        case StructArg(type=record):
            members = record.plain_members()
            return ["struct", *(" ".join([path, *_by_value(of.scalar, of.shape)]) for path, of, _ in members)]
        case _:
            raise AssertionError(arg)


def _by_value(scalar: Scalar, shape: Sequence[int]) -> list[str]:
    return [scalar.name, *map(str, shape)]


def fat_binary(images: Sequence[tuple[TargetSpec, bytes]]) -> bytes:
    """The images in one file, from which the runtime takes that of its device.

    The form is that of clang-offload-bundler ("Clang Offload Bundler", Bundled Code Object Layout): magic, count, then
    offset, size and name of each; the host's entry is empty.
    """
    names = [_HOST, *(f"hipv4-amdgcn-amd-amdhsa--{spec.arch}" for spec, _ in images)]
    head = len(_MAGIC) + 8 + sum(24 + len(name) for name in names)
    start, listing, body = -(-head // _PAGE) * _PAGE, b"", b""
    for name, image in zip(names, [b"", *(image for _, image in images)], strict=True):
        listing += struct.pack("<QQQ", start + len(body), len(image), len(name)) + name.encode()
        body += image + bytes(-len(image) % _PAGE)
    return (_MAGIC + struct.pack("<Q", len(names)) + listing).ljust(start, b"\0") + body
