"""``@qp.func`` and ``qp.template``: all that ``import quadpy`` needs of the language.  Nothing is parsed here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, TypeVar, overload

from quadpy.core.completion import shows
from quadpy.core.copying import ByName, Recipe
from quadpy.core.public import public, require_switch
from quadpy.errors import ArgumentError, KernelSourceError
from quadpy.lang.source import FunctionSource

C = TypeVar("C", bound=type)


@shows()
class Func(ByName):
    """A function of the kernel language, made by ``@qp.func``: inlined where it is called."""

    requires_top_level = False
    """Whether a call must be where loops are parallel."""
    on_host: ClassVar[Callable[[Func, tuple[Any, ...], Mapping[str, Any]], Any]]
    """Calls one outside kernels; set by ``jit``, which has the compiler."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        functools.update_wrapper(self, fn)
        self.source = FunctionSource(fn)

    @public
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Outside kernels: what the call gives in a kernel on the CPU, as Python numbers, vectors, structs and tuples."""
        return Func.on_host(self, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Method(self, instance)

    def recipe(self) -> Recipe:
        """How another process makes it again."""
        return self.source.recipe({})

    def __quadpy_fingerprint__(self) -> str:
        return f"func:{self.source.identity()}" + ":top" * self.requires_top_level

    def __repr__(self) -> str:
        return f"<quadpy function {self.source.name} at {self.source.span}>"


class PyFunc(Func):
    """A function of both kernels and Python, made by ``@qp.pyfunc``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.source.fn(*args, **kwargs)


class Method:
    """``obj.f`` where the class of ``obj`` has ``@qp.func def f(self, …)``."""

    __slots__ = ("func", "instance")

    def __init__(self, func: Func, instance: object) -> None:
        self.func, self.instance = func, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.func(self.instance, *args, **kwargs)

    def __quadpy_fingerprint__(self) -> str:
        return f"method:{self.func.source.identity()}"

    def __repr__(self) -> str:
        return f"<quadpy function {self.func.source.name} of {self.instance!r}>"


_OF_PYTHON: Final[dict[Callable[..., Any], Func]] = {}


def func_of(fn: Any) -> Func:
    """A ``Func`` as it is; of a plain Python function, such as a lambda or that of a property, the one that inlines it."""
    return fn if isinstance(fn, Func) else _OF_PYTHON.setdefault(fn, Func(fn))


def is_method(fn: Callable[..., Any]) -> bool:
    """Whether ``fn`` was defined in the body of a class."""
    scope = fn.__qualname__.rpartition(".")[0]
    return bool(scope) and not scope.endswith("<locals>")


@overload
def data_oriented(cls: C, /) -> C: ...
@overload
def data_oriented(*, template_primitives: bool = True) -> Callable[[C], C]: ...
@public
def data_oriented(cls: Any = None, /, *, template_primitives: bool = True) -> Any:
    """Marks a class whose methods may be kernels and functions of the kernel language.

    ``self`` is a compile-time value in them: each object has its own code, in which fields are bound and numbers are
    constants.  When one of its attributes has changed, the next call runs code for its new value.  Arrays are passed
    by each launch; with ``template_primitives=False``, so are numbers, which then change without new code.  Methods
    are inherited and overridden as in any class.

    Raises:
        KernelSourceError: ``cls`` is not a class.
    """
    require_switch(template_primitives, "template_primitives")
    if cls is None:
        return functools.partial(data_oriented, template_primitives=template_primitives)
    if not isinstance(cls, type):
        raise KernelSourceError(f"{cls!r} is not a class", hint="@qp.data_oriented decorates a class")
    cls.__quadpy_template_primitives__ = template_primitives  # type: ignore[attr-defined]  # read by quadpy.jit
    return cls


class OfArrays:
    """An annotation that may name what an array has: the type of its elements, its number of axes, or both."""

    __slots__ = ("dtype", "ndim")

    @public
    def __init__(self, dtype: object = None, ndim: object = None) -> None:
        if ndim is not None and not (isinstance(ndim, int) and ndim >= 0):
            raise ArgumentError(f"ndim={ndim!r} is not a number of axes")
        self.dtype, self.ndim = dtype, ndim

    def __class_getitem__(cls, key: Any) -> Any:
        return cls(*key) if isinstance(key, tuple) else cls(key)

    def __repr__(self) -> str:
        given = [str(part) for part in (self.dtype, self.ndim) if part is not None]
        return f"{type(self).__name__}[{', '.join(given)}]" if given else type(self).__name__


class Template(OfArrays):
    """The annotation of a parameter that is a compile-time value: one specialisation for each value.

    ``qp.Template[qp.f32, 2]`` takes only a field of that type and number of axes.
    """

    __slots__ = ()


@public
def template(dtype: object = None, ndim: int | None = None) -> Any:
    """Annotates a compile-time parameter: a field, a number, a function, or any Python object.

    With ``dtype`` or ``ndim``, it takes only fields of this type and number of axes.
    """
    return Template(dtype, ndim)


@public
def ref(dtype: object = None) -> Any:
    """Annotates a parameter of a ``qp.func`` or ``qp.real_func`` that the function changes: a variable, a component or an element.

    ``dtype`` only informs readers: a reference has the type of the argument.
    """
    return Template()


def is_template(annotation: object) -> bool:
    """Whether ``annotation`` is ``Template``, with or without brackets."""
    return annotation is Template or type(annotation) is Template


@overload
def func(fn: Callable[..., Any], *, is_real_function: bool = False, requires_top_level: bool = False) -> Func: ...
@overload
def func(
    *, is_real_function: bool = False, requires_top_level: bool = False
) -> Callable[[Callable[..., Any]], Func]: ...
@public
def func(
    fn: Callable[..., Any] | None = None, *, is_real_function: bool = False, requires_top_level: bool = False
) -> Any:
    """A function for kernels and other such functions to call; it is inlined, and generic over its arguments.

    ``is_real_function`` makes it a ``qp.real_func``.  With ``requires_top_level`` a call that is not at the top level of a
    kernel, where loops are parallel, is an error.

    Raises:
        KernelSourceError: ``fn`` is not a Python function.
    """
    require_switch(is_real_function, "is_real_function")
    require_switch(requires_top_level, "requires_top_level")
    if fn is None:
        return functools.partial(func, is_real_function=is_real_function, requires_top_level=requires_top_level)
    if isinstance(fn, Func):
        raise KernelSourceError(f"{fn.source.name} is already a @qp.func", fn.source.span, hint="decorate it once")
    if not hasattr(fn, "__code__"):
        raise KernelSourceError(f"{fn!r} is not a Python function", hint="put @qp.func above a def")
    made = RealFunc(fn) if is_real_function else Func(fn)
    made.requires_top_level = requires_top_level
    return made


class RealFunc(Func):
    """A function of the kernel language that is compiled once and called, made by ``@qp.real_func``."""


@public
def real_func(fn: Callable[..., Any]) -> RealFunc:
    """Like ``func``, but if ``fn`` only computes, it is compiled once for the types of its arguments, and called.

    A function that touches arrays or fields, draws random numbers, prints, or changes a template parameter is inlined.

    Raises:
        KernelSourceError: as ``func``.
    """
    return RealFunc(func(fn).source.fn)


@public
def pyfunc(fn: Callable[..., Any]) -> Func:
    """Like ``func``; outside kernels, ``fn`` is a Python function, in which builtins give Python numbers.

    Raises:
        KernelSourceError: as ``func``.
    """
    return PyFunc(func(fn).source.fn)
