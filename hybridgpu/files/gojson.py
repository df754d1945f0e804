"""A tree filled into a Go program's types, as encoding/json fills them: names without case, unknown keys passed over.

The types are described by whoever knows the program; its own unmarshallers are functions. A mismatch does not end the
decoding, an unmarshaller's refusal does, and the words are Go's. What the values mean is not known here.
Sources: Go 1.26 encoding/json decode.go (object, literalStore, addErrorContext); sigs.k8s.io/yaml v1.6.0 yaml.go
convertToJSONableObject.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hybridgpu.files.goprint import float32, json_text
from hybridgpu.files.goscalar import GoValue
from hybridgpu.files.gotree import GoError, GoKey, GoList, GoMap, GoNode, GoScalar

JSON = "error unmarshaling JSON: while decoding JSON: "
"""What sigs.k8s.io/yaml puts before the words of encoding/json and of the unmarshallers."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """encoding/json's UnmarshalTypeError: what was read, Go's type, and once known the struct and path it was for."""

    value: str
    type: str
    node: GoNode
    struct: str = ""
    path: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The error as Go prints it."""
        if self.struct or self.path:
            where = ".".join((self.struct, *self.path))
            return f"json: cannot unmarshal {self.value} into Go struct field {where} of type {self.type}"
        return f"json: cannot unmarshal {self.value} into Go value of type {self.type}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An unmarshaller's own error; `about` names the kind for whoever makes findings of it."""

    words: str
    node: GoNode | GoKey
    about: str = ""


Failure = Mismatch | Refusal


@dataclass(frozen=True, slots=True, eq=False)
class Basic:
    """string, bool or int."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A slice of a basic type or of a type of its own; `name` as Go prints it."""

    of: GoType
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """A struct: its name as Go prints it, and its fields by their JSON names."""

    name: str
    fields: Mapping[str, Field]

    @property
    def short(self) -> str:
        """The name without its package."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """A type with UnmarshalJSON: the function gets the node and gives a value or a failure."""

    read: Callable[[GoNode], Any]
    zero: Any = None


GoType = Basic | Slice | Struct | Own


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A struct's field: its type, whether it is a pointer, and the embedded struct that it is promoted from."""

    type: GoType
    pointer: bool = False
    via: Struct | None = None


STRING, BOOL, INT = Basic("string"), Basic("bool"), Basic("int")
_ZERO = {"string": "", "bool": False, "int": 0}


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """A basic value and where it stands."""

    value: Any
    node: GoNode | None = None


@dataclass(slots=True)
class Decoded:
    """What came of it: a struct as a dict of the fields that were set, the failure, and keys that met no field."""

    values: dict[str, Any]
    failure: Failure | None = None
    mismatches: list[Mismatch] = field(default_factory=list)
    unknown: list[tuple[tuple[str, ...], GoKey, GoNode]] = field(default_factory=list)
    folded: list[tuple[GoKey, str]] = field(default_factory=list)
    allocated: list[tuple[GoKey, str]] = field(default_factory=list)


def decode(root: GoNode, struct: Struct) -> Decoded:
    """The struct filled from the root of a document.

    `allocated` are keys that fill nothing and yet, by a slip of sigs.k8s.io/yaml, set a field of an outer struct of
    the same name to its zero value.
    """
    done = Decoded({})
    aimed = _aim(root, struct, done.values, done)
    filling = _Filling(done)
    filling.object(aimed, struct, done.values, (), "")
    done.failure = filling.fatal or done.failure
    return done


def raw_object(node: GoNode) -> GoMap | Mismatch:
    """What json.Unmarshal makes of it for a map[string]json.RawMessage; nil is an empty map."""
    if isinstance(node, GoMap):
        return node
    if _null(node):
        return GoMap((), node.line, node.column)
    return Mismatch(kind(node), "map[string]json.RawMessage", node)


def as_string(node: GoNode) -> str | Mismatch:
    """json.Unmarshal into a string: null leaves it empty."""
    if _null(node):
        return ""
    value = node.value if isinstance(node, GoScalar) else None
    return value if isinstance(value, str) else Mismatch(kind(node), "string", node)


def as_bool(node: GoNode) -> bool | Mismatch:
    """json.Unmarshal into a bool: null leaves it false."""
    if _null(node):
        return False
    value = node.value if isinstance(node, GoScalar) else None
    return value if isinstance(value, bool) else Mismatch(kind(node), "bool", node)


def as_int(node: GoNode, name: str = "int") -> int | Mismatch:
    """json.Unmarshal into an int or uint64 (`name`): null leaves it 0, and 2.0 is 2, since YAML became JSON first."""
    if _null(node):
        return 0
    if kind(node) != "number":
        return Mismatch(kind(node), name, node)
    low, high = (0, 2**64) if name == "uint64" else (-(2**63), 2**63)
    text = json_text(node)
    whole = "." not in text and "e" not in text and not (name == "uint64" and text[0] == "-")
    return int(text) if whole and low <= int(text) < high else Mismatch(f"number {text}", name, node)


_READERS: dict[str, Callable[[GoNode], str | bool | int | Mismatch]] = {
    "string": as_string,
    "bool": as_bool,
    "int": as_int,
}


