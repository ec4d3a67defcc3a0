"""A log of what a trace reads from the Python objects around its kernel.

A warm start finds compiled code by the text of the kernel's file, and uses it if every read of the log still gives the
same result; nothing is parsed.  Later compilations for the same signature use the values of the first one.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from quadpy.core.records import RecordType
from quadpy.lang.arguments import ArgType, ArrayArg, ContainerArg, MemberPath, StaticArg, StructArg
from quadpy.lang.decorators import Func, Method
from quadpy.lang.fingerprints import Fingerprints, is_our_module
from quadpy.lang.guard import Effort, is_of_a_handler
from quadpy.lang.kept_values import DEEPEST, frozen, parts, understood
from quadpy.lang.python_reads import reads_of_call
from quadpy.lang.repeated_calls import PLAIN, packed_call, unpacked_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from quadpy.lang.source import FunctionSource


MISSING: Final[Any] = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""The result of a read of something that does not exist."""

Spot: TypeAlias = "list[int]"
"""Where an object comes from: the number of a root or of a read, then positions in containers."""
Read: TypeAlias = "tuple[str, Spot, str, str]"
"""One read: its kind, the spot of the object, the name that was read there, and the fingerprint of what it gave.

Of a call: the spot of the function, and the line with the arguments, packed.
"""
_Key: TypeAlias = "tuple[str, int, str]"
"""A read in this process: its kind, which object, the name."""


