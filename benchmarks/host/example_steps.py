"""A step of each example program, with its arrays on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.examples import (
    conjugate_gradient,
    decode,
    game_of_life,
    image_filter,
    lattice_boltzmann,
    mandelbrot,
    materials,
    mpm88,
    nbody,
    path_tracer,
    sph,
    stable_fluids,
    two_stream,
)

Step = Callable[[], object]


def on_device(value: Any) -> Any:
    """The array on the device; rows of three numbers are vectors."""
    kind: Any = {"float32": qp.f32, "uint8": qp.u8}[value.dtype.name]
    vectors = value.ndim > 1 and value.shape[-1] == 3
    made = qp.ndarray(qp.types.vector(3, kind) if vectors else kind, value.shape[: value.ndim - vectors])
    made.from_numpy(np.ascontiguousarray(value))
    return made


def moved(program: Any) -> Step:
    """The step of an object whose NumPy arrays are moved to the device."""
    for name, value in vars(program).items():
        if isinstance(value, np.ndarray):
            setattr(program, name, on_device(value))
    step: Step = program.step
    return step


def mandelbrot_step(large: bool) -> Step:
    width = 1920 if large else 128
    picture = on_device(np.zeros((width * 3 // 4, width, 3), np.uint8))
    return lambda: mandelbrot.render(-0.74364388, 0.13182590, 0.008, 1000, picture)


def life_step(large: bool) -> Step:
    size = 4096 if large else 512
    cells = np.random.default_rng(1).random((size, size)) < game_of_life.soup
    return moved(game_of_life.Life(cells.astype(np.uint8)))


def mpm88_step(large: bool) -> Step:
    mpm88.start()
    return mpm88.step


def gradient_step(large: bool) -> Step:
    size = 2048 if large else 256
    solver = conjugate_gradient.Solver(size)
    solver.b.from_numpy(conjugate_gradient.random_charges(size, 5))
    arguments = solver.arguments(50)
    return lambda: solver.kernel(*arguments)


def decode_step(large: bool) -> Step:
    """As in the example, a step is replayed; it decodes the same position each time."""
    model = decode.make_decoder(decode.Size(), 1, forks=False)
    decode.start(model, "Once upon a time " * 8)
    replayed: Any = qp.graph.replay(decode.step)

    def step() -> None:
        model.at.fill(128)
        replayed(model)

    return step


def tracer_step(large: bool) -> Step:
    width = 1280 if large else 96
    return path_tracer.Camera(path_tracer.garden(np.random.default_rng(7)), width, width * 9 // 16).step


EXAMPLES: Mapping[str, Callable[[bool], Step]] = {
    "mandelbrot": mandelbrot_step,
    "game_of_life": life_step,
    "nbody": lambda large: moved(nbody.Galaxies(16384 if large else 1024)),
    "mpm88": mpm88_step,
    "stable_fluids": lambda large: moved(stable_fluids.Fluid(2048 if large else 128)),
    "image_filter": lambda large: moved(image_filter.Filter(image_filter.test_card(2400 if large else 128), "smooth")),
    "conjugate_gradient": gradient_step,
    "decode": decode_step,
    "lattice_boltzmann": lambda large: lattice_boltzmann.Channel(512 if large else 64).step,
    "materials": lambda large: materials.blocks().step,
    "sph": lambda large: sph.dam(0.005 if large else 0.02).step,
    "two_stream": lambda large: two_stream.beams(2_000_000 if large else 40_000, 256).step,
    "path_tracer": tracer_step,
}
"""Name -> its step, of a size for a GPU or for a thread of a CPU.  The cloth is left out: its step waits for the device."""
