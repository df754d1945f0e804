"""RULES: every rule hybridgpu can fire, gathered from beside the code that fires it. `--explain` and docs/rules.md
derive from it.
"""

from __future__ import annotations

from types import ModuleType

from hybridgpu.check import difference, given, ignore, importing, limit, live, migmodel, rendering, site
from hybridgpu.check.cross import booking, cards, inventoried, membership, modes, tolerations, upgrades
from hybridgpu.consumers import kubernetes, slurm
from hybridgpu.consumers.slurm import hooks
from hybridgpu.devices import bind, clients, devicemap, factsof, interrupt, nodeconfig, openfiles, outcome
from hybridgpu.files import manifest, source, yamlerror, yamltree
from hybridgpu.inventory import (
    classes,
    clean,
    compile,  # noqa: A004 - the word of the design
    facts,
    factsconsistent,
    factsfields,
    hosts,
    importer,
    kubernetesblock,
    layout,
    load,
    nodeentry,
    nodekeys,
    owners,
    read,
    report,
    sharing,
    shelf,
    sitegres,
    slurmblock,
    together,
)
from hybridgpu.model.finding import Rule
from hybridgpu.planes.kubernetes import migmanager
from hybridgpu.render import obstacles, proof, retained
from hybridgpu.render.kubernetes import proof as kubernetes_proof


def _rules(*modules: ModuleType) -> tuple[Rule, ...]:
    """The rules that stand in these modules, each once, in the order of the modules and of their lines."""
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return tuple(dict.fromkeys(found))


RULES: tuple[Rule, ...] = tuple(
    dict.fromkeys(
        (
            *_rules(
                source,
                yamlerror,
                yamltree,
                manifest,
                report,
                clean,
                read,
                classes,
                slurmblock,
                sitegres,
                kubernetesblock,
            ),
            *_rules(hosts, nodekeys, nodeentry, owners, sharing, layout, together),
            *_rules(facts, factsfields, factsconsistent, shelf, compile, load),
            *slurm.RULES,
            *kubernetes.RULES,
            *_rules(booking, modes, membership, inventoried, upgrades, tolerations, cards, hooks),
            *importer.RULES,
            *_rules(importing, difference),
            *_rules(factsof, nodeconfig, bind, live, outcome, clients, openfiles, interrupt, devicemap, migmanager),
            *_rules(obstacles, proof, retained, kubernetes_proof, rendering, given, site, ignore, limit, migmodel),
        )
    )
)


def explain(rule: Rule) -> str:
    """A rule for a person: what happens, how to mend it, since when, and how that is known."""
    lines = [f"{rule.id} ({rule.severity})", "", rule.what_happens, "", f"Mend it: {rule.fix}"]
    if rule.since or rule.until:
        span = [f"from {rule.since}" if rule.since else "", f"up to {rule.until}" if rule.until else ""]
        lines.append(f"Holds {' '.join(filter(None, span))}.")
    lines.append(f"Source: {rule.source}")
    return "\n".join(lines) + "\n"


def as_markdown() -> str:
    """The text of docs/rules.md."""
    lines = ["# Rules", "", "Every finding names one of these; `hybridgpu check --explain RULE` shows one.", ""]
    for rule in sorted(RULES, key=lambda rule: rule.id):
        heading, _, *rest = explain(rule).splitlines()
        lines += [f"## {heading}", "", *rest, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    print(as_markdown(), end="")
