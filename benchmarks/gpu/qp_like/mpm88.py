"""mpm88: a two-dimensional fluid by the material point method, after the example that Taichi's users know."""

from gpu.workloads import MPM_DT, MPM_GRID, MPM_STEPS, MPM_TRIAL, PARTICLES
from harness.bench import Arrays, Bench
from harness.language import qp

n_particles = PARTICLES
n_grid = MPM_GRID
dx = 1 / n_grid
dt = MPM_DT
rho = 1.0
volume = (dx * 0.5) ** 2
mass = volume * rho
gravity = 9.8
bound = 3
stiffness = 400.0

x = qp.Vector.field(2, qp.f32, shape=n_particles)
v = qp.Vector.field(2, qp.f32, shape=n_particles)
C = qp.Matrix.field(2, 2, qp.f32, shape=n_particles)
J = qp.field(qp.f32, shape=n_particles)
grid_v = qp.Vector.field(2, qp.f32, shape=(n_grid, n_grid))
grid_m = qp.field(qp.f32, shape=(n_grid, n_grid))


@qp.kernel
def start():
    for p in range(n_particles):
        v[p] = qp.Vector([0.0, -1.0])
        C[p] = qp.Matrix([[0.0, 0.0], [0.0, 0.0]])
        J[p] = 1.0


@qp.func
def clear(i, j):
    grid_v[i, j] = qp.Vector([0.0, 0.0])
    grid_m[i, j] = 0.0


@qp.func
def to_grid(p):
    base = qp.cast(x[p] / dx - 0.5, qp.i32)
    fx = x[p] / dx - base
    w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
    stress = -dt * 4.0 * stiffness * volume * (J[p] - 1.0) / dx**2
    affine = qp.Matrix([[stress, 0.0], [0.0, stress]]) + mass * C[p]
    for i, j in qp.static(qp.ndrange(3, 3)):
        offset = qp.Vector([i, j])
        dpos = (offset - fx) * dx
        weight = w[i][0] * w[j][1]
        grid_v[base + offset] += weight * (mass * v[p] + affine @ dpos)
        grid_m[base + offset] += weight * mass


@qp.func
def on_grid(i, j):
    if grid_m[i, j] > 0.0:
        grid_v[i, j] /= grid_m[i, j]
    grid_v[i, j][1] -= dt * gravity
    if i < bound and grid_v[i, j][0] < 0.0:
        grid_v[i, j][0] = 0.0
    if i > n_grid - bound and grid_v[i, j][0] > 0.0:
        grid_v[i, j][0] = 0.0
    if j < bound and grid_v[i, j][1] < 0.0:
        grid_v[i, j][1] = 0.0
    if j > n_grid - bound and grid_v[i, j][1] > 0.0:
        grid_v[i, j][1] = 0.0


@qp.func
def to_particles(p):
    base = qp.cast(x[p] / dx - 0.5, qp.i32)
    fx = x[p] / dx - base
    w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1.0) ** 2, 0.5 * (fx - 0.5) ** 2]
    new_v = qp.Vector([0.0, 0.0])
    new_C = qp.Matrix([[0.0, 0.0], [0.0, 0.0]])
    for i, j in qp.static(qp.ndrange(3, 3)):
        offset = qp.Vector([i, j])
        dpos = (offset - fx) * dx
        weight = w[i][0] * w[j][1]
        g_v = grid_v[base + offset]
        new_v += weight * g_v
        new_C += 4.0 * weight * g_v.outer_product(dpos) / dx**2
    v[p] = new_v
    x[p] += dt * new_v
    J[p] *= 1.0 + dt * new_C.trace()
    C[p] = new_C


def one_step():
    for i, j in grid_m:
        clear(i, j)
    for p in x:
        to_grid(p)
    for i, j in grid_m:
        on_grid(i, j)
    for p in x:
        to_particles(p)


substep = qp.kernel(one_step)


def build_mpm88(data: Arrays) -> Bench:
    def reset() -> None:
        x.from_numpy(data["x"])
        start()

    def steps(count: int) -> None:
        for _ in range(count):
            substep()

    return Bench(
        lambda: steps(MPM_STEPS),
        lambda: {"x": x.to_numpy(), "J": J.to_numpy()},
        trial=lambda: steps(MPM_TRIAL),
        reset=reset,
        once=True,
    )


BUILDERS = {"mpm88": build_mpm88}
