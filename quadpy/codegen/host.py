"""From LLVM IR as text to a relocatable ELF object for a CPU, or its assembly.

``cpu`` is ``native``, the host's own name, one of BASELINES, or ``arm64`` or an x86-64 level for a machine of another kind.
The floating-point freedom of a kernel (contraction, reassociation) is written on its instructions, so there is no switch
for it here.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import llvmlite.binding as llvm

from quadpy.codegen.host_repairs import may_need_repair, repaired_text
from quadpy.core.target import CPU_MACHINES, elf_triple, machine_of
from quadpy.errors import CodegenError, UnknownTargetError

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

HOST_TRIPLE: Final = elf_triple(llvm.get_process_triple())

BASELINES: Final = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "generic")
"""CPU names that may be asked for besides the host's own.  LLVM ends the process on a name that it does not
know, so no other name may reach it; ``generic`` is the baseline of hosts that are not x86-64."""

_machines = threading.local()


@functools.cache
def initialize_all() -> None:
    """All targets: 1.4 ms, and llvmlite exports no way to ask for one other than the host's."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def triple_of(cpu: str) -> str:
    """The triple of ``cpu``: the host's own, or that of a Linux of another machine."""
    machine = machine_of(cpu)
    return HOST_TRIPLE if machine == machine_of("native") else f"{machine}-unknown-linux-gnu"


_FLUSHING: Final = ("avx512bf16", "avxneconvert", "avx10.2")
"""Features whose bfloat16 instructions turn subnormal numbers into zeros, unasked: with them ``fptrunc`` to
bfloat is wrong for 2^24 floats.  Without them LLVM calls a helper, so code generation rounds itself."""


_NO_SCATTER: Final = "+prefer-no-scatter"
"""An AVX-512 instruction that stores to several addresses is no faster than single stores; on AMD's processors it is far slower."""
_NO_GATHER: Final = "+prefer-no-gather"


@functools.cache
def _host_cpu() -> tuple[str, str]:
    name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    features.update(dict.fromkeys(_FLUSHING, False))
    tuning = [_NO_SCATTER] * bool(features.get("avx512f")) + [_NO_GATHER] * name.startswith("znver")
    return name, ",".join([features.flatten(), *tuning])


def resolve_cpu(cpu: str = "native") -> tuple[str, str]:
    """LLVM's CPU name and feature string for ``cpu``: ``native``, the host's own name, or one of BASELINES."""
    host, features = _host_cpu()
    if cpu in ("native", host):
        return host, features
    if cpu == "arm64":
        return "generic", ""
    known = [name for name in BASELINES if name in CPU_MACHINES or not HOST_TRIPLE.startswith("x86_64")]
    if cpu not in known:
        raise UnknownTargetError(
            f"there is no CPU target {cpu!r} here; the targets are native, {', '.join([host, *known, 'arm64'])}"
        )
    return cpu, _NO_SCATTER if cpu == "x86-64-v4" else ""


def host_spec_string(cpu: str = "native") -> str:
    """All that determines the code for ``cpu`` (LLVM's version, triple, name, features), as text for cache keys."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return ";".join((f"llvm-{version}", triple_of(cpu), *resolve_cpu(cpu)))


def host_machine(cpu: str, features: str, opt: int = 3, triple: str = HOST_TRIPLE) -> llvm.TargetMachine:
    """The calling thread's target machine for LLVM's ``cpu`` and ``features``; see ``resolve_cpu``."""
    cache: dict[tuple[str, str, int, str], llvm.TargetMachine] = _machines.__dict__.setdefault("by_spec", {})
    spec = (cpu, features, opt, triple)
    if spec not in cache:
        if triple != HOST_TRIPLE:
            initialize_all()
        target = llvm.Target.from_triple(triple)
        # Position-independent small code: JITLink puts an object's sections side by side and reaches
        # symbols that are far away through its own table.
        cache[spec] = target.create_target_machine(cpu, features, opt, reloc="pic", codemodel="small")
    return cache[spec]


@functools.cache
def _header(triple: str) -> str:
    return f'target datalayout = "{host_machine("", "", 0, triple).target_data}"\ntarget triple = "{triple}"\n'


def host_header(cpu: str = "native") -> str:
    """The two lines that IR text must begin with: parsed without them, types have wrong alignments."""
    return _header(triple_of(cpu))


def compile_host(ir_text: str, cpu: str = "native", *, opt: int = 3) -> bytes:
    """A relocatable object of ``ir_text`` (which begins with ``host_header(cpu)``), optimised for ``cpu``.

    CodegenError if LLVM rejects the text.  Safe from any thread.
    """
    machine = host_machine(*resolve_cpu(cpu), opt, triple_of(cpu))
    with _optimised(ir_text, machine, opt) as module:
        return bytes(machine.emit_object(module))


def compile_host_asm(ir_text: str, cpu: str = "native", *, opt: int = 3) -> str:
    """The assembly of the object that ``compile_host`` makes, for a reader."""
    machine = host_machine(*resolve_cpu(cpu), opt, triple_of(cpu))
    with _optimised(ir_text, machine, opt) as module:
        return str(machine.emit_assembly(module))


@contextmanager
def parsed(ir_text: str) -> Iterator[llvm.ModuleRef]:
    """The module of ``ir_text``, verified, in a context of its own: LLVM's global one is not for several threads.

    CodegenError if LLVM refuses it.  Both end here, the module before its context.  In the other order, which the
    garbage collector may choose for what an exception's traceback keeps in a cycle, LLVM ends the process.
    """
    with ExitStack() as ends:
        try:
            context = ends.enter_context(llvm.create_context())
            module = ends.enter_context(llvm.parse_assembly(ir_text, context))
            module.verify()
        except RuntimeError as error:
            raise CodegenError(f"LLVM refused a module: {error}", hint="this is a bug in quadpy") from error
        yield module


@contextmanager
def _optimised(ir_text: str, machine: llvm.TargetMachine, opt: int) -> Iterator[llvm.ModuleRef]:
    """A fresh module (emission rewrites a module in place), optimised."""
    with parsed(ir_text) as module:
        builder = llvm.create_pass_builder(machine, _tuning(opt, _largest_function(ir_text)))
        builder.getModulePassManager().run(module, builder)
        if not (may_need_repair(ir_text) and (changed := repaired_text(module))):
            yield module
            return
    with parsed(changed) as module:
        yield module


_MOST_VECTORISED: Final = 6_000
"""Most lines of a function that LLVM vectorises; the time it takes grows with their square."""


def _largest_function(ir_text: str) -> int:
    """Lines of the longest function before inlining, except the entry function, which has only short loops."""
    internal = (part for part in ir_text.split("\n}\n") if "define internal" in part)
    return max((part.count("\n") for part in internal), default=0)


def _tuning(opt: int, lines: int) -> llvm.PipelineTuningOptions:
    """Full effort, except for functions so long that it would take minutes."""
    # Vector width stays what LLVM prefers for the CPU: 256 bits instead of 512 cost Zen 5 up to 1.6x.
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    vectorise = opt >= 2 and lines <= _MOST_VECTORISED
    tuning.loop_vectorization = tuning.slp_vectorization = vectorise
    tuning.loop_interleaving = tuning.loop_unrolling = vectorise
    return tuning
