"""Mistakes that type checkers must find: a comment that silences nothing is an error of its own."""

from __future__ import annotations

import numpy as np
from program import gas, grid, line, saxpy, spin, step, temperature, warmest

import quadpy as qp

x = np.ones(8, np.float32)

saxpy("wrong", 1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
saxpy(1.0, x)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
spin(1, strem=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
step(x, x, "a")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
gas.heat("x")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
name: str = spin(1)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
text: str = temperature[1, 2]  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
temperature[1]  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
grid["x"]  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
step(line, grid, 1.0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
warmest(qp.field(qp.types.vector(3, qp.f32), 4))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
