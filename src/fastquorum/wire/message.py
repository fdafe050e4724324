"""Structs and messages: classes whose bodies are Kafka's message definitions.

A metaclass turns a class body of `field(...)` declarations into slots, a keyword constructor in which every field has
its declared default, equality and repr; type checkers see the same through `typing.dataclass_transform`. The
declaration itself stays at `cls.__wire__`; the codec, the JSON form and the layout query are all derived from it.
Unknown tagged fields are kept in `unknown_tags` and written back.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar, Literal, dataclass_transform

from fastquorum.wire.types import IMPLIED, NO_VERSIONS, Field, Shape, Versions

Kind = Literal["request", "response", "header", "data", "metadata", "struct"]


@dataclasses.dataclass(frozen=True, slots=True)
class Declaration:
    """What a class body declared."""

    name: str
    fields: tuple[Field, ...]
    kind: Kind = "struct"
    api_key: int = -1
    """The API or metadata record key; -1 where there is none."""
    versions: Versions = NO_VERSIONS
    flexible: Versions = NO_VERSIONS


@dataclass_transform(kw_only_default=True)
class StructMeta(type):
    """Builds Struct classes from their declarations."""

    __wire__: Declaration

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api_key: int = -1,
        kind: Kind = "struct",
        versions: str = "none",
        flexible: str = "none",
    ) -> "StructMeta":
        if not bases:
            namespace = {key: value for key, value in namespace.items() if key != "unknown_tags"}
            namespace["__slots__"] = ("unknown_tags",)
            return super().__new__(mcls, name, bases, namespace)
        fields = tuple(_named(key, value) for key, value in namespace.items() if isinstance(value, Field))
        namespace = {key: value for key, value in namespace.items() if not isinstance(value, Field)}
        namespace["__slots__"] = tuple(each.name for each in fields)
        cls = super().__new__(mcls, name, bases, namespace)
        cls.__wire__ = Declaration(name, fields, kind, api_key, Versions.parse(versions), Versions.parse(flexible))
        return cls

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, namespace)


def _named(name: str, declared: Field) -> Field:
    return dataclasses.replace(declared, name=name, json_name=declared.json_name or camel_case(name))


def camel_case(name: str) -> str:
    """Return the name as Kafka's JSON has it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _add_methods(cls: StructMeta) -> None:
    """Generate `__init__` and `__eq__`, as dataclasses do: written out, they cost what hand-written ones cost.

    Done when a class is first used: a program uses few of the several hundred.
    """
    fields = cls.__wire__.fields
    scope: dict[str, Any] = {"IMPLIED": IMPLIED}
    parameters, body, equal = [], [], []
    for number, each in enumerate(fields):
        value = each.name
        if each.default is IMPLIED:
            parameters.append(f"{each.name}=IMPLIED")
            scope[f"Fresh{number}"] = list if each.type.shape is Shape.ARRAY else each.type.struct
            value = f"Fresh{number}() if {each.name} is IMPLIED else {each.name}"
        else:
            parameters.append(f"{each.name}=default{number}")
            scope[f"default{number}"] = each.default
        body.append(f"    self.{each.name} = {value}\n")
        equal.append(f" and self.{each.name} == other.{each.name}")
    source = (
        f"def __init__(self, *, {', '.join([*parameters, 'unknown_tags=()'])}):\n"
        f"{''.join(body)}    self.unknown_tags = unknown_tags\n"
        "def __eq__(self, other):\n"
        "    if other.__class__ is not self.__class__:\n"
        "        return NotImplemented\n"
        f"    return self.unknown_tags == other.unknown_tags{''.join(equal)}\n"
    )
    exec(compile(source, f"<constructor of {cls.__qualname__}>", "exec"), scope)
    for name in ("__init__", "__eq__"):
        scope[name].__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, scope[name])


class Struct(metaclass=StructMeta):
    """A group of fields: a message, or a part of one. Mutable, compared by value."""

    unknown_tags: tuple[tuple[int, bytes], ...] = ()
    """Tagged fields that the declaration does not know, by ascending tag; kept and written back."""

    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable, so without a hash

    if not TYPE_CHECKING:  # checkers derive the constructor from the declarations

        def __init__(self, **fields: Any) -> None:
            _add_methods(type(self))
            type(self).__init__(self, **fields)

    def __eq__(self, other: object) -> bool:
        _add_methods(type(self))
        return type(self).__eq__(self, other)

    def __repr__(self) -> str:
        values = [f"{each.name}={getattr(self, each.name)!r}" for each in type(self).__wire__.fields]
        if self.unknown_tags:
            values.append(f"unknown_tags={self.unknown_tags!r}")
        return f"{type(self).__qualname__}({', '.join(values)})"


class Message(Struct):
    """A struct that stands alone: a request, response, header or record, with versions of its own."""
