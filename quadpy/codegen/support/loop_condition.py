"""The kernels that tell a CUDA graph whether a loop goes on.

Only a kernel can set the condition of a conditional node, with a function that NVIDIA's driver adds when it loads the
code.
"""

from __future__ import annotations

import functools
from typing import Final

from quadpy.codegen.emit import compile_nvptx, gpu_header
from quadpy.core.artifact import AbiLayout, CodeObject
from quadpy.core.target import TargetSpec

CONDITION_SETTER: Final = "quadpy_set_condition"
"""Takes a loop (i64), and address and size (i64, i32) of the integer that says whether it goes on; size 0: it does."""
CONDITION_SETTER_INDIRECT: Final = "quadpy_set_condition_indirect"
"""The same, with the address of that address."""

_DECLARED: Final = "declare void @cudaGraphSetConditional(i64, i32)\n"
_THROUGH: Final = """  %asked = icmp ne i32 %nbytes, 0
  br i1 %asked, label %look, label %decide
look:
  %slot = inttoptr i64 %given to ptr addrspace(1)
  %there = load i64, ptr addrspace(1) %slot
  br label %decide
decide:
  %address = phi i64 [ 0, %entry ], [ %there, %look ]
"""
_DIRECT: Final = """  br label %decide
decide:
  %address = phi i64 [ %given, %entry ]
"""


def _kernel(name: str, address: str) -> str:
    return f"""
define ptx_kernel void @{name}(i64 %loop, i64 %given, i32 %nbytes) "nvvm.reqntid"="1" nounwind {{
entry:
{address}  %where = inttoptr i64 %address to ptr addrspace(1)
  switch i32 %nbytes, label %tell [ i32 1, label %one i32 2, label %two i32 4, label %four i32 8, label %eight ]
one:
  %a = load i8, ptr addrspace(1) %where
  %a.wide = zext i8 %a to i64
  br label %tell
two:
  %b = load i16, ptr addrspace(1) %where
  %b.wide = zext i16 %b to i64
  br label %tell
four:
  %c = load i32, ptr addrspace(1) %where
  %c.wide = zext i32 %c to i64
  br label %tell
eight:
  %d = load i64, ptr addrspace(1) %where
  br label %tell
tell:
  %found = phi i64 [ 1, %decide ], [ %a.wide, %one ], [ %b.wide, %two ], [ %c.wide, %four ], [ %d, %eight ]
  %some = icmp ne i64 %found, 0
  %value = zext i1 %some to i32
  call void @cudaGraphSetConditional(i64 %loop, i32 %value)
  ret void
}}
"""


@functools.cache
def condition_setter_code(spec: TargetSpec) -> CodeObject:
    """Both kernels for an NVIDIA GPU."""
    text = _DECLARED + _kernel(CONDITION_SETTER, _DIRECT) + _kernel(CONDITION_SETTER_INDIRECT, _THROUGH)
    image = compile_nvptx(gpu_header(spec) + text, spec).encode()
    return CodeObject(target=str(spec), image=image, entry="", layout=AbiLayout((), 0), tasks=())
