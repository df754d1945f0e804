"""The rules of the house that no linter knows: sizes, names, templates without logic, versions in one place only."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

HOUSE = Path(__file__).parent.parent
MADE = {"__pycache__", "build", "dist", "out"}
CASES = HOUSE / "tests" / "data" / "cases"
HIDDEN_OURS = {".ci", ".gitignore"}
CODE_ROOMS = ("hybridgpu", "testbed", "bench")

LONGEST_MODULE = 400
MEDIAN_MODULE = 150
LONGEST_FUNCTION = 60
DRAWERS = {"utils", "util", "helpers", "helper", "common", "misc", "tools", "stuff"}
RELEASES = HOUSE / "hybridgpu" / "consumers" / "slurm" / "release.py"
LABELS = HOUSE / "hybridgpu" / "model" / "labels.py"
SHARED_NAMES = re.compile(
    r"nvidia\.com/(?:mig\.config|mig-|device-plugin\.config|gpu\.deploy\.)|hybridgpu\.io/|^\.shared$|gpu\.shared"
    r"|/run/nvidia/mps"
)

TEMPLATE_SYNTAX = {
    nodes.Template: "",
    nodes.Output: "",
    nodes.TemplateData: "text",
    nodes.Name: "{{ name }}",
    nodes.Getattr: "{{ name.attribute }}",
    nodes.For: "for",
}
"""What a template may be made of; comments leave no trace in the tree. No if, set, filter, test, call or macro."""

FORBIDDEN = {
    # Written in two parts, so that this file does not name what it forbids.
    "a path of one machine": r"(?<![\w}.~-])/(?:wo" r"rk|ro" r"ot|ho" r"me/(?!\{)\w+)/",
    "a package registry": r"py"
    r"pi\.(?:org|python)|pyth"
    r"onhosted|deb\.deb"
    r"ian\.org|registry\.npm|proxy\.gol"
    r"ang",
    "a conflict marker": r"^(?:<{7} |>{7} )",
}


def files(*suffixes: str) -> Iterator[Path]:
    """The files of the checkout that are ours to answer for, made ones left out; with one of `suffixes`, or all."""
    for path in sorted(HOUSE.rglob("*")):
        parts = path.relative_to(HOUSE).parts
        made = any(part in MADE or part.endswith(".egg-info") for part in parts)
        hidden = any(part.startswith(".") and part not in HIDDEN_OURS for part in parts)
        if path.is_file() and not made and not hidden and (not suffixes or path.suffix in suffixes):
            yield path


def name(path: Path) -> str:
    return str(path.relative_to(HOUSE))


MODULES = [path for path in files(".py") if path.relative_to(HOUSE).parts[0] in CODE_ROOMS]
PRODUCT = [path for path in MODULES if path.relative_to(HOUSE).parts[0] == "hybridgpu"]
TEMPLATES = [path for path in files(".j2") if path.relative_to(HOUSE).parts[0] == "templates"]


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_there_is_something_to_judge() -> None:
    assert RELEASES in MODULES
    assert {template.name for template in TEMPLATES} >= {"gres.conf.j2", "nodes.conf.j2", "gpu.conf.j2"}


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_is_short_and_so_are_its_functions(module: Path) -> None:
    assert length(module) <= LONGEST_MODULE
    too_long = {
        node.name: size
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (size := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert not too_long


def test_the_median_module_is_short() -> None:
    assert statistics.median(length(module) for module in MODULES if module.name != "__init__.py") <= MEDIAN_MODULE


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_no_module_is_a_drawer(module: Path) -> None:
    assert not DRAWERS & set(module.relative_to(HOUSE).with_suffix("").parts)


@pytest.mark.parametrize("template", TEMPLATES, ids=name)
def test_a_template_holds_no_logic(template: Path) -> None:
    assert not logic(template.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{# a word #}NodeName={{ node.name }}\n{% for line in lines %}{{ line }}\n{% endfor %}", []),
        ("{% if a %}x{% endif %}", ["If"]),
        ("{% set a = b %}", ["Assign"]),
        ("{{ a | upper }}", ["Filter"]),
        ("{{ a() }}", ["Call"]),
        ("{{ a + b }}", ["Add"]),
        ("{{ 'x' if a }}", ["CondExpr", "Const"]),
        ("{% macro m() %}{% endmacro %}", ["Macro"]),
        ("{% for a in b if a %}{{ a }}{% endfor %}", ["For with a condition"]),
        ("{% for a in b %}{{ a }}{% else %}x{% endfor %}", ["For with else"]),
    ],
)
def test_logic_is_seen(text: str, expected: list[str]) -> None:
    assert logic(text) == expected


def logic(template: str) -> list[str]:
    """What a template is made of beyond text, comments, {{ }} and for, in the order of the syntax tree."""
    tree = jinja2.Environment(autoescape=False).parse(template)
    found = []
    for node in [tree, *tree.find_all(nodes.Node)]:
        if type(node) not in TEMPLATE_SYNTAX:
            found.append(type(node).__name__)
        elif isinstance(node, nodes.For) and node.test is not None:
            found.append("For with a condition")
        elif isinstance(node, nodes.For) and node.else_:
            found.append("For with else")
    return found


@pytest.mark.parametrize("module", [module for module in PRODUCT if module != RELEASES], ids=name)
def test_versions_of_slurm_are_compared_in_one_place(module: Path) -> None:
    assert not version_comparisons(module.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("version == wanted", []),
        ("release.reload is Reload.RESTART", []),
        ("len(versions) > 1", []),
        ("version < '24.11'", ["version < '24.11'"]),
        ("slurm.version == '22.05'", ["slurm.version == '22.05'"]),
        ("site.slurm_version >= other", ["site.slurm_version >= other"]),
        ("x in ('22.05', '23.02')", ["x in ('22.05', '23.02')"]),
        ("parsed >= (24, 11)", ["parsed >= (24, 11)"]),
    ],
)
def test_version_comparisons_are_seen(code: str, expected: list[str]) -> None:
    assert version_comparisons(code) == expected


def version_comparisons(code: str) -> list[str]:
    """The comparisons in `code` that weigh a version: against a literal one, or by size where the name says version."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Compare)
        and (
            any(version_literal(side) for side in (node.left, *node.comparators))
            or (
                any(isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for operator in node.ops)
                and any(version_name(side) for side in (node.left, *node.comparators))
            )
        )
    ]


