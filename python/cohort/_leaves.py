"""The numbers and tensors of floats that an instance takes, in the order in which gradients have them."""

from __future__ import annotations

from typing import Any, Iterator, Mapping


class Leaves:
    """Finds them in instances of a program that was compiled for gradients."""

    def __init__(self, manifest: dict):
        self._arguments = manifest["arguments"]
        self._row_pools = manifest["row_pools"]
        self._adts = manifest["adts"]
        self._with_floats: set[int] = set()
        before = None
        while before != len(self._with_floats):
            before = len(self._with_floats)
            for number, adt in enumerate(self._adts):
                if any(self._has_floats(ty) for made in adt["constructors"] for ty in made["fields"]):
                    self._with_floats.add(number)
        #: Whether there are any.
        self.exist = any(self._has_floats(argument["type"]) for argument in self._arguments)

    def _has_floats(self, ty: Any) -> bool:
        match ty:
            case {"tensor": {"pool": pool}} | {"ragged": {"pool": pool}} | {"stacked": {"pool": pool}}:
                return self._row_pools[pool]["elem"] == "f32"
            case {"tuple": types}:
                return any(map(self._has_floats, types))
            case {"array": element}:
                return self._has_floats(element)
            case {"adt": adt}:
                return adt in self._with_floats
        return False

    def of(self, instance: Mapping[str, Any]) -> Iterator[Any]:
        """What the instance, which was run, has for each: an array, a tensor, a number or lists of them."""
        # Nothing recurses, so depth does not matter.
        left = [(argument["type"], instance[argument["name"]]) for argument in reversed(self._arguments)]
        while left:
            ty, value = left.pop()
            if not self._has_floats(ty):
                continue
            match ty:
                case {"tuple": types}:
                    left.extend(reversed([*zip(types, value)]))
                case {"array": element}:
                    left.extend((element, one) for one in reversed(list(value)))
                case {"stacked": _}:
                    yield from value
                case {"adt": adt}:
                    types, fields = self._fields(adt, value)
                    left.extend(reversed([*zip(types, fields)]))
                case _:
                    yield value

    def _fields(self, adt: int, value: Any) -> tuple[list[Any], list[Any]]:
        constructors = self._adts[adt]["constructors"]
        if isinstance(value, str):
            return [], []
        if not isinstance(value, (tuple, dict)):
            own = next(one for one in constructors if one["name"] == type(value).__name__)
            return own["fields"], [getattr(value, name) for name in type(value).__match_args__]
        name, fields = (value[0], list(value[1:])) if isinstance(value, tuple) else next(iter(value.items()))
        own = next(one for one in constructors if one["name"] == name)
        if isinstance(fields, dict):
            fields = [fields[field] for field in own["names"]]
        return own["fields"], list(fields)
