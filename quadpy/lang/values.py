"""The values that an expression of a kernel can have during compilation.

A value is one of the kinds below.  Run-time values have classes of the tracer: a scalar is an IR expression; vectors,
arrays, elements and their methods are the classes here.  Anything else exists only at compile time, and is the Python
object itself: numbers, containers (which may hold run-time values), types, functions, modules, the user's objects.

Operators, attributes, subscripts and calls are tables by kind.  A new kind of value is a class in ``Traced``, a member of
``Kind``, and a row in each of these tables.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, overload

from quadpy.core.dtypes import Scalar
from quadpy.core.light import dataclass
from quadpy.core.output import Field
from quadpy.core.records import Plain, RecordType, Shape, count_of, shape_of_member
from quadpy.ir.nodes import Expr, Node
from quadpy.ir.types import Array
from quadpy.ir.walk import unhandled
from quadpy.lang.arguments import ContainerArg, MemberPath
from quadpy.lang.fingerprints import is_our_module

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@dataclass(frozen=True, slots=True)
class Vec:
    """A vector ``(n,)`` or matrix ``(n, m)``: its scalars, row-major, all of one type."""

    shape: tuple[int, ...]
    elems: tuple[Expr, ...]

    @property
    def type(self) -> Scalar:
        return self.elems[0].type

    def row(self, i: int) -> Vec:
        """Row ``i`` of a matrix."""
        m = self.shape[1]
        return Vec((m,), self.elems[i * m : (i + 1) * m])

    def column(self, j: int) -> Vec:
        """Column ``j`` of a matrix."""
        return Vec(self.shape[:1], self.elems[j :: self.shape[1]])


@dataclass(frozen=True, slots=True)
class Record:
    """A struct: its scalars, member by member, each of the type that ``shape`` gives it."""

    shape: RecordType
    elems: tuple[Expr, ...]

    def member(self, name: str) -> Expr | Vec | Record | None:
        """The value of a member; None if there is no such member."""
        if (found := self.shape.window(name)) is None:
            return None
        first, member = found
        return shaped(shape_of_member(member), self.elems[first : first + len(member.types)])


@dataclass(frozen=True, slots=True)
class ArrayRef:
    """An array parameter or field; ``offset`` is what a field subtracts from each index.

    A field stored in blocks has an axis of ``type`` for each level of each of its axes: ``blocks`` are their extents.
    ``packed`` is a quantised field, whose numbers are parts of words: see ``lang.quantised``.
    Its elements have the shape ``element``, and their first scalar is number ``first`` in the array: in an array of
    structs, an element may be a single member of each struct.  Indices of a ``clamped`` array are moved into its range.
    A slice of an array has ``count`` elements, the first of which is element ``begin`` of the whole array.
    """

    name: str
    type: Array
    offset: tuple[int, ...] = ()
    writable: bool = True
    element: Shape = ()
    first: int = 0
    blocks: tuple[tuple[int, ...], ...] = ()
    clamped: bool = False
    begin: Expr | int = 0
    count: Expr | int | None = None
    packed: Any = None

    @property
    def ndim(self) -> int:
        """The number of indices of an element."""
        return len(self.blocks) or self.type.ndim

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The extents; None where they are run-time values."""
        if self.count is not None:
            return (self.count,) if isinstance(self.count, int) else None
        return tuple(map(math.prod, self.blocks)) if self.blocks else self.type.shape

    @property
    def numbers(self) -> range:
        """The numbers of the scalars of an element."""
        return range(self.first, self.first + count_of(self.element))

    @property
    def scalar(self) -> Scalar:
        """The type of an element's first scalar; except in structs, the type of all its scalars."""
        return self.type.layout.at(self.first)[0].scalar

    def member(self, name: str) -> ArrayRef | None:
        """This member of each element, as an array; None if there is no such member."""
        found = self.element.window(name) if isinstance(self.element, RecordType) else None
        if found is None:
            return None
        first, member = found
        return replace(self, element=shape_of_member(member), first=self.first + first)


