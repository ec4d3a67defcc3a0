"""The files of a checkpoint: an index, and an HDF5 file for each array, into which each rank writes its own rows."""

from __future__ import annotations

import json
import math
import operator
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from quadpy.core.dtypes import BY_NAME
from quadpy.core.importing import import_late
from quadpy.dist.arrays.memory import numpy_type
from quadpy.dist.boxes import Box
from quadpy.errors import CheckpointError
from quadpy.runtime.elements.numpy_types import Numbers
from quadpy.settings import settings, variable

if TYPE_CHECKING:
    from quadpy.dist.arrays import DistributedArray
    from quadpy.dist.division import Division

INDEX: Final = "checkpoint.json"
FORMAT: Final = "quadpy grid 1"
_PAUSE: Final = 0.01
"""Seconds between two looks for the parts of other ranks."""
_LAST: Final = 10.0
"""Seconds in which they must come once the program has ended."""


def begun_save(folder: Path, facts: Mapping[str, Any]) -> str:
    """The folder inside ``folder`` for a new save, and where the numbers of each array begin; ``!`` and what failed."""
    try:
        h5py = import_late("h5py")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / INDEX).exists() and not _states(folder):
            return f"!{folder} is a folder with other files, and no checkpoint"
        place = f"state-{1 + max(_states(folder), default=0)}"
        (folder / place).mkdir(parents=True)
        offsets = {
            name: _new_file(h5py, folder / place / f"{name}.h5", name, *_layout_of(kind, facts["shape"]))
            for name, kind in facts["arrays"].items()
        }
    except (OSError, ImportError) as error:
        return f"!{folder} cannot be written: {error}"
    return json.dumps([place, offsets])


def kind_of(array: DistributedArray) -> tuple[str, list[bool], tuple[int, ...]]:
    """The type of an array's numbers, along which axes it has faces rather than cells, and the shape of its elements."""
    staggered = [n != cells for n, cells in zip(array.shape, array.grid.shape, strict=True)]
    return array.dtype.name, staggered, array.element_shape


def _layout_of(kind: Sequence[Any], cells: Sequence[int]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and the type of the numbers of an array of this ``kind`` in a file."""
    dtype, staggered, element = kind
    return (*map(operator.add, cells, staggered), *element), np.dtype(numpy_type(BY_NAME[dtype]))


def _states(folder: Path) -> list[int]:
    numbers = (each.name.partition("-")[2] for each in folder.glob("state-*"))
    return [int(number) for number in numbers if number.isdigit()]


def _new_file(h5py: Any, file: Path, name: str, shape: tuple[int, ...], dtype: Any) -> int:
    """Make an HDF5 file with a dataset whose numbers are there, and say where they begin."""
    with h5py.File(file, "w", libver="v110") as made:
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_layout(h5py.h5d.CONTIGUOUS)
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        kind, space = h5py.h5t.py_create(np.dtype(dtype), logical=True), h5py.h5s.create_simple(shape)
        return int(h5py.h5d.create(made.id, name.encode(), kind, space, how).get_offset())


def write_block(file: Path, offset: int, shape: tuple[int, ...], block: Box, values: Numbers) -> None:
    """Write ``values``, those of ``block``, to the numbers of the whole array, which begin at ``offset``."""
    bytes_of_cell = values[(0,) * len(shape)].nbytes
    strides = [bytes_of_cell * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    place = os.open(file, os.O_WRONLY)
    try:
        for cell, run in _runs(shape, block, values):
            data = memoryview(bytes_of(run))
            at = offset + sum(i * stride for i, stride in zip(cell, strides, strict=True))
            while data:
                count = os.pwrite(place, data, at)
                data, at = data[count:], at + count
        os.fsync(place)
    finally:
        os.close(place)


def bytes_of(values: Numbers) -> Any:
    """The memory of ``values``, which are one after the other; NumPy's types do not say that it is a buffer."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _runs(shape: tuple[int, ...], block: Box, values: Numbers) -> Iterator[tuple[tuple[int, ...], Numbers]]:
    """Parts of a block that are one after the other in the whole array too, each with its first cell."""
    axis = len(shape) - 1
    while axis > 0 and block.shape[axis] == shape[axis]:
        axis -= 1
    for outer in np.ndindex(*block.shape[:axis]):
        yield (*(a + i for a, i in zip(block.low, outer, strict=False)), *block.low[axis:]), values[outer]


def part_of(file: Path, rank: int) -> dict[str, Any]:
    """What another rank has said of its part, as soon as it has written it."""
    limit = float(settings().rank_timeout)
    begun = time.monotonic()
    while not file.exists():
        waited = time.monotonic() - begun
        if waited > limit or (waited > _LAST and not threading.main_thread().is_alive()):
            hint = f"raise {variable('rank_timeout')}, in seconds, if writing takes longer"
            raise CheckpointError(f"rank {rank} has not written its part within {waited:.0f} s", hint=hint)
        time.sleep(_PAUSE)
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if "error" in found:
        raise CheckpointError(found["error"])
    return found


def replace_index(file: Path, facts: Any) -> None:
    """Write ``facts`` so that there are always the old ones or the new."""
    aside = file.with_suffix(".new")
    with aside.open("w", encoding="utf-8") as written:
        json.dump(facts, written)
        written.flush()
        os.fsync(written.fileno())
    aside.replace(file)


def with_sum(facts: dict[str, Any]) -> dict[str, Any]:
    """An index with the checksum of what it says."""
    said = {name: value for name, value in facts.items() if name != "sum"}
    return {**said, "sum": zlib.crc32(json.dumps(said).encode())}


def index_of(folder: Path, *, missing_ok: bool) -> str:
    """The index of a checkpoint; ``!`` and what is wrong with it; nothing if none is there and that is ok."""
    file = folder / INDEX
    try:
        text = file.read_text(encoding="utf-8")
        facts = json.loads(text)
        if facts["format"] != FORMAT:
            return f"!{file} has the format {facts['format']!r}, and this quadpy reads {FORMAT!r}"
        if with_sum(facts)["sum"] != facts["sum"]:
            return f"!{file} is damaged, or not the index of a checkpoint"
    except FileNotFoundError:
        return "" if missing_ok else f"!there is no checkpoint in {folder}: {INDEX} is missing"
    except OSError as error:
        return f"!{file} cannot be read: {error}"
    except (ValueError, KeyError, TypeError):
        return f"!{file} is damaged, or not the index of a checkpoint"
    return text


def read_block(
    file: Path, name: str, kind: Sequence[Any], grid: Division, blocks: Sequence[tuple[Any, Any, int]]
) -> Numbers:
    """The numbers of the rank's block of an array of this ``kind``, after a check of ``blocks`` that were written.

    Each of these has its first element, its end and its checksum.
    """
    expected, dtype = _layout_of(kind, grid.shape)
    try:
        with import_late("h5py").File(file, "r") as opened:
            values = opened[name]
            if values.shape != expected or values.dtype != dtype:
                raise CheckpointError(f"{file} has {values.dtype} of shape {values.shape}, not {dtype} of {expected}")
            for low, high, checksum in blocks:
                if zlib.crc32(bytes_of(values[tuple(map(slice, low, high))])) != checksum:
                    raise CheckpointError(f"{file} is damaged: elements {low} to {high} have changed")
            found: Numbers = values[tuple(map(slice, *grid.lattice(kind[1]).block))]
            return found
    except ImportError as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from None
    except (OSError, KeyError, AttributeError) as error:
        raise CheckpointError(f"{file} is missing or damaged: {error}") from None