class Dependencies:
    """The reads of one trace.

    The roots are the kernel's function and its compile-time arguments; each read starts from a root, or from what an
    earlier read gave.  Kinds: a free ``name`` of a function, a ``default`` or an ``annotation`` of one of its
    parameters, an ``attribute`` of any object, the ``kind`` of one: its class, a ``call`` of a Python function.
    What was read once is not read again: a container is kept as it was.

    ``before`` are the reads of an earlier trace of the same signature, or of an attempt at this one, which are repeated
    rather than made.
    ``complete`` says that the log tells all that the trace depends on; ``marks`` are the fingerprints of the arguments,
    ``known`` has of each read the owner, whose number stays its own, and what it gave, ``files`` those of the kernel and
    of the functions that were read.
    """

    def __init__(
        self,
        kernel: FunctionSource | None = None,
        arguments: Mapping[str, Any] | None = None,
        before: Dependencies | None = None,
    ) -> None:
        self.complete = kernel is not None
        self.log: list[Read] = []
        self.marks: dict[str, str] = {}
        self.files: set[str] = set()
        self._arguments: dict[str, Any] = {}
        self.known: dict[_Key, tuple[Any, Any]] = before.known if before else {}
        self._prints = Fingerprints()
        self._values: dict[_Key, Any] = {}
        self._spots: dict[int, Spot] = {}
        self._opaque: set[int] = set()
        self._found: list[Any] = [kernel]
        self._origins: list[str | Read | None] = [None]  # of each: the name of an argument, or the read
        self._calls: list[tuple[Callable[..., Any], Sequence[object]]] = []
        if kernel is not None:
            self.files.add(kernel.span.file)
            self._spots[id(kernel)] = [0]
        for name, value in (arguments or {}).items():
            self.enter(name, value)

    def enter(self, name: str, value: Any) -> None:
        """Adds a compile-time argument."""
        value = self._arguments[name] = self._once(("argument", 0, name), None, lambda: value)
        self._origins.append(name)
        self.marks[name] = self._enter(value)

    def argument(self, name: str) -> Any:
        """The value of a compile-time argument when its signature came first."""
        return self._arguments[name]

    def name(self, source: FunctionSource, name: str) -> Any:
        """The value of a free name of a function; MISSING if it is not bound."""
        return self._read("name", source, name)

    def default(self, source: FunctionSource, name: str) -> Any:
        """The default of a parameter of a function, or MISSING."""
        found = self._read("default", source, name)
        self.uses(found)
        return found

    def annotation(self, source: FunctionSource, name: str) -> Any:
        """What the language knows of the annotation of a parameter of a function, or of its ``return``; None for none."""
        found = self._read("annotation", source, name)
        self.uses(found)
        return found

    def attribute(self, value: Any, name: str) -> Any:
        """An attribute of a Python object, or MISSING."""
        return self._read("attribute", value, name)

    def called(
        self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], line: int, effort: Effort
    ) -> Any:
        """What ``fn``, a Python function, returns; a later trace of the same signature uses it again.

        Not if ``fn`` changes its arguments: then it is called again, and the log cannot tell all.
        """
        given = (*args, *kwargs.values())
        self._calls.append((fn, given))
        before, key = self._marks(given), ("call", len(self._calls), str(line))
        known = key in self.known
        value = frozen(self.known[key][1] if known else effort.listed(fn(*args, **kwargs)))
        kept = None not in before and before == self._marks(given)
        if kept and not known:
            self.known[key] = fn, frozen(value)
        spot, text = self.spot(fn), packed_call(line, args, kwargs, self.spot)
        if kept and spot and text:
            self._log("call", spot, text, value)
            self.uses(value)
        else:
            self.complete = False
        return value

    def _marks(self, given: Sequence[Any]) -> list[str | None]:
        """What arguments are now, as far as a kernel reads it without a trace in the log."""
        return [self._prints.of(value) or (None if type(value) in (tuple, list, dict) else "") for value in given]

    def kind(self, value: Any, name: str) -> type:
        """The class of an attribute whose value is passed by each launch."""
        found: type = self._read("kind", value, name)
        return found

    def uses(self, value: Any) -> None:
        """Records that a value itself is used, not just one of its attributes."""
        if self.is_opaque(value):
            self.complete = False

    def is_opaque(self, value: Any) -> bool:
        """Whether ``value`` is an object that no fingerprint describes: only what is read of it is known."""
        return id(value) in self._opaque

    def spot(self, value: Any) -> Spot | None:
        """Where ``value`` comes from; None where no read gave it."""
        return self._spots.get(id(value))

    def at(self, spot: Spot) -> Any:
        """The object at a spot."""
        value = self._found[spot[0]]
        for position in spot[1:]:
            value = parts(value)[position]
        return value

    def class_of(self, value: Any) -> type:
        """The class of an object; its attributes are then attributes of ``value.__class__``."""
        cls: type = self.attribute(value, "__class__")
        if (spot := self._spots.get(id(value))) is not None:  # a name may have given the class before
            self._spots[id(cls)] = [self._origins.index(("attribute", spot, "__class__", ""))]
        return cls

    def path(self, value: Any) -> MemberPath | None:
        """Where ``value`` is inside an argument; None where it comes from elsewhere."""
        spot = self._spots.get(id(value))
        return None if spot is None else self._path_of(spot)

    def _path_of(self, spot: Spot) -> MemberPath | None:
        origin, value = self._origins[spot[0]], self._found[spot[0]]
        if isinstance(origin, str):
            path: MemberPath | None = MemberPath.named(origin)
        elif origin is not None and origin[0] in ("attribute", "kind") and (owner := self._path_of(origin[1])):
            path = owner.attribute(origin[2])
        else:
            return None
        for position in spot[1:]:
            if type(value) not in (tuple, list, dict):  # its type, which no argument contains
                return None
            key = list(value)[position] if isinstance(value, dict) else position
            if path is None or not isinstance(key, (int, str)):
                return None
            path, value = path.item(key), value[key]
        return path

    def text(self, value: Any) -> str:
        """How the source spells ``value``, such as ``self.grid.v``; empty if it comes from elsewhere."""
        spot = self._spots.get(id(value))
        return "" if spot is None else self._text_of(spot)

    def _text_of(self, spot: Spot) -> str:
        origin, value = self._origins[spot[0]], self._found[spot[0]]
        match origin:
            case str():
                text = origin
            case ("name" | "default", _, name, _):
                text = name
            case ("attribute", owner, name, _) if before := self._text_of(owner):
                text = f"{before}.{name}"
            case _:
                return ""
        for position in spot[1:]:
            key = list(value)[position] if isinstance(value, dict) else position
            text, value = f"{text}[{key!r}]", parts(value)[position]
        return text

    def attributes(self) -> Iterator[tuple[MemberPath, Any]]:
        """The attributes of objects that were read inside arguments, and what they had: other values need other code."""
        for origin, value in zip(self._origins, self._found, strict=True):
            if not isinstance(origin, tuple) or origin[0] != "attribute" or origin[2].startswith("__"):
                continue
            if not isinstance(self.at(origin[1]), ModuleType) and (owner := self._path_of(origin[1])):
                yield owner.attribute(origin[2]), value
        for fn, args in self._calls:
            yield from reads_of_call(fn, args, self.path)

    def of_classes(self) -> Iterator[tuple[type, str]]:
        """The attributes of the user's classes that were read: their methods, mostly."""
        for origin in self._origins:
            if isinstance(origin, tuple) and origin[0] == "attribute" and not origin[2].startswith("__"):
                owner = self.at(origin[1])
                if isinstance(owner, type) and not _is_ours(owner):
                    yield owner, origin[2]

    def repeat(self, log: Sequence[Read]) -> bool:
        """Repeats the reads of ``log``; False at the first that gives another result."""
        effort = Effort(lambda: self._found[0].span)
        try:
            for number, (kind, spot, name, mark) in enumerate(log, 1):
                owner = self.at(spot)
                if kind == "call":
                    line, args, kwargs = unpacked_call(name, self.at)
                    self.called(owner, args, kwargs, line, effort)
                else:
                    is_code = isinstance(owner, (Func, Method)) and kind in _OF_FUNCTIONS
                    self._read(kind, _source_of(owner) if is_code else owner, name)
                if len(self.log) != number or self.log[-1][3] != mark:
                    return False
        except Exception as error:
            if is_of_a_handler(error):
                raise
            return False  # another object stands where one was read, or the user's code fails: a trace says where
        return True

    def _read(self, kind: str, owner: Any, name: str) -> Any:
        key = kind, id(owner), name
        if key in self._values:
            return self._values[key]
        value = self._values[key] = self._once(key, owner, lambda: _READERS[kind](owner, name))
        if kind in _OF_FUNCTIONS and is_our_module(owner.fn.__globals__.get("__name__", "")):
            return value  # quadpy's version is part of every key
        if spot := self._spots.get(id(owner)):
            self._log(kind, spot, name, value)
        elif kind in _OF_FUNCTIONS or not _is_ours(owner):
            self.complete = False  # of unknown origin
        return value

    def _once(self, key: _Key, owner: Any, read: Callable[[], Any]) -> Any:
        """What ``read`` gave when the signature came first, with containers that only this trace has."""
        if key not in self.known:
            self.known[key] = owner, frozen(read())
        return frozen(self.known[key][1])

    def _log(self, kind: str, spot: Spot, name: str, value: Any) -> None:
        self._origins.append((kind, spot, name, ""))
        self.log.append((kind, spot, name, self._enter(value)))

    def _enter(self, value: Any) -> str:
        """Adds what a read gave; its fingerprint."""
        mark = "missing" if value is MISSING else self._prints.of(value)
        if mark is None:
            self._opaque.add(id(value))
            mark = f"object{self._prints.number(value)}"
        self._place(value, [len(self._found)])
        self._found.append(value)
        return mark

    def _place(self, value: Any, spot: Spot) -> None:
        """Records where an object, and each object in a container, can be found."""
        if len(spot) <= DEEPEST:
            for position, item in enumerate(parts(value)):
                self._place(item, [*spot, position])
        if type(value) in (tuple, list, dict):
            return
        if type(value) not in PLAIN:
            self._spots.setdefault(id(value), spot)
        if isinstance(value, (Func, Method)):
            source = _source_of(value)
            self.files.add(source.span.file)
            self._spots.setdefault(id(source), spot)


