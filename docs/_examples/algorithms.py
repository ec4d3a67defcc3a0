"""Examples of algorithms."""

from __future__ import annotations

import numpy as np

import quadpy as qp


def example_reduce() -> None:
    x = np.array([[3, 1, 2], [5, 4, 6]], np.float32)
    print(qp.algorithms.reduce(x)[None], qp.algorithms.reduce(x, "max", axis=1).to_numpy())  # 21.0 [3. 6.]


def example_argmin() -> None:
    x = np.array([3, 1, 2, 1], np.float32)
    print(qp.algorithms.argmin(x)[None], qp.algorithms.argmax(x)[None])  # 1 0


def example_inclusive_scan() -> None:
    x = np.array([3, 1, 2], np.int32)
    print(qp.algorithms.inclusive_scan(x).to_numpy())  # [3 4 6]


def example_exclusive_scan() -> None:
    x = np.array([3, 1, 2], np.int32)
    print(qp.algorithms.exclusive_scan(x).to_numpy())  # [0 3 4]
    print(qp.algorithms.exclusive_scan(x, "max", initial=2).to_numpy())  # [2 3 3]


def example_inclusive_scan_by_key() -> None:
    keys, values = np.array([7, 7, 8, 8], np.int32), np.array([1, 2, 3, 4], np.int32)
    print(qp.algorithms.inclusive_scan_by_key(keys, values).to_numpy())  # [1 3 3 7]
    print(qp.algorithms.exclusive_scan_by_key(keys, values).to_numpy())  # [0 1 0 3]


def example_reduce_by_key() -> None:
    keys, values = np.array([7, 7, 8], np.int32), np.array([1, 2, 3], np.int32)
    found = qp.algorithms.reduce_by_key(keys, values)
    assert isinstance(found, qp.algorithms.ReducedByKey)
    n = found.count[None]
    print(found.keys.to_numpy()[:n], found.values.to_numpy()[:n])  # [7 8] [3 3]


def example_sort() -> None:
    x = np.array([3, 1, 2], np.float32)
    print(qp.algorithms.sort(x, descending=True).to_numpy())  # [3. 2. 1.]


def example_sort_pairs() -> None:
    keys, values = np.array([3, 1, 2], np.int32), np.array([30, 10, 20], np.int32)
    ordered, moved = qp.algorithms.sort_pairs(keys, values)
    print(ordered.to_numpy(), moved.to_numpy())  # [1 2 3] [10 20 30]


def example_argsort() -> None:
    print(qp.algorithms.argsort(np.array([3, 1, 2], np.float32)).to_numpy())  # [1 2 0]


def example_select() -> None:
    x = np.array([5, 2, 7, 1], np.int32)
    found = qp.algorithms.select(x, x > 3)
    assert isinstance(found, qp.algorithms.Selected)
    print(found.values.to_numpy()[: found.count[None]])  # [5 7]


def example_partition() -> None:
    x = np.array([5, 2, 7, 1], np.int32)
    values, count = qp.algorithms.partition(x, x > 3)
    print(values.to_numpy(), count[None])  # [5 7 2 1] 2


def example_unique() -> None:
    values, count = qp.algorithms.unique(np.array([3, 1, 3, 1], np.int32))
    print(values.to_numpy()[: count[None]])  # [1 3]


def example_unique_consecutive() -> None:
    values, count = qp.algorithms.unique_consecutive(np.array([3, 3, 1, 3], np.int32))
    print(values.to_numpy()[: count[None]])  # [3 1 3]


def example_run_length_encode() -> None:
    runs = qp.algorithms.run_length_encode(np.array([3, 3, 1, 3], np.int32))
    assert isinstance(runs, qp.algorithms.Runs)
    n = runs.count[None]
    print(runs.values.to_numpy()[:n], runs.lengths.to_numpy()[:n])  # [3 1 3] [2 1 1]


def example_histogram() -> None:
    counts, edges = qp.algorithms.histogram(np.array([0.1, 0.2, 0.9], np.float32), 2, (0.0, 1.0))
    print(counts.to_numpy(), edges.to_numpy())  # [2 1] [0.  0.5 1. ]


def example_bincount() -> None:
    print(qp.algorithms.bincount(np.array([0, 2, 2], np.int32), 4).to_numpy())  # [1 0 2 0]


def example_permutation() -> None:
    print(sorted(qp.algorithms.permutation(5, seed=1).to_numpy().tolist()))  # [0, 1, 2, 3, 4]


def example_shuffle() -> None:
    x = np.arange(100, dtype=np.int32)
    y = qp.algorithms.shuffle(x, seed=1).to_numpy()
    print(sorted(y.tolist()) == x.tolist())  # True


def example_scratch_size() -> None:
    x = qp.ndarray(qp.f32, 1000)
    scratch = qp.ndarray(qp.u8, qp.algorithms.scratch_size(qp.algorithms.sort, x))
    for _ in range(3):  # allocates nothing
        qp.algorithms.sort(x, out=x, scratch=scratch)


def example_parallel_sort() -> None:
    keys = qp.field(qp.i32, 3)
    keys.from_numpy(np.array([3, 1, 2], np.int32))
    qp.algorithms.parallel_sort(keys)
    print(keys.to_numpy())  # [1 2 3]


def example_PrefixSumExecutor() -> None:
    x = qp.field(qp.i32, 4)
    x.fill(1)
    qp.algorithms.PrefixSumExecutor(4).run(x)
    print(x.to_numpy())  # [1 2 3 4]