def kind(node: GoNode) -> str:
    """Go's word for the JSON value."""
    if isinstance(node, GoMap):
        return "object"
    if isinstance(node, GoList):
        return "array"
    match node.value:
        case bool():
            return "bool"
        case str():
            return "string"
        case None:
            return "null"
    return "number"


def _null(node: GoNode) -> bool:
    return isinstance(node, GoScalar) and node.value is None


def fold(name: str) -> str:
    """The name without case, character by character, as encoding/json compares names."""
    return "".join(low if len(low := c.casefold()) == 1 else c for c in name)


def find(struct: Struct, name: str) -> str | None:
    """The field a key fills: of exactly this name, else of this name in another case."""
    if name in struct.fields:
        return name
    return next((known for known in struct.fields if fold(known) == fold(name)), None)


def error(failure: Failure) -> GoError:
    """The failure with its place, in the words that come out of sigs.k8s.io/yaml."""
    node = failure.node
    return GoError(JSON + failure.words, node.line, node.column)


def _aim(node: GoNode, target: GoType | None, values: dict[str, Any], done: Decoded) -> GoNode:
    """The tree after YAML became JSON: where a field is a string, numbers and bools have become text.

    The search looks at the first struct a promoted field is in, not at the field: so flags are left as they are, and a
    flag written one level too deep makes its field there exist, with the zero value.
    """
    if isinstance(node, GoMap) and isinstance(target, Struct):
        entries = []
        for key, value in node.entries:
            name = find(target, key.name)
            entries.append((key, value if name is None else _aim_field(key, value, target, name, values, done)))
        return GoMap(tuple(entries), node.line, node.column)
    if isinstance(target, Basic) and target.name == "string" and isinstance(node, GoScalar):
        text = _coerced(node.value)
        return node if text is None else replace(node, value=text)
    return node


def _aim_field(key: GoKey, value: GoNode, struct: Struct, name: str, values: dict[str, Any], done: Decoded) -> GoNode:
    found = struct.fields[name]
    if found.via is not None:
        return _aim(value, found.via, values, done)
    if isinstance(found.type, Struct):
        return _aim(value, found.type, values.setdefault(name, {}), done)
    if found.pointer and isinstance(found.type, Basic | Own):
        zero = Read(_ZERO[found.type.name]) if isinstance(found.type, Basic) else found.type.zero
        if zero is not None:
            values.setdefault(name, zero)
            done.allocated.append((key, name))
    return _aim(value, found.type, values, done)


def _coerced(value: GoValue) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return float32(value)
        case int():
            return str(value)
    return None


@dataclass(slots=True)
class _Filling:
    done: Decoded
    fatal: Failure | None = None

    def save(self, mismatch: Mismatch) -> None:
        """Remember a mismatch; the first one is what the program says in the end."""
        self.done.mismatches.append(mismatch)
        if self.done.failure is None:
            self.done.failure = mismatch

    def object(self, node: GoNode, struct: Struct, values: dict[str, Any], path: tuple[str, ...], outer: str) -> None:
        """Fill a struct; `path` and `outer` are where it is, for messages. Stops once something is fatal."""
        if _null(node):
            return
        if not isinstance(node, GoMap):
            self.save(Mismatch(kind(node), struct.name, node, outer, path))
            return
        for key, value in node.entries:
            name = find(struct, key.name)
            if name is None:
                self.done.unknown.append((path, key, value))
                continue
            if name != key.name:
                self.done.folded.append((key, name))
            found = struct.fields[name]
            via = (found.via.short,) if found.via else ()
            self.field(value, found, name, values, (*path, *via, name), struct.short)
            if self.fatal:
                return

    def field(
        self, node: GoNode, found: Field, name: str, values: dict[str, Any], path: tuple[str, ...], struct: str
    ) -> None:
        if _null(node) and found.pointer:
            values.pop(name, None)
            return
        match found.type:
            case Struct():
                self.object(node, found.type, values.setdefault(name, {}), path, struct)
            case Own():
                value = found.type.read(node)
                if isinstance(value, Mismatch):
                    value = replace(value, struct=struct, path=(*path, *value.path))
                if isinstance(value, Mismatch | Refusal):
                    self.fatal = value
                else:
                    values[name] = value
            case Slice():
                self.slice(node, found.type, name, values, path, struct)
            case Basic():
                if _null(node):
                    return
                value = _READERS[found.type.name](node)
                if isinstance(value, Mismatch):
                    self.save(replace(value, struct=struct, path=path))
                else:
                    values[name] = Read(value, node)

    def slice(
        self, node: GoNode, found: Slice, name: str, values: dict[str, Any], path: tuple[str, ...], struct: str
    ) -> None:
        if _null(node):
            values.pop(name, None)
            return
        if not isinstance(node, GoList):
            self.save(Mismatch(kind(node), found.name, node, struct, path))
            return
        items: list[Any] = []
        for item in node.items:
            holder: dict[str, Any] = {}
            self.field(item, Field(found.of), name, holder, path, struct)
            if self.fatal:
                return
            items.append(holder.get(name, Read(0, item)))
        values[name] = tuple(items)
