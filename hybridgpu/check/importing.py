"""Files that a site has, read as one, and an inventory made from them; then the proof that it says the same.

The proof is rendering: the draft is read and rendered, and what Slurm makes of that is held against what it makes of
the site's own files. What differs is told for each set of equal nodes, so that nothing is lost in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hybridgpu.check.difference import differences
from hybridgpu.check.given import each_once, facts_files, unreadable
from hybridgpu.check.limit import limited
from hybridgpu.check.rendering import unrendered
from hybridgpu.check.secrets import without_secrets
from hybridgpu.consumers import kubernetes, slurm
from hybridgpu.consumers.slurm import RELEASES, Consumption, Release, SlurmTree, detected_from
from hybridgpu.errors import Refused
from hybridgpu.files import source
from hybridgpu.files.kinds import KUBERNETES, SLURM, Input, Kind, inputs
from hybridgpu.files.manifest import UNREADABLE as MANIFEST_UNREADABLE
from hybridgpu.inventory.facts import read_facts
from hybridgpu.inventory.importer import Draft, Sources, draft
from hybridgpu.inventory.importer.document import Guess
from hybridgpu.inventory.load import load_site
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding, Place, Related, Rule, Severity

NOTHING = Rule(
    "import-nothing-known",
    Severity.ERROR,
    "There is nothing to make an inventory from.",
    "Name Slurm's files, facts, or Kubernetes objects (`kubectl get nodes,configmaps -A -o yaml`), or folders of them.",
    "hybridgpu",
)
TWO_CLUSTERS = Rule(
    "import-two-clusters",
    Severity.ERROR,
    "An inventory describes one Slurm cluster.",
    "Import the files of each by themselves.",
    "docs/inventory.md",
)
INVENTORY_GIVEN = Rule(
    "import-inventory-given",
    Severity.WARNING,
    "An inventory is what import makes; one that is there already is not read.",
    "Leave it out; `hybridgpu render --diff` holds it against what is rendered.",
    "hybridgpu",
)

SHOWN_AS = "inventory"
"""What the draft is called in findings about it."""

_UNREAD = (MANIFEST_UNREADABLE, source.NOT_A_FILE, source.TOO_LARGE, source.NOT_UTF8, source.NOT_TEXT)
_TAKEN = SLURM | KUBERNETES | {Kind.FACTS}


@dataclass(frozen=True, slots=True)
class Imported:
    """The inventory's text, the guesses that are marked in it, and all findings; an error among them says that
    something of the site is not in it."""

    text: str
    guesses: tuple[Guess, ...]
    findings: tuple[Finding, ...]


def import_site(paths: Sequence[str], release: Release | None = None) -> Imported:
    """The inventory of the site whose files are at `paths`. `release`: the site's, where somebody says it.

    Raises FileNotFoundError for a path that is not there, and Refused where the files cannot be read, where a daemon
    would not start with them, or where they show no GPU.
    """
    found = each_once(file for path in paths for file in inputs(path))
    try:
        made = _imported(found, release)
    except Refused as refused:
        raise Refused(limited(without_secrets(refused.findings, found))) from None
    return replace(made, findings=limited(without_secrets(made.findings, found)))


def _imported(found: Sequence[Input], release: Release | None) -> Imported:
    sources, findings = _sources(found, release)
    drafted = draft(sources)
    findings += drafted.findings
    if drafted.text is None:
        raise Refused(findings)
    findings += proven(sources, drafted)
    return Imported(drafted.text, drafted.guesses, tuple(findings))


def proven(sources: Sources, drafted: Draft) -> Iterator[Finding]:
    """What is wrong with the draft as an inventory, and what rendering it would change at the site."""
    files = {facts.node: facts.file for facts in sources.facts.values() if facts.node in drafted.nodes}
    loaded = load_site(SHOWN_AS, files, text=(drafted.text or "").encode())
    wrong = [f for f in loaded.findings if f.is_error]
    if loaded.site is not None:
        wrong += [f for f in unrendered(loaded) if f.is_error]
    yield from wrong
    if loaded.site is not None:
        yield from differences(sources, loaded.site)


def _sources(found: Sequence[Input], release: Release | None) -> tuple[Sources, list[Finding]]:
    """What the files say. Raises Refused where they cannot be read."""
    if not any(file.kind in _TAKEN for file in found):
        among = f" in {found[0].root or found[0].path}" if found else ""
        raise Refused([Finding(NOTHING, None, f"nothing known{among}", NOTHING.fix)])
    findings = list(unreadable(found))
    findings += (
        Finding(INVENTORY_GIVEN, Place(file.path, 1), f"{file.path} is an inventory", INVENTORY_GIVEN.fix)
        for file in found
        if file.kind is Kind.INVENTORY
    )
    facts = _facts(found, findings)
    kube, told = kubernetes.gather(found)
    findings += (finding for finding in told if finding.rule in _UNREAD)
    if any(finding.is_error for finding in findings):
        raise Refused(findings)
    tree, consumption, guess = _slurm(found, release, facts)
    judged = [*(consumption.findings if consumption else ()), *kubernetes.judge_configuration(kube)]
    findings += (finding for finding in judged if finding.is_error)
    return Sources(tree, consumption, guess, facts, kube), findings


def _facts(found: Sequence[Input], findings: list[Finding]) -> dict[str, Facts]:
    """The facts by node, and what is wrong with them."""
    files, again = facts_files(found)
    findings += again
    facts: dict[str, Facts] = {}
    for path in files.values():
        read, told = read_facts(path)
        findings += told
        if read is not None:
            facts[read.node] = read
    return facts


def _slurm(
    found: Sequence[Input], release: Release | None, facts: Mapping[str, Facts]
) -> tuple[SlurmTree | None, Consumption | None, str]:
    """The cluster, what its release makes of it, and why that release is a guess.

    Without a word on the release it is the newest that starts with these files. Raises Refused where none does.
    """
    refused: tuple[Finding, ...] = ()
    for candidate in [release] if release else reversed(tuple(RELEASES.values())):
        trees, told = slurm.gather(found, candidate)
        unread = [finding for finding in told if finding.is_error]
        if not trees:
            if unread:
                raise Refused(unread)
            return None, None, ""
        if len(trees) > 1:
            raise Refused([_second(trees)])
        consumption = slurm.consume(trees[0].files, candidate, detected_from(facts, candidate))
        if not unread and not consumption.fatal and not any(node.fatal for node in consumption.nodes.values()):
            return trees[0], consumption, "" if release else f"no file names it; {candidate} takes these files"
        refused = refused or (*unread, *consumption.findings)
    raise Refused(refused)


def _second(trees: Sequence[SlurmTree]) -> Finding:
    first, second = (Place(tree.paths[0], 1) for tree in trees[:2])
    message = f"{second.file} is another cluster's than {first.file}"
    return Finding(TWO_CLUSTERS, second, message, TWO_CLUSTERS.fix, (Related(first, "the first cluster"),))