@dataclass(frozen=True, slots=True)
class ElementRef:
    """An element of an array that is not yet read, or a part of one.

    ``numbers`` are its components, of the shape ``shape``; ``steps`` pick parts of these at run time.
    Where ``inside`` is false the element does not exist, and must not be accessed.
    """

    array: ArrayRef
    index: tuple[Expr, ...]
    numbers: tuple[int, ...]
    shape: Shape
    steps: tuple[Step, ...] = ()
    inside: Expr | None = None

    @property
    def types(self) -> tuple[Scalar, ...]:
        """The types of the scalars ``numbers``."""
        return tuple(self.array.type.layout.at(k)[0].scalar for k in self.numbers)

    @property
    def chooses(self) -> bool:
        """Whether a run-time index chooses the component, row or column."""
        return len(self.steps) == 1 and isinstance(self.shape, tuple) and not isinstance(self.steps[0], str)

    def member(self, name: str) -> ElementRef | None:
        """The place of a member; None if there is no such member."""
        found = self.shape.window(name) if isinstance(self.shape, RecordType) else None
        if found is None:
            return None
        first, member = found
        return replace(self, numbers=self.numbers[first : first + len(member.types)], shape=shape_of_member(member))


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """``receiver.name`` before it is called, where the receiver is a run-time value."""

    receiver: Vec | ArrayRef
    name: str


@dataclass(frozen=True, slots=True)
class TextField:
    """A run-time value in a text: how it is shown, and its words."""

    field: Field
    words: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text with run-time values in it, which can be printed."""

    parts: tuple[str | TextField, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """A dataclass among the arguments, found under ``path``: only its members have values."""

    path: MemberPath
    arg: ContainerArg


Traced: TypeAlias = Expr | Vec | Record | ArrayRef | ElementRef | BoundMethod | Text | Container
"""Values that have a class of the tracer: no Python function may see them."""
Value: TypeAlias = object
"""A ``Traced``, or a compile-time Python object."""
Step: TypeAlias = str | tuple[Value, ...]
"""Letters or indices that pick a part of a vector or matrix."""
Number: TypeAlias = int | float
"""A literal of the kernel; a bool is an int."""
ScalarValue: TypeAlias = Expr | Number
Numeric: TypeAlias = ScalarValue | Vec | Record


class VectorType(Protocol):
    """A type made by ``qp.types.vector`` or ``qp.types.matrix``."""

    dtype: object
    element_shape: tuple[int, ...]


def is_vector_type(value: object) -> TypeIs[VectorType]:
    return getattr(value, "__quadpy_constructor__", None) == "type" and not isinstance(value, type)


class StructType(Protocol):
    """A type made by ``qp.types.struct`` or ``qp.dataclass``."""

    methods: Mapping[str, object]

    def record(self, scalar_type: Callable[[object], object]) -> RecordType:
        """The struct with all its types known; ``scalar_type`` says what float, int and bool mean."""

    def default(self, name: str) -> object:
        """The value of a member that is not given."""


def is_struct_type(value: object) -> TypeIs[StructType]:
    return getattr(value, "__quadpy_constructor__", None) == "struct" and not isinstance(value, type)


class Kind(enum.IntEnum):
    """The role of a value for an operator; the larger kind of two operands decides what the operator means."""

    NUMBER = enum.auto()
    OBJECT = enum.auto()
    SCALAR = enum.auto()
    SEQUENCE = enum.auto()
    VECTOR = enum.auto()
    RECORD = enum.auto()
    ARRAY = enum.auto()
    METHOD = enum.auto()
    TEXT = enum.auto()
    CONTAINER = enum.auto()


_CLASSES: tuple[tuple[type | tuple[type, ...], Kind], ...] = (
    (Node, Kind.SCALAR), (Vec, Kind.VECTOR), (Record, Kind.RECORD), ((ArrayRef, ElementRef), Kind.ARRAY), (BoundMethod, Kind.METHOD),
    (Text, Kind.TEXT), (Container, Kind.CONTAINER),
    ((int, float), Kind.NUMBER), ((tuple, list), Kind.SEQUENCE),
)  # fmt: skip


def kind_of(value: Value) -> Kind:
    return next((kind for classes, kind in _CLASSES if isinstance(value, classes)), Kind.OBJECT)


def is_runtime(value: Value) -> TypeIs[Expr]:
    """True for a run-time scalar."""
    return isinstance(value, Node)


def is_direct(value: Value) -> TypeIs[Traced]:
    """True for values that have a class of the tracer."""
    return isinstance(value, (Node, Vec, Record, ArrayRef, ElementRef, BoundMethod, Text, Container))


def holds_runtime(value: Value) -> bool:
    """True for such a value, and for a container with one in it."""
    waiting: list[Value] = [value]
    seen: set[int] = set()
    while waiting:
        item = waiting.pop()
        if is_direct(item):
            return True
        if id(item) not in seen:  # a shared object is visited once
            seen.add(id(item))
            waiting += parts_of(item)
    return False


def parts_of(value: Value) -> Sequence[Value]:
    """The items of a container; an empty list for anything else."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    parts = getattr(type(value), "__quadpy_parts__", None)
    if parts is not None:
        return [parts(value)]
    return list(value) if isinstance(value, (tuple, list, set, frozenset)) else []


