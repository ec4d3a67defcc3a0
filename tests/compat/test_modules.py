"""Modules of the other projects: imports below the packages, programs that run unchanged, names that are not there."""

from __future__ import annotations

import importlib
import subprocess
import sys
import textwrap

import pytest

import quadpy as qp
import quadpy.compat.quadrants as qd
import quadpy.compat.taichi as ti
from quadpy.compat import _modules


def run(tmp_path, text, *command):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(text))
    done = subprocess.run(
        [sys.executable, *command, str(file), "first", "--second"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    return done.stdout + done.stderr


PROGRAM = """
    import sys
    import {0} as ti
    import {0}.math as tm
    from {0}.lang.ops import sqrt
    from {0}.types import vector
    import {0}.lang.kernel_impl

    import beside

    ti.init(arch=ti.cpu)

    @ti.kernel
    def length(v: vector(3, ti.f32)) -> ti.f32:
        return sqrt(tm.dot(v, v)) + ti.math.fract(1.5) + beside.one()

    print(length([0, 3, 4]), ti.__name__, {0}.lang.kernel_impl.kernel is ti.kernel, sys.argv[1:], __name__)
"""
BESIDE = """
    import {0} as ti

    @ti.func
    def one():
        return 1
"""


@pytest.mark.parametrize("name", ["taichi", "quadrants"])
def test_a_program_runs_unchanged(tmp_path, name):
    (tmp_path / "beside.py").write_text(textwrap.dedent(BESIDE.format(name)))
    expected = f"6.5 quadpy.compat.{name} True ['first', '--second'] __main__\n"
    assert run(tmp_path, PROGRAM.format(name), "-m", f"quadpy.compat.{name}") == expected
    (tmp_path / "main.py").write_text(textwrap.dedent(PROGRAM.format(name)))
    done = subprocess.run(
        [sys.executable, "-m", f"quadpy.compat.{name}", "-m", "main", "first", "--second"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout + done.stderr == expected


def test_the_caches_of_imports_can_be_invalidated():
    importlib.invalidate_caches()  # which calls every finder


def test_the_command_line_says_how_it_is_used(tmp_path):
    assert "usage: python -m quadpy.compat.taichi program.py" in run(tmp_path, "", "-m", "quadpy.compat.taichi", "-x")


def test_install_is_for_this_process_and_for_all_modules(tmp_path):
    text = """
        import quadpy.compat.quadrants
        quadpy.compat.quadrants.install()
        quadpy.compat.quadrants.install()
        import quadrants as qd
        import quadrants.lang.impl
        from quadrants import types
        assert qd is quadpy.compat.quadrants
        assert quadrants.lang.impl is qd.lang.impl
        assert types is qd.types
        print(quadrants.lang.impl.get_runtime().default_fp, qd.f64 in quadrants.types.primitive_types.real_types)
    """
    assert run(tmp_path, text) == "f32 True\n"


def test_install_after_the_other_project_is_refused(tmp_path):
    (tmp_path / "taichi.py").write_text("")
    text = """
        import taichi
        import quadpy.compat.taichi
        quadpy.compat.taichi.install()
    """
    assert "QuadpyError: taichi itself is imported already" in run(tmp_path, text)


@pytest.mark.parametrize(("package", "name"), [(ti, "taichi"), (qd, "quadrants")])
def test_missing_names_say_so_when_they_are_used(package, name):
    exec(f"from quadpy.compat.{name}.lang.ops import no_such_op", where := {})
    exec(f"from quadpy.compat.{name} import aot", where)
    module = importlib.import_module(f"quadpy.compat.{name}.no.such.module")
    uses = {
        "lang.ops.no_such_op": [
            lambda: where["no_such_op"](1),
            lambda: where["no_such_op"].attribute,
            lambda: where["no_such_op"][0],
            lambda: isinstance(1, where["no_such_op"]),
            lambda: type("C", (), {}) and exec("class C(no_such_op): pass", where),
        ],
        "no.such.module": [lambda: module.name],
        "aot'; use kernel.compile": [lambda: where["aot"].Module],
    }
    for what, each in uses.items():
        for use in each:
            with pytest.raises(AttributeError, match=f"quadpy's {name} has no attribute '{what}"):
                use()
    with pytest.raises(
        AttributeError, match=rf"quadpy's {name}\.lang\.impl has no attribute 'feild'; did you mean 'field'"
    ):
        _ = package.lang.impl.feild


def test_a_kernel_that_uses_a_missing_name_says_so():
    exec("from quadpy.compat.taichi.lang.ops import no_such_op", globals())

    @ti.kernel
    def compute() -> ti.f32:
        return no_such_op(1.0)  # noqa: F821 - imported above

    with pytest.raises(qp.QuadpyError, match="no_such_op"):
        compute()


def test_modules_have_the_names_of_the_package_and_their_own():
    for package in (ti, qd):
        assert package.lang.impl.current_cfg() is qp.cfg
        assert package.math.vec3 is package.math.mathimpl.vec3 is qp.math.vec3
        assert package.types.primitive_types.f64 is qp.f64
        assert "vec3" in dir(package.math)
        assert package.lang.simt.block.sync is qp.simt.block.sync
    assert ti.ui.window.Window is ti.ui.Window
    assert qd.algorithms.sort is qp.algorithms.sort


@pytest.mark.parametrize("package", ["taichi", "quadrants"])
def test_all_names_of_a_module_can_be_imported(package):
    found: dict[str, object] = {}
    exec(f"from quadpy.compat.{package}.math import *", found)
    assert found["vec3"] is qp.math.vec3
    assert found["dot"] is qp.math.dot
    assert "init" not in found
    exec(f"from quadpy.compat.{package}.lang.ops import *", found)
    assert found["sqrt"] is qp.sqrt


def test_every_module_of_the_layout_can_be_imported():
    for package in ("taichi", "quadrants"):
        for parent, names in _modules._LAYOUT.items():
            for name in names.split():
                path = ".".join(filter(None, ["quadpy.compat", package, parent, name]))
                assert not isinstance(importlib.import_module(path), _modules.Missing), path


SIGN = """
    1111111111111111
    1111100000011111
    1111000000001111
    1110000000000111
    1100000000000011
    1011111000000001
    1011111100000001
    1111001100110001
    1111001100110001
    1111111100000011
    1011111110000001
    1111111111111111
    1111111111111111
    1111111111111111
    1111101111011111
    1111111111111111
"""
"""As Taichi paints it."""


def test_the_sign_of_taichis_examples():
    from quadpy.compat.taichi.examples.patterns import taichi_logo

    sign = qp.field(qp.i32, (16, 16))

    @ti.kernel
    def paint():
        for i, j in sign:
            sign[i, j] = taichi_logo(qp.Vector([i, j]) / 15)

    paint()
    assert ["".join(map(str, row)) for row in sign.to_numpy().tolist()] == SIGN.split()


@pytest.mark.parametrize("name", ["taichi", "quadrants"])
def test_what_most_programs_do_without_is_imported_when_it_is_used(tmp_path, name):
    late = "asyncio quadpy.algorithms quadpy.dist quadpy.graph.building quadpy.hazards quadpy.profiler"
    shown = run(
        tmp_path,
        f"""
        import sys
        import quadpy.compat.{name} as t
        print([name for name in "{late}".split() if name in sys.modules])
        print(sorted(set(t.__all__) - set(dir(t))))
        from quadpy.compat.{name} import *
        from quadpy.compat.{name}.algorithms import parallel_sort
        print(profiler is t.profiler, hazards is t.hazards, t.algorithms.parallel_sort is parallel_sort, t.graph is graph)
        """,
    )
    assert shown.splitlines() == ["[]", "[]", "True True True True"]