def version_literal(side: ast.expr) -> bool:
    """Whether an expression spells a Slurm major: "24.11", (24, 11), or a collection of them."""
    match side:
        case ast.Constant(value=str(text)):
            return re.fullmatch(r"2\d\.\d\d", text) is not None
        case ast.Tuple(elts=[ast.Constant(value=int(major)), ast.Constant(value=int()), *_]):
            return 20 <= major <= 29
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(version_literal(element) for element in elements)
    return False


def version_name(side: ast.expr) -> bool:
    """Whether an expression is a name or attribute called something with version or release."""
    match side:
        case ast.Name(id=word) | ast.Attribute(attr=word):
            return re.search(r"version$|release$", word) is not None
    return False


@pytest.mark.parametrize("module", [module for module in PRODUCT if module != LABELS], ids=name)
def test_names_that_files_share_are_written_in_one_place(module: Path) -> None:
    assert not shared_names(module.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = MIG_CONFIG", []),
        ('"""Says what the label nvidia.com/mig.config does."""', []),
        ('"set nvidia.com/gpu.deploy.driver to false"', []),
        ('x = "nvidia.com/mig.config"', ["nvidia.com/mig.config"]),
        ('name + ".shared"', [".shared"]),
        ('f"nvidia.com/mig-{profile}"', ["nvidia.com/mig-"]),
        ('f"{prefix}gpu.shared"', ["gpu.shared"]),
        ('{"key": "hybridgpu.io/closed"}', ["hybridgpu.io/closed"]),
    ],
)
def test_shared_names_are_seen(code: str, expected: list[str]) -> None:
    assert shared_names(code) == expected


def shared_names(code: str) -> list[str]:
    """The strings in `code` that spell a name of labels.py; those with a blank in them are words for people."""
    strings = (node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant))
    return [s for s in strings if isinstance(s, str) and not re.search(r"\s", s) and SHARED_NAMES.search(s)]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(FORBIDDEN[what], re.MULTILINE)
    found = []
    for path in files():
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name(path)}: {match[0]}" for match in pattern.finditer(text)]
    assert not found


def test_every_program_is_executable_and_says_what_runs_it() -> None:
    """What begins with #! can be run, and what can be run begins with #!; cases of hooks that cannot are data."""
    differing = [
        name(path)
        for path in files()
        if not path.is_relative_to(CASES)
        and path.read_bytes().startswith(b"#!") != bool(path.stat().st_mode & 0o111)
        and path.suffix != ".py"
    ]
    assert not differing
