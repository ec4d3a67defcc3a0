"""Boxes against what kernels at random touch when they run."""

from __future__ import annotations

import importlib.util
import random

from checking import check_kernel
from random_indices import random_kernel

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.jit.offline import trace_for


def test_boxes_contain_what_is_touched_and_certain_ones_are_touched_whole(tmp_path, pytestconfig):
    qp.init(arch=qp.cpu)
    boxes = certain = 0
    for seed in range(2 * pytestconfig.getoption("--random-kernels")):
        file = tmp_path / f"kernel{seed}.py"
        file.write_text(random_kernel(seed), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        try:
            kernel = trace_for(module.k, {}).kernel
        except QuadpyError:  # such as an index that is out of bounds at compile time
            continue
        found = check_kernel(kernel, random.Random(seed), launches=4, runs=3)
        boxes, certain = boxes + found[0], certain + found[2]
    assert certain > boxes // 4, "most boxes say too little to be a test"
