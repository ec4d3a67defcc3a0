"""Options of ``init`` in Taichi and Quadrants that are not quadpy's own: what they mean here, if anything."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadpy._version import __version__
from quadpy.aliases import set_logging_level
from quadpy.core.importing import import_late
from quadpy.core.messages import one_of, shown
from quadpy.core.public import require_switch
from quadpy.errors import ArgumentError
from quadpy.settings import settings

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_log: Final = logging.getLogger("quadpy")

_DUMPS: Final = (
    "print_ir", "print_kernel_amdgcn", "print_kernel_asm", "print_kernel_llvm_ir", "print_kernel_nvptx",
    "print_preprocessed_ir",
)  # fmt: skip
_SWITCHES: Final = (
    "timeline", "check_out_of_bound", "kernel_profiler", "make_cpu_multithreading_loop", "offline_cache", "raise_on_templated_floats",
    *_DUMPS,
)  # fmt: skip
OWN_WAYS: Final = (
    *_SWITCHES, "debug_dump_path", "default_gpu_block_dim", "log_level", "offline_cache_cleaning_policy", "offline_cache_file_path",
    "offline_cache_max_size_of_files", "require_version", "unrolling_limit",
)  # fmt: skip
"""Options that mean something."""

WITHOUT_MEANING: Final = frozenset(["ad_stack_experimental_enabled", "ad_stack_size", "ad_stack_sparse_threshold_bytes", "advanced_optimization", "allow_nv_shader_extension", "auto_mesh_local_default_occupacy", "cache_loop_invariant_global_vars", "cfg_optimization", "cpu_block_dim_adaptive", "cuda_stack_limit", "default_cpu_block_dim", "default_up", "demote_dense_struct_fors", "demote_no_access_mesh_fors", "detect_read_only", "device_memory_GB", "device_memory_fraction", "dynamic_index", "experimental_auto_mesh_local", "external_metal_command_queue", "external_metal_command_queue_is_torch_queue", "flatten_if", "force_scalarize_matrix", "gdb_trigger", "gpu_max_reg", "half2_vectorization", "lower_access", "make_block_local", "make_mesh_block_local", "make_thread_local", "max_block_dim", "mesh_localize_all_attr_mappings", "mesh_localize_from_end_mapping", "mesh_localize_to_end_mapping", "move_loop_invariant_outside_if", "num_compile_threads", "offline_cache_cleaning_factor", "opt_level", "optimize_mesh_reordered_mapping", "packed", "print_accessor_ir", "print_ir_dbg_info", "print_kernel_llvm_ir_optimized", "print_non_pure", "print_struct_llvm_ir", "quant_opt_atomic_demotion", "quant_opt_store_fusion", "real_matrix_scalarize", "saturating_grid_dim", "short_circuit_operators", "simplify_after_lower_access", "simplify_before_lower_access", "src_ll_cache", "use_llvm", "use_mesh", "use_unified_memory", "verbose", "verbose_kernel_launches", "vk_api_version"])  # fmt: skip
"""Options of the other languages that change nothing here: they are ignored, with one line of the log."""


def apply_options(options: Mapping[str, object], own: tuple[str, ...]) -> None:
    """Does what ``options`` ask for; ``own`` are the options that ``qp.init`` takes itself.

    Raises:
        ArgumentError: there is no such option, or its value is none; a version other than this is required.
    """
    for name in options:
        if name not in OWN_WAYS and name not in WITHOUT_MEANING:
            raise ArgumentError(f"qp.init has no option {name!r}", hint=one_of(name, [*own, *OWN_WAYS]))
    for name in _SWITCHES:
        require_switch(options.get(name), name)
    if ignored := sorted(name for name in options if name in WITHOUT_MEANING):
        _log.info("qp.init: ignored, because quadpy does not use them: %s", ", ".join(ignored))
    if (level := options.get("log_level")) is not None:
        set_logging_level(str(level))
    _require_version(options.get("require_version"))
    _choose_cache(options)
    _profile(options.get("kernel_profiler") or options.get("timeline"))
    _choose_dumps(options)


def config_of(options: Mapping[str, object]) -> dict[str, Any]:
    """What ``options`` say about the configuration, as arguments of ``Config``.

    Raises:
        ArgumentError: a value that the option cannot have.
    """
    block, limit = options.get("default_gpu_block_dim"), options.get("unrolling_limit")
    if block is not None and not (_is_count(block) and 1 <= block <= 1024):
        raise ArgumentError(f"default_gpu_block_dim must be a number of threads from 1 to 1024, not {shown(block)}")
    if limit is not None and not (_is_count(limit) and limit >= 0):
        raise ArgumentError(f"unrolling_limit must be a number of iterations, or 0 for no limit, not {shown(limit)}")
    return {
        "check_out_of_bound": bool(options.get("check_out_of_bound")), "gpu_block_dim": block, "unrolling_limit": limit or 0,
        "raise_on_templated_floats": bool(options.get("raise_on_templated_floats")),
    } | ({"num_threads": 1} if options.get("make_cpu_multithreading_loop") is False else {})  # fmt: skip


def _is_count(value: object) -> TypeIs[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _choose_dumps(options: Mapping[str, object]) -> None:
    """Print the texts of kernels as they are compiled, or write them to a folder; most programs do not load this."""
    wanted = [name for name in _DUMPS if options.get(name)]
    if not wanted and "quadpy.jit.dumps" not in sys.modules:
        return
    dumps, folder = import_late("quadpy.jit.dumps"), options.get("debug_dump_path")
    path = Path(str(folder)).expanduser() if folder else None
    dumps.Dumps.choose(frozenset(dumps.STAGES[name][0] for name in wanted), path)


def _profile(enabled: object) -> None:
    """Turn the profile of the process on or off; most programs do not load it."""
    if enabled or "quadpy.profiler.kernel_profiler" in sys.modules:
        import_late("quadpy.profiler.kernel_profiler").set_kernel_profiler(bool(enabled))


def _require_version(wanted: object) -> None:
    if wanted is None:
        return
    text = ".".join(map(str, wanted)) if isinstance(wanted, (tuple, list)) else str(wanted)
    if text != __version__:
        raise ArgumentError(f"this is quadpy {__version__}, and version {text} is required")


def _choose_cache(options: Mapping[str, object]) -> None:
    """The kernel cache of this process until the next ``qp.init``, where an option says something about it."""
    use_cache = import_late("quadpy.cache.process").use_cache
    given = {name: value for name, value in options.items() if name.startswith("offline_cache") and name in OWN_WAYS}
    if not given:
        use_cache(None)
        return
    chosen = settings()
    if (enabled := given.get("offline_cache")) is not None:
        chosen = replace(chosen, cache=chosen.cache and bool(enabled))
    if folder := given.get("offline_cache_file_path"):
        chosen = replace(chosen, cache_dir=Path(str(folder)).expanduser())
    if (limit := given.get("offline_cache_max_size_of_files")) is not None:
        if not isinstance(limit, int) or limit <= 0:
            raise ArgumentError(f"offline_cache_max_size_of_files takes a number of bytes above 0, not {limit!r}")
        chosen = replace(chosen, cache_size=max(1, limit >> 20))
    match given.get("offline_cache_cleaning_policy"):
        case "never":
            chosen = replace(chosen, cache_size=1 << 40)
        case None | "lru" | "fifo" | "version":  # the cache forgets what was used least recently
            pass
        case policy:
            raise ArgumentError(f"offline_cache_cleaning_policy={shown(policy)}", hint='use "lru" or "never"')
    use_cache(chosen)
