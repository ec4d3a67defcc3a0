"""The programs of the guide to torch and JAX, where these are installed."""

from __future__ import annotations

import contextlib
import linecache
import re
from pathlib import Path

import pytest

import quadpy as qp

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "torch.md"


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_the_programs_of_the_guide(library):
    module = pytest.importorskip(library)
    qp.init(arch=qp.cpu)
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    wanted = [block for block in blocks if ("jax" in block or "numpy" in block) == (library == "jax")]
    program = "\n".join(wanted if library == "torch" else [kernel_of(blocks[0]), *wanted])
    linecache.cache[str(PAGE)] = len(program), None, program.splitlines(keepends=True), str(PAGE)
    # The kernels run on the CPU; JAX would put its arrays on a GPU where it finds one.
    with module.default_device(module.devices("cpu")[0]) if library == "jax" else contextlib.nullcontext():
        exec(compile(program, str(PAGE), "exec"), {"__name__": "guide"})


def kernel_of(block):
    """The kernel that both parts use, without torch."""
    return block.replace("import torch\n", "").partition("\n\nscale_into")[0]
