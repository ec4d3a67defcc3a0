"""The arrays of a crossing program: what they hold, and the lines that make each of their forms."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from crossed_kernels import Carrier, start_of
from random_values import NUMPY

FORMS = ("sparse", "layouts", "dlpack", "strided")
"""The features that are a form of an array; the others are ``numpy``, ``ndarray`` and ``grid``, of ranks."""


@dataclass
class Array:
    """An argument of the kernel, or a field that it names, with elements of ``carrier``.

    ``made`` are the lines that make it, ``declared`` the module's, ``start`` its first numbers by path, and ``active`` the
    elements that a loop visits, if not all.
    """

    name: str
    carrier: Carrier
    shape: tuple[int, ...]
    form: str
    start: dict[str, np.ndarray]
    annotation: str | None = None
    argument: str = ""
    declared: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    offset: tuple[int, ...] = ()
    active: list[tuple[int, ...]] | None = None

    def at(self, places):
        """The text of the element at these places, which count from 0."""
        moved = [f"{p} + {o}" if o else p for p, o in zip(places, self.offset or (0,) * len(places), strict=True)]
        return f"{self.name}[{', '.join(moved)}]"

    def value(self, found, at, path=""):
        """A number of an element, as expressions take it."""
        x = found[self.name][path][at]
        return x if x.dtype.kind == "f" else int(x)

    @property
    def start_text(self):
        """The module's constant with the first numbers."""

        def element(part, path, at):
            if part.is_struct:
                members = [(p, m) for p, m in part.parts if p.count(".") == 1]
                return "(" + ", ".join(element(m, path + p, at) for p, m in members) + ",)"
            texts = [str(self.start[path + p][at].item()) for p, _ in part.leaves]
            return f"[{', '.join(texts)}]" if part.is_vector else texts[0]

        items = ", ".join(element(self.carrier, "", at) for at in np.ndindex(self.shape))
        shape = (*self.shape, len(self.carrier.leaves)) if self.carrier.is_vector else self.shape
        dtype = (
            f"{self.carrier.text}.numpy_dtype" if self.carrier.is_struct else f"'{np.dtype(NUMPY[self.carrier.of])}'"
        )
        return f"{self.name.upper()}0 = np.array([{items}], {dtype}).reshape({shape})"


def make(draw, name, carrier, shape, form, *, subnormal, partly=False, on_cpu=True):
    """An array of that form; ``draw`` is a ``random.Random``, and ``partly`` lets a sparse one have inactive elements."""
    numbers = np.random.default_rng(draw.getrandbits(32))
    start = {path: start_of(numbers, t, shape, subnormal=subnormal) for path, t in carrier.leaves}
    a = Array(name, carrier, shape, form, start)
    a.annotation = f"qp.types.ndarray({carrier.text}, ndim={len(shape)})"
    if not (carrier.is_vector or carrier.is_struct) and draw.random() < 0.25:  # NumPy's structs have no methods
        a.annotation = f"qp.types.ndarray(ndim={len(shape)})"
    a.argument = name
    if form == "sparse":
        _sparse(draw, a, partly=partly)
    elif form == "layouts":
        _laid_out(draw, a)
    elif form == "dlpack":
        _shared(draw, a, on_cpu=on_cpu)
    elif form == "strided":
        a.made = [f"{name} = strided({name.upper()}0, {len(shape)}, {draw.choice([-3, -1, 0, 2, 3])})"]
    elif form == "grid":
        method = draw.choice(["ndarray", "ndarray", "field"])
        a.annotation = "qp.template()" if method == "field" else a.annotation
        a.made = [f"{name} = grid.{method}({carrier.text})"]
    else:
        a.made = [
            f"{name} = " + (f"{name.upper()}0.copy()" if form == "numpy" else f"qp.ndarray({carrier.text}, {shape})")
        ]
    return a


def _shared(draw, a, *, on_cpu):
    """Another array over the same memory: quadpy's of NumPy's, quadpy's of its own, or NumPy's of quadpy's."""
    ways = [("NumPy", "qp"), ("qp", "qp"), ("qp", "np")] if on_cpu else [("qp", "qp")]
    owner, taker = draw.choice(ways) if not a.carrier.is_vector else ways[-1]  # only NumPy's axes can be components
    a.argument = f"{a.name}_shared"
    made = f"{a.name.upper()}0.copy()" if owner == "NumPy" else f"qp.ndarray({a.carrier.text}, {a.shape})"
    a.made = [f"{a.name} = {made}", f"{a.argument} = {taker}.from_dlpack({a.name})"]


def _field(draw, a):
    """A field of the module is an argument, or a name that the kernel uses."""
    by_name = draw.random() < 0.5
    a.annotation, a.argument = (None, "") if by_name else ("qp.template()", f"{a.name}_field")
    a.made = [f"{a.name} = {a.name}_field"]


def _laid_out(draw, a):
    """A field in blocks, or with an order of axes, an offset, or each number in its own array."""
    _field(draw, a)
    made, axes = f"{a.name}_field = qp.field({a.carrier.text}", ("qp.i", "qp.ij")[len(a.shape) - 1]
    if all(n % 2 == 0 and n for n in a.shape) and draw.random() < 0.5:
        halves, inner = tuple(n // 2 for n in a.shape), (2,) * len(a.shape)
        place = f"qp.root.dense({axes}, {halves}).dense({axes}, {inner}).place({a.name}_field)"
        a.declared = [f"{made})", place]
        return
    more = f", shape={a.shape}"
    if len(a.shape) == 2 and draw.random() < 0.5:
        more += ', order="ji"'
    if draw.random() < 0.4:
        a.offset = tuple(draw.choice([-2, 1, 3]) for _ in a.shape)
        more += f", offset={a.offset}"
    if (a.carrier.is_struct or a.carrier.is_vector) and draw.random() < 0.6:
        more += ", layout=qp.Layout.SOA"
    a.declared = [f"{made}{more})"]


def _sparse(draw, a, *, partly):
    """Cells of a tree, of some elements each; with ``partly``, some of them are active."""
    _field(draw, a)
    block = tuple(2 if n % 2 == 0 and n and draw.random() < 0.5 else 1 for n in a.shape)
    outer, axes = tuple(n // b for n, b in zip(a.shape, block, strict=True)), ("qp.i", "qp.ij")[len(a.shape) - 1]
    inner = f".dense({axes}, {block})" if set(block) != {1} else ""
    tree = f"qp.root.{draw.choice(['pointer', 'bitmasked'])}({axes}, {outer}){inner}.place({a.name}_field)"
    a.declared = [f"{a.name}_field = qp.field({a.carrier.text})", tree]
    if partly:
        cells = [*itertools.product(*map(range, outer))]
        some = set(draw.sample(cells, draw.randint(0, len(cells))))
        a.active = [at for at in np.ndindex(a.shape) if tuple(k // b for k, b in zip(at, block, strict=True)) in some]
        for x in a.start.values():
            inside = np.zeros(a.shape, bool)
            inside[tuple(np.array(a.active, int).reshape(-1, len(a.shape)).T)] = True
            x[~inside] = 0
