"""One object of a JSON file, field by field, each held to its type. What is wrong is noted, and reading goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from hybridgpu.model.spelling import nearest

E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Record:
    """`where` it stands (`devices[3]`), and the list that takes each problem. What is wrong is read as empty."""

    fields: Mapping[str, Any]
    where: str
    problems: list[str]

    @classmethod
    def of(cls, value: object, where: str, problems: list[str]) -> Record:
        """The record of a JSON value; an empty one, and a problem, where it is no object."""
        if isinstance(value, dict):
            return cls(value, "" if where == "the file" else where, problems)
        problems.append(f"{where} must be an object {{ }}")
        return cls({}, where, [])  # what is missing in it was said

    def problem(self, name: str, what: str) -> None:
        """Notes what is wrong with a field."""
        self.problems.append(f"{self.where}.{name} {what}".lstrip("."))

    def text(self, name: str) -> str:
        """A text that is not empty."""
        return self._of(name, str, "a text") or ""

    def text_or_null(self, name: str) -> str | None:
        """The same, or None for null."""
        return None if self._null(name) else self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(self._list(name, str, "texts"))

    def number(self, name: str) -> int:
        """A whole number from 0."""
        number = self._of(name, int, "a whole number from 0")
        if number is not None and number < 0:
            self.problem(name, f"is {number}; allowed: a whole number from 0")
        return number or 0

    def number_or_null(self, name: str) -> int | None:
        """The same, or None for null."""
        return None if self._null(name) else self.number(name)

    def numbers_or_null(self, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers, or None for null."""
        return None if self._null(name) else tuple(self._list(name, int, "whole numbers"))

    def flag(self, name: str) -> bool:
        """True or false."""
        return bool(self._of(name, bool, "true or false"))

    def word(self, name: str, only: str) -> None:
        """Nothing but this one word."""
        if self.text(name) not in ("", only):
            self.problem(name, f"is {self.fields[name]!r}; allowed: {only}")

    def choice(self, name: str, words: type[E]) -> E:
        """One of the words."""
        every = list(words)
        word = self.text(name)
        if word and word not in every:
            near = nearest(word, every)
            hint = f" (did you mean {near}?)" if near else ""
            self.problem(name, f"is {word!r}{hint}; allowed: {', '.join(every)}")
        return words(word) if word in every else every[0]

    def record(self, name: str) -> Record:
        """An object."""
        where = f"{self.where}.{name}".lstrip(".")
        if name not in self.fields:
            self.problem(name, "is missing")
            return Record({}, where, [])
        return Record.of(self.fields[name], where, self.problems)

    def record_or_null(self, name: str) -> Record | None:
        """An object, or None for null."""
        return None if self._null(name) else self.record(name)

    def records(self, name: str) -> tuple[Record, ...]:
        """A list of objects."""
        where = f"{self.where}.{name}".lstrip(".")
        items = self._of(name, list, "a list") or []
        return tuple(Record.of(item, f"{where}[{at}]", self.problems) for at, item in enumerate(items))

    def counts(self, name: str) -> dict[str, int]:
        """An object of whole numbers."""
        inner = self.record(name)
        return {key: inner.number(key) for key in inner.fields}

    def _null(self, name: str) -> bool:
        return name in self.fields and self.fields[name] is None

    def _of(self, name: str, kind: type[Any], allowed: str) -> Any:  # noqa: ANN401
        """The value, if it is of this very type (true is no number); else None, and a problem."""
        value = self.fields.get(name)
        if type(value) is kind and value != "":
            return value
        self.problem(name, f"is {_shown(value)}; allowed: {allowed}" if name in self.fields else "is missing")
        return None

    def _list(self, name: str, kind: type[Any], allowed: str) -> list[Any]:
        items = self._of(name, list, f"a list of {allowed}") or []
        if all(type(item) is kind for item in items):
            return list(items)
        self.problem(name, f"must hold {allowed} alone")
        return []


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
