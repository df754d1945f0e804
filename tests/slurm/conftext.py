"""How a generated configuration is written: the many spellings of one thing, and mistakes of the text itself."""

from __future__ import annotations

import posixpath
import random
from collections.abc import Set
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.slurm.confgen import Draft, Line

BREAKS = ('"', "#", "\\", "=", "\t", " ", "\r", "\f", "\v", ",", "[", "'", "é", "\\#", "\\\\", "\n", "\\\n", '""')


def hostlist(rng: random.Random, nodes: list[str]) -> str:
    """The nodes in one of the forms that a host list has."""
    prefix = nodes[0].rstrip("0123456789")
    numbers = [node[len(prefix) :] for node in nodes]
    plain = len(nodes) == 1 or not all(node.startswith(prefix) and node[len(prefix) :].isdigit() for node in nodes)
    style = rng.random()
    if nodes == ["r1n1", "r1n2", "r2n1", "r2n2"]:
        return rng.choice(("r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]", ",".join(nodes), "r[1,2]n[1,2]"))
    if plain and len(nodes) == 1 and numbers[0].isdigit() and style < 0.2:
        return f"{prefix}[{numbers[0]}]"
    if plain or style < 0.25:
        return ",".join(nodes)
    if style < 0.7:
        return f"{prefix}[{numbers[0]}-{numbers[-1]}]"
    if style < 0.9:
        return f"{prefix}[{','.join(numbers)}]"
    return f"{prefix}{numbers[0]},{prefix}[{numbers[1]}-{numbers[-1]}]"


def without_end(text: str) -> str:
    """The text without its last line end. Behind an Include Slurm then reads on in what was longer before it; where
    nothing was, in other memory, and what it makes of that nobody knows: such a text keeps its line end."""
    *before, last = text.rstrip("\n").split("\n")
    known = any(len(line.encode()) > len(last.encode()) for line in before)
    return text.rstrip("\n") if known or "include" not in last.lower() else text


