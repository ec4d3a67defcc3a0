"""The kernel by which a graph of CUDA's goes on with a loop, or ends it.  Owns: ``teller_code``, TELLER.

Only a kernel can set what a conditional node asks, by a function that NVIDIA's driver adds when it loads the code.
"""

from __future__ import annotations

import functools
from typing import Final

from quadpy.artifact import AbiLayout, CodeObject
from quadpy.codegen.emit import compile_nvptx, gpu_header
from quadpy.target import TargetSpec

__all__ = ["TELLER", "teller_code"]

TELLER: Final = "quadpy_tell"
"""Takes a loop (i64), and where an integer of so many bytes (i64, i32) says whether it goes on; of 0 bytes, it does."""

_TEXT: Final = f"""
declare void @cudaGraphSetConditional(i64, i32)

define ptx_kernel void @{TELLER}(i64 %loop, i64 %address, i32 %nbytes) "nvvm.reqntid"="1" nounwind {{
entry:
  %where = inttoptr i64 %address to ptr addrspace(1)
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
  %found = phi i64 [ 1, %entry ], [ %a.wide, %one ], [ %b.wide, %two ], [ %c.wide, %four ], [ %d, %eight ]
  %some = icmp ne i64 %found, 0
  %value = zext i1 %some to i32
  call void @cudaGraphSetConditional(i64 %loop, i32 %value)
  ret void
}}
"""


@functools.cache
def teller_code(spec: TargetSpec) -> CodeObject:
    """The kernel for an NVIDIA GPU."""
    image = compile_nvptx(gpu_header(spec) + _TEXT, spec).encode()
    return CodeObject(target=str(spec), image=image, entry="", layout=AbiLayout((), 0), tasks=())
