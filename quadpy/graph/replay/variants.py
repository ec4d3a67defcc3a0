"""The graphs that a thread has of a replayed function.  Owns: Variant, Variants, hint_of.

Imports: executable graphs, tapes, devices.

Each thread has its own: arrays that a function makes belong to its graph, and another thread's call must not write them.
A call takes a variant out and puts it back when it is launched; so one that an exception left half-changed is no longer
there, a call from within a call finds another one or makes it, and no lock is held while a function of the user's runs.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.graph.capture.arena import Arena
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.nodes import Node
from quadpy.graph.replay.session import ReplaySession
from quadpy.graph.replay.tape import Tape
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import new_lock

__all__ = ["MOST_VARIANTS", "Hint", "Variant", "Variants", "hint_of"]

MOST_VARIANTS: Final = 8
"""Graphs that one function keeps for a thread, for arguments of other shapes."""

_TELLING: Final = (bool, int, str, bytes, type(None))


class Hint(NamedTuple):
    """What a call is given, as far as it lets expect what the function does: nothing depends on its being right.

    shapes  types and extents
    values  of what may decide what is launched: numbers that count, names, objects of the user's
    """

    shapes: tuple[Hashable, ...]
    values: tuple[Hashable, ...]


def hint_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hint:
    """A look at a call's arguments themselves, and not at what they refer to."""
    shapes: list[Hashable] = [*kwargs]
    values: list[Hashable] = []
    for given in (*args, *kwargs.values()):
        if type(given) is NDArray:
            shapes.append((given.type_key, given.shape))
        elif isinstance(given, np.ndarray):
            shapes.append((given.dtype.str, given.shape))
        else:
            shapes.append(type(given).__name__)
            if type(given) in _TELLING:
                values.append(given)
            elif type(given) is not float:
                values.append(id(given))
    return Hint(tuple(shapes), tuple(values))


class Variant:
    """One graph of the function: what ``run`` launches is what ``tape`` says, unless somebody changed ``run``."""

    def __init__(self, device: Device, hint: Hint, run: GraphExec, tape: Tape, arena: Arena) -> None:
        self.device, self.hint, self.run, self.tape, self.arena = device, hint, run, tape, arena
        self._config, self._seen = current_config(), run.version
        run.argument_policy.few = (
            0  # to change one node takes the host as long as thirty launches, to put its arguments as two
        )

    @property
    def is_as_it_was(self) -> bool:
        """Whether nobody changed the executable graph, what kernels are compiled for, or who has the memory."""
        known = self.run.version == self._seen and self._config is current_config() and not self.run.destroyed
        return known and self.tape.is_own()

    def bind(self, session: ReplaySession) -> int:
        """Do what ``session``, which repeated the tape, found; how often the driver's graph was made for it."""
        bound, noted, steps = session.bound, session.noted, self.tape.steps
        regrids = False
        for step, args, call in bound:
            regrids = step.bind(args, call) or regrids
        for number, other in noted.items():
            steps[number].change(*other)
        if self.run.binds and not (noted or regrids):
            self.run.bind([step for step, _, _ in bound], self.tape)
            return 0
        before = self.run.stats().rebuilds
        changed = [step for step, _, _ in bound] + [steps[number] for number in noted]
        nodes = [step.node_now(self.device) for step in changed]
        self.run.replace({node.name: node for node in nodes if node is not None}, same_order=True)
        self._seen = self.run.version
        return self.run.stats().rebuilds - before

    def replace(self, changes: Mapping[str, Node], session: ReplaySession, hint: Hint) -> int:
        """Do what ``session`` noted anew, which changes these nodes; how often the driver's graph was made for it."""
        before = self.run.stats().rebuilds
        if changes:
            self.run.replace(changes, same_order=True)
        self.hint, self.tape, self.arena = hint, session.tape(), session.arena
        self._config, self._seen = current_config(), self.run.version
        return self.run.stats().rebuilds - before


class _Shelf:
    """A thread's variants, the one that was launched last at the end."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []


class _Own(threading.local):
    def __init__(self, add: Callable[[_Shelf], None]) -> None:
        self.shelf = _Shelf()
        add(self.shelf)


class Variants:
    """Those of all threads; a thread takes its own, which are gone with it."""

    def __init__(self) -> None:
        self._lock = new_lock()  # a finalizer that runs under it may come here
        self._shelves: weakref.WeakSet[_Shelf] = weakref.WeakSet()
        self._own = _Own(self._add)

    def take(self, device: Device, hint: Hint) -> Variant | None:
        """The variant that a call is most likely one of, which is the caller's until it is put back."""
        variants = self._own.shelf.variants
        best = None
        for one in reversed(variants):
            if one.device is device and one.hint.shapes == hint.shapes:
                if one.hint.values == hint.values:
                    best = one
                    break
                best = best or one
        if best is not None:
            variants.remove(best)
        return best

    def put(self, variant: Variant) -> list[Variant]:
        """The caller's variant is there for the next call; those that are too many then are the caller's."""
        variants = self._own.shelf.variants
        variants.append(variant)
        return [variants.pop(0)] if len(variants) > MOST_VARIANTS else []

    def alike(self, device: Device, hint: Hint) -> list[Variant]:
        """The calling thread's for arguments of the same shapes, the latest first."""
        variants = reversed(self._own.shelf.variants)
        return [one for one in variants if one.device is device and one.hint.shapes == hint.shapes]

    def remove(self, variant: Variant) -> None:
        """One that is there is the caller's."""
        self._own.shelf.variants.remove(variant)

    def clear(self) -> list[Variant]:
        """All that are there, of all threads, are the caller's."""
        found = []
        for shelf in self._all():
            variants, shelf.variants = shelf.variants, []
            found += variants
        return found

    def own(self) -> list[Variant]:
        """Those of the calling thread."""
        return list(self._own.shelf.variants)

    def __iter__(self) -> Iterator[Variant]:
        """All that are there, those of the calling thread last."""
        own = self._own.shelf
        others = [variant for shelf in self._all() if shelf is not own for variant in shelf.variants]
        return iter([*others, *own.variants])

    def _add(self, shelf: _Shelf) -> None:
        with self._lock:
            self._shelves.add(shelf)

    def _all(self) -> list[_Shelf]:
        with self._lock:
            return list(self._shelves)
