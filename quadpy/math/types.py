"""Vector and matrix types with GLSL's names.  Floats and integers have the default types of ``qp.init``; unsigned integers are u32."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quadpy.core.dtypes import u32
from quadpy.hostmath import MatrixType, VectorType

__all__ = [
    "ivec2", "ivec3", "ivec4", "mat2", "mat3", "mat4", "uvec2", "uvec3", "uvec4", "vec2", "vec3", "vec4",
]  # fmt: skip

if TYPE_CHECKING:  # annotations that type checkers know
    from quadpy.typed import ivec2, ivec3, ivec4, mat2, mat3, mat4, uvec2, uvec3, uvec4, vec2, vec3, vec4
else:
    vec2: Final = VectorType(2, float)
    vec3: Final = VectorType(3, float)
    vec4: Final = VectorType(4, float)
    ivec2: Final = VectorType(2, int)
    ivec3: Final = VectorType(3, int)
    ivec4: Final = VectorType(4, int)
    uvec2: Final = VectorType(2, u32)
    uvec3: Final = VectorType(3, u32)
    uvec4: Final = VectorType(4, u32)
    mat2: Final = MatrixType(2, 2, float)
    mat3: Final = MatrixType(3, 3, float)
    mat4: Final = MatrixType(4, 4, float)
