"""Transformation matrices.  They multiply column vectors from the left unless they say otherwise."""

from __future__ import annotations

from typing import Any

from quadpy.hostmath import Matrix
from quadpy.intrinsics import BUILTINS
from quadpy.lang.decorators import func, pyfunc
from quadpy.math.types import mat2, mat4, vec2

__all__ = [
    "eye", "rot_by_axis", "rot_yaw_pitch_roll", "rotation2d", "rotation3d", "scale", "translate", "vdir",
]  # fmt: skip

cos, sin = BUILTINS["cos"], BUILTINS["sin"]


@pyfunc  # n is known outside kernels, too
def eye(n: Any) -> Any:
    """The identity matrix of n rows; n must be known at compile time."""
    return Matrix.identity(float, n)


@func
def vdir(angle: Any) -> Any:
    """The unit vector at ``angle`` (radians) from the x axis."""
    return vec2(cos(angle), sin(angle))


@func
def translate(dx: Any, dy: Any, dz: Any) -> Any:
    """The 4 x 4 matrix that moves points by (dx, dy, dz)."""
    return mat4([[1.0, 0.0, 0.0, dx], [0.0, 1.0, 0.0, dy], [0.0, 0.0, 1.0, dz], [0.0, 0.0, 0.0, 1.0]])


@func
def scale(sx: Any, sy: Any, sz: Any) -> Any:
    """The 4 x 4 matrix that scales each axis."""
    return mat4([[sx, 0.0, 0.0, 0.0], [0.0, sy, 0.0, 0.0], [0.0, 0.0, sz, 0.0], [0.0, 0.0, 0.0, 1.0]])


@func
def rotation2d(angle: Any) -> Any:
    """The 2 x 2 matrix that rotates counter-clockwise by ``angle`` (radians)."""
    c, s = cos(angle), sin(angle)
    return mat2([[c, -s], [s, c]])


@func
def rot_by_axis(axis: Any, angle: Any) -> Any:
    """The 4 x 4 matrix that rotates row vectors around ``axis`` (three components) by ``angle`` (radians).

    Rodrigues' formula, transposed: v @ m is v rotated, as in Taichi.
    """
    c, s = cos(angle), sin(angle)
    a = axis.normalized()
    t = (1.0 - c) * a
    return mat4([
        [c + t[0] * a[0], t[0] * a[1] + s * a[2], t[0] * a[2] - s * a[1], 0.0],
        [t[1] * a[0] - s * a[2], c + t[1] * a[1], t[1] * a[2] + s * a[0], 0.0],
        [t[2] * a[0] + s * a[1], t[2] * a[1] - s * a[0], c + t[2] * a[2], 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


@func
def rot_yaw_pitch_roll(yaw: Any, pitch: Any, roll: Any) -> Any:
    """The 4 x 4 matrix that rotates row vectors around z by ``roll``, x by ``pitch``, then y by ``yaw`` (radians)."""
    cy, sy = cos(yaw), sin(yaw)
    cp, sp = cos(pitch), sin(pitch)
    cr, sr = cos(roll), sin(roll)
    return mat4([
        [cy * cr + sy * sp * sr, sr * cp, cy * sp * sr - sy * cr, 0.0],
        [sy * sp * cr - cy * sr, cr * cp, sr * sy + cy * sp * cr, 0.0],
        [sy * cp, -sp, cy * cp, 0.0],
        [0.0, 0.0, 0.0, 1.0],
    ])  # fmt: skip


@func
def rotation3d(ang_x: Any, ang_y: Any, ang_z: Any) -> Any:
    """``rot_yaw_pitch_roll(ang_z, ang_x, ang_y)``."""
    return rot_yaw_pitch_roll(ang_z, ang_x, ang_y)
