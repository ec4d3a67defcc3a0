"""Loading machine code: what resolves, what is refused, how long code lives."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quadpy.codegen.host import compile_host, host_header
from quadpy.errors import CodegenError
from quadpy.runtime.cpu.elf_symbols import read_symbols
from quadpy.runtime.cpu.libc import KERNEL_FUNCTIONS, c_address
from quadpy.runtime.cpu.loader import load_object

ADD = "define i32 @add(i32 %a, i32 %b) {\n  %s = add i32 %a, %b\n  ret i32 %s\n}\n"


def compiled(ir: str, cpu: str = "native") -> bytes:
    return compile_host(host_header() + ir, cpu)


def test_a_function_runs() -> None:
    code = load_object(compiled(ADD))
    add = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(code.address("add"))
    assert add(40, 2) == 42


def test_constants_and_exact_c_functions_resolve() -> None:
    ir = """
declare double @llvm.floor.f64(double)
@table = private constant [2 x double] [double 0.5, double 100.0]
define double @f(double %x, i64 %i) {
  %at = getelementptr double, ptr @table, i64 %i
  %t = load double, ptr %at
  %d = call double @llvm.floor.f64(double %x)
  %r = fadd double %d, %t
  ret double %r
}
"""
    image = compiled(ir, "x86-64")
    assert "floor" in read_symbols(image).undefined
    code = load_object(image)
    f = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(code.address("f"))
    assert f(-2.5, 0) == -2.5
    assert f(2.5, 1) == 102.0


@pytest.mark.parametrize("name", ["sin", "system", "printf", "no_such_function"])
def test_a_symbol_outside_the_list_is_refused_by_name(name: str) -> None:
    """``sin`` and ``system`` are in the process, and must not resolve all the same."""
    image = compiled(
        f"declare double @{name}(double)\n"
        f"define double @f(double %x) {{\n  %y = call double @{name}(double %x)\n  ret double %y\n}}\n"
    )
    with pytest.raises(CodegenError, match=rf"\b{name}\b"):
        load_object(image)


def test_the_c_library_has_every_function_of_the_list() -> None:
    assert [name for name in sorted(KERNEL_FUNCTIONS) if c_address(name) is None] == []


def test_an_unknown_address_names_what_there_is() -> None:
    with pytest.raises(CodegenError, match=r"'sub'.*add"):
        load_object(compiled(ADD)).address("sub")


@pytest.mark.parametrize("cut", [0, 3, 40, 200])
def test_damaged_objects_are_refused(cut: int) -> None:
    with pytest.raises(CodegenError):
        load_object(compiled(ADD)[:cut])


def test_no_elf_object_is_refused() -> None:
    with pytest.raises(CodegenError, match="ELF"):
        load_object(b"MZ" + bytes(100))


def test_equal_names_in_two_objects_do_not_meet() -> None:
    one = load_object(compiled("define i32 @f() {\n  ret i32 1\n}\n"))
    two = load_object(compiled("define i32 @f() {\n  ret i32 2\n}\n"))
    function = ctypes.CFUNCTYPE(ctypes.c_int32)
    assert (function(one.address("f"))(), function(two.address("f"))()) == (1, 2)


def test_code_goes_when_its_last_user_goes() -> None:
    def executable_bytes() -> int:
        """The system may merge mappings, so their number says nothing."""
        with Path("/proc/self/maps").open() as maps:
            ranges = [line.split()[0].split("-") for line in maps if line.split()[1].startswith("r-x")]
        return sum(int(end, 16) - int(start, 16) for start, end in ranges)

    image = compiled(ADD)
    load_object(image)
    gc.collect()
    before = executable_bytes()
    objects = [load_object(image) for _ in range(50)]
    during = executable_bytes()
    objects.clear()
    gc.collect()
    assert during - before > 25 * 4096
    assert during - executable_bytes() > 25 * 4096


def test_loading_from_many_threads() -> None:
    def work(k: int) -> int:
        code = load_object(compiled(f"define i32 @f() {{\n  ret i32 {k}\n}}\n"))
        return int(ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(40))) == list(range(40))


def test_first_use_from_many_threads_at_once() -> None:
    """What must exist once (the linker, each helper) is made once: an address of a second one would dangle."""
    script = """
    import ctypes, gc, sys, threading
    from quadpy.codegen.host import compile_host, host_header
    from quadpy.runtime.cpu.compiler_rt import helper_address
    from quadpy.runtime.cpu.loader import load_object
    sys.setswitchinterval(1e-6)
    image = compile_host(host_header() + "define i32 @f() { ret i32 7 }")
    start, codes, helpers = threading.Barrier(8), [], []
    def work():
        start.wait()
        codes.append(load_object(image))
        helpers.append(helper_address("__extendhfsf2"))
    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    gc.collect()
    assert len(set(helpers)) == 1
    assert [ctypes.CFUNCTYPE(ctypes.c_int32)(code.address("f"))() for code in codes] == [7] * 8
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, env=os.environ, check=False)
    assert done.returncode == 0


def test_a_child_forked_while_another_thread_compiles_can_compile() -> None:
    script = """
    import os, threading, sys
    from quadpy.codegen.host import compile_host, host_header
    from quadpy.runtime.cpu.loader import load_object
    text = host_header() + "define i32 @f() { ret i32 7 }"
    stop = threading.Event()
    def compile_all_the_time():
        while not stop.is_set():
            load_object(compile_host(text))
    thread = threading.Thread(target=compile_all_the_time)
    thread.start()
    for _ in range(10):
        if (child := os.fork()) == 0:
            load_object(compile_host(text)).address("f")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    thread.join()
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, env=os.environ, check=False)
    assert done.returncode == 0


def test_code_is_still_there_at_exit_for_a_thread_inside_it() -> None:
    """A daemon thread that loops in native code while the interpreter goes down must not fault."""
    script = """
    import ctypes, threading, time
    from quadpy.codegen.host import compile_host, host_header
    from quadpy.runtime.cpu.loader import load_object
    code = load_object(compile_host(host_header() + '''
    define void @forever(ptr %p) {
      br label %l
    l:
      %v = load volatile i32, ptr %p
      br label %l
    }'''))
    word = ctypes.c_int32()
    spin = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address("forever"))
    threading.Thread(target=spin, args=(ctypes.addressof(word),), daemon=True).start()
    time.sleep(0.2)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, env=os.environ, check=False)
    assert done.returncode == 0


def test_addresses_outlive_a_thread_that_loaded_them() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(load_object(compiled(ADD))))
    thread.start()
    thread.join()
    (code,) = found
    add = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)(code.address("add"))  # type: ignore[attr-defined]
    assert add(1, 2) == 3
