"""The note of a code object, against what the sample declares; and notes that are damaged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import NoneType

import pytest
from hypothesis import given, settings, strategies as st

from quadpy.codegen.emit import compile_amdgpu, emit_amdgpu
from quadpy.codegen.objects import elf
from quadpy.codegen.objects.elf import read_elf
from quadpy.codegen.objects.metadata import KernelArg, read_metadata, unpack
from quadpy.core.target import TargetSpec, amd_arch, parse_target
from quadpy.errors import LinkError, QuadpyError

ModuleText = Callable[[str, TargetSpec], str]


def test_says_what_was_compiled(amd: TargetSpec, module_text: ModuleText) -> None:
    image, _ = compile_amdgpu(module_text("saxpy.ll", amd), amd)
    info = read_metadata(image)
    assert info.target == f"amdgcn-amd-amdhsa--{amd.arch}"
    (kernel,) = info.kernels
    assert kernel is info.kernel("saxpy")
    assert kernel.symbol == "saxpy.kd"
    assert kernel.args == (
        KernelArg("x", 0, 8, "global_buffer"),
        KernelArg("y", 8, 8, "global_buffer"),
        KernelArg("a", 16, 4, "by_value"),
        KernelArg("n", 20, 4, "by_value"),
    )
    assert not any(arg.hidden for arg in kernel.args)
    assert (kernel.kernarg_bytes, kernel.wave_size, kernel.max_block_size) == (24, amd.wave_size, 256)
    assert (kernel.vgpr_spills, kernel.sgpr_spills, kernel.scratch_bytes, kernel.lds_bytes) == (0, 0, 0, 0)
    assert 1 <= kernel.vgprs <= 16
    assert not kernel.dynamic_stack


def test_code_object_version_is_in_the_header(amd: TargetSpec, module_text: ModuleText) -> None:
    image, _ = compile_amdgpu(module_text("saxpy.ll", amd), amd)
    assert read_elf(image).header.abi_version == {500: 3, 600: 4}[amd_arch(amd.arch).code_object]


def test_memory_and_names_of_each_kernel(amd: TargetSpec, module_text: ModuleText) -> None:
    obj, _ = emit_amdgpu(module_text("everything.ll", amd), amd)
    info = read_metadata(obj)
    assert [kernel.name for kernel in info.kernels] == ["tables", "exchange", "count", "a.b$c-d<1>"]
    assert info.kernel("exchange").lds_bytes == 1024
    assert info.kernel("tables").scratch_bytes > 0, "it calls a function that saves a register"
    with pytest.raises(LinkError, match=r"no kernel 'sum'; it has tables, exchange"):
        info.kernel("sum")


def test_hidden_arguments_are_told_apart(module_text: ModuleText) -> None:
    spec = parse_target("gfx942")
    body = """
        declare ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
        define amdgpu_kernel void @k(ptr addrspace(1) %out) {
          %p = call ptr addrspace(4) @llvm.amdgcn.implicitarg.ptr()
          %v = load i32, ptr addrspace(4) %p, align 4
          store i32 %v, ptr addrspace(1) %out
          ret void
        }"""
    (kernel,) = read_metadata(compile_amdgpu(module_text(body, spec), spec)[0]).kernels
    assert [arg.name for arg in kernel.args if not arg.hidden] == ["out"]
    assert "hidden_block_count_x" in [arg.kind for arg in kernel.hidden_args]
    assert kernel.kernarg_bytes == 8 + 256


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("07", 7),
        ("ff", -1),
        ("cc80", 128),
        ("cd0100", 256),
        ("ce00010000", 65536),
        ("cf0000000100000000", 1 << 32),
        ("d0ff", -1),
        ("d3ffffffffffffff00", -256),
        ("c0", None),
        ("c2", False),
        ("c3", True),
        ("a26162", "ab"),
        ("d9026162", "ab"),
        ("da00026162", "ab"),
        ("92c301", [True, 1]),
        ("dc000101", [1]),
        ("82a16101a16290", {"a": 1, "b": []}),
        ("de0001a16101", {"a": 1}),
        ("df00000001a16101", {"a": 1}),
    ],
)
def test_msgpack(data: str, value: object) -> None:
    assert unpack(bytes.fromhex(data)) == value


@pytest.mark.parametrize("data", ["", "a2", "c1", "ddffffffff", "dfffffffff", "91" * 64, "81908101", "ca00000000"])
def test_damaged_msgpack_is_refused(data: str) -> None:
    with pytest.raises(LinkError, match="damaged code object"):
        unpack(bytes.fromhex(data))


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=64))
def test_msgpack_of_any_bytes_is_read_or_refused(data: bytes) -> None:
    with suppress(LinkError):
        assert isinstance(unpack(data), (NoneType, bool, int, float, str, bytes, list, dict))


@pytest.fixture(scope="module")
def image(module_text: ModuleText) -> bytes:
    spec = parse_target("gfx942")
    return compile_amdgpu(module_text("everything.ll", spec), spec)[0]


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_damaged_note_raises_nothing_else(image: bytes, data: st.DataObject) -> None:
    (note,) = (s.header for s in read_elf(image).sections if s.name == ".note")
    damaged = bytearray(image)
    for _ in range(data.draw(st.integers(1, 4))):
        at = note.offset + data.draw(st.one_of(st.integers(0, 40), st.integers(0, note.size - 1)))
        damaged[at] = data.draw(st.integers(0, 255))
    with suppress(QuadpyError):
        assert isinstance(read_metadata(bytes(damaged)).target, str)


def test_an_object_without_a_note_is_refused(image: bytes) -> None:
    (index,) = (i for i, s in enumerate(read_elf(image).sections) if s.name == ".note")
    damaged = bytearray(image)
    at = read_elf(image).header.shoff + elf.SHDR.size * index + 4
    damaged[at : at + 4] = elf.SHT_PROGBITS.to_bytes(4, "little")
    with pytest.raises(LinkError, match="no metadata note"):
        read_metadata(bytes(damaged))
