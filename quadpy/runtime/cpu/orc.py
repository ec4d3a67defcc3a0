"""Machine code loaded into this process, by LLVM's ORC JIT.

JITLink puts all sections of an object into one block, so that no reference inside it can be out of reach.
(LLVM's older MCJIT finalises an object with a symbol missing, and crashes when the symbol is called.)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Final

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from quadpy.cache.process import cached_code
from quadpy.core.importing import held_by_forks
from quadpy.core.target import elf_triple
from quadpy.errors import CodegenError
from quadpy.runtime.cpu.elf_symbols import read_symbols

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

TRIPLE: Final = elf_triple(llvm.get_process_triple())

LLVM_LOCK: Final = ffi.lib._lock  # noqa: SLF001 - llvmlite has no public name for it
"""The reentrant lock that llvmlite holds in every call.  What must exist once per process is made under it."""

_serial = itertools.count()


class LoadedObject:
    """Code that stays mapped as long as there is a reference to this object.

    Every holder of an address in it must also hold this object, and so must a running call.  At the interpreter's exit
    nothing is unmapped: threads may still be inside.
    """

    __slots__ = ("_addresses", "_tracker")

    def __init__(self, tracker: llvm.ResourceTracker, addresses: Mapping[str, int]) -> None:
        self._tracker = tracker  # unloads the code when it is collected, except at exit
        self._addresses = addresses

    @property
    def addresses(self) -> Mapping[str, int]:
        """Where each symbol is."""
        return self._addresses

    def address(self, name: str) -> int:
        """The address of symbol ``name``; CodegenError if the object defines no such symbol."""
        if (found := self._addresses.get(name)) is None:
            have = ", ".join(sorted(self._addresses)) or "nothing"
            raise CodegenError(f"the machine code defines no {name!r}, it defines {have}")
        return found


def link(image: bytes, imports: Mapping[str, int]) -> LoadedObject:
    """Loads the relocatable object ``image``; ``imports`` are the addresses of the symbols that it needs.

    CodegenError if it needs a name that ``imports`` lacks: the linker would take such a name from anywhere in the
    process.  Safe from any thread.
    """
    symbols = read_symbols(image)
    if missing := sorted(set(symbols.undefined) - imports.keys()):
        raise CodegenError(
            f"the machine code needs {', '.join(missing)}, which quadpy does not provide",
            hint="this is a bug in quadpy's code generation: please report it with the kernel",
        )
    library = llvm.JITLibraryBuilder().add_object_img(image)
    for name in symbols.undefined:
        library.import_symbol(name, imports[name])
    for name in symbols.defined:
        library.export_symbol(name)
    try:
        with LLVM_LOCK:
            tracker = library.link(_jit(), f"quadpy.{next(_serial)}")
    except RuntimeError as error:
        raise CodegenError(f"LLVM cannot load the machine code: {error}") from error
    return LoadedObject(tracker, {name: tracker[name] for name in symbols.defined})


def assemble(ir_text: str, opt: int = 2) -> bytes:
    """The object of hand-written IR (without layout and triple), for any CPU of the host's kind; it is kept on disk.

    For quadpy's own helpers and thread pool; kernels come from code generation.  ``opt`` is the effort of instruction
    selection, which takes most of the time here; nothing else is optimised.
    """
    return cached_code(f"{TRIPLE} {opt}\n{ir_text}", lambda: _assembled(ir_text, opt))


def _assembled(ir_text: str, opt: int) -> bytes:
    machine = _plain_machine(opt)
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{TRIPLE}"\n'
    with llvm.create_context() as context, llvm.parse_assembly(header + ir_text, context) as module:
        module.verify()
        return bytes(machine.emit_object(module))


def _plain_machine(opt: int) -> llvm.TargetMachine:
    cpu = "x86-64" if TRIPLE.startswith("x86_64") else "generic"
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu, opt=opt, reloc="pic", codemodel="small")


@functools.cache
def _jit() -> llvm.LLJIT:
    """The only linker of the process, made at first use; call it with LLVM_LOCK held."""
    return llvm.create_lljit_compiler(_plain_machine(2), use_jit_link=True, suppress_errors=True)


held_by_forks(LLVM_LOCK.__enter__, functools.partial(LLVM_LOCK.__exit__, None, None, None))
