"""Fields: global arrays that kernels bind at compile time."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, Final

from quadpy.core.completion import shows
from quadpy.core.dtypes import BY_NAME, Scalar
from quadpy.core.importing import import_late
from quadpy.core.public import call_site, made_by, public, require_switch
from quadpy.errors import ArgumentError, BoundsError
from quadpy.runtime.arrays.activity import InNode
from quadpy.runtime.arrays.dense import shape_of
from quadpy.runtime.arrays.derivatives import DIFFERENTIATED, KINDS, WITH_SHAPE, HasDerivatives, directions_in, needed
from quadpy.runtime.arrays.element_types import I_contra, T_co
from quadpy.runtime.arrays.field_layout import (
    FieldTree,
    Freed,
    Layout,
    Placement,
    StoredMember,
    offset_of,
    order_of,
    reach_of,
    require_layout,
    require_no_layout,
    strides_of,
)
from quadpy.runtime.device.locks import new_lock
from quadpy.runtime.elements.numpy_types import STORAGE, Numbers
from quadpy.runtime.elements.types import DType, element_of, quantised_of
from quadpy.runtime.memory.allocators.block import Block
from quadpy.runtime.memory.blocked import BlockedStorage, Blocks, PartedStorage
from quadpy.runtime.memory.host_storage import Storage
from quadpy.runtime.memory.placement import allocate_lasting, storage_at
from quadpy.runtime.memory.strided_layout import StridedLayout


@made_by("qp.field(dtype, shape) makes one")
@shows(
    "copy_from", "device", "dtype", "dual", "element_shape", "fill", "from_numpy", "from_torch", "grad",
    "get_scalar_field", "has_dual", "has_grad", "layout", "name", "nbytes", "ndim", "offset", "placed", "shape", "size",
    "parent", "snode", "to_dlpack", "to_numpy", "to_torch",
)  # fmt: skip
class Field(HasDerivatives, InNode[T_co, I_contra]):
    """A dense global array; made by ``qp.field``.  Kernels use it by name, without a parameter.

    It owns its memory: on the host it stays valid across ``qp.init`` and ``qp.reset``, on a GPU until the device is
    closed.  With an ``offset``, indices start there instead of at 0, and negative ones do not count from the end.
    """

    __slots__ = (
        "__dict__",  # attributes of the user's own
        "__weakref__",
        "_placement",
        "_storage",
        "_tree",
        "components",
        "container",
        "derivative",
        "derivatives",
        "directions",
        "follows",
        "is_component",
        "is_member",
        "made",
        "name",
        "offset",
        "part_of",
        "parts",
    )  # fmt: skip
    _kind = "a field"
    __quadpy_field__ = True  # a kernel that names one takes it as a parameter

    name: str
    offset: tuple[int, ...]

    def __init__(self, dtype: Scalar, element: tuple[int, ...], name: str, derivative: str = "") -> None:
        """A field without a shape, which ``span`` sets, and without memory, which ``put`` sets."""
        self._dtype, self._element_shape, self.name, self.derivative = dtype, element, name, derivative
        self.made = call_site()
        self._placement: Placement | None = None
        self._tree: FieldTree | None = None
        self.derivatives: dict[str, Field] = {}
        self.directions: int | None = None
        self.container = None
        self.is_member = False  # whether a field of structs has its memory, too
        self.is_component = False  # whether a field of vectors or matrices has its memory, too
        self.components: weakref.WeakValueDictionary[int, Field] = weakref.WeakValueDictionary()
        self.parts: dict[int, Field] = {}  # the components that were asked for before there was a shape
        self.part_of: weakref.ref[Field] | None = None  # the field that it is such a component of
        self.follows = False  # whether its shape is that of another field, and not given

    def span(self, shape: tuple[int, ...], offset: object = None, tree: FieldTree | None = None) -> None:
        """Set the shape, and the tree that will allocate the memory."""
        if hasattr(self, "shape") and (self.placed or not self.follows):
            raise ArgumentError(f"{self!r} already has a shape: place a field once, and without shape=")
        origin = (0,) * len(shape) if offset is None else offset_of(offset, len(shape))
        self._describe(self.dtype, shape, self.element_shape)
        self.offset, self._tree, self.follows = origin, tree, False
        self._give_derivatives_shape(shape, origin)
        if self.parts:
            _components().give_shape(self)

    def follow(self, shape: tuple[int, ...], offset: tuple[int, ...]) -> None:
        strides = strides_of(shape, order_of(None, len(shape)), math.prod(self.element_shape), Layout.AOS)
        self.span(shape, offset, _OwnTree(self, strides))
        self.follows = True

    @property
    def is_differentiable(self) -> bool:
        """Whether it has floats."""
        return self.dtype.is_float

    def declare(self, kind: str) -> Field:
        """The derivative, without a shape if it is new."""
        DIFFERENTIATED.add(self)
        if kind not in self.derivatives and self.part_of is not None:
            self.derivatives[kind] = _components().derivative_of(self, kind)
        elif kind not in self.derivatives:
            name = f"{self.name}.{kind}" if self.name else ""
            self.derivatives[kind] = Field(self.dtype, self.element_shape, name, kind)
        return self.derivatives[kind]

    def put(self, placement: Placement) -> None:
        """Set the memory."""
        if placement.parts:
            self._storage: Storage = PartedStorage([part.storage for part in self.leaves()], self.element_shape)
            self._storage.name, self._placement = self.described, placement
            return
        item = self.dtype.nbytes
        *axes, component = (stride * item for stride in placement.strides)
        inner = [component * math.prod(self.element_shape[k + 1 :]) for k in range(len(self.element_shape))]
        extents = tuple(n for axis in placement.blocks for n in axis) if placement.blocks else self.shape
        layout = StridedLayout(placement.start, STORAGE[self.dtype], extents + self.element_shape, (*axes, *inner))
        stored = storage_at(placement.memory, layout)
        self._storage = BlockedStorage(stored, placement.blocks, self.element_shape) if placement.blocks else stored
        self._storage.name = self.described
        self._placement = placement

    @public
    def get_scalar_field(self, *index: int) -> Field:
        """The field of the numbers at ``index`` in each vector or matrix, in the same memory.

        Raises:
            ArgumentError: the elements have no such component.
        """
        return _components().component_of(self, index)  # type: ignore[no-any-return]  # a Field

    def free(self) -> None:
        """Give the memory back: every later use is an error."""
        self._tree, self._placement = Freed(self.described), None
        if hasattr(self, "_storage"):
            del self._storage
        whole = self.part_of() if self.part_of is not None else None
        for other in [*self.components.values(), *((whole,) if whole is not None else ())]:
            if not isinstance(other._tree, Freed):  # noqa: SLF001 - of the same class
                other.free()

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "size", "offset"):
            if self.parts:
                raise AttributeError(
                    f"the field{self._which} has no {name} yet: place all its components, or place it as a whole"
                )
            what = f"pass needs_{self.derivative}=True, place it, or call qp.root.lazy_{self.derivative}()"
            raise AttributeError(
                f"the field{self._which} has no {name} yet: "
                + (what if self.derivative else "pass shape=, or place it with qp.root.dense(...).place(f)")
            )
        if name in KINDS:
            raise AttributeError(self.why_none(name))
        raise self.missing(name)

    def leaves(self) -> tuple[Field, ...]:
        """The field itself; a field of structs has several, and one whose components were placed one by one has these."""
        return tuple(part for _, part in sorted(self.parts.items())) if self.in_parts else (self,)

    @property
    def in_parts(self) -> bool:
        """Whether its components were placed one by one."""
        return isinstance(self._tree, _components().PartsTree) if self.parts else False

    def enter(self, node: Any) -> None:
        """Become a part of the cells of ``node``."""
        self.container = node

    @property
    def placed(self) -> bool:
        """Whether it has memory."""
        return self._placement is not None

    @property
    def placement(self) -> Placement:
        """Where the field is stored; the first use allocates the memory of its tree, which no field can join then."""
        found = self._placement
        while found is None:
            if self._tree is None:
                hint = f"pass needs_{self.derivative}=True" if self.derivative else "pass shape="
                raise ArgumentError(f"{self!r} has no memory", hint=f"{hint}, or place it under qp.root")
            self._tree.bind()  # raises if another thread destroys it meanwhile
            found = self._placement
        return found

    @property
    def pointer(self) -> int:
        """The address of the first component of the first element."""
        return self._memory().pointer

    @property
    def block(self) -> Block | None:
        """The allocation of a field on a GPU, as in ``NDArray``; the fields of a tree share it."""
        return self._memory().block

    @property
    def layout(self) -> Layout:
        """How the components of vectors and matrices are stored."""
        if isinstance(self._tree, _OwnTree):
            return self._tree.layout
        return Layout.AOS

    @property
    def blocks(self) -> Blocks:
        """For each axis the extents of its levels in memory, the outermost first; empty if each has a single one."""
        return self.placement.blocks

    @property
    def strides(self) -> tuple[int, ...]:
        """In scalars: one per axis, or for each of its levels, then one for the components of an element in row-major order."""
        return self.placement.strides

    @property
    def nbytes(self) -> int:
        """Bytes from the first number to the end of the last, gaps included."""
        if self._placement is None or not self.size:
            return self.size * math.prod(self.element_shape) * self.dtype.nbytes
        levels = tuple(n for axis in self.blocks for n in axis) if self.blocks else self.shape
        if self.placement.parts:
            return reach_of(self.stored_members(), levels)
        extents = (*levels, math.prod(self.element_shape))
        last: int = sum((n - 1) * stride for n, stride in zip(extents, self.strides, strict=True))
        return (last + 1) * self.dtype.nbytes

    def stored_members(self) -> list[StoredMember]:
        """How an element is stored, from ``pointer`` on."""
        if self.placement.parts:
            first = self.placement.start
            return [part.stored_members()[0]._replace(offset=part.placement.start - first) for part in self.leaves()]
        *axes, component = (stride * self.dtype.nbytes for stride in self.strides)
        return [StoredMember(self.dtype, component, self.element_shape, 0, tuple(axes))]

    def __quadpy_fingerprint__(self) -> str:
        """What a compiled kernel depends on: type, shape and layout, not the address."""
        if not hasattr(self, "shape") or isinstance(self._tree, Freed):
            return f"field:{self.dtype}:{self.element_shape}:none"
        sparse = [node.__quadpy_fingerprint__() for node in self.sparse_nodes]
        steps = self.stored_members() if self.placement.parts else self.strides
        return f"field:{self.dtype}:{self.element_shape}:{self.shape}:{self.offset}:{steps}:{self.blocks}:{self.is_member}:{self.is_component}:{sparse}"

    @property
    def storage(self) -> Storage:
        """Its numbers in memory."""
        return self._memory()

    def _memory(self) -> Storage:
        if self._placement is None:
            self.placement  # noqa: B018 - binds the tree, or raises
        try:
            return self._storage
        except AttributeError:  # another thread has destroyed it since
            return self._memory()

    def _origin(self) -> tuple[int, ...]:
        return self.offset

    def locate(self, index: object) -> tuple[int, ...] | None:
        if self._placement is None:
            self.placement  # noqa: B018 - binds the tree, or raises
        if not any(self.offset):
            return super().locate(index)
        key = self._key(index)
        if key is None:
            return None
        at = tuple(i - start for i, start in zip(key, self.offset, strict=True))
        if not all(0 <= i < extent for i, extent in zip(at, self.shape, strict=True)):
            raise BoundsError(f"index {key} is outside of {self!r}, which starts at {self.offset}")
        return at

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles values, type, shape, offset, name and derivatives; the copy has C order."""
        stored = self._memory().read(...).copy("C")
        derivatives = {kind: found.to_numpy() for kind, found in self.derivatives.items() if hasattr(found, "shape")}
        made = self.dtype.name, self.element_shape, self.offset, self.name, stored, derivatives
        return _restored, made, self.__dict__ or None


