"""``grid.save`` and ``grid.load``: the same numbers on any number of ranks, and never a damaged checkpoint."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thread_ranks import run_ranks

import quadpy as qp
from quadpy.dist import checkpoints, world
from quadpy.errors import ArgumentError, CaptureError, CheckpointError, RankLostError, RanksDisagreeError
from ranks import run_program

h5py = pytest.importorskip("h5py", reason="checkpoints need h5py, which is not installed")

SHAPES: list[tuple[int, ...]] = [(1000,), (37, 21), (70, 5), (13, 9, 17)]
DTYPES = [qp.f32, qp.f64, qp.i8, qp.u64, qp.f16, qp.bf16, qp.math.vec3, qp.types.matrix(2, 3, qp.i32)]


def noise(shape: tuple[int, ...], dtype: Any) -> Any:
    element = () if isinstance(dtype, type(qp.f32)) else dtype.element_shape
    return np.random.default_rng(1).integers(0, 100, (*shape, *element))


def saved_on(ranks: int, path: Path, shape: tuple[int, ...] = (37, 21), **more: Any) -> None:
    def program() -> None:
        grid = qp.dist.Grid(shape)
        u = grid.ndarray(qp.f32)
        u.from_numpy(noise(shape, qp.f32))
        grid.save(path, u=u, **more).wait()

    run_ranks(ranks, program)


def loaded_on(ranks: int, path: Path, shape: tuple[int, ...] = (37, 21)) -> Any:
    """The array ``u``, the same on each rank."""

    def program() -> Any:
        return qp.dist.Grid(shape).load(path)["u"].to_numpy()

    first, *others = run_ranks(ranks, program)
    for other in others:
        np.testing.assert_array_equal(other, first)
    return first


@pytest.mark.usefixtures("any_debug")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("writers", "readers"), [(1, 4), (4, 1), (2, 3), (3, 2)])
def test_another_number_of_ranks(writers: int, readers: int, shape: tuple[int, ...], tmp_path: Path):
    saved_on(writers, tmp_path / "state", shape)
    np.testing.assert_array_equal(loaded_on(readers, tmp_path / "state", shape), noise(shape, qp.f32))
    (file,) = (tmp_path / "state").glob("*/u.h5")  # one file, which every HDF5 tool reads
    with h5py.File(file) as opened:
        np.testing.assert_array_equal(opened["u"][...], noise(shape, qp.f32))


def test_types_fields_numbers_and_texts(tmp_path: Path):
    shape = (20, 12)

    def write() -> None:
        grid = qp.dist.Grid(shape)
        arrays = {f"a{k}": grid.ndarray(dtype) for k, dtype in enumerate(DTYPES)}
        arrays["f"] = grid.field(qp.f32)
        for k, array in enumerate(arrays.values()):
            array.from_numpy(noise(shape, [*DTYPES, qp.f32][k]))
        grid.save(tmp_path, step=7, dt=np.float64(0.1), name="dam", done=False, **arrays)  # its end waits

    def read() -> None:
        grid = qp.dist.Grid(shape)
        state = grid.load(tmp_path)
        assert (state["step"], state["dt"], state["name"], state["done"]) == (7, 0.1, "dam", False)
        for k, dtype in enumerate(DTYPES):
            assert repr(state[f"a{k}"]) == repr(grid.ndarray(dtype))
            np.testing.assert_array_equal(state[f"a{k}"].to_numpy(), noise(shape, dtype))
        f = grid.field(qp.f32)
        f.copy_from(state["f"])
        np.testing.assert_array_equal(f.to_numpy(), noise(shape, qp.f32))

    run_ranks(3, write)
    for thread in threading.enumerate():
        if thread.name == "quadpy writes a checkpoint":
            thread.join()
    run_ranks(2, read)


def test_arrays_may_be_changed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    go = threading.Event()
    write = checkpoints.write_block
    monkeypatch.setattr(checkpoints, "write_block", lambda *given: go.wait(20) and write(*given))

    def program() -> None:
        grid = qp.dist.Grid((40, 10))
        u = grid.ndarray(qp.f32)
        u.fill(1)
        saved = grid.save(tmp_path / "state", u=u)
        u.fill(2)
        assert not (tmp_path / "state/checkpoint.json").exists()
        qp.dist.barrier()
        go.set()
        saved.wait()
        saved.wait()
        assert (grid.load(tmp_path / "state")["u"].to_numpy() == 1).all()

    run_ranks(2, program)


def test_a_save_replaces_the_one_before(tmp_path: Path):
    def program() -> None:
        grid = qp.dist.Grid((40, 10))
        u = grid.ndarray(qp.f32)
        for step in range(4):
            u.fill(step)
            grid.save(tmp_path, u=u, step=step)  # waits for the one before
        state = grid.load(tmp_path)
        assert (state["u"].to_numpy() == state["step"]).all()
        assert state["step"] == 3

    run_ranks(2, program)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["checkpoint.json", "state-4"]


def test_a_failed_write_keeps_the_checkpoint_and_is_an_error_on_every_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    saved_on(2, tmp_path)
    write = checkpoints.write_block

    def full(*given: Any) -> None:
        if given[3].low != (0, 0):
            raise OSError(28, "No space left on device")
        write(*given)

    monkeypatch.setattr(checkpoints, "write_block", full)
    errors: list[str] = []

    def program() -> None:
        grid = qp.dist.Grid((37, 21))
        saved = grid.save(tmp_path, u=grid.ndarray(qp.f32))
        with pytest.raises(CheckpointError, match=r"was not written: .*No space left on device on rank 1") as caught:
            saved.wait()
        errors.append(caught.value.message)

    with pytest.warns(RuntimeWarning, match="was not written"):
        run_ranks(2, program)
    assert len(set(errors)) == 1
    np.testing.assert_array_equal(loaded_on(3, tmp_path), noise((37, 21), qp.f32))


KILLED = """
    import os, sys
    import quadpy as qp
    from quadpy.dist import checkpoints

    grid = qp.dist.Grid((60, 10))
    u = grid.ndarray(qp.f32)
    u.fill(1)
    grid.save(sys.argv[1], u=u, step=1).wait()
    u.fill(2)
    if grid.world.rank == 1:
        checkpoints.write_block = lambda *given: os.kill(os.getpid(), 9)
    grid.save(sys.argv[1], u=u, step=2)
    qp.dist.barrier()
    grid.load(sys.argv[1])
