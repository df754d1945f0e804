"""A syntax error of YAML in plain words, at its line and column. libyaml's own words are only the last resort."""

from __future__ import annotations

import yaml

from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

SYNTAX = Rule(
    "yaml-syntax",
    Severity.ERROR,
    "The file is not YAML from this place on, and nothing of it is used.",
    "Mend the line, or the one before it: YAML often notices a mistake one line late.",
    "YAML 1.2",
)

_WORDS = {
    "mapping values are not allowed in this context": (
        "a ':' stands here where no key can be",
        "Indent keys of one mapping alike; quote a value that holds ': '.",
    ),
    "did not find expected ',' or '}'": (
        "a '}' or ',' is missing: a '{' is not closed",
        "Close the '{'; inside { } quote a value that holds a ',' or brackets, as \"gpu[1-4]\".",
    ),
    "did not find expected ',' or ']'": (
        "a ']' or ',' is missing: a '[' is not closed",
        "Close the '['; quote a value that begins with '['.",
    ),
    "did not find expected '-' indicator": (
        "this line does not line up with the list it should belong to",
        "Begin each item with '- ' in one column, and indent its further keys by two more.",
    ),
    "did not find expected key": (
        "this line does not line up with the keys it should belong to",
        "Indent keys of one mapping alike.",
    ),
    "could not find expected ':'": (
        "a ':' is missing after this key",
        "Write `key: value`, with a space after the ':'.",
    ),
    "exceeded maximum nesting depth": ("this is nested far too deep", "Remove the surplus brackets."),
    "found unexpected end of stream": ("a quote is opened and never closed", "Close the quote."),
    "found unknown escape character": (
        "a backslash in double quotes begins an escape, and this one is unknown",
        "Use single quotes.",
    ),
    "did not find expected node content": ("a value is missing here", "Give the value, or remove the surplus sign."),
    "did not find expected <document start>": (
        "something follows after the end of the document",
        "Indent it like the rest, or remove the surplus sign.",
    ),
    "block sequence entries are not allowed in this context": (
        "a '- ' stands here where no list item can be",
        "Put the list on lines of its own below its key.",
    ),
}
_TAB = ("a tab stands here where YAML takes only spaces", "Replace the tab by spaces.")


def explain(path: str, text: str, error: yaml.YAMLError) -> Finding:
    """The finding for an error that libyaml raised while it read `text`."""
    problem = str(getattr(error, "problem", None) or "not YAML")
    mark, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    words, fix = _in_words(problem, _character(text, line, column))
    related: tuple[Related, ...] = ()
    if context and context.line + 1 != line:
        related = (Related(Place(path, context.line + 1, context.column + 1), "where it begins"),)
    return Finding(SYNTAX, Place(path, line, column), words, fix, related)


def _in_words(problem: str, character: str) -> tuple[str, str]:
    if character == "\t" or problem.startswith("found a tab"):
        return _TAB
    if problem == "found character that cannot start any token":
        return f"no value can begin with {character!r}", "Put the value in quotes."
    return _WORDS.get(problem, (f"this is not YAML: {problem}", SYNTAX.fix))


def _character(text: str, line: int, column: int) -> str:
    lines = text.splitlines()
    return lines[line - 1][column - 1 : column] if line <= len(lines) else ""