def _components() -> Any:
    """The module of fields of components, which imports this one."""
    return import_late("quadpy.runtime.arrays.component_fields")


@public
def field(
    dtype: DType,
    shape: int | tuple[int, ...] | None = None,
    *,
    order: str | None = None,
    offset: int | tuple[int, ...] | None = None,
    layout: Layout = Layout.AOS,
    needs_grad: bool = False,
    needs_dual: bool | int = False,
    name: str = "",
) -> Field:
    """Create a field of zeros.

    Args:
        dtype: the element type: a scalar, vector, matrix or struct type.
        shape: an int or a tuple of ints; ``()`` for one element, read as ``f[None]``; None for a field that gets its
            shape from ``qp.root.dense(...).place(f)``.
        order: the axes from the outermost to the innermost in memory: ``"ji"`` is column-major.
        offset: the index of the first element, one int per axis.
        layout: how the components of vectors and matrices are stored.
        needs_grad: have a gradient, ``f.grad``: a field of the same type, shape and layout.
        needs_dual: have a dual, ``f.dual``, for forward mode; a number is that of directions at once, the first axis of
            ``f.dual``.  With both, the gradient has a dual, too: ``f.grad.dual``.
        name: shown in messages.

    Raises:
        ArgumentError: an option that does not match the shape, or derivatives of a field without floats.
    """
    if getattr(dtype, "__quadpy_constructor__", None) == "struct":
        options = {"order": order, "offset": offset, "layout": layout, "name": name}
        return dtype.field(shape, needs_grad=needs_grad, needs_dual=needs_dual, **options)  # type: ignore[union-attr, no-any-return]  # which ``hostmath`` has
    if (quant := quantised_of(dtype)) is not None:
        made: Field = import_late("quadpy.runtime.arrays.quantised").made_of(*quant, name)
        if shape is not None:
            raise ArgumentError(
                "a quantised field takes no shape", hint="place it in qp.BitpackedFields, and these under qp.root"
            )
    else:
        made = Field(*element_of(dtype), name)
    if needs_grad or needs_dual:
        require_switch(needs_grad, "needs_grad")
        directions = directions_in(needs_dual)
        made.need(needed(made, needs_grad, bool(needs_dual)))
        made.need_second(directions)
    if shape is None:
        require_no_layout(order, offset, layout)
        return made
    require_layout(layout)
    extents = shape_of(shape)
    strides = strides_of(extents, order_of(order, len(extents)), math.prod(made.element_shape), layout)
    for each in (each for each in made.and_derivatives() if each.directions is None):
        each.span(extents, offset, _OwnTree(each, strides, layout))
    WITH_SHAPE.add(made)
    return made


