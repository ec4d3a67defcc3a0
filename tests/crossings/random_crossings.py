"""Programs that cross two or three features of quadpy, drawn by number, against what Python computes.

``python tests/crossings/random_crossings.py --count 1000`` runs them on the CPU, ``--arch cuda`` or ``amdgpu`` on a GPU;
``--pair structs,replay`` draws only programs with both, and ``--table`` prints how often each pair was in a program.  The
features come from the number, each pair in turn and a third one at random.  A failure prints a program that shows it alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from itertools import combinations
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "language"), str(HERE.parent / "support")]

from crossed_programs import APART, FEATURES, PAIRS, features_of, is_possible, program_of  # noqa: E402
from program_files import module_of  # noqa: E402
from random_programs import differing  # noqa: E402

HEAD = """\
import numpy as np
import quadpy as qp
from crossing_helpers import counted, fails, flat, forked, interrupted, meets, put, strided
from thread_ranks import run_ranks


"""


def wrong_with(program, folder, arch="cpu"):
    """None, or what is wrong."""
    expected = program.expected()
    try:
        with warnings.catch_warnings(), module_of(f"crossing_{program.seed}", HEAD + program.text, folder) as module:
            warnings.simplefilter("error")
            results = module.main(arch)
    except Exception:  # noqa: BLE001 - whatever a program raises is a finding
        return traceback.format_exc()
    for number, found in enumerate(results):
        if wrong := differing(found, expected):
            return f"result {number}: {wrong}"
    return None


def alone(program, arch):
    """The program as a file to be run by itself, with the tests' folders in PYTHONPATH."""
    expected = "\n".join(
        f"expected['{name}'] = np.array({x.tolist()}, '{x.dtype}').reshape({x.shape})".replace("nan", "np.nan").replace(
            "inf", "np.inf"
        )
        for name, x in program.expected().items()
    )
    return (
        f"# PYTHONPATH=tests/crossings:tests/language:tests/support\n# {', '.join(program.features)}\n{HEAD}{program.text}\n\n"
        f"expected = {{}}\n{expected}\n"
        f"if __name__ == '__main__':\n    from random_programs import differing\n\n"
        f"    for found in main('{arch}'):\n        assert differing(found, expected) is None, differing(found, expected)\n"
    )


def run(seeds, arch="cpu", pair=None, say=print):
    """The numbers of programs that fail, and how often each pair was in a program; ``say`` gets a text for each failure."""
    failed, pairs = [], Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            program = program_of(seed, features_of(seed, pair, arch), arch)
            pairs.update(combinations(program.features, 2))
            if wrong := wrong_with(program, folder, arch):
                failed.append(seed)
                say(f"program {seed}: {', '.join(program.features)}\n{wrong}\n{alone(program, arch)}")
    return failed, pairs


def table(pairs):
    """The counts, a row for each feature."""
    width = max(map(len, FEATURES))
    rows = [" " * width + "".join(f" {f[:5]:>5}" for f in FEATURES)]
    for first in FEATURES:
        cells = (f"{_count(pairs, first, second):>6}" for second in FEATURES)
        rows.append(f"{first:>{width}}" + "".join(cells))
    rows += [f"{' and '.join(sorted(pair))}: {why}" for pair, why in APART.items()]
    return "\n".join(rows)


def _count(pairs, first, second):
    if first == second:
        return ""
    return "-" if frozenset({first, second}) in APART else pairs[first, second] + pairs[second, first]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="the number of the first program")
    parser.add_argument("--count", type=int, default=len(PAIRS))
    parser.add_argument("--arch", choices=["cpu", "cuda", "amdgpu"], default="cpu")
    parser.add_argument("--pair", help="two features, with a comma between them")
    parser.add_argument("--table", action="store_true", help="print how often each pair was in a program")
    given = parser.parse_args()
    pair = tuple(given.pair.split(",")) if given.pair else None
    failed, pairs = run(range(given.seed, given.seed + given.count), given.arch, pair)
    if given.table:
        print(table(pairs))
    print(f"{given.count} programs on {given.arch}: {len(failed)} failures {failed}; least of a pair: "
          f"{min((_count(pairs, *p) for p in PAIRS if is_possible(p, given.arch)), default=0)}")  # fmt: skip
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
