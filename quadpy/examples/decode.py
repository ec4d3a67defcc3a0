"""A small transformer that writes text: each step is many small kernels, launched one by one or replayed as a graph.

The weights are random, and so is the text; the work is that of a language model: RMS norms, rotary positions, attention
over a cache of keys and values, a gated MLP, and the choice of the most likely character.  The device writes the character
to where the next step reads it, so all steps have the same arguments, and replaying one is a single launch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.examples import _transformer as kernels
from quadpy.examples._common import parser, play, progress, run
from quadpy.examples._pictures import Picture, Sink, palette
from quadpy.examples._transformer import Layer, Size, Weights, alphabet, random_weights, unknown


@dataclass(frozen=True)
class Side:
    """A stream to which work is forked, and the events that fork and join it."""

    stream: qp.Stream
    forked: qp.Event
    done: qp.Event


@dataclass(frozen=True)
class Decoder:
    """A model with the text that it writes; ``at`` is the position whose character is read next.

    ``x`` is the state that goes through the layers; ``keys`` and ``values`` have an array for each layer, with a row for
    each position; ``logits`` has a row for each position.  Without sides, all work is one chain.
    """

    weights: Weights
    at: qp.NDArray
    characters: qp.NDArray
    logits: qp.NDArray
    cosines: qp.NDArray
    sines: qp.NDArray
    x: qp.NDArray
    normal: qp.NDArray
    q: qp.NDArray
    k: qp.NDArray
    v: qp.NDArray
    scores: qp.NDArray
    mixed: qp.NDArray
    gate: qp.NDArray
    up: qp.NDArray
    keys: tuple[qp.NDArray, ...]
    values: tuple[qp.NDArray, ...]
    left: Side | None
    right: Side | None


def make_decoder(size: Size, seed: int, *, forks: bool = True) -> Decoder:
    """A decoder with random weights, on the current device."""
    d, half, longest = size.width, size.width // size.heads // 2, size.context
    angles = np.arange(longest)[:, None] * 1e4 ** (-np.arange(half) / half)

    def floats(*shape: int) -> qp.NDArray:
        return qp.ndarray(qp.f32, shape)

    def cache() -> tuple[qp.NDArray, ...]:
        return tuple(qp.ndarray(qp.f16, (longest, d)) for _ in range(size.layers))

    def side() -> Side | None:
        return Side(qp.create_stream(), qp.create_event(), qp.create_event()) if forks else None

    return Decoder(
        weights=_on_device(random_weights(size, seed)),
        at=qp.ndarray(qp.i32, ()), characters=qp.ndarray(qp.i32, longest), logits=floats(longest, len(alphabet)),
        cosines=_on_device(np.cos(angles)), sines=_on_device(np.sin(angles)),
        x=floats(d), normal=floats(d), q=floats(d), k=floats(d), v=floats(d),
        scores=floats(size.heads, longest), mixed=floats(d), gate=floats(size.hidden), up=floats(size.hidden),
        keys=cache(), values=cache(), left=side(), right=side(),
    )  # fmt: skip


def _on_device(values: Any) -> Any:
    """Replace NumPy arrays by quadpy arrays, in tuples and weights too; f64 becomes f32."""
    if isinstance(values, tuple):
        return tuple(map(_on_device, values))
    if not isinstance(values, np.ndarray):
        return type(values)(*(_on_device(getattr(values, field.name)) for field in fields(values)))
    made = qp.ndarray(qp.f16 if values.dtype == np.float16 else qp.f32, values.shape)
    made.from_numpy(values.astype(np.float32, copy=False) if values.dtype == np.float64 else values)
    return made


def start(decoder: Decoder, prompt: str) -> None:
    """Write the prompt to the beginning of the text.

    Raises:
        QuadpyError: the prompt is empty or too long, or has characters that the model does not know.
    """
    longest = decoder.characters.shape[0]
    if not 0 < len(prompt) <= longest or not set(prompt) <= set(alphabet):
        raise QuadpyError(
            f"{prompt!r} is not a valid prompt", hint=f"use 1 to {longest} of the characters {alphabet!r}"
        )
    decoder.characters.from_numpy(
        np.array([*map(alphabet.index, prompt)] + [unknown] * (longest - len(prompt)), np.int32)
    )
    decoder.at.fill(0)


def step(model: Decoder) -> None:
    """Process one character: of the prompt, or the one that the last step chose."""
    weights, at, x = model.weights, model.at, model.x
    kernels.embed(at, model.characters, weights.embedding, x)
    for layer, keys, values in zip(weights.layers, model.keys, model.values, strict=True):
        attention(model, layer, keys, values)
        mlp(model, layer)
    kernels.normalise(x, weights.gain, model.normal)
    kernels.read_out(at, model.normal, weights.out, model.logits)
    kernels.choose(at, model.logits, model.characters)


def attention(model: Decoder, layer: Layer, keys: qp.NDArray, values: qp.NDArray) -> None:
    """Add the attention over the positions so far to x."""
    at, normal = model.at, model.normal
    kernels.normalise(model.x, layer.attention_gain, normal)
    with on_side(model.left):
        kernels.project(normal, layer.k, model.k)
        kernels.rotate(at, model.cosines, model.sines, model.k)
        kernels.remember(at, model.k, keys)
    with on_side(model.right):
        kernels.project(normal, layer.v, model.v)
        kernels.remember(at, model.v, values)
    kernels.project(normal, layer.q, model.q)
    kernels.rotate(at, model.cosines, model.sines, model.q)
    join(model.left)
    kernels.score(at, model.q, keys, model.scores)
    join(model.right)
    kernels.attend(at, model.scores, values, model.mixed)
    kernels.project_and_add(model.mixed, layer.out, model.x)


def mlp(model: Decoder, layer: Layer) -> None:
    """Add the output of the gated MLP to x."""
    kernels.normalise(model.x, layer.mlp_gain, model.normal)
    with on_side(model.left):
        kernels.project(model.normal, layer.gate, model.gate)
    kernels.project(model.normal, layer.up, model.up)
    join(model.left)
    kernels.gate(model.gate, model.up)
    kernels.project_and_add(model.up, layer.down, model.x)


@contextmanager
def on_side(side: Side | None) -> Iterator[None]:
    """Context manager: work launched inside may run in parallel with later work, until ``join``."""
    if side is None:
        yield
        return
    side.forked.record()
    side.forked.wait(side.stream)
    with qp.use_stream(side.stream):
        yield
    side.done.record(side.stream)


def join(side: Side | None) -> None:
    """Let later work wait for the side."""
    if side is not None:
        side.done.wait()


def written(decoder: Decoder) -> str:
    """The text so far."""
    return "".join(alphabet[c] for c in decoder.characters.to_numpy() if c != unknown)


def draw(decoder: Decoder, zoom: int) -> Picture:
    """The probability of each character (row) at each position (column); brighter is more likely."""
    logits = decoder.logits.to_numpy()[:-1].T
    likely = np.exp(logits - logits.max(0))
    likely[:, int(decoder.at.to_numpy()) :] = 0
    picture = palette(
        (likely / np.maximum(likely.sum(0), 1)) ** 0.5, ["0a0e18", "1d2f6f", "3f7fd0", "f3c48a", "fff4d6"]
    )
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def tokens_per_second(
    decoder: Decoder, prompt: str, steps: int, call: Callable[[Decoder], object]
) -> tuple[str, float]:
    """The text of ``steps`` calls and their rate, after one call that compiles and does not count."""
    start(decoder, prompt)
    call(decoder)
    start(decoder, prompt)
    qp.sync()
    begun = time.perf_counter()
    for _ in progress(steps):
        call(decoder)
    text = written(decoder)
    return text, steps / (time.perf_counter() - begun)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = parser(__doc__, out="decode.png", steps=240, steps_help="characters to read and write", size=5,
                  size_help="pixels along each side of a character's square")  # fmt: skip
    arguments.add_argument("--prompt", default="Once upon a time", help="the beginning of the text (%(default)s)")
    arguments.add_argument("--seed", type=int, default=1, help="seed of the random weights (%(default)s)")

    def body(args: argparse.Namespace, sink: Sink) -> None:
        size = Size(context=args.steps + 1)
        chain, forked = (make_decoder(size, args.seed, forks=forks) for forks in (False, True))
        replayed: Any = qp.graph.replay(step)
        text, eager = tokens_per_second(chain, args.prompt, args.steps, step)
        again, replays = tokens_per_second(forked, args.prompt, args.steps, replayed)
        if text != again:
            raise QuadpyError(f"replayed, the text is {again!r}, not {text!r}")
        print(text)
        print(f"launched one by one {eager:,.0f} tokens/s, replayed {replays:,.0f}: the same text")
        start(forked, args.prompt)
        play(args.steps, lambda: replayed(forked), lambda: draw(forked, args.size), sink)

    return run(arguments, argv, body)


if __name__ == "__main__":
    sys.exit(main())