FIELD_HOOKS: Final[list[Callable[[], None]]] = []
"""What is called when a field that was made with ``shape=`` has got its memory, before that is used."""


class _OwnTree:
    """The tree of a single field, which gets its memory when it first needs it.

    So a field that a module creates before ``qp.init`` is on the device that ``qp.init`` chooses.
    """

    def __init__(self, owner: Field, strides: tuple[int, ...], layout: Layout = Layout.AOS) -> None:
        self._owner, self._strides, self.layout = weakref.ref(owner), strides, layout
        self._lock = new_lock()

    def bind(self) -> None:
        field = self._owner()
        with self._lock:
            if field is not None and not field.placed:
                field.put(Placement(allocate_lasting(field.nbytes), 0, self._strides))
        for hook in FIELD_HOOKS:
            hook()


def _restored(
    dtype: str, element: tuple[int, ...], offset: tuple[int, ...], name: str, stored: Numbers,
    derivatives: dict[str, Numbers] | None = None,
) -> Field:  # fmt: skip
    made = Field(BY_NAME[dtype], element, name)
    made.need(tuple(derivatives or ()))
    dual = (derivatives or {}).get("dual", stored)
    made.need_second(len(dual) if dual.ndim > stored.ndim else None)
    made.follow(stored.shape[: len(offset)], offset)
    made.follows = False
    made._memory().write(..., stored)  # noqa: SLF001 - the other half of __reduce__
    for kind, numbers in (derivatives or {}).items():
        made.declare(kind).from_numpy(numbers)
    return made
