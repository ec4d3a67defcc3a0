"""The names of targets: what is read, what is refused, and that text and value are one to one."""

from __future__ import annotations

import pytest

from quadpy.core.target import AMD_ARCHS, NVIDIA_ARCHS, AmdArch, TargetSpec, amd_arch, parse_target
from quadpy.errors import UnknownTargetError


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("cpu", TargetSpec("cpu", "native", 32)),
        ("cpu:x86-64", TargetSpec("cpu", "x86-64", 32)),
        ("x86-64-v3", TargetSpec("cpu", "x86-64-v3", 32)),
        ("arm64", TargetSpec("cpu", "arm64", 32)),
        ("arm64:w64", TargetSpec("cpu", "arm64", 64)),
        ("cpu:w64", TargetSpec("cpu", "native", 64)),
        ("cpu:x86-64:w64", TargetSpec("cpu", "x86-64", 64)),
        ("gfx942", TargetSpec("amdgpu", "gfx942", 64)),
        ("gfx1100", TargetSpec("amdgpu", "gfx1100", 32)),
        ("gfx1100:w64", TargetSpec("amdgpu", "gfx1100", 64, "+wavefrontsize64")),
        ("gfx942:sramecc+:xnack-", TargetSpec("amdgpu", "gfx942", 64)),
        (" gfx11-generic ", TargetSpec("amdgpu", "gfx11-generic", 32)),
        ("sm_90", TargetSpec("nvptx", "sm_90", 32)),
    ],
)
def test_reads(text: str, spec: TargetSpec) -> None:
    assert parse_target(text) == spec


@pytest.mark.parametrize("name", ["cpu", "cpu:znver4", "cpu:w64", "cpu:znver4:w64", *AMD_ARCHS, *NVIDIA_ARCHS])
def test_text_of_a_target_reads_back(name: str) -> None:
    assert str(parse_target(name)) == name


@pytest.mark.parametrize("arch", AMD_ARCHS.values(), ids=lambda arch: arch.name)
def test_every_wave_size_is_a_target_of_its_own(arch: AmdArch) -> None:
    specs = [parse_target(f"{arch.name}:w{wave}") for wave in arch.wave_sizes]
    assert specs[0] == parse_target(arch.name)
    assert len({spec.key for spec in specs}) == len({str(spec) for spec in specs}) == len(specs)
    assert all(parse_target(str(spec)) == spec for spec in specs)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("gfx94", "did you mean 'gfx942'?"),
        ("gfx9999", "gfx942"),
        ("sm90", "did you mean 'sm_90'?"),
        ("sm_90:w64", "sm_90"),
        ("", "gfx942"),
        ("gfx942:w32", "waves of 64 threads"),
        ("gfx1250:w64", "waves of 32 threads"),
        ("gfx1100:wave64", "':w32' or ':w64'"),
        ("cpu:", "CPU name"),
        ("cpu:x86-64:fast", "CPU name"),
        ("cpu:a b", "CPU name"),
    ],
)
def test_refuses_and_says_why(text: str, part: str) -> None:
    with pytest.raises(UnknownTargetError) as caught:
        parse_target(text)
    assert part in str(caught.value)


def test_generic_processors_and_only_they_need_code_object_6() -> None:
    assert {arch.code_object for arch in AMD_ARCHS.values()} == {500, 600}
    assert all(arch.generic == arch.name.endswith("-generic") for arch in AMD_ARCHS.values())


def test_facts_of_an_unknown_processor() -> None:
    with pytest.raises(UnknownTargetError, match="gfx9001"):
        amd_arch("gfx9001")
