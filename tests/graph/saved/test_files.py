"""Files of saved graphs: a kept one still runs; damaged ones are refused by name."""

from __future__ import annotations

import json
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from saved_cases import collatz, floats, half_step, mutated, saxpy

import quadpy as qp
from quadpy.errors import QuadpyError, SavedGraphError
from quadpy.graph.saved.arrays import SavedArrays
from quadpy.graph.saved.container import ALIGNMENT, MANIFEST, name_of, packed, unpacked
from quadpy.graph.saved.manifest import read
from quadpy.graph.saved.nodes import SavedNodes
from quadpy.runtime.device.devices import current_device

KEPT = Path(__file__).parent / "format1.qpg"
"""``y = 2 x + y`` and ``y += x / 2`` and a copy of y to z, for x86-64, arm64, gfx1100 and sm_90, of quadpy's first format."""
FUSED = Path(__file__).parent / "format1-fused.qpg"
"""The same, and a loop that counts n down, with code for one launch, which the first files do not have."""


def make_kept(path=FUSED):
    x, y, z = floats(1, 2, 3, 4), floats(5, 6, 7, 8), floats(0, 0, 0, 0)
    g = qp.graph.Graph()
    g.add_kernel(saxpy, 2.0, x, y)
    g.add_kernel(half_step, x, y)
    g.add_memcpy(z, y)
    n, left, turns = qp.ndarray(qp.i32, 3), qp.ndarray(qp.i32, 1), qp.ndarray(qp.i32, 3)
    g.add_kernel(collatz, n, left, turns)
    bind = {"x": x, "y": y, "z": z, "n": n, "turns": turns}
    g.save(path, bind=bind, internal=[left], targets=["x86-64", "arm64", "gfx1100", "sm_90"])


@pytest.mark.parametrize("kept", [KEPT, FUSED], ids=lambda kept: kept.stem)
def test_a_file_of_format_1_runs(kept):
    with qp.graph.load(kept) as loaded:
        x, y, z = np.arange(5, dtype=np.float32), np.ones(5, np.float32), np.zeros(5, np.float32)
        more = {name: np.array([6, 7, 27], np.int32) for name in ("n", "turns") if kept == FUSED}
        loaded.run(x=x, y=y, z=z, **more)
    np.testing.assert_array_equal(z, 1 + 2.5 * np.arange(5, dtype=np.float32))
    assert not more or (more["turns"] - [6, 7, 27]).tolist() == [8, 16, 111]


def test_what_is_saved_now_has_the_form_of_the_kept_file(tmp_path):
    make_kept(tmp_path / "now.qpg")
    now, kept, first = (
        json.loads(unpacked(file.read_bytes())[MANIFEST]) for file in (tmp_path / "now.qpg", FUSED, KEPT)
    )

    def form(value):
        if isinstance(value, dict):
            return {key: form(inner) for key, inner in value.items()}
        return type(value).__name__ if not isinstance(value, list) else [form(value[0])] if value else []

    def has(new, old):
        """Whether ``new`` has all keys of ``old``, and the types of their values."""
        if isinstance(old, dict):
            return new.keys() >= old.keys() and all(has(new[key], inner) for key, inner in old.items())
        return all(map(has, new, old)) if isinstance(old, list) else new == old

    assert form(now) == form(kept)
    assert has(form(now["kernels"][0]), form(first["kernels"][0]))
    assert now.keys() - first.keys() == {"fused"}
    assert now["format"] == kept["format"] == first["format"] == 1


