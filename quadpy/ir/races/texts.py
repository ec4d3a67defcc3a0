"""Terms as users read them."""

from __future__ import annotations

from typing import Final

from quadpy.ir.races.terms import Atom, Term, Terms, parts_of

__all__ = ["term_text"]

_OPERATORS: Final = {"floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}


def term_text(terms: Terms, term: Term) -> str:
    """``term`` in Python's syntax."""
    text = ""
    for monomial, factor in sorted(parts_of(term), key=lambda part: (not part[0], part[0])):
        factors = [_atom_text(terms, terms.atoms[number]) for number in monomial]
        if abs(factor) != 1 or not factors:
            factors.insert(0, str(abs(factor)))
        sign = "-" if factor < 0 else "+"
        product = "*".join(factors)
        text += f" {sign} {product}" if text else product if factor > 0 else f"-{product}"
    return text or "0"


def _atom_text(terms: Terms, atom: Atom) -> str:
    operands = [term_text(terms, operand) for operand in atom.operands]
    if atom.name in _OPERATORS:
        return "(" + f" {_OPERATORS[atom.name]} ".join(f"({o})" if " " in o else o for o in operands) + ")"
    if atom.name.startswith("shape("):
        array, axis = atom.name[6:-1].split(", ")
        return f"{array}.shape[{axis}]"
    if atom.name.startswith("load "):
        return f"{atom.name[5:].partition('.')[0]}[{', '.join(operands)}]"
    name = atom.name.partition(".")[0]
    return f"{name}({', '.join(operands)})" if operands else name