"""


def test_a_rank_that_is_killed_while_it_writes(tmp_path: Path):
    done = run_program(tmp_path, KILLED, 2, tmp_path / "state", QUADPY_RANK_TIMEOUT="20")
    assert done.returncode != 0
    assert "RankLostError: rank 1 has failed: its process was killed" in done.stderr

    def program() -> Any:
        grid = qp.dist.Grid((60, 10))
        state = grid.load(tmp_path / "state")
        assert (state["u"].to_numpy() == 1).all()
        assert state["step"] == 1
        grid.save(tmp_path / "state", u=state["u"], step=5).wait()
        assert grid.load(tmp_path / "state")["step"] == 5

    run_ranks(3, program)
    assert len(list((tmp_path / "state").glob("state-*"))) == 1  # what was begun is gone


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 100)


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(data)


def other_data(file: Path) -> None:
    with h5py.File(file, "w") as opened:
        opened["u"] = np.zeros((3, 3))


INDEX, ARRAY = "checkpoint.json", "state-1/u.h5"
DAMAGE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "no index": (INDEX, os.remove, "there is no checkpoint in .*: checkpoint.json is missing"),
    "half an index": (INDEX, cut, r"checkpoint.json is damaged, or not the index of a checkpoint"),
    "another index": (INDEX, lambda file: file.write_text("[]"), "not the index of a checkpoint"),
    "another format": (INDEX, lambda file: file.write_text('{"format": "x 2"}'), "has the format 'x 2'"),
    "no array": (ARRAY, os.remove, "u.h5 is missing or damaged"),
    "half an array": (ARRAY, cut, "u.h5 is missing or damaged: .*truncated"),
    "another file": (ARRAY, lambda file: file.write_text("hello"), "u.h5 is missing or damaged"),
    "another array": (ARRAY, other_data, r"u.h5 has float64 of shape \(3, 3\), not float32 of \(37, 21\)"),
    "a bit": (ARRAY, flip, r"u.h5 is damaged: elements \[\d+, 0\] to \[37, 21\] have changed"),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_and_foreign_files(name: str, ranks: int, tmp_path: Path):
    saved_on(2, tmp_path)
    file, damage, message = DAMAGE[name]
    damage(tmp_path / file)
    told: set[str] = set()

    def program() -> None:
        with pytest.raises(CheckpointError, match=message) as caught:
            qp.dist.Grid((37, 21)).load(tmp_path)
        told.add(caught.value.message)

    run_ranks(ranks, program)
    assert len(told) == 1


def test_every_changed_byte_of_the_index_is_found(tmp_path: Path):
    saved_on(1, tmp_path, step=3)
    file = tmp_path / INDEX
    whole = file.read_bytes()
    for place in range(0, len(whole), 3):
        for other in (b"7", b"#"):
            file.write_bytes(whole[:place] + other + whole[place + 1 :])
            if other != whole[place : place + 1]:
                with pytest.raises(CheckpointError):
                    qp.dist.Grid((37, 21)).load(tmp_path)


@pytest.mark.parametrize("staggered", [(True, False), (False, True), (True, True)], ids=str)
def test_faces_and_corners(staggered: tuple[bool, bool], tmp_path: Path):
    values = np.random.default_rng(3).random((37 + staggered[0], 21 + staggered[1]), np.float32)

    def write() -> None:
        grid = qp.dist.Grid((37, 21))
        u = grid.ndarray(qp.f32, staggered=staggered)
        u.from_numpy(values)
        grid.save(tmp_path, u=u, cells=grid.ndarray(qp.i32)).wait()

    def read() -> None:
        grid = qp.dist.Grid((37, 21))
        u = grid.load(tmp_path)["u"]
        np.testing.assert_array_equal(u.to_numpy(), values)
        grid.ndarray(qp.f32, staggered=staggered).copy_from(u)

    run_ranks(3, write)
    run_ranks(4, read)


def test_a_first_checkpoint_that_was_not_completed_is_none(tmp_path: Path):
    """A program that is killed while it saves for the first time starts from the beginning."""
    grid, folder = qp.dist.Grid((8, 8)), tmp_path / "a"
    assert grid.load(folder, missing_ok=True) == {}
    (folder / "state-1").mkdir(parents=True)
    assert grid.load(folder, missing_ok=True) == {}
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        grid.load(folder)
    grid.save(folder, u=grid.ndarray(qp.f32), n=3).wait()
    assert grid.load(folder, missing_ok=True)["n"] == 3
    (folder / "checkpoint.json").write_text("{}")
    with pytest.raises(CheckpointError, match="is damaged"):
        grid.load(folder, missing_ok=True)


def test_what_is_refused(tmp_path: Path):
    grid = qp.dist.Grid((8, 8))
    u = grid.ndarray(qp.f32)
    with pytest.raises(ArgumentError, match=r"numbers and texts, not a=array"):
        grid.save(tmp_path / "a", a=np.zeros(3))
    structs = grid.ndarray(qp.types.struct(a=qp.f32, b=qp.i64))
    with pytest.raises(ArgumentError, match="structs is an array of structs, which checkpoints do not hold"):
        grid.save(tmp_path / "a", structs=structs)
    with pytest.raises(ArgumentError, match="u is of another grid"):
        qp.dist.Grid((8, 8)).save(tmp_path / "a", u=u)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CheckpointError, match="is a folder with other files, and no checkpoint"):
        grid.save(tmp_path, u=u)
    with pytest.raises(CheckpointError, match="cannot be written"):
        grid.save(tmp_path / "thesis.tex", u=u)
    grid.save(tmp_path / "b", u=u).wait()
    with pytest.raises(CheckpointError, match=r"has cells of shape \(8, 8\), and the grid has \(8, 9\)"):
        qp.dist.Grid((8, 9)).load(tmp_path / "b")
    with pytest.raises(CaptureError, match=r"grid\.save"):
        qp.dist.capture(lambda: grid.save(tmp_path / "c", u=u))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b", "c", "thesis.tex"]  # c by the first, plain run


def test_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    grid = qp.dist.Grid((8, 8))
    with pytest.raises(CheckpointError, match="pip install 'quadpy-lang\\[checkpoints\\]'"):
        grid.save(tmp_path / "a", u=grid.ndarray(qp.f32))


def test_ranks_that_save_something_else(tmp_path: Path):
    def program() -> None:
        grid = qp.dist.Grid((8, 8))
        grid.save(tmp_path / "a", u=grid.ndarray(qp.f32), step=world().rank)

    with pytest.raises(RanksDisagreeError, match=r'saving .*"step": 0.* on rank 0; .*"step": 1.* on rank 1'):
        run_ranks(2, program)
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_saves_alone(tmp_path: Path):
    def program() -> None:
        grid = qp.dist.Grid((8, 8))
        if world().rank == 0:
            grid.save(tmp_path / "a", u=grid.ndarray(qp.f32))

    with pytest.raises(RankLostError, match="rank 1 has ended"):
        run_ranks(2, program)


def test_the_index_is_for_people_too(tmp_path: Path):
    saved_on(2, tmp_path, step=3)
    facts = json.loads((tmp_path / INDEX).read_text())
    assert (facts["shape"], facts["folder"], facts["numbers"]) == ([37, 21], "state-1", {"step": 3})
    assert facts["arrays"] == {"u": ["f32", [False, False], []]}
