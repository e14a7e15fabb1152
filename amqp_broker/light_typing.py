"""Parts of `typing` for health checks: its import takes a tenth of one.

Tools that check types see the originals.
"""

from __future__ import annotations

# Type checkers take a variable of this name as True.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Final as Final
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
else:
    from collections import namedtuple

    # In annotations, which are not evaluated, and in bases such as dict[str, Any].
    Any = Final = NoReturn = object

    class _Fields(type):
        """Makes a class with annotations a named tuple with these fields and defaults."""

        def __new__(cls, name, bases, members):
            if not bases:
                return super().__new__(cls, name, bases, members)
            names = members.pop("__annotations__")
            defaults = [members.pop(field) for field in names if field in members]
            return type(name, (namedtuple(name, names, defaults=defaults),), {**members, "__slots__": ()})

    class NamedTuple(metaclass=_Fields):
        """A base class that stands for `typing.NamedTuple`."""
