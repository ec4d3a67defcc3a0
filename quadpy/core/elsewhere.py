"""Names that users look for in ``quadpy``, as other kernel languages have them, and where it has what they mean."""

from __future__ import annotations

from typing import Final

_TABLE: Final = {
    "use qp.view.Window, or ti.{name} of quadpy.compat.taichi": "GUI ui",
    "use qp.tools.{name}": "Film PLYWriter VideoManager imread imresize imshow imwrite write_vtk",
    "use qp.math.{name}": """
        ivec2 ivec3 ivec4 mat2 mat3 mat4 uvec2 uvec3 uvec4 vec2 vec3 vec4 pi inf nan cross dot normalize mix clamp
        fract sign smoothstep step isnan isinf
    """,
    "use qp.types.{name}": "matrix struct vector",
    "use qp.algorithms.{name}": "PrefixSumExecutor parallel_sort sort argsort reduce histogram unique",
    "use qp.graph.{name}": "Graph GraphExec capture replay do_while parallel host_function",
    "use qp.simt.{name}": "block subgroup grid warp Tile16x16 Tile32x32",
    "use qp.profiler.{name}": "print_kernel_profiler_info clear_kernel_profiler_info query_kernel_profiler_info",
    "use qp.hazards": "hazard racecheck",
    "use qp.dist": "mpi nccl distributed multi_gpu",
    "use qp.graph.Graph, or ti.graph of quadpy.compat.taichi": "GraphBuilder CompiledGraph cuda_graph",
    "use ti.Texture of quadpy.compat.taichi": "Texture",
    "use qp.types.ndarray": "any_arr ext_arr",
    "use kernel.compile, or `quadpy compile` on the command line": "aot",
    "use qp.kernel": "jit njit wp",
    "use a for loop at the top level of a kernel, which is parallel": "prange parallel_for",
    "use qp.sync": "synchronize",
    "use qp.ndarray, which starts as zeros": "zeros empty array",
    "use qp.ad.{name}": "Tape FwdMode no_grad grad_for grad_replaced clear_all_gradients",
    "use qp.ad.Tape, or kernel.grad": "autodiff tape grad",
    "compute the value in another kernel, called under qp.ad.no_grad()": "stop_grad",
    "use @qp.kernel(graph=True, checkpoints=True)": "resume",
    "use qp.graph.do_while": "graph_do_while",
    "use qp.graph.parallel": "graph_parallel graph_parallel_context",
    "use qp.kernel, which takes pure=True": "pure",
    "use qp.real_func": "experimental",
    "use qp.profiler.{name}, after qp.init(timeline=True)": "timeline_save timeline_clear",
    "use qp.root.pointer, bitmasked or dynamic": "sparse",
    "use qp.types.quant": "quant",
    "use qp.BitpackedFields": "bit_struct BitStruct",
    "quadpy has no meshes as a data structure: use arrays of indices": "Mesh mesh MeshTaichi mesh_local mesh_patch_idx MeshBuilder MeshInstance",
    "use qp.cuda, qp.amdgpu or qp.gpu": "vulkan opengl gles metal dx11 dx12 hip rocm",
    "use qp.cpu": "cc",
    "use to_numpy and from_numpy: quadpy knows nothing of Paddle": "to_paddle from_paddle",
    "use x.dtype, x.element_shape and x.shape": "get_type",
    "make a qp.Matrix: a vector is not one of its rows or columns": """
        cols rows determinant diag frobenius_inner identity inverse trace transpose
    """,
    "use the rows or columns, which are vectors: m[i, :]": "cross dot outer_product",
    "pass a dataclass of Python's: its members become parameters": "ArgPack argpack",
    "use SparseSolver, or scipy.sparse.linalg.cg with numpy.asarray of fields": """
        LinearOperator MatrixFreeBICGSTAB MatrixFreeCG SparseCG
    """,
    "use qp.profile, and Nsight Compute for counters": """
        CuptiMetric collect_kernel_profiler_metrics get_predefined_cupti_metrics set_kernel_profiler_metrics
    """,
    "use qp.algorithms.reduce(x, op)": "reduce_add reduce_min reduce_max",
    "use qp.algorithms.exclusive_scan(x, op)": "exclusive_scan_add exclusive_scan_min exclusive_scan_max",
    "use qp.algorithms.reduce_by_key(keys, values)": "reduce_by_key_add",
    "use qp.algorithms.scratch_size": """
        exclusive_scan_scratch_slots reduce_by_key_scratch_slots reduce_scratch_slots select_scratch_slots sort_scratch_slots
    """,
    "quadpy has no Metal": "interop get_mps_command_queue",
    "use qp.is_extension_enabled": "DeviceCapability",
    "pass members: DLPack has no structs": "to_dlpack",
    "use to_numpy of the members, and a file of NumPy": "print_header sanity_check",
    "read its method from the class": "methods",
}

INSTEAD: Final = {name: text.format(name=name) for text, names in _TABLE.items() for name in names.split()}
"""What a message says of each name."""
