"""Examples of the hazard checker."""

from __future__ import annotations

import quadpy as qp


def example_check() -> None:
    @qp.kernel
    def count(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] = i

    x = qp.ndarray(qp.f32, 1000)
    first, second = qp.create_stream(), qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        count(x, stream=first)
        count(x, stream=second)  # nothing orders the two
    assert isinstance(found, qp.hazards.Findings)
    hazard = found.certain[0]
    assert isinstance(hazard, qp.hazards.Hazard)
    assert isinstance(hazard.first, qp.hazards.HazardAccess)
    print(len(found.certain), hazard.first.verb, hazard.second.verb)  # 1 writes writes


def example_allow() -> None:
    @qp.kernel
    def count(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] = i

    x = qp.ndarray(qp.f32, 1000)
    first, second = qp.create_stream(), qp.create_stream()
    with qp.hazards.check() as found, qp.hazards.allow(x, reason="both write the same"):
        count(x, stream=first)
        count(x, stream=second)
    print(len(found.certain), len(found.allowed))  # 0 1


def example_declare() -> None:
    x = qp.ndarray(qp.f32, 1000)
    stream = qp.create_stream()
    with qp.hazards.check(collect=True) as found:
        x.fill(1.0, stream=stream)
        qp.hazards.declare("other_library.read", reads=[x], stream="host")
    print(len(found.certain))  # 1


def example_lint() -> None:
    @qp.kernel
    def shift(x: qp.Array1D[qp.f32]) -> None:
        with qp.hazards.allow(x, reason="an example of a race"):
            for i in range(x.shape[0] - 1):
                x[i + 1] = x[i]

    @qp.kernel
    def double(x: qp.Array1D[qp.f32]) -> None:
        for i in x:
            x[i] *= 2.0

    print(len(qp.hazards.lint(double).races), len(qp.hazards.lint(shift).races))  # 0 0


def example_report() -> None:
    x = qp.ndarray(qp.f32, 10)
    with qp.hazards.check():
        x.fill(1.0)
        print(len(qp.hazards.report().certain))  # 0
