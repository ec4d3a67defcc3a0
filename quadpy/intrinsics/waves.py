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
    "up": "The value of the lane ``offset`` places below; if there is none, the lane's own value.",
    "down": "The value of the lane ``offset`` places above; if there is none, the lane's own value.",
    "xor": "The value of the lane whose number is the exclusive or of this lane's number and ``offset``.",
}  # fmt: skip

_TILED: Final = {
    "reduce": "The {} of the values in this lane's tile of ``2**log2_size`` lanes, returned in each lane of the tile.",
    "reduce_all": "The {} of the values in this lane's tile of ``2**log2_size`` lanes, returned in each lane of the tile.",
    "inclusive": "The {} of the values of the tile's lanes up to and including this one.",
    "exclusive": "The {} of the values of the tile's lanes before this one; the identity of the operation in the first.",
}

GROUPS: Final = {
    "Lanes of a wave": (
        _known("group_size", "The number of lanes in a wave, 32 or 64; known at compile time. Outside kernels, that of ``qp.init``."),
        _known("log2_group_size", "The logarithm to base 2 of the number of lanes in a wave, 5 or 6; known at compile time. Outside kernels, that of ``qp.init``."),
        _known("invocation_id", "The number of this lane in its wave, as i32."),
        _known("subgroup_id", "The number of this wave in its block, as i32."),
        _known("num_subgroups", "The number of waves in a block; known at compile time."),
        _known("elect", "True in lane 0 of each wave."),
        _known("lanemask_eq", "A u64 with the bit of ``lane`` set; the default is this lane.", "lane=None"),
        _known("lanemask_lt", "A u64 with the bits of all lanes below ``lane`` set; the default is this lane.", "lane=None"),
        _known("lanemask_le", "A u64 with the bits of all lanes up to and including ``lane`` set; the default is this lane.", "lane=None"),
        _known("lanemask_gt", "A u64 with the bits of all lanes above ``lane`` set; the default is this lane.", "lane=None"),
        _known("lanemask_ge", "A u64 with the bits of ``lane`` and all lanes above it set; the default is this lane.", "lane=None"),
    ),
    "Exchange between lanes": (
        _together("shuffle", "value, lane", "The value of lane ``lane``, taken modulo the wave size."),
        _together("shuffle_up", "value, distance", "The value of the lane ``distance`` places below; if there is none, the lane's own value."),
        _together("shuffle_down", "value, distance", "The value of the lane ``distance`` places above; if there is none, the lane's own value."),
        _together("shuffle_xor", "value, mask", "The value of the lane whose number is the exclusive or of this lane's number and ``mask``."),
        _together("broadcast", "value, lane", "The value of the lane whose number is ``lane`` in lane 0."),
        _together("broadcast_first", "value", "The value of lane 0."),
        _together("sync", "", "Waits for all lanes of the wave; each then sees what the others wrote before."),
        _together("barrier", "", "Another name for ``sync``."),
        Row("subgroup.memory_barrier", "", "Another name for ``mem_fence``.", _TRACED, effects=Effect.ORDERS, per_block=True),
        Row("subgroup.mem_fence", "", "Makes the earlier writes of this lane visible to the wave before its later ones.", _TRACED,
            effects=Effect.ORDERS, per_block=True),
    ),
    "Votes of a wave": (
        _together("ballot", "cond", "A u64 with the bit set of each lane in which ``cond`` is true."),
        _together("ballot_full_subgroup", "cond", "Another name for ``ballot``."),
        _together("ballot_first_n", "cond, n", "Like ``ballot``, for the first ``n`` lanes only, as u32; ``n`` is at most 32."),
        _together("all_true", "cond", "Whether ``cond`` is true in all lanes."),
        _together("any_true", "cond", "Whether ``cond`` is true in any lane."),
        _together("all_equal", "value", "Whether all lanes have the same value, bit for bit."),
        _together("all_true_tiled", "cond, log2_size", "Whether ``cond`` is true in all lanes of this lane's tile of ``2**log2_size`` lanes."),
        _together("any_true_tiled", "cond, log2_size", "Whether ``cond`` is true in any lane of this lane's tile of ``2**log2_size`` lanes."),
        _together("all_equal_tiled", "value, log2_size", "Whether all lanes of this lane's tile of ``2**log2_size`` lanes have the same value, bit for bit."),
        _together("match_any", "value", "A u64 with the bit set of each lane that has the same value as this lane, bit for bit."),
        _together("match_all", "value", "A u64 with the bits of all lanes set if they have the same value, bit for bit; else 0."),
    ),
    "Reductions and scans of a wave": (
        *(_together(f"reduce_{op}", "value", f"The {name} of the values of all lanes.") for op, name in OPERATIONS.items()),
        *(_together(f"reduce_all_{op}", "value", f"Another name for ``reduce_{op}``.") for op in OPERATIONS),
        *(_together(f"inclusive_{op}", "value", f"The {name} of the values of the lanes up to and including this one.")
          for op, name in OPERATIONS.items()),
        *(_together(f"exclusive_{op}", "value", f"The {name} of the values of the lanes before this one; the identity of the operation in the first.")
          for op, name in OPERATIONS.items()),
    ),
    "Sorts of a wave": (
        _together("bitonic_sort_kv", "key, value", "The pairs of all lanes in ascending order, by key and then by value: the smallest one in lane 0. Returns the "
                  "key and the value."),
        _together("bitonic_sort_kv_tiled", "key, value, log2_size", "Like ``bitonic_sort_kv``, in each tile of ``2**log2_size`` lanes."),
    ),
    "Tiles and segments of a wave": (
        *(_together(f"{kind}_{op}_tiled", "value, log2_size", text.format(name))
          for kind, text in _TILED.items() for op, name in OPERATIONS.items()),
        *(_together(f"segmented_reduce_{op}", "value, head", f"The {name} of the values of this segment's lanes up to and including this one. A segment begins at "
                    "lane 0 and at each lane in which ``head`` is true.") for op, name in OPERATIONS.items()),
        *(_together(f"segmented_reduce_{op}_tiled", "value, head, log2_size", f"Like ``segmented_reduce_{op}``; each tile of ``2**log2_size`` lanes also begins a "
                    "segment.") for op in OPERATIONS),
    ),
    "Warps by Taichi's names": (
        *(_legacy(f"shfl_{how}_{t}", "mask, value, offset", doc) for how, doc in _SHUFFLES.items() for t in ("i32", "f32")),
        _legacy("all_nonzero", "mask, predicate", "1 if ``predicate`` is true in all lanes, else 0."),
        _legacy("any_nonzero", "mask, predicate", "1 if ``predicate`` is true in any lane, else 0."),
        _legacy("unique", "mask, predicate", "1 if ``predicate`` is the same in all lanes, else 0."),
        _legacy("ballot", "predicate", "The bits of the lanes in which ``predicate`` is true, as u32, or as u64 in waves of 64."),
        _legacy("match_any", "mask, value", "The bits of the lanes that have this lane's value."),
        _legacy("match_all", "mask, value", "The bits of all lanes if they have the same value, else 0."),
        _legacy("active_mask", "", "The bits of all lanes, because all lanes must be active where it is called."),
        _legacy("sync", "mask", "The same as ``subgroup.sync``."),
    ),
}  # fmt: skip
