"""Examples of ``qp.math``."""

from __future__ import annotations

import quadpy as qp


def example_pi() -> None:
    print(qp.math.pi, qp.math.e, qp.math.inf, qp.math.nan)  # 3.141592653589793 2.718281828459045 inf nan


def example_clamp() -> None:
    print(qp.math.clamp(1.5, 0.0, 1.0))  # 1.0


def example_degrees() -> None:
    print(qp.math.degrees(qp.math.pi))  # 180.0


def example_radians() -> None:
    print(qp.math.radians(180.0))  # 3.1415927410125732


def example_fract() -> None:
    print(qp.math.fract(2.75), qp.math.fract(-0.25))  # 0.75 0.75


def example_isinf() -> None:
    print(qp.math.isinf(qp.math.inf), qp.math.isinf(1.0))  # True False


def example_isnan() -> None:
    print(qp.math.isnan(qp.math.nan), qp.math.isnan(1.0))  # True False


def example_fns() -> None:
    print(qp.math.fns(0b1011, 0, 3), qp.math.fns(0b1011, 3, -2), qp.math.fns(0b1011, 2, 0))  # 3 1 -1


def example_mix() -> None:
    print(qp.math.mix(0.0, 10.0, 0.25))  # 2.5


def example_mod() -> None:
    print(qp.math.mod(-0.5, 2.0))  # 1.5


def example_sign() -> None:
    print(qp.math.sign(-2.5), qp.math.sign(0.0))  # -1.0 0.0


def example_smoothstep() -> None:
    print(qp.math.smoothstep(0.0, 1.0, 0.25))  # 0.15625


def example_step() -> None:
    print(qp.math.step(0.5, 0.25), qp.math.step(0.5, 0.75))  # 0.0 1.0


def example_cross() -> None:
    print(qp.math.cross(qp.Vector([1.0, 0.0, 0.0]), qp.Vector([0.0, 2.0, 0.0])))  # Vector([0., 0., 2.], dt=f32)


def example_distance() -> None:
    print(qp.math.distance(qp.Vector([0.0, 3.0]), qp.Vector([4.0, 0.0])))  # 5.0


def example_dot() -> None:
    print(qp.math.dot(qp.Vector([1.0, 2.0]), qp.Vector([3.0, 4.0])))  # 11.0


def example_length() -> None:
    print(qp.math.length(qp.Vector([3.0, 4.0])))  # 5.0


def example_normalize() -> None:
    print(qp.math.normalize(qp.Vector([3.0, 4.0])))  # Vector([0.6, 0.8], dt=f32)


def example_reflect() -> None:
    print(qp.math.reflect(qp.Vector([1.0, -1.0]), qp.Vector([0.0, 1.0])))  # Vector([1., 1.], dt=f32)


def example_refract() -> None:
    print(  # Vector([ 0.3      , -0.9539392], dt=f32)
        qp.math.refract(qp.Vector([0.6, -0.8]), qp.Vector([0.0, 1.0]), 0.5)
    )  # Vector([ 0.3      , -0.9539392], dt=f32)


def example_vdir() -> None:
    print(qp.math.vdir(0.0))  # Vector([1., 0.], dt=f32)


def example_determinant() -> None:
    print(qp.math.determinant(qp.Matrix([[1.0, 2.0], [3.0, 4.0]])))  # -2.0


def example_inverse() -> None:
    print(qp.math.inverse(qp.Matrix([[2.0, 0.0], [0.0, 4.0]])))  # Matrix([[0.5 , 0.  ], [0.  , 0.25]], dt=f32)


def example_eye() -> None:
    print(qp.math.eye(2))  # Matrix([[1., 0.], [0., 1.]], dt=f32)


def example_rot_by_axis() -> None:
    print(qp.math.rot_by_axis(qp.Vector([0.0, 0.0, 1.0]), 0.5).to_numpy().shape)  # (4, 4)


def example_rot_yaw_pitch_roll() -> None:
    print(qp.math.rot_yaw_pitch_roll(0.1, 0.2, 0.3).to_numpy().shape)  # (4, 4)


def example_rotation2d() -> None:
    print(qp.math.rotation2d(0.5))  # Matrix([[ 0.87758255, -0.47942555], [ 0.47942555,  0.87758255]], dt=f32)


def example_rotation3d() -> None:
    print(qp.math.rotation3d(0.1, 0.2, 0.3).to_numpy().shape)  # (4, 4)


def example_scale() -> None:
    print(qp.math.scale(1.0, 2.0, 3.0) @ qp.Vector([1.0, 1.0, 1.0, 1.0]))  # Vector([1., 2., 3., 1.], dt=f32)


def example_translate() -> None:
    print(qp.math.translate(1.0, 2.0, 3.0) @ qp.Vector([0.0, 0.0, 0.0, 1.0]))  # Vector([1., 2., 3., 1.], dt=f32)


def example_cconj() -> None:
    print(qp.math.cconj(qp.Vector([3.0, 4.0])))  # Vector([ 3., -4.], dt=f32)


def example_cmul() -> None:
    print(qp.math.cmul(qp.Vector([3.0, 4.0]), qp.Vector([0.0, 1.0])))  # Vector([-4.,  3.], dt=f32)


def example_cdiv() -> None:
    print(qp.math.cdiv(qp.Vector([3.0, 4.0]), qp.Vector([0.0, 1.0])))  # Vector([ 4., -3.], dt=f32)


def example_cinv() -> None:
    print(qp.math.cinv(qp.Vector([3.0, 4.0])))  # Vector([ 0.12, -0.16], dt=f32)


def example_cpow() -> None:
    print(qp.math.cpow(qp.Vector([3.0, 4.0]), 2.0))  # Vector([-6.999999, 24.      ], dt=f32)


def example_csqrt() -> None:
    print(qp.math.csqrt(qp.Vector([3.0, 4.0])))  # Vector([2., 1.], dt=f32)


def example_cexp() -> None:
    print(qp.math.cexp(qp.Vector([0.0, qp.math.pi])))  # Vector([-1.000000e+00, -8.742278e-08], dt=f32)


def example_clog() -> None:
    print(qp.math.clog(qp.Vector([1.0, 0.0])))  # Vector([0., 0.], dt=f32)


def example_vec3() -> None:
    x = qp.ndarray(qp.math.vec3, 2)  # floats of the default type, f32
    x[1] = qp.math.vec3(1.0, 2.0, 3.0)
    print(x[1])  # Vector([1., 2., 3.], dt=f32)
    others = (qp.math.vec2, qp.math.vec4, qp.math.mat2, qp.math.mat3, qp.math.mat4)
    print([qp.ndarray(dtype, 1).nbytes for dtype in others])  # [8, 16, 16, 36, 64]


def example_ivec2() -> None:
    @qp.kernel
    def places(out: qp.Array1D[qp.math.ivec2]) -> None:
        for i in out:
            out[i] = qp.math.ivec2(i, 2 * i)

    out = qp.ndarray(qp.math.ivec2, 3)
    places(out)
    print(out.to_numpy().tolist())  # [[0, 0], [1, 2], [2, 4]]
    others = (qp.math.ivec3, qp.math.ivec4, qp.math.uvec2, qp.math.uvec3, qp.math.uvec4)
    print([dtype.n for dtype in others])  # [3, 4, 2, 3, 4]
