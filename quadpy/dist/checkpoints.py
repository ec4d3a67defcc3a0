"""Arrays of a grid in files: each rank writes and reads its own part, and any number of ranks reads what others wrote.

A checkpoint is a folder.  Its index names a folder inside with an HDF5 file for each array; a save writes another one, and
then replaces the index.  So the index always names files that are complete.  HDF5 lets one process write a file, but the
numbers of a dataset without chunks lie in the file one after the other: each rank writes its rows there itself (ADR 0054).
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import warnings
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from quadpy.core.copying import OneProcess
from quadpy.core.dtypes import BY_NAME
from quadpy.core.messages import shown
from quadpy.core.public import made_by, public
from quadpy.dist.arrays import DistributedArray
from quadpy.dist.arrays.structs import DistributedStructs
from quadpy.dist.grid_files import (
    FORMAT,
    INDEX,
    begun_save,
    bytes_of,
    index_of,
    kind_of,
    part_of,
    read_block,
    replace_index,
    with_sum,
    write_block,
)
from quadpy.dist.transport.agreement import share_in
from quadpy.errors import ArgumentError, CheckpointError, DistributedError, QuadpyError
from quadpy.runtime.device.devices import current_device
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.runtime.launch.capturing import refuse_in_capture

if TYPE_CHECKING:
    from quadpy.dist.division import Division

_INSTALL: Final = "pip install 'quadpy-lang[checkpoints]' brings h5py"


@made_by("the save of a qp.dist.Grid returns one")
class Checkpoint(OneProcess):
    """A checkpoint that the ranks write while the program goes on.

    path  its folder
    """

    error: ClassVar[type[QuadpyError]] = DistributedError
    instead: ClassVar[str] = "keep its path"

    def __init__(self, grid: Division, path: Path, write: Callable[[], None]) -> None:
        self.path, self._grid, self._write = path, grid, write
        self._failure: str | None = None
        self._is_known = False
        self._thread = threading.Thread(target=self._run, name="quadpy writes a checkpoint")
        self._thread.start()

    @public
    def wait(self) -> None:
        """Wait until all ranks have written their parts, and ``grid.load`` finds them; all ranks call it together.

        Raises:
            CheckpointError: a rank could not write its part; the earlier checkpoint is still there.
        """
        self._thread.join()
        if not self._is_known:
            told = _shared(self._grid, f"waiting for {self.path}", (self._failure or "").encode())
            self._failure, self._is_known = _first(told), True
        if self._failure:
            raise CheckpointError(f"{self.path} was not written: {self._failure}", hint="an earlier checkpoint is kept")

    def _run(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001 - ``wait`` raises it on every rank
            self._failure = getattr(error, "message", str(error)) or type(error).__name__
            warnings.warn(f"the checkpoint {self.path} was not written: {self._failure}", RuntimeWarning, stacklevel=1)


def save(grid: Division, path: str | os.PathLike[str], given: Mapping[str, Any]) -> Checkpoint:
    """As ``Grid.save``."""
    folder = Path(path)
    refuse_in_capture(current_device(), "grid.save", "save between launches")
    arrays = {name: value for name, value in given.items() if isinstance(value, DistributedArray)}
    numbers = {name: _number(name, value) for name, value in given.items() if name not in arrays}
    for name, array in arrays.items():
        if array.grid is not grid:
            raise ArgumentError(f"{name} is of another grid: {array.grid!r}", hint="each grid saves its own arrays")
        if isinstance(array, DistributedStructs):
            raise ArgumentError(
                f"{name} is an array of structs, which checkpoints do not hold",
                hint="copy its members to arrays of their own",
            )
    if folder in grid.saves:
        grid.saves.pop(folder).wait()
    facts = {
        "format": FORMAT,
        "shape": grid.shape,
        "arrays": {name: kind_of(array) for name, array in arrays.items()},
        "numbers": numbers,
    }
    _shared(grid, f"saving {folder} with {json.dumps(facts)}", b"")
    blocks = {name: array.owned_to_numpy() for name, array in arrays.items()}
    rank = grid.world.rank
    begun = begun_save(folder, facts) if rank == 0 else ""
    begun = _shared(grid, f"starting {folder}", begun.encode())[0].decode()
    if begun.startswith("!"):
        raise CheckpointError(begun[1:], hint=_INSTALL if "h5py" in begun else "")
    place, offsets = json.loads(begun)

    def write() -> None:
        inside, written = folder / place, {}
        try:
            for name, values in blocks.items():
                lattice = arrays[name].lattice
                write_block(inside / f"{name}.h5", offsets[name], lattice.shape, lattice.block, values)
                written[name] = [*lattice.block, zlib.crc32(bytes_of(values))]
        except OSError as error:
            replace_index(inside / f"rank-{rank}.json", {"error": f"{error} on rank {rank}"})
            raise
        replace_index(inside / f"rank-{rank}.json", written)
        if rank == 0:
            parts = [part_of(inside / f"rank-{other}.json", other) for other in range(grid.world.size)]
            replace_index(folder / INDEX, with_sum({**facts, "folder": place, "blocks": parts}))
            for old in folder.glob("state-*"):
                if old.name != place:
                    shutil.rmtree(old, ignore_errors=True)

    grid.saves[folder] = made = Checkpoint(grid, folder, write)
    return made


def load(grid: Division, path: str | os.PathLike[str], *, missing_ok: bool) -> dict[str, Any]:
    """As ``Grid.load``."""
    folder = Path(path)
    refuse_in_capture(current_device(), "grid.load", "load before the capture")
    if folder in grid.saves:
        grid.saves.pop(folder).wait()
    index = index_of(folder, missing_ok=missing_ok) if grid.world.rank == 0 else ""
    index = _shared(grid, f"loading {folder}", index.encode())[0].decode()
    if not index:
        return {}
    if index.startswith("!"):
        raise CheckpointError(index[1:])
    facts = json.loads(index)
    if tuple(facts["shape"]) != grid.shape:
        raise CheckpointError(
            f"{folder} has cells of shape {tuple(facts['shape'])}, and the grid has {grid.shape}",
            hint="load it with a grid of its shape",
        )
    found: dict[str, Numbers] = {}
    failure = ""
    try:
        for name, kind in facts["arrays"].items():
            blocks = [part[name] for part in facts["blocks"][grid.world.rank :: grid.world.size]]
            found[name] = read_block(folder / facts["folder"] / f"{name}.h5", name, kind, grid, blocks)
    except CheckpointError as error:
        failure = error.message
    if failure := _first(_shared(grid, f"reading {folder}", failure.encode())):
        raise CheckpointError(failure, hint=_INSTALL if "h5py" in failure else "load an older copy of the checkpoint")
    state: dict[str, Any] = dict(facts["numbers"])
    for name, (dtype, staggered, element) in facts["arrays"].items():
        state[name] = made = DistributedArray(grid, grid.lattice(staggered), BY_NAME[dtype], tuple(element))
        made.owned_from_numpy(found[name])
    return state


# ------------------------------------------------------------------- what ranks tell each other


def _number(name: str, value: Any) -> Any:
    found = value.item() if isinstance(value, np.generic) else value
    if isinstance(found, (bool, int, float, str)):
        return found
    raise ArgumentError(
        f"a checkpoint holds arrays and fields of its grid, numbers and texts, not {name}={shown(value)}",
        hint="copy other arrays into arrays of a grid, or save them on rank 0",
    )


def _shared(grid: Division, call: str, mine: bytes) -> list[bytes]:
    return share_in(grid.world.transport, "the next call", call, mine, grid.world.calls)


def _first(told: list[bytes]) -> str:
    """The first failure that a rank has told."""
    return next((each.decode() for each in told if each), "")
