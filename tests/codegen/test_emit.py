"""From IR text to a code object: what is refused, and that the result depends on the text alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import llvmlite.binding as llvm
import pytest

from quadpy.codegen.emit import AMDGPU_LAYOUT, AMDGPU_TRIPLE, compile_amdgpu
from quadpy.core.target import TargetSpec, parse_target
from quadpy.errors import CodegenError, UnknownTargetError

ModuleText = Callable[[str, TargetSpec], str]
GFX942 = parse_target("gfx942")


def test_the_layout_is_llvms(amd: TargetSpec, module_text: ModuleText) -> None:
    compile_amdgpu(module_text("saxpy.ll", amd), amd)
    machine = llvm.Target.from_triple(AMDGPU_TRIPLE).create_target_machine(cpu=amd.arch, features=amd.features)
    assert str(machine.target_data) == AMDGPU_LAYOUT


def test_assembly_comes_only_when_asked_for(module_text: ModuleText) -> None:
    text = module_text("saxpy.ll", GFX942)
    image, nothing = compile_amdgpu(text, GFX942)
    same, assembly = compile_amdgpu(text, GFX942, want_asm=True)
    assert (nothing, same) == ("", image)
    assert "global_load_dword" in assembly
    assert ".amdhsa_kernel saxpy" in assembly


def test_threads_get_the_same_bytes(module_text: ModuleText) -> None:
    jobs = [(module_text("everything.ll", spec), spec) for spec in map(parse_target, ("gfx942", "gfx1100", "gfx1201"))]
    alone = [compile_amdgpu(text, spec) for text, spec in jobs]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda job: compile_amdgpu(*job), jobs * 4))
    assert together == alone * 4


def test_neighbouring_operations_are_packed(module_text: ModuleText) -> None:
    """SLP vectorisation is on: two adjacent f32 multiplications become one packed instruction on CDNA."""
    body = """
        define amdgpu_kernel void @k(ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %q) {
          %i = call i32 @llvm.amdgcn.workitem.id.x()
          %o = shl nuw nsw i32 %i, 3
          %p0 = getelementptr i8, ptr addrspace(1) %p, i32 %o
          %p1 = getelementptr i8, ptr addrspace(1) %p0, i32 4
          %a = load float, ptr addrspace(1) %p0
          %b = load float, ptr addrspace(1) %p1
          %a2 = fmul float %a, %a
          %b2 = fmul float %b, %b
          %q0 = getelementptr i8, ptr addrspace(1) %q, i32 %o
          %q1 = getelementptr i8, ptr addrspace(1) %q0, i32 4
          store float %a2, ptr addrspace(1) %q0
          store float %b2, ptr addrspace(1) %q1
          ret void
        }
        declare i32 @llvm.amdgcn.workitem.id.x()"""
    _, assembly = compile_amdgpu(module_text(body, GFX942), GFX942, want_asm=True)
    assert "v_pk_mul_f32" in assembly


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("define void @f( {", "expected"),
        ("define amdgpu_kernel i32 @f() { ret i32 0 }", "void"),
        ("define void @f() { %p = alloca i32\n ret void }", r"must be in addrspace\(5\)"),
    ],
    ids=["syntax", "kernel result", "stack in the wrong space"],
)
def test_what_llvm_refuses_is_an_exception(body: str, part: str, module_text: ModuleText) -> None:
    with pytest.raises(CodegenError, match=part):
        compile_amdgpu(module_text(body, GFX942), GFX942)


def test_text_without_a_layout_is_refused() -> None:
    with pytest.raises(CodegenError, match="data layout"):
        compile_amdgpu("define void @f() { ret void }", GFX942)


def test_only_amd_processors_are_taken(module_text: ModuleText) -> None:
    text = module_text("saxpy.ll", GFX942)
    with pytest.raises(CodegenError, match="sm_90 is not an AMD target"):
        compile_amdgpu(text, parse_target("sm_90"))
    with pytest.raises(UnknownTargetError, match="gfx9000"):
        compile_amdgpu(text, TargetSpec("amdgpu", "gfx9000", 64))
