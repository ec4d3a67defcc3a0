"""Operations that the lanes of a wave perform together: ``qp.simt.subgroup``."""

from __future__ import annotations

from typing import Final

from quadpy.intrinsics.block import OPERATIONS
from quadpy.intrinsics.rows import Effect, Lowering, Row, Traced

__all__ = ["GROUPS"]

_TRACED: Final[Lowering] = Traced()


def _known(name: str, doc: str, parameters: str = "") -> Row:
    """The row of a value that each lane computes without the others."""
    return Row(f"subgroup.{name}", parameters, doc, _TRACED, per_block=True)


def _together(name: str, parameters: str, doc: str) -> Row:
    """The row of an operation in which all lanes of the wave take part."""
    return Row(f"subgroup.{name}", parameters, doc, _TRACED, effects=Effect.CONVERGES, per_block=True)


def _legacy(name: str, parameters: str, doc: str) -> Row:
    """The row of a warp operation under Taichi's name; its mask must name all lanes."""
    return Row(f"warp.{name}", parameters, doc, _TRACED, effects=Effect.CONVERGES, per_block=True)


_SHUFFLES: Final = {
    "sync": "The value of lane ``offset``.",
    "up": "The value of the lane ``offset`` below; if there is none, the lane's own value.",
    "down": "The value of the lane ``offset`` above; if there is none, the lane's own value.",
    "xor": "The value of the lane whose number is this lane's number xor ``offset``.",
}  # fmt: skip

_TILED: Final = {
    "reduce": "The {} of the values of the tile of ``2**log2_size`` lanes, in each of them.",
    "reduce_all": "The {} of the values of the tile of ``2**log2_size`` lanes, in each of them.",
    "inclusive": "The {} of the values of the lanes of the tile up to this one.",
    "exclusive": "The {} of the values of the lanes of the tile before this one.",
}

GROUPS: Final = {
    "Lanes of a wave": (
        _known("group_size", "The number of lanes of a wave, 32 or 64; known at compile time."),
        _known("log2_group_size", "5 or 6; known at compile time."),
        _known("invocation_id", "The number of this lane in its wave, as i32."),
        _known("subgroup_id", "The number of this wave in its block, as i32."),
        _known("num_subgroups", "The number of waves of a block; known at compile time."),
        _known("elect", "True in lane 0 of each wave."),
        _known("lanemask_eq", "A u64 with the bit of ``lane``, by default this one.", "lane=None"),
        _known("lanemask_lt", "A u64 with the bits of the lanes below ``lane``, by default this one.", "lane=None"),
        _known("lanemask_le", "A u64 with the bits of the lanes up to ``lane``, by default this one.", "lane=None"),
        _known("lanemask_gt", "A u64 with the bits of the lanes above ``lane``, by default this one.", "lane=None"),
        _known("lanemask_ge", "A u64 with the bits of the lanes from ``lane`` on, by default this one.", "lane=None"),
    ),
    "Exchange between lanes": (
        _together("shuffle", "value, lane", "The value of ``lane``, which is taken modulo the wave size."),
        _together("shuffle_up", "value, distance", "The value of the lane ``distance`` below; if there is none, the lane's own value."),
        _together("shuffle_down", "value, distance", "The value of the lane ``distance`` above; if there is none, the lane's own value."),
        _together("shuffle_xor", "value, mask", "The value of the lane whose number is this lane's number xor ``mask``."),
        _together("broadcast", "value, lane", "The value of the lane that lane 0 specifies."),
        _together("broadcast_first", "value", "The value of lane 0."),
        _together("sync", "", "Waits until all lanes of the wave arrive; each then sees what the others wrote before."),
        _together("barrier", "", "Another name of ``sync``."),
        Row("subgroup.memory_barrier", "", "Another name of ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("subgroup.mem_fence", "", "The wave sees this lane's earlier writes before its later ones.", _TRACED,
            effects=Effect.ORDERS, per_block=True),
    ),
    "Votes of a wave": (
        _together("ballot", "cond", "A u64 with the bit of each lane in which ``cond`` holds."),
        _together("ballot_first_n", "cond, n", "As ``ballot``, of the first ``n`` lanes, as u32; ``n`` is at most 32."),
        _together("all_true", "cond", "Whether ``cond`` holds in all lanes."),
        _together("any_true", "cond", "Whether ``cond`` holds in any lane."),
        _together("all_equal", "value", "Whether all lanes have the same value, to the bit."),
        _together("match_any", "value", "A u64 with the bit of each lane that has this lane's value, to the bit."),
        _together("match_all", "value", "A u64 with the bits of all lanes if they have the same value, to the bit, else 0."),
    ),
    "Reductions and scans of a wave": (
        *(_together(f"reduce_{op}", "value", f"The {name} of all lanes' values.") for op, name in OPERATIONS.items()),
        *(_together(f"reduce_all_{op}", "value", f"Another name of ``reduce_{op}``.") for op in OPERATIONS),
        *(_together(f"inclusive_{op}", "value", f"The {name} of the values of the lanes up to this one.")
          for op, name in OPERATIONS.items()),
        *(_together(f"exclusive_{op}", "value", f"The {name} of the values of the lanes before this one.")
          for op, name in OPERATIONS.items()),
    ),
    "Tiles and segments of a wave": (
        *(_together(f"{kind}_{op}_tiled", "value, log2_size", text.format(name))
          for kind, text in _TILED.items() for op, name in OPERATIONS.items()),
        *(_together(f"segmented_reduce_{op}", "value, head", f"The {name} of the values from the last lane up to this one in "
                    "which ``head`` holds, or from lane 0.") for op, name in OPERATIONS.items()),
        *(_together(f"segmented_reduce_{op}_tiled", "value, head, log2_size", f"As ``segmented_reduce_{op}``; each tile begins a "
                    "segment.") for op in OPERATIONS),
    ),
    "Warps by Taichi's names": (
        *(_legacy(f"shfl_{how}_{t}", "mask, value, offset", doc) for how, doc in _SHUFFLES.items() for t in ("i32", "f32")),
        _legacy("all_nonzero", "mask, predicate", "1 if ``predicate`` holds in all lanes, else 0."),
        _legacy("any_nonzero", "mask, predicate", "1 if ``predicate`` holds in any lane, else 0."),
        _legacy("unique", "mask, predicate", "1 if ``predicate`` is the same in all lanes, else 0."),
        _legacy("ballot", "predicate", "The bits of the lanes in which ``predicate`` holds: u32, in waves of 64 u64."),
        _legacy("match_any", "mask, value", "The bits of the lanes that have this lane's value."),
        _legacy("match_all", "mask, value", "The bits of all lanes if they have the same value, else 0."),
        _legacy("active_mask", "", "The bits of all lanes: all lanes are active where it is called."),
        _legacy("sync", "mask", "As ``subgroup.sync``."),
    ),
}  # fmt: skip
