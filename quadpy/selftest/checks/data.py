"""Fields, structs, classes, sparse trees, quantised numbers and parts of arrays, compared with the reference to the bit."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

import quadpy as qp
from quadpy.selftest.kernels import data as kernels
from quadpy.selftest.place import Place, counted
from quadpy.selftest.table import slow_check


@slow_check("structs with vectors and methods, in fields of both layouts", "data")
def structs(place: Place) -> None:
    def made() -> list[Any]:
        found, body = list[Any](), cast("Any", kernels.Body)
        for layout in (qp.Layout.AOS, qp.Layout.SOA):
            bodies, energies = body.field(70, layout=layout), np.zeros(70, np.float32)
            bodies.fill({"at": (1, 2, 3), "mass": 2.0, "kind": 100})
            kernels.move(bodies, energies)
            found += [energies, *bodies.to_numpy().values()]
        return found

    place.compare(made)


@slow_check("classes whose kernels use their fields, in blocks and with an offset", "data")
def classes(place: Place) -> None:
    def made() -> list[Any]:
        smoothing = kernels.Smoothing(16)
        smoothing.step()
        return [smoothing.before.to_numpy(), smoothing.after.to_numpy()]

    place.compare(made)


@slow_check("sparse trees: cells that writes activate, loops over active cells, lists", "data")
def trees(place: Place) -> None:
    def made() -> list[Any]:
        tree, found = qp.FieldsBuilder(), np.zeros(6, np.float32)
        x, y, lists = qp.field(qp.f32), qp.field(qp.f32), qp.field(qp.i32)
        tree.pointer(qp.ij, 16).dense(qp.ij, 4).place(x)
        tree.bitmasked(qp.i, 64).place(y)
        tree.dense(qp.i, 4).dynamic(qp.j, 32).place(lists)
        kernels.grow(x, y, lists, found)
        return [found, x.to_numpy(), y.to_numpy(), np.sort(lists.to_numpy(), axis=1)]

    place.compare(made)


@slow_check("quantised integers, fixed-point numbers and floats, several in a word", "data")
def quantised(place: Place) -> None:
    def made() -> list[Any]:
        quant, tree = qp.types.quant, qp.FieldsBuilder()
        floats: Any = quant.float(exp=6, frac=8)
        v, level = qp.Vector.field(3, floats), qp.field(quant.fixed(12, max_value=4.0))
        kind, bits = (qp.field(quant.int(width, signed=False)) for width in (2, 1))
        word, wide = qp.BitpackedFields(max_num_bits=32), qp.BitpackedFields(max_num_bits=64)
        word.place(v, shared_exponent=True)
        word.place(kind)
        wide.place(level)
        cells = tree.dense(qp.i, 64)
        cells.place(word)
        cells.place(wide)
        tree.dense(qp.i, 2).quant_array(qp.i, 32, max_num_bits=32).place(bits)
        x, out = np.linspace(-3, 3, 64, dtype=np.float32), np.zeros(64, np.float32)
        kernels.pack(v, kind, level, bits, x, out)
        return [out, *(each.to_numpy() for each in (v, kind, level, bits))]

    place.compare(made)


@slow_check("parts of arrays: slices on the host and in kernels", "data")
def parts(place: Place) -> None:
    def made() -> list[Any]:
        x: Any = counted(40)
        kernels.change_parts(x, 2)
        kernels.change_parts(x[8:30], 3)
        x[1::3].fill(-1.0)
        return [x.to_numpy()]

    place.compare(made)