def is_number(value: Value) -> TypeIs[Number]:
    """True for a Python number, which is a literal of the kernel."""
    return isinstance(value, (int, float))


def is_numeric(value: Value) -> TypeIs[Numeric]:
    """True for a value that a variable can hold."""
    return isinstance(value, (Node, int, float, Vec, Record))


def elems_of(value: Expr | Vec | Record) -> tuple[Expr, ...]:
    """The scalars of a vector or struct, or the one scalar."""
    return value.elems if isinstance(value, (Vec, Record)) else (value,)


@overload
def shaped(shape: tuple[int, ...] | None, elems: Sequence[Expr]) -> Expr | Vec: ...
@overload
def shaped(shape: Shape | None, elems: Sequence[Expr]) -> Expr | Vec | Record: ...
def shaped(shape: Shape | None, elems: Sequence[Expr]) -> Expr | Vec | Record:
    """The vector or struct of ``elems``; the one scalar where there is no shape."""
    if isinstance(shape, RecordType):
        return Record(shape, tuple(elems))
    return Vec(shape, tuple(elems)) if shape else elems[0]


def shape_text(value: Value) -> str:
    """The type of a value, for messages."""
    if is_direct(value):
        return _traced_text(value)
    if isinstance(value, (tuple, list)) and holds_runtime(value):
        inner = ", ".join(shape_text(item) if holds_runtime(item) else repr(item) for item in value)
        return f"tuple ({inner})" if isinstance(value, tuple) else f"list [{inner}]"
    return _own_text(value)


def _own_text(value: Any) -> str:
    """What users call a compile-time value: quadpy's own objects by what makes them, others by their class."""
    kind = type(value).__name__
    if not is_our_module(type(value).__module__):
        return kind
    match kind:
        case "Func" | "PyFunc" | "RealFunc":
            return f"the function {value.source.name}"
        case "Method":
            return f"the method {value.func.source.name}"
        case "Builtin":
            return f"the function qp.{value.row.name}"
        case "Scalar" | "StructType" | "VectorType" | "MatrixType":
            return f"the type {value.name if kind == 'StructType' else value}"
        case _:
            return _WORDS.get(kind, kind)


_WORDS: Final = {
    "Grouped": "qp.grouped(…)", "Range": "a run-time range", "NdRange": "qp.ndrange(…)", "Lambda": "a lambda", "Super": "super()", "GridNode": "a node of a tree",
    "NodeParent": "a node of a tree", "NDArrayType": "a type of arrays", "Template": "qp.template()", "ListMethod": "a method of a list",
}  # fmt: skip
"""What users call objects of these classes of quadpy's."""


def _array_text(array: ArrayRef) -> str:
    """The elements and extents of an array: ``f32x3[8, 4]``, or ``f32[?]`` where an extent is known at run time only."""
    element = repr(array.element if isinstance(array.element, RecordType) else Plain(array.scalar, array.element))
    return f"{element}[{', '.join(map(str, array.shape or '?' * array.ndim))}]"


def _traced_text(value: Traced) -> str:
    if isinstance(value, Node):
        return str(value.type)
    match value:
        case Vec():
            return repr(Plain(value.type, value.shape))
        case Record():
            return repr(value.shape)
        case ArrayRef():
            return f"array {_array_text(value)}"
        case ElementRef():
            return f"element of {_array_text(value.array)}"
        case BoundMethod():
            return f"method {value.name}"
        case Text():
            return "a text with run-time values"
        case Container():
            return value.arg.type.__name__
        case _:
            raise unhandled(value)
