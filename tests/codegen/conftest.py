"""The samples in data/, as modules for any AMD target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quadpy.codegen.emit import AMDGPU_LAYOUT, AMDGPU_TRIPLE
from quadpy.core.target import AMD_ARCHS, TargetSpec, amd_arch, parse_target

DATA = Path(__file__).parent / "data"
AMD_TARGETS = [str(parse_target(f"{arch.name}:w{wave}")) for arch in AMD_ARCHS.values() for wave in arch.wave_sizes]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``amd`` is every AMD target, every wave size of each."""
    if "amd" in metafunc.fixturenames:
        metafunc.parametrize("amd", [parse_target(name) for name in AMD_TARGETS], ids=AMD_TARGETS)


@pytest.fixture(scope="session")
def module_text() -> Callable[[str, TargetSpec], str]:
    """``module_text(body, spec)``: functions as a whole module; ``body`` may be the name of a file in data/."""

    def text(body: str, spec: TargetSpec) -> str:
        functions = (DATA / body).read_text() if body.endswith(".ll") else body
        version = amd_arch(spec.arch).code_object
        return (
            f'target datalayout = "{AMDGPU_LAYOUT}"\ntarget triple = "{AMDGPU_TRIPLE}"\n{functions}\n'
            f'!llvm.module.flags = !{{!9000}}\n!9000 = !{{i32 1, !"amdhsa_code_object_version", i32 {version}}}\n'
        )

    return text
