"""The variables of a kernel as those of Python functions: the kernel's, and inside it those of inlined functions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from quadpy.interpreter.text import MARK, OWN, Origin, identifier
from quadpy.ir import nodes as ir
from quadpy.ir.walk import walk


class Variables:
    """All variables of a kernel, and in which functions they occur.

    ``arguments`` are the names of the outermost function's parameters, ``functions`` the names of the functions that it
    calls, ``origins`` the source functions of those in the text; ``renamed`` are arguments that the loop around has
    copied; ``prints`` collects the output of the loop around, and is None if output is shown at once.
    """

    def __init__(self) -> None:
        self.numbers: Iterator[int] = count()
        self.used: dict[str, set[Scope]] = {}
        self.arguments: dict[str, None] = {}
        self.functions: dict[str, str] = {}
        self.origins: dict[str, Origin] = {}
        self.renamed: dict[str, str] = {}
        self.prints: str | None = None

    def owner(self, name: str) -> Scope:
        """The innermost function around all functions that use the variable."""
        paths: list[tuple[Scope, ...]] = [scope.path for scope in self.used[name]]
        shared: list[Scope] = [level[0] for level in zip(*paths, strict=False) if len(set(level)) == 1]
        return shared[-1]


class Scope:
    """One Python function.

    ``python_name`` is its name in the text, ``locals`` are arguments under names other than those of its variables;
    ``stale`` are the names of the source whose variables have changed since they were bound.
    """

    def __init__(self, variables: Variables, origin: Origin, outer: Scope | None = None) -> None:
        self.variables, self.origin = variables, origin
        self.path: tuple[Scope, ...] = (*(outer.path if outer else ()), self)
        name = origin.name if origin.name.isidentifier() else "function"
        self.python_name = f"{name}{OWN}p{len(variables.origins)}"
        variables.origins[self.python_name] = origin
        self.assigned: dict[str, ir.Var] = {}
        self.locals: set[str] = set()
        self.stale: dict[str, ir.Seen] = {}
        self.seen: dict[str, tuple[ir.Seen, frozenset[str]]] = {}

    def show(self, name: str, seen: ir.Seen) -> None:
        """The name of the source stands for ``seen`` from here on."""
        self.seen[name] = seen, frozenset(map(self.name, _variables(seen)))
        self.stale.pop(name, None)

    def changed(self, variable: str) -> None:
        """Note that a variable has changed, and so have the names that show it, here and in the functions around."""
        for scope in self.path:
            for name, (seen, variables) in scope.seen.items():
                if variable in variables:
                    scope.stale[name] = seen

    def name(self, var: ir.Var) -> str:
        """The variable's name in Python."""
        name = identifier(var.name)
        return name if MARK in name else name + MARK

    def read(self, var: ir.Var) -> str:
        name = self.name(var)
        self.variables.used.setdefault(name, set()).add(self)
        return name

    def assign(self, var: ir.Var) -> str:
        name = self.read(var)
        self.assigned[name] = var
        return name

    def given(self, name: str) -> str:
        """The value that the kernel, or the loop around, got under this name."""
        name = identifier(name)
        name = name if OWN in name else f"{name}{OWN}given"
        if name in self.variables.renamed:
            return self.variables.renamed[name]
        if not any(name in scope.locals for scope in self.path):
            self.variables.arguments[name] = None
        return name

    def function(self, name: str) -> str:
        return self.variables.functions.setdefault(name, f"_{OWN}f{len(self.variables.functions)}")

    def temporary(self) -> str:
        return f"_{OWN}t{next(self.variables.numbers)}"

    def outside(self) -> list[str]:
        """The variables of outer functions that it assigns."""
        return [name for name in self.assigned if self.variables.owner(name) is not self]

    def unbound(self) -> Iterator[str]:
        """Its variables that only inner functions assign."""
        for name, scopes in self.variables.used.items():
            if len(scopes) > 1 and name not in self.assigned and self.variables.owner(name) is self:
                yield name


def _variables(seen: ir.Seen) -> Iterator[ir.Var]:
    """The variables whose values ``seen`` shows."""
    match seen:
        case ir.VectorSeen(elems=elems):
            for elem in elems:
                yield from _variables(elem)
        case ir.StructSeen(members=members):
            for _, member in members:
                yield from _variables(member)
        case ir.ArraySeen() | ir.ObjectSeen():
            pass
        case _:
            yield from (node.var for node in walk(seen) if isinstance(node, ir.VarRead))
