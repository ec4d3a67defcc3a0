"""Examples of ``qp.types.quant``."""

from __future__ import annotations

import quadpy as qp


def example_int() -> None:
    x = qp.field(qp.types.quant.int(bits=5))
    qp.root.quant_array(qp.i, 6, max_num_bits=32).place(x)
    x[0], x[1] = -16, 16
    print(x.to_numpy())  # [-16 -16   0   0   0   0]


def example_fixed() -> None:
    x = qp.field(qp.types.quant.fixed(bits=8, max_value=2.0))
    qp.root.quant_array(qp.i, 4, max_num_bits=32).place(x)
    x[0], x[1] = 0.3, 5.0
    print(x.to_numpy())  # [0.296875 1.984375 0.       0.      ]


def example_float() -> None:
    x, pack = qp.field(qp.types.quant.float(exp=5, frac=6)), qp.BitpackedFields(max_num_bits=32)
    pack.place(x)
    qp.root.dense(qp.i, 3).place(pack)
    x[0], x[1] = 0.3, 1e9
    print(x.to_numpy())  # [2.96875e-01 1.29024e+05 0.00000e+00]
