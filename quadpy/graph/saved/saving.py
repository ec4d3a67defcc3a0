"""``graph.save`` and ``kernel.save``."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quadpy.core.public import call_site
from quadpy.errors import ArgumentError
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.order import MemoryRange
from quadpy.graph.saved.manifest import write
from quadpy.graph.saved.memory import SavedMemory
from quadpy.graph.saved.targets import Targets, targets_of
from quadpy.graph.saved.writer import Writer
from quadpy.runtime.launch.fusion import require_fuse

if TYPE_CHECKING:
    from quadpy.runtime.device.device import Device
    from quadpy.runtime.launch.fusion import Fuse


def save_graph(
    device: Device, nodes: Sequence[Node], owned: Iterable[MemoryRange], path: str | os.PathLike[str],
    targets: Iterable[str] | str | None, bind: Mapping[str, Any], constants: Iterable[Any], internal: Iterable[Any],
    fuse: Fuse,
) -> None:  # fmt: skip
    """See ``Graph.save``; ``owned`` is memory that belongs to the graph."""
    file = new_file(path)
    require_fuse(fuse)
    memory = SavedMemory(device, bind, constants, internal, owned)
    writer = Writer(nodes, memory, Targets(targets_of(targets, device)), fuse)
    store(file, writer.manifest(), writer.entries)


def file_of(path: str | os.PathLike[str]) -> Path:
    """``path`` as one; ArgumentError if it is none, before anything is compiled."""
    try:
        found = Path(path)
    except TypeError:
        found = Path()
    if not found.name:
        raise ArgumentError(f"{path!r} is not a path", call_site(), hint="pass that of a file, such as 'step.qpg'")
    return found


def new_file(path: str | os.PathLike[str]) -> Path:
    """``file_of(path)``; FileNotFoundError if its folder does not exist, before anything is compiled."""
    file = file_of(path)
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no folder for it", str(file))
    return file


def store(file: Path, manifest: dict[str, Any], entries: dict[str, bytes]) -> None:
    """Write a saved graph or kernel."""
    write_whole(file, write(manifest, entries))


def write_whole(file: Path, data: bytes) -> None:
    """Write the file in one step: a program that reads it meanwhile finds the old one, or the new one."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        beside.write_bytes(data)
        beside.replace(file)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(file)) from None  # not the name of the other file
    finally:
        beside.unlink(missing_ok=True)
