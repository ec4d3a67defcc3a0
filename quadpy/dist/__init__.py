"""Several GPUs and hosts: ranks, distributed grids and arrays, halos, reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadpy.core.completion import public_names
from quadpy.core.importing import import_late
from quadpy.dist.arrays import DistributedArray, DistributedField
from quadpy.dist.captured import CapturedStep, capture
from quadpy.dist.checkpoints import Checkpoint
from quadpy.dist.collectives import allreduce, barrier, broadcast, gather
from quadpy.dist.explain import explain
from quadpy.dist.grid import Grid
from quadpy.dist.world import World, world
from quadpy.jit.plan import Plan, PlansOfRanks

__all__ = [
    "CapturedStep",
    "Checkpoint",
    "DistributedArray",
    "DistributedField",
    "Grid",
    "World",
    "allreduce",
    "barrier",
    "broadcast",
    "capture",
    "explain",
    "gather",
    "world",
]


def _plan_of_ranks(*given: object) -> Plan:
    made: Plan = import_late("quadpy.dist.plan").DistributedPlan(*given)
    return made


PlansOfRanks.make = _plan_of_ranks

if not TYPE_CHECKING:
    __dir__, __getattr__ = public_names(__name__)