def _source_of(value: Func | Method) -> FunctionSource:
    return value.func.source if isinstance(value, Method) else value.source


def _name(source: FunctionSource, name: str) -> Any:
    try:
        return source.resolve(name)
    except KeyError:
        return MISSING


_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "name": _name,
    "default": lambda source, name: source.default(name, MISSING),
    "annotation": lambda source, name: understood(source.annotation(name)),
    "attribute": lambda value, name: getattr(value, name, MISSING),
    "kind": lambda value, name: type(getattr(value, name, MISSING)),
}


def _is_ours(owner: Any) -> bool:
    """Whether what an object has follows from the versions of quadpy and Python."""
    module = getattr(owner if isinstance(owner, type) else type(owner), "__module__", "")
    return is_our_module(module) or module in ("builtins", "enum", "numpy")


_OF_FUNCTIONS: Final = ("name", "default", "annotation")


def reads_of(source: FunctionSource, args: Mapping[str, ArgType], before: Dependencies | None = None) -> Dependencies:
    """The log of a trace that is about to begin; ``before`` as in ``Dependencies``."""
    known = {name: _known(arg) for name, arg in args.items()}
    return Dependencies(source, {name: value for name, value in known.items() if value is not MISSING}, before)


def _known(arg: ArgType) -> Any:
    """What a trace reads of an argument besides its type: its value, its class, or the methods of its structs."""
    if isinstance(arg, StaticArg):
        return arg.value
    if isinstance(arg, ContainerArg):
        return arg.type
    record = arg.type if isinstance(arg, StructArg) else arg.record if isinstance(arg, ArrayArg) else None
    return MISSING if record is None else _methods(record)


def _methods(record: RecordType) -> tuple[Any, ...]:
    inner = [_methods(member) for _, member in record.members if isinstance(member, RecordType)]
    return tuple(method for _, method in record.methods) + sum(inner, ())
