"""The one base of every value type: frozen, keyword-only, closed to unknown fields."""

from collections.abc import Callable
from typing import Any, Self, dataclass_transform

import msgspec


@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Frozen(msgspec.StructMeta):
    """Gives each record the same options, which msgspec would not inherit all."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        options.update(frozen=True, kw_only=True, forbid_unknown_fields=True)
        return super().__new__(cls, name, bases, members, **options)


class Record(msgspec.Struct, metaclass=_Frozen):
    """A value; change means `record.replace(field=new)`."""

    def replace(self, **changes: Any) -> Self:
        return msgspec.structs.replace(self, **changes)


def copy_shared(source: Record, kind: type[Record]) -> dict[str, Any]:
    return {
        name: getattr(source, name) for name in source.__struct_fields__ if name in kind.__struct_fields__
    }


def encode(value: object) -> bytes:
    """Return the JSON of a record or of plain values, on one line, keys in field order."""
    return msgspec.json.encode(value)


def to_builtins(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def leave_out_defaults(value: Record) -> dict[str, Any]:
    """Return a record as plain data without what it would hold anyway."""
    usual = {field.encode_name: field.default for field in msgspec.structs.fields(value)}
    return {name: given for name, given in to_builtins(value).items() if given != usual[name]}


def map_texts(value: Any, change: Callable[[str], str], change_key: Callable[[str], str] = str) -> Any:
    """Return plain data with each text in it changed; the keys of its objects stay unless they change too."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change_key(key): map_texts(each, change, change_key) for key, each in value.items()}
        case list() | tuple():
            return [map_texts(each, change, change_key) for each in value]
        case _:
            return value
