"""The graphs of a replayed function.

Each thread has its own graphs, because the arrays that a function makes belong to its graph and must not be overwritten by
a call of another thread.  A call takes a variant out of its thread's list and puts it back after the launch.  Therefore, a variant
that an exception left half changed is gone, a call inside a call takes or makes another one, and no lock is held while a
function of the user's runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from quadpy.graph.captures.arena import Arena
from quadpy.graph.execution import GraphExec
from quadpy.graph.model.nodes import Node
from quadpy.graph.model.recording import Recording
from quadpy.graph.replays.comparison import Comparison
from quadpy.graph.replays.session import ReplaySession
from quadpy.runtime.arrays.ndarray import NDArray
from quadpy.runtime.device.current import current_config
from quadpy.runtime.device.device import Device
from quadpy.runtime.device.locks import LiveObjects

MAX_VARIANTS: Final = 8
"""How many graphs of one function a thread keeps, for arguments of different shapes."""

_COMPARED_BY_VALUE: Final = (bool, int, str, bytes, type(None))


class Hint(NamedTuple):
    """What the arguments of a call suggest about what the function does; a wrong hint costs time and nothing else.

    shapes  types and extents
    values  numbers, names and objects that may decide what is launched
    """

    shapes: tuple[Hashable, ...]
    values: tuple[Hashable, ...]


def hint_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hint:
    """The hint of a call, from the arguments themselves and not from what they refer to."""
    shapes: list[Hashable] = [*kwargs]
    values: list[Hashable] = []
    for given in (*args, *kwargs.values()):
        if type(given) is NDArray:
            shapes.append((given.type_key, given.shape))
        elif isinstance(given, np.ndarray):
            shapes.append((given.dtype.str, given.shape))
        else:
            shapes.append(type(given).__name__)
            if type(given) in _COMPARED_BY_VALUE:
                values.append(given)
            elif type(given) is not float:
                values.append(id(given))
    return Hint(tuple(shapes), tuple(values))


class Variant:
    """One graph of the function: ``run`` launches what ``recording`` says, unless somebody changed ``run``."""

    def __init__(self, device: Device, hint: Hint, run: GraphExec, recording: Recording, arena: Arena) -> None:
        self.device, self.hint, self.run, self.recording, self.arena = device, hint, run, recording, arena
        self._config, self._version = current_config(), run.version
        run.argument_policy.few = 0  # binding arguments takes the host as long as two launches, changing a node thirty

    @property
    def is_unchanged(self) -> bool:
        """Whether the executable graph, the configuration and the owners of the memory are the same as before."""
        known = self.run.version == self._version and self._config is current_config() and not self.run.destroyed
        return known and self.recording.is_unshared()

    def bind(self, comparison: Comparison) -> int:
        """Take the arguments of a call that repeated the recording; how often the driver's graph was rebuilt for it."""
        bound, changed, steps = comparison.bound, comparison.changed, self.recording.steps
        other_grids = False
        for step, args, call in bound:
            other_grids = step.bind(args, call) or other_grids
        for number, change in changed.items():
            steps[number].change(*change)
        if self.run.binds and not (changed or other_grids):
            self.run.bind([step for step, _, _ in bound], self.recording)
            return 0
        nodes = [
            step.current_node(self.device) for step in [*(one[0] for one in bound), *map(steps.__getitem__, changed)]
        ]
        rebuilds = self._replace({node.name: node for node in nodes if node is not None})
        self._version = self.run.version
        return rebuilds

    def replace(self, changes: Mapping[str, Node], session: ReplaySession, hint: Hint) -> int:
        """Change nodes to those of a new recording; how often the driver's graph was rebuilt for it."""
        for name in self.run.disabled:  # by somebody who looked at the graph: a call does all that its function does
            self.run.enable(name)
        rebuilds = self._replace(changes) if changes else 0
        self.hint, self.recording, self.arena = hint, session.recording(), session.arena
        self._config, self._version = current_config(), self.run.version
        return rebuilds

    def _replace(self, changes: Mapping[str, Node]) -> int:
        before = self.run.stats().rebuilds
        self.run.replace(changes, same_order=True)
        return self.run.stats().rebuilds - before

    def is_cheaper(self, comparison: Comparison) -> bool:
        """Whether a call that repeated the recording cost the host less than its launches.

        The unit is the time that the host saves by comparing a launch instead of making it: about 1 µs on the CPU and
        5 µs on a GPU.  Packing arguments saves nothing.  On a GPU, each changed call that is not a launch costs another
        node.  On the CPU, each call that is not a launch splits the native call that makes several launches in a row.
        """
        recording, changed, packed = self.recording, len(comparison.changed), comparison.packed
        compared = recording.launches - packed
        if "host" not in self.device.driver.features:
            return not changed or compared > 16 + 16 * changed
        others = 48 * recording.other_nodes + 8 * recording.without_node
        return not changed and compared > 16 + 8 * (packed > 0) + packed // 2 + others


class _VariantList:
    """The variants of a thread; the one that was launched last is at the end.  ``used`` from its first call on."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.used = False


class _Own(threading.local):
    def __init__(self, add: Callable[[_VariantList], None]) -> None:
        self.list = _VariantList()
        add(self.list)


class Variants:
    """The variants of all threads; those of a thread end with it."""

    def __init__(self) -> None:
        self._lists: LiveObjects[_VariantList] = LiveObjects()
        self._own = _Own(self._lists.add)

    def take(self, device: Device, hint: Hint) -> Variant | None:
        """Remove the variant that a call most likely repeats, and return it."""
        best, self._own.list.used = None, True  # before the call can be a miss, so that no thread's misses count alone
        for one in self.alike(device, hint):
            if one.hint.values == hint.values:
                best = one
                break
            best = best or one
        if best is not None:
            self.remove(best)
        return best

    def put(self, variant: Variant) -> list[Variant]:
        """Add a variant of the calling thread; returns those that had to be removed for it."""
        variants = self._own.list.variants
        variants.append(variant)
        return [variants.pop(0)] if len(variants) > MAX_VARIANTS else []

    def alike(self, device: Device, hint: Hint) -> list[Variant]:
        """The calling thread's variants for arguments of these shapes, the latest first."""
        variants = reversed(self._own.list.variants)
        return [one for one in variants if one.device is device and one.hint.shapes == hint.shapes]

    def remove(self, variant: Variant) -> None:
        """Remove a variant of the calling thread."""
        self._own.list.variants.remove(variant)

    def clear(self) -> list[Variant]:
        """Remove and return the variants of all threads."""
        found = []
        for each in self._lists:
            variants, each.variants = each.variants, []
            found += variants
        return found

    def own(self) -> list[Variant]:
        """The calling thread's variants."""
        return list(self._own.list.variants)

    def __iter__(self) -> Iterator[Variant]:
        """The variants of all threads, those of the calling thread last."""
        own = self._own.list
        others = [variant for each in self._lists if each is not own for variant in each.variants]
        return iter([*others, *own.variants])

    @property
    def thread_count(self) -> int:
        """How many of the threads that live have called the function."""
        return sum(each.used for each in self._lists)
