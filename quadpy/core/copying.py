"""How objects that are not data behave under ``copy`` and ``pickle``."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, NoReturn, TypeAlias

from quadpy.core.importing import import_late
from quadpy.core.messages import no_attribute
from quadpy.errors import QuadpyError

if TYPE_CHECKING:
    from typing_extensions import Self


class OneProcess:
    """Belongs to a device: its handle or state has one owner, so a copy is the same object, and it cannot be pickled."""

    __slots__ = ()

    error: ClassVar[type[QuadpyError]]
    instead: ClassVar[str] = "it belongs to this process: create one where it is used"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self.error(f"{self!r} cannot be pickled", hint=self.instead)


class Recipe(NamedTuple):
    """What a decorated function is made of: arguments of its class, and the text in which its function stands."""

    function: Callable[..., Any]
    options: Mapping[str, object]
    annotations: Mapping[str, object] = {}
    file: str = ""
    lines: Sequence[str] = ()


_PLAIN: Final = "plain_function"
_Code: TypeAlias = tuple[str, int, bytes]


class ByName:
    """A decorated function: copied and pickled as functions are, by its qualified name in a module.

    Libraries that pickle functions of ``__main__``, of notebooks and of other functions by their code, as cloudpickle,
    joblib and Ray do, pickle it by its recipe: they reach ``plain_function``, which is a function as any other.
    """

    _plain: FunctionType | None = None

    def __getattr__(self, name: str) -> NoReturn:
        known, instead = getattr(type(self), "__shown__", ()), import_late("quadpy.core.elsewhere").INSTEAD
        raise no_attribute(f"a {type(self).__name__.lower()}", name, known, instead)

    def recipe(self) -> Recipe:
        """How to make the object again."""
        raise NotImplementedError

    @property
    def plain_function(self) -> Callable[..., Any]:
        """The function alone.  Pickle knows it by the name of the decorated one and of this attribute."""
        found = self.recipe()
        if not isinstance(found.function, FunctionType):
            return found.function
        if self._plain is None:
            fn = found.function
            code = fn.__code__.replace(co_filename=found.file or fn.__code__.co_filename)
            made = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
            made.__kwdefaults__, made.__doc__, made.__module__ = fn.__kwdefaults__, fn.__doc__, fn.__module__
            made.__annotations__ = dict(found.annotations)
            made.__qualname__ = f"{fn.__qualname__}.{_PLAIN}"
            return vars(self).setdefault("_plain", made)  # type: ignore[no-any-return]  # of two threads, one is first
        return self._plain

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        module, name = str(getattr(self, "__module__", "")), str(getattr(self, "__qualname__", repr(self)))
        if module != "__main__" and _found(module, name) is self:
            return name
        _, options, _, file, lines = self.recipe()
        state = self.plain_function, name, dict(options), file, lines
        return _found_or_new, (type(self), module, name, _code_of(self)), state  # the state may refer to the object

    def __setstate__(self, state: tuple[Callable[..., Any], str, dict[str, Any], str, Sequence[str]]) -> None:
        if "__wrapped__" in vars(self):
            return  # the one that this process has
        function, name, options, file, lines = state
        if isinstance(function, FunctionType):
            function.__qualname__ = name
            function.__code__ = function.__code__.replace(co_filename=file)  # cloudpickle 3.1.3 drops it
        if lines and not linecache.getlines(file):
            linecache.cache[file] = sum(map(len, lines)), None, list(lines), file
        self._make_again(function, options)

    def _make_again(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        """Initialises this object, which was made without arguments, with those of its recipe."""
        self.__init__(function, **options)  # type: ignore[misc]  # the arguments of the subclass


def _found_or_new(cls: type[ByName], module: str, name: str, code: _Code) -> ByName:
    """What this process has by that name, if it is the same function; else an object that ``__setstate__`` completes."""
    found = _found(module, name)
    return found if isinstance(found, cls) and _code_of(found) == code else cls.__new__(cls)


def _found(module: str, name: str) -> object:
    """What ``module`` has by a qualified name; None for nothing."""
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _code_of(made: ByName) -> _Code:
    """Tells functions of one name apart."""
    code = getattr(made.recipe().function, "__code__", None)
    return ("", 0, b"") if code is None else (code.co_filename, code.co_firstlineno, code.co_code)
