"""Every rule that is check's or import's own is fired by some site; the tables of its module's tests hold most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hybridgpu.check import difference, given, ignore, importing, migmodel, rendering
from hybridgpu.check import site as checked
from hybridgpu.check.cross import booking, cards, inventoried, membership, modes, tolerations, upgrades
from hybridgpu.check.difference import differences
from hybridgpu.check.importing import import_site
from hybridgpu.check.migmodel import model_with_mig
from hybridgpu.check.rendering import rendered
from hybridgpu.check.site import check
from hybridgpu.consumers import slurm
from hybridgpu.consumers.slurm import NEWEST, hooks, release
from hybridgpu.errors import Refused
from hybridgpu.files import manifest
from hybridgpu.files.kinds import inputs
from hybridgpu.files.tree import write as write_tree
from hybridgpu.inventory import importer
from hybridgpu.inventory.importer import Sources
from hybridgpu.inventory.load import load_site
from hybridgpu.model.finding import Finding, Rule
from hybridgpu.model.site import SlurmSite
from tests.check import (
    cross_sites,
    test_cross_booking,
    test_cross_cards,
    test_cross_membership,
    test_cross_modes,
    test_cross_operator,
)
from tests.check.test_cross_membership import FOUR, entry, inventory
from tests.consumers.slurm import test_hooks
from tests.consumers.slurm.sites import site
from tests.inventory import test_importer

Files = Mapping[str, str]
Fire = Callable[[Path], Iterable[Finding]]

SLURM_ONLY = test_cross_membership.SLURM_ONLY


def own(*modules: object) -> set[str]:
    return {rule.id for module in modules for rule in vars(module).values() if isinstance(rule, Rule)}


OURS = (
    own(checked, given, ignore, rendering, importing, migmodel, difference, hooks)
    | own(booking, cards, inventoried, membership, modes, tolerations, upgrades)
    | {rule.id for rule in importer.RULES}
) - own(manifest)


def crossed(*parts: Files) -> Fire:
    return lambda folder: cross_sites.judged(folder, *parts)


def imported(files: Files) -> Fire:
    def fire(folder: Path) -> Iterable[Finding]:
        try:
            return import_site([str(cross_sites.write(folder, files))], release("24.11")).findings
        except Refused as refused:
            return refused.findings

    return fire


def hooked(conf: str, scripts: dict[str, int | None]) -> Fire:
    def fire(folder: Path) -> Iterable[Finding]:
        test_hooks.laid(folder, conf, scripts)
        return test_hooks.found(folder, "23.02")

    return fire


def of_model(word: str) -> Fire:
    def fire(folder: Path) -> Iterable[Finding]:
        del folder
        with pytest.raises(Refused) as refused:
            model_with_mig(word)
        return refused.value.findings

    return fire


def unreadable(folder: Path) -> Iterable[Finding]:
    (folder / "slurm.conf").symlink_to("slurm.conf")
    return check([str(folder / "slurm.conf")]).findings


def with_older_types(folder: Path) -> Iterable[Finding]:
    """Rendered again after the last node with shards is gone."""
    file = folder / "inventory.yaml"
    for sharing in ("{mode: time-slicing, replicas: 4}", "{mode: exclusive}"):
        cross_sites.write(folder, inventory(entry("gpu01", sharing=sharing, more=SLURM_ONLY)))
        done = rendered(load_site(str(file), {}, for_render=True), folder / "tree", only=None, forget=False)
        write_tree(folder / "tree", done.plan, done.wanted, ())
    return done.findings


def dying(folder: Path) -> Iterable[Finding]:
    """A site whose rendered gres.conf no slurmd takes: reading its inventory would have refused that line."""
    (tree,), _ = slurm.gather(list(inputs(str(cross_sites.write(folder, FOUR) / "slurm"))), NEWEST)
    sources = Sources(tree, slurm.consume(tree.files, NEWEST))
    cross_sites.write(folder, inventory(entry("gpu[01-04]", more=SLURM_ONLY)))
    wanted = load_site(str(folder / "inventory.yaml")).site
    assert wanted is not None and wanted.slurm is not None
    broken = replace(wanted.slurm, site=SlurmSite(gres=("Name=gpu Frobnicate=1",)))
    return differences(sources, replace(wanted, slurm=broken))


COMMENTED = site("gpu:l40s:2", "Name=gpu Type=l40s File=/dev/nvidia[0-1] # hybridgpu: ignore {}")

FIRES: dict[str, Fire] = {
    **{rule: crossed(*files) for files, rule, _ in test_cross_cards.WRONG.values()},
    **{rule: crossed(*files) for files, rule, _ in test_cross_membership.BESIDE.values()},
    **{rule: crossed(*files) for files, rule, _ in test_cross_operator.KEPT_AWAY.values()},
    **{rule: crossed(*files) for rule, files in test_cross_modes.DIFFER.values()},
    "site-cards-offered-twice": crossed(*test_cross_booking.TWICE["plain"]),
    "site-cards-held-by-taint-only": crossed(
        test_cross_booking.BOTH,
        cross_sites.nodes(cross_sites.node("gpu01", {"gpu": 8}, cross_sites.labels(), cordoned=True)),
    ),
    "site-more-gpus-than-cards": crossed(
        cross_sites.slurm("NodeName=gpu01 Gres=gpu:8", gres="AutoDetect=nvml\n"),
        cross_sites.facts("gpu01.example.org", 4),
    ),
    "site-driver-auto-upgrade": crossed(*test_cross_operator.UPGRADING["the chart's default"]),
    "site-node-unknown-to-other-side": crossed(*test_cross_membership.UNKNOWN["a slip"][0]),
    "site-no-common-node": crossed(*test_cross_membership.KNOWN["neighbours"]),
    "site-node-of-one-side": crossed(*test_cross_membership.KNOWN["Kubernetes' own nodes of another name"]),
    **{rule: hooked(conf, scripts) for conf, scripts, expected in test_hooks.FIRES.values() for rule, _ in expected},
    "slurm-hook-not-absolute": hooked("Prolog=hook.sh", {"hook.sh": 0o755}),
    **{rule: imported(files) for rule, files in {**test_importer.FIRES, **test_importer.LOSES}.items()},
    **{rule: imported(files) for files, rule in test_importer.REFUSED.values()},
    "import-node-not-offered": dying,
    "check-nothing-known": crossed({"notes.txt": "nothing of ours\n"}),
    "check-too-many": crossed({"slurm.conf": "ClusterName=c\n" + "".join(f"Key{n}=1\n" for n in range(1001))}),
    "check-unreadable-file": unreadable,
    "check-node-in-two-inventories": crossed(
        inventory(entry("gpu[01-02]", more=SLURM_ONLY)),
        {"second.yaml": inventory(entry("gpu[02-03]", more=SLURM_ONLY))["inventory.yaml"]},
    ),
    **{
        rule: crossed(COMMENTED | {"gres.conf": COMMENTED["gres.conf"].format(words)})
        for rule, words in {
            "check-ignore-without-reason": "slurm-gres-nodes-unknown",
            "check-ignore-unknown-rule": "no-such-rule of ours",
            "check-ignore-unused": "slurm-gres-nodes-unknown it was one",
        }.items()
    },
    "render-gres-types-kept": with_older_types,
    "mig-model-unclear": of_model("B9000"),
    "mig-model-without-mig": of_model("L40S"),
}


def test_every_rule_has_a_firing_case() -> None:
    assert sorted(OURS - set(FIRES)) == []


@pytest.mark.parametrize("rule", sorted(OURS & set(FIRES)))
def test_it_fires(rule: str, tmp_path: Path) -> None:
    found = [finding for finding in FIRES[rule](tmp_path) if finding.rule.id == rule]
    assert found and all(finding.message for finding in found)
