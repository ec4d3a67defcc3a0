"""Text that stands for a value in cache keys and in the records of warm starts."""

from __future__ import annotations

import enum
import marshal
import struct
import sys
from types import BuiltinFunctionType, FunctionType, GenericAlias, MethodType, ModuleType
from typing import Any, Final

from quadpy.core.dtypes import Scalar
from quadpy.core.importing import import_late

_SIMPLE: Final = (type(None), bool, bytes, str, type(...), Scalar)
_TEXTS: Final = {"__repr__", "__str__", "__format__"}
_NUMPY_KINDS: Final = "biufc?"
_LONGEST: Final = 128
"""Characters of a fingerprint; of a longer one its digest is kept."""
_DEEPEST: Final = 20


def text_digest(text: str) -> str:
    return _digest(text.encode("utf-8", "surrogatepass"))


def _digest(data: bytes) -> str:
    return import_late("hashlib").sha256(data).hexdigest()  # type: ignore[no-any-return]  # a string


class Fingerprints:
    """Fingerprints of the values that one specialisation saw, in the order in which it saw them.

    A fingerprint changes when anything that a kernel can learn from the value does: its type, its bits, and which
    other values of the specialisation are the same object.  The latter because code for ``f(a, a)`` is not code for
    ``f(a, b)``, however alike ``a`` and ``b`` are; so objects are numbered as they come.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps ids unique

    def of(self, value: Any) -> str | None:
        """The fingerprint of ``value``; None where a kernel could learn more of it than can be written down."""
        text = self._of(value, 0)
        return text if text is None or len(text) <= _LONGEST else f"digest:{text_digest(text)}"

    def number(self, value: Any) -> str:
        """Which object ``value`` is."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._numbers)
            self._kept.append(value)
        return f"#{self._numbers[id(value)]}"

    def _of(self, value: Any, depth: int) -> str | None:
        kind = type(value)  # exactly: a subclass may behave differently
        if kind in _SIMPLE:
            return f"{kind.__name__}:{value!r}"
        if kind is int:
            return f"int:{value:x}"
        if kind is float:
            return f"float:{struct.pack('>d', value).hex()}"
        if kind is complex:
            return f"complex:{struct.pack('>dd', value.real, value.imag).hex()}"
        if depth > _DEEPEST:
            return None
        if kind in (tuple, list):
            return self._all(kind.__name__, value, depth)
        if kind is dict:
            return self._all("dict", [part for pair in value.items() for part in pair], depth)
        if kind in (range, slice):
            return self._all(kind.__name__, (value.start, value.stop, value.step), depth)
        if kind is GenericAlias:
            return self._all("alias", (value.__origin__, *value.__args__), depth)
        if hasattr(kind, "__quadpy_fingerprint__") and is_our_module(kind.__module__):
            return f"{value.__quadpy_fingerprint__()}{self.number(value)}"
        return self._numpy(value) or _enumerated(value) or _by_name(value)

    def _all(self, name: str, parts: Any, depth: int) -> str | None:
        found = [self._of(part, depth + 1) for part in parts]
        return None if None in found else f"{name}({','.join(map(str, found))})"

    def _numpy(self, value: Any) -> str | None:
        """Numbers of NumPy, and arrays of them, by their bits; its functions and types by their names."""
        numpy: Any = sys.modules.get("numpy")
        is_named = numpy is not None and isinstance(value, (numpy.ufunc, type))
        if is_named and vars(numpy).get(value.__name__) is value:  # its __getattr__ would warn of old names
            return f"name:numpy.{value.__name__}:{numpy.__version__}"
        if numpy is None or not isinstance(value, (numpy.generic, numpy.ndarray)):
            return None
        if type(value).__module__ != "numpy" or value.dtype.kind not in _NUMPY_KINDS:
            return None
        bits = _digest(value.tobytes()) if value.nbytes > 16 else value.tobytes().hex()
        number = self.number(value) if isinstance(value, numpy.ndarray) else ""
        return f"{type(value).__name__}:{value.dtype.str}:{value.shape}:{bits}{number}"


def _enumerated(value: Any) -> str | None:
    """A member of a plain enumeration: one whose classes define members, and at most how these are shown."""
    kind = type(value)
    if not isinstance(value, enum.Enum):
        return None
    plain, classes = Fingerprints(), [base for base in kind.__mro__ if base.__module__ not in ("enum", "builtins")]
    members = {name: plain.of(member.value) for name, member in kind.__members__.items()}
    found = {name: each for base in reversed(classes) for name, each in vars(base).items()}
    if None in members.values() or any(not name.startswith("_") and name not in members for name in found):
        return None
    own = {name: each for name, each in found.items() if callable(each) and not _of_the_language(each)}
    if own.keys() - _TEXTS or not all(map(_stands_alone, own.values())):
        return None
    shown = {name: _digest(marshal.dumps(each.__code__)) for name, each in own.items()}
    return f"enum:{kind.__module__}.{kind.__qualname__}.{value.name}:{members}{shown or ''}"


def _stands_alone(function: Any) -> bool:
    """Whether what a function does follows from its code."""
    return (
        isinstance(function, FunctionType)
        and not function.__closure__
        and not any(step.opname == "LOAD_GLOBAL" for step in import_late("dis").get_instructions(function))
    )


def _of_the_language(found: Any) -> bool:
    """Whether Python itself put this attribute into an enumeration."""
    return (getattr(found, "__module__", None) or type(found).__module__) in ("enum", "builtins")


def _by_name(value: Any) -> str | None:
    """What quadpy or the language has under this name; their versions are part of every key."""
    module: Any
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    elif isinstance(value, (type, FunctionType, BuiltinFunctionType, MethodType)):
        module, name = getattr(value, "__module__", None), value.__qualname__  # C functions may have none
    else:
        return None
    written_in_c = isinstance(value, BuiltinFunctionType)
    if not isinstance(module, str) or not (is_our_module(module) or module == "builtins" or written_in_c):
        return None
    found: Any = sys.modules.get(module)
    for part in filter(None, name.split(".")):
        found = getattr(found, part, None)
    return f"name:{module}.{name}" if found is value or (type(found) is MethodType and found == value) else None


def is_our_module(name: object) -> bool:
    """Whether a module is part of quadpy; its examples and self-tests are programs like others.

    ``name`` is the ``__module__`` of anything: what ``exec`` defines among variables without a ``__name__`` has None.
    """
    if not isinstance(name, str) or name.partition(".")[0] != "quadpy":
        return False
    return not name.startswith(("quadpy.examples", "quadpy.selftest"))
