"""What the instructions of a kernel are for, counted from LLVM's assembly text."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

__all__ = ["INSTRUCTION_CLASSES", "classify", "instruction_mix"]

_RULES: Final = (
    ("atomics", r"(global|flat|buffer|scratch|image|cluster)_atomic_|global_(load|store)_block_atomic"),
    ("flat", r"flat_(load|store)"),
    ("vmem load", r"(global|buffer|tbuffer|scratch|image|cluster)_load_"),
    ("vmem store", r"(global|buffer|tbuffer|scratch|image)_store_"),
    ("lds", r"ds_"),
    ("smem", r"s_(load|store|buffer_load|buffer_store|scratch|memtime|memrealtime|dcache|prefetch)"),
    ("wait", r"s_(wait|delay_alu|nop|sleep)"),
    ("branch", r"s_(branch|cbranch|call|set_?pc|swap_?pc|subvector_loop)"),
    (
        "other",
        r"s_(barrier|endpgm|clause|code_end|icache|inst_prefetch|sendmsg|set(halt|kill|prio|_gpr|_vgpr)|trap|t?trace)",
    ),
    ("salu", r"s_"),
    ("valu", r"v_"),
)  # the first that matches counts
_PATTERN: Final = re.compile("|".join(f"(?P<c{number}>{pattern})" for number, (_, pattern) in enumerate(_RULES)))

INSTRUCTION_CLASSES: Final = (
    "valu", "salu", "vmem load", "vmem store", "smem", "lds", "atomics", "flat", "branch", "wait", "other",
)  # fmt: skip
_LABEL: Final = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s";:]+)):')


def classify(mnemonic: str) -> str:
    """The class of one instruction; cache maintenance and what no rule knows is ``other``."""
    match = _PATTERN.match(mnemonic)
    return _RULES[int(str(match.lastgroup)[1:])][0] if match else "other"


def instruction_mix(assembly: str, kernel: str) -> dict[str, int]:
    """How many instructions of each class ``kernel`` has, without those of functions that it calls.

    All zero where ``assembly`` has no such function.
    """
    counts: Counter[str] = Counter()
    inside = False
    for line in assembly.splitlines():
        if label := _LABEL.match(line):
            name = label["plain"] if label["quoted"] is None else label["quoted"]
            inside = name == kernel or (inside and name.startswith(".LBB"))
        elif inside and (text := line.strip()) and text[0] not in ".;":  # neither a directive nor a comment
            counts[classify(text.split(maxsplit=1)[0])] += 1
    return {name: counts[name] for name in INSTRUCTION_CLASSES}