class Writer:
    """Writes drafts, from one source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.clusters: list[str] = []

    def files(self, draft: Draft, wrong: int) -> dict[str, str]:
        """The files of a draft; `wrong` characters in them are damaged."""
        head = [*draft.head]
        if draft.types:
            head.insert(self.rng.randrange(len(head) + 1), [("GresTypes", ",".join(draft.types))])
        files: dict[str, str] = {}
        self.clusters = [value.lower() for line in head for key, value in line if key.lower() == "clustername"]
        lines = [*head, *draft.nodes] if self.rng.random() < 0.85 else [*draft.nodes, *head]
        files["slurm.conf"] = self._body(files, "slurm", lines)
        if draft.gres or self.rng.random() < 0.8:
            files["gres.conf"] = self._body(files, "gres", draft.gres)
        if draft.cgroup is not None:
            files["cgroup.conf"] = self._body(files, "cgroup", draft.cgroup)
        if self.rng.random() < 0.05:
            files = {name: text.replace("\n", "\r\n") for name, text in files.items()}
        if self.rng.random() < 0.05:
            files = {name: without_end(text) for name, text in files.items()}
        for _ in range(wrong):
            self._break(files)
        return files

    def line(self, line: Line) -> str:
        """One line, or several joined by continuation marks."""
        rng = self.rng
        words = [self._word(key, value) for key, value in line]
        gap = rng.choice((" ", " ", " ", "  ", "\t", " \\\n  ", " \\\n", "\\ \n ", " \\\t\n", " \\ # no\n"))
        text = words[0] + "".join((gap if rng.random() < 0.5 else " ") + word for word in words[1:])
        return text + rng.choice(("", "", "", "", " # a comment", "# x", " ", "  # with \\", "\t", " #\\\\ y"))

    def _word(self, key: str, value: str) -> str:
        rng = self.rng
        if not key:
            return value
        spelled = rng.choice((key.lower(), key.upper())) if rng.random() < 0.08 else key
        quote = '"' if not value or " " in value or (not value.startswith('"') and rng.random() < 0.08) else ""
        equals = rng.choice(("=", " = ", "= ", "\t=\t", " =")) if rng.random() < 0.3 else "="
        if rng.random() < 0.02:
            equals = rng.choice(("+=", "-=", "*=", "/=", " += "))
        escaped = value
        if value and rng.random() < 0.03:
            at = rng.randrange(len(value))
            escaped = f"{value[:at]}\\{value[at:]}" if value[at] not in "\\\n" else value
        return f"{spelled}{equals}{quote}{escaped}{quote}"

    def _body(self, files: dict[str, str], name: str, lines: list[Line]) -> str:
        """The text of a file, part of it in others that it includes."""
        rng = self.rng
        texts = [self.line(line) for line in lines]
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            texts.insert(
                rng.randrange(len(texts) + 1), rng.choice(("", "# comment", "#x \\", "   ", "\t# y", " \\", "#"))
            )
        if name != "cgroup" and texts and rng.random() < 0.2:
            low = rng.randrange(len(texts))
            high = rng.randrange(low, len(texts)) + 1
            inner = self._include(files, name, texts[low:high], 0, frozenset())
            texts[low:high] = [inner]
        elif texts and rng.random() < 0.02:
            texts.insert(0, self._include(files, name, [], 0, frozenset()))
        return "\n".join([*texts, ""])

    def _include(self, files: dict[str, str], name: str, texts: list[str], depth: int, around: Set[str]) -> str:
        """An Include line. Up to 22.05 its file is looked for in the including file's folder, later in slurm.conf's:
        `around` are those of the files in which it may stand."""
        rng = self.rng
        path = f"{rng.choice(('', '', 'sub/', 'sub/deep/', './'))}{name}-{depth}.conf"
        paths, written = [path.removeprefix("./")], path
        if rng.random() < 0.1:
            paths, written = [f"{cluster}-{depth}.conf" for cluster in self.clusters], f"%c-{depth}.conf"
        here = {posixpath.dirname(posixpath.join(folder, path)) for folder in {*around, ""} for path in paths}
        if depth < 2 and len(texts) > 1 and rng.random() < 0.4:
            low = rng.randrange(len(texts))
            texts = [*texts[:low], self._include(files, name, texts[low:], depth + 1, here)]
        text = "\n".join([*texts, ""]) if texts else ""
        elsewhere = text if rng.random() < 0.5 else "# nothing here\n"
        files.update(
            {posixpath.normpath(posixpath.join(folder, path)): elsewhere for folder in around for path in paths}
        )
        files.update(dict.fromkeys(paths, text))
        how = rng.choice(
            ("Include {}", "include  {}", "INCLUDE {} # here", "Include\t{}", "include {} ", "Include {}#x")
        )
        return how.format(written)

    def _break(self, files: dict[str, str]) -> None:
        """One mistake in the text: a character too many, one too few, a line cut. Names of files stay what they are."""
        rng = self.rng
        name = rng.choice(sorted(files))
        text = files[name]
        at = rng.randrange(len(text) + 1)
        before, after = text[:at].split("\n"), text[at:].split("\n")
        around = ("\n".join(before[-2:]) + "\n".join(after[:2])).lower().replace("\\", "")
        if any(word in around for word in ("include", "/dev/", "clustername")):
            return
        action = rng.random()
        if action < 0.5:
            text = f"{text[:at]}{rng.choice(BREAKS)}{text[at:]}"
        elif action < 0.75:
            text = f"{text[:at]}{text[at + 1 :]}"
        elif action < 0.9:
            text = text[:at] if rng.random() < 0.5 else f"{text[:at]}{text[at + rng.randrange(1, 9) :]}"
        elif "include" not in text[:9].lower():
            text = f" {text}" if rng.random() < 0.5 else f"\ufeff{text}"
        files[name] = text
