"""A program's types: classes for its constructors, and how types are written."""

from __future__ import annotations

import dataclasses
import keyword
import threading
from typing import Any, Iterator


def shape_text(manifest: dict, pool: int, leading: list[str]) -> str:
    row_pool = manifest["row_pools"][pool]
    dims = leading + [str(length) for length in row_pool["shape"]]
    return f"{row_pool['elem']}[{', '.join(dims)}]"


def dim_text(manifest: dict, dim: Any) -> str:
    """A leading dim of a tensor with instance dims."""
    match dim:
        case {"known": length}:
            return str(length)
        case {"named": index}:
            return manifest["dims"][index]
        case _:
            return "_"


def type_text(manifest: dict, ty: Any) -> str:
    """A type as programs write it."""
    match ty:
        case {"scalar": elem}:
            return elem
        case {"tensor": {"pool": pool}}:
            return shape_text(manifest, pool, [])
        case {"ragged": {"pool": pool, "dims": dims}}:
            return shape_text(manifest, pool, [dim_text(manifest, dim) for dim in dims])
        case {"stacked": {"pool": pool}}:
            return shape_text(manifest, pool, ["_"])
        case {"tuple": types}:
            return "(" + ", ".join(type_text(manifest, part) for part in types) + ")"
        case "str":
            return "str"
        case {"array": element}:
            return f"[{type_text(manifest, element)}]"
        case {"adt": adt}:
            return manifest["adts"][adt]["name"]
    raise ValueError(f"an unknown type: {ty!r}")


def fields_text(manifest: dict, constructor: dict) -> list[str]:
    """The types of a constructor's fields, behind their names if they have some."""
    types = [type_text(manifest, field) for field in constructor["fields"]]
    names = constructor.get("names", [])
    return [f"{name}: {ty}" for name, ty in zip(names, types)] or types


class Signature:
    """What `main`, or the function in its place, takes and gives: `arguments` maps names to types, `result` is a type."""

    def __init__(self, manifest: dict, name: str = "main"):
        self.name = name
        arguments = manifest["arguments"]
        self.arguments = {a["name"]: type_text(manifest, a["type"]) for a in arguments}
        self.result = type_text(manifest, manifest["result"])
        self.types = {
            adt["name"]: " | ".join(
                constructor["name"]
                + (
                    "(" + ", ".join(fields_text(manifest, constructor)) + ")"
                    if constructor["fields"]
                    else ""
                )
                for constructor in adt["constructors"]
            )
            for adt in manifest["adts"]
        }

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}: {ty}" for name, ty in self.arguments.items())
        return f"{self.name}({arguments}) -> {self.result}"

    def __repr__(self) -> str:
        return f"<Signature {self}>"


def _attributes(names: tuple[str, ...]) -> list[str]:
    """The fields' names as ones that Python takes, each once: `from` is `from_`."""
    taken = {name for name in names if not _is_special(name)}
    found = []
    for name in names:
        if _is_special(name):
            while _is_special(name) or name in taken:
                name += "_"
            taken.add(name)
        found.append(name)
    return found


def _is_special(name: str) -> bool:
    return keyword.iskeyword(name) or name.startswith("__")


#: The classes that were made, by name, number of fields and their names: models that have one in common share it, and a
#: process that unpickles a value makes it.
_CLASSES: dict[tuple[str, int, tuple[str, ...]], type] = {}
_MAKING = threading.Lock()


def _class(name: str, arity: int, names: tuple[str, ...]) -> type:
    with _MAKING:
        key = name, arity, names
        if key not in _CLASSES:
            _CLASSES[key] = _made(*key)
        return _CLASSES[key]


def _value(key: tuple[str, int, tuple[str, ...]], fields: tuple[Any, ...]) -> Any:
    return _class(*key)(*fields)


def _made(name: str, arity: int, names: tuple[str, ...]) -> type:
    fields = _attributes(names) or [f"_{index}" for index in range(arity)]
    made = dataclasses.make_dataclass(
        name,
        [(field, Any) for field in fields],
        frozen=True,
        slots=True,
        namespace={"__doc__": f"The constructor `{name}`."},
    )
    made.__module__ = "cohort.types"

    def show(self) -> str:
        label = "{}={}".format if names else "{1}".format
        return f"{name}({', '.join(label(field, repr(getattr(self, field))) for field in fields)})"

    def reduce(self) -> tuple:
        return _value, ((name, arity, names), tuple(getattr(self, field) for field in fields))

    made.__repr__ = show  # type: ignore[method-assign]
    made.__reduce__ = reduce  # type: ignore[method-assign]
    return made


class Types:
    """A frozen dataclass for each constructor, as an attribute: `m.types.Node(l, r)`. Where two types have
    constructors of one name that differ, `m.types["Tree"]` maps names to those of a type."""

    def __init__(self, manifest: dict):
        self._by_type: dict[str, dict[str, type]] = {}
        for adt in manifest["adts"]:
            classes = {}
            for constructor in adt["constructors"]:
                name, arity = constructor["name"], len(constructor["fields"])
                classes[name] = _class(name, arity, tuple(constructor.get("names", ())))
                if not hasattr(self, name):
                    setattr(self, name, classes[name])
            self._by_type[adt["name"]] = classes
        self._classes = [list(classes.values()) for classes in self._by_type.values()]
        if len(self._by_type) < len(manifest["adts"]):
            raise ValueError("two types of one name")

    def __getitem__(self, type_name: str) -> dict[str, type]:
        return self._by_type[type_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_type)

    def __repr__(self) -> str:
        return f"<Types {', '.join(self._by_type)}>"
