"""Which of an inventory's hosts a hostlist names, found from the side of the hosts: a raw line may name 65,536 others.

Knows nothing of what the lines say about them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import islice

from hybridgpu.inventory.hosts import Part, expand_term, read_span, read_terms

_DIGITS = re.compile(r"[0-9]+")


class HostIndex:
    """The hosts by their shape, which is the name with `#` for each number: only of its own shape can a term name."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self._hosts = frozenset(hosts)
        self._shapes: dict[str, list[tuple[int, str]]] = {}  # each with its first number, ascending
        for host in self._hosts:
            found = _DIGITS.search(host)
            number = int(found[0][-_MOST_DIGITS:]) if found else 0
            self._shapes.setdefault(_DIGITS.sub("#", host), []).append((number, host))
        for of_shape in self._shapes.values():
            of_shape.sort()

    def named_by(self, hostlist: str, most: int) -> list[str]:
        """The first `most` hosts of the index that the list names. Raises HostlistError where it cannot be read."""
        return list(islice((host for term in read_terms(hostlist) for host in self._of(term)), most))

    def _of(self, term: list[Part]) -> Iterator[str]:
        shape = _DIGITS.sub("#", "".join(part if isinstance(part, str) else "0" for part in term))
        of_shape = self._shapes.get(shape, [])
        spans = [part for part in term if not isinstance(part, str)]
        if len(spans) != 1 or shape.count("#") != 1 or any(_DIGITS.search(p) for p in term if isinstance(p, str)):
            yield from (host for host in expand_term(term) if host in self._hosts) if of_shape else ()
            return
        before, _, behind = shape.partition("#")
        for span in spans[0]:
            numbers, width = read_span(span)
            for number, host in islice(of_shape, bisect_left(of_shape, (numbers[0], "")), None):
                if number > numbers[-1]:
                    break
                if number in numbers and host == f"{before}{number:0{width}}{behind}":
                    yield host


_MOST_DIGITS = 18