def test_other_programs_read_the_container():
    data = KEPT.read_bytes()
    with zipfile.ZipFile(KEPT) as file:
        assert file.testzip() is None
        first, *others = file.namelist()
        assert (first, others) == (MANIFEST, sorted(others))
        for info in file.infolist():
            names, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            assert (info.header_offset + 30 + names + extra) % ALIGNMENT == 0
            assert (info.compress_type, info.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
            assert data[info.header_offset + 30 + names + extra :][: info.file_size] == file.read(info)


def use(file):
    """What loading does with a file, as far as it runs no machine code."""
    found = read(file)
    device = current_device()
    arrays = SavedArrays(found, device)
    target = "cpu:x86-64" if "cpu:x86-64" in found.targets else found.targets[0]
    nodes = SavedNodes(found, target, device, arrays)
    given = {name: np.ones(4, np.float32) for name in arrays.names}
    views = arrays.views(given)
    return nodes.bound(views, [view.abi[1:] for view in views])


def test_mutated_bytes_are_named():
    data, chance = KEPT.read_bytes(), random.Random(31)
    for _ in range(4000):
        file = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(file))
            match chance.randrange(4):
                case 0:
                    file[at] ^= 1 << chance.randrange(8)
                case 1:
                    del file[at : at + chance.randint(1, 200)]
                case 2:
                    file[at:at] = chance.randbytes(chance.randint(1, 70))
                case _:
                    file[at : at + 4] = struct.pack("<I", chance.choice([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, len(data)]))
            if not file:
                file = bytearray(b"PK")
        try:
            use(bytes(file))
        except SavedGraphError:
            continue
        assert read(bytes(file)).manifest == read(data).manifest  # a byte that nothing reads, such as a date


def test_mutated_manifests_are_named():
    """With right checksums: as a program would write them that has an error."""
    entries = unpacked(KEPT.read_bytes())
    manifest = json.loads(entries.pop(MANIFEST))
    chance, refused = random.Random(8), 0
    for _ in range(4000):
        found = mutated(manifest, chance)
        try:
            use(packed(json.dumps(found).encode(), entries))
        except QuadpyError:
            refused += 1
    assert refused > 1500  # names, places and the like may be anything


WRONG_FILLS = [
    {"height": 2, "pitch": -16},
    {"height": 2, "pitch": 4},
    {"height": 1 << 62},
    {"height": 1 << 62, "width": 0},
    {"height": 0, "pitch": 400},
    {"element": 3},
    {"element": 0},
    {"value": 1 << 32},
    {"value": -1},
]


@pytest.mark.parametrize("wrong", WRONG_FILLS, ids=str)
def test_fills_that_would_leave_their_array_are_named(wrong, tmp_path):
    x, path = floats(1, 2, 3, 4), tmp_path / "fill.qpg"
    g = qp.graph.Graph()
    g.add_memset(x, 1.5)
    g.save(path, bind={"x": x})
    manifest = json.loads(unpacked(path.read_bytes())[MANIFEST])
    manifest["works"][0] |= wrong
    with pytest.raises(SavedGraphError, match="damaged"):
        use(packed(json.dumps(manifest).encode(), {}))


def lose_an_operand(kernel):
    kernel["code"]["cpu:x86-64"]["limits"][0][0][1][1] = ["add", 32, True, None, 1]


def change_a_letter(kernel):
    kernel["layout"]["values"][0][3] = "z"


@pytest.mark.parametrize("damage", [lose_an_operand, change_a_letter])
def test_damaged_kernels_are_named(damage, tmp_path):
    path = tmp_path / "kernel.qpk"
    half_step.save(path, ["x86-64"])
    entries = unpacked(path.read_bytes())
    manifest = json.loads(entries.pop(MANIFEST))
    damage(manifest["kernels"][0])
    path.write_bytes(packed(json.dumps(manifest).encode(), entries))
    with pytest.raises(SavedGraphError, match="damaged"):
        qp.load_kernel(path)


def test_deep_and_long_manifests_are_named():
    deep = b'{"format": 1, "arrays": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for text in (deep, b"\xff", b"", b"[]", b"NaN", b'{"format": 1e999}', b"1" * 5000):
        with pytest.raises(SavedGraphError):
            read(packed(text, {}))


def test_what_the_digests_and_formats_say():
    data = KEPT.read_bytes()
    entries = unpacked(data)
    manifest = json.loads(entries.pop(MANIFEST))
    with pytest.raises(SavedGraphError, match="format 2; this quadpy reads formats up to 1"):
        read(packed(json.dumps(manifest | {"format": 2}).encode(), entries))
    name = next(iter(entries))
    with pytest.raises(SavedGraphError, match="digest of code/"):
        read(packed(json.dumps(manifest).encode(), {**entries, name: b"other"}))
    with pytest.raises(SavedGraphError, match="not a saved graph"):
        read(b"%PDF-1.7")
    at = data.index(entries[name])
    with pytest.raises(SavedGraphError, match="checksum of code/"):
        read(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert name_of("code", entries[name]) == name
