"""When two names mean one host, and when they nearly do: a node has a name in Slurm, one in Kubernetes, one in facts.

Knows text only: neither DNS nor addresses are asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hybridgpu.model.spelling import is_slip

T = TypeVar("T")

_ADDRESS = re.compile(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:]*")
_NUMBER = re.compile(r"[0-9]+")


def full(name: str) -> str:
    """The name as hosts are compared: without case, and without the dot that may end it."""
    return name.lower().rstrip(".")


def short(name: str) -> str:
    """The host's name without its domain; an address stays what it is."""
    lower = full(name)
    return lower if _ADDRESS.fullmatch(lower) else lower.partition(".")[0]


def nearly(one: str, other: str) -> bool:
    """Whether two names that are not one host's may well be meant to be: domain, zeros, separators, a slip.

    `gpu01` and `gpu02` are two hosts: the numbers in both must be the same.
    """
    mine, theirs = short(one), short(other)
    if _numbers(mine) != _numbers(theirs):
        return False
    a, b = family(mine), family(theirs)
    counted = len(a) == len(b) and a[:-1] == b[:-1]  # gpua01 and gpub01 are two rows of a room
    return mine == theirs or a == b or (not counted and is_slip(a, b))


def family(name: str) -> str:
    """What the names of a site's like nodes have in common: all but numbers, separators and domain."""
    return re.sub(r"[-_0-9]+", "", short(name))


@dataclass(slots=True)
class Directory(Generic[T]):
    """Things by their hosts' names. A name without a domain finds the one host that has it with one."""

    by_full: dict[str, T] = field(default_factory=dict)
    by_short: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, named: Iterable[tuple[Iterable[str], T]]) -> Directory[T]:
        """All of these, each under its names."""
        directory = cls()
        for names, thing in named:
            directory.add(names, thing)
        return directory

    def add(self, names: Iterable[str], thing: T) -> None:
        """Takes the thing in under these names; a name that is there already stays whose it is."""
        for name in dict.fromkeys(map(full, names)):
            if self.by_full.setdefault(name, thing) is thing:
                self.by_short.setdefault(short(name), []).append(name)

    def find(self, names: Iterable[str]) -> T | None:
        """What one of these names means; None where nothing does, or where two things might."""
        wanted = list(dict.fromkeys(map(full, names)))
        for name in wanted:
            if name in self.by_full:
                return self.by_full[name]
        for name in wanted:
            known = [k for k in self.by_short.get(short(name), ()) if k == short(k) or name == short(name)]
            things = {id(self.by_full[k]): self.by_full[k] for k in known}
            if len(things) == 1:
                return next(iter(things.values()))
        return None


@dataclass(slots=True)
class NearNames:
    """Names to look up nearly equal ones in, by the numbers in them."""

    by_numbers: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Takes a name in."""
        self.by_numbers.setdefault(_numbers(name), []).append(name)

    def near(self, name: str) -> str | None:
        """The first name taken in that nearly is this one."""
        return next((other for other in self.by_numbers.get(_numbers(name), ()) if nearly(name, other)), None)


def _numbers(name: str) -> tuple[str, ...]:
    """The numbers in a name without their zeros in front; they may have more digits than Python makes an int of."""
    return tuple(number.lstrip("0") for number in _NUMBER.findall(short(name)))
