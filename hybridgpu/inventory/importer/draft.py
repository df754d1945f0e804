"""A first inventory of a site: every node with GPUs, put together from all that is known of it, as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from hybridgpu.consumers.slurm import NEWEST
from hybridgpu.inventory.importer.document import Block, Entry, Guess, text_of
from hybridgpu.inventory.importer.fold import fold, fold_hosts
from hybridgpu.inventory.importer.greslines import detections, raw_lines
from hybridgpu.inventory.importer.kubeblock import any_kubernetes, kubernetes_block
from hybridgpu.inventory.importer.models import Models
from hybridgpu.inventory.importer.nodes import Drafting, NodeDraft
from hybridgpu.inventory.importer.slurmsite import Site, autodetect_of, slurm_block
from hybridgpu.inventory.importer.sources import Sources
from hybridgpu.inventory.importer.survey import Survey
from hybridgpu.inventory.importer.told import Told
from hybridgpu.inventory.schema import API_VERSION, DNS_LABEL
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.sharing import Scheduler
from hybridgpu.model.site import OPERATOR

NO_GPUS = Rule(
    "import-no-gpu-nodes",
    Severity.ERROR,
    "An inventory is about nodes with GPUs, and these files have none.",
    "Give the files that describe them: slurm.conf with gres.conf, `kubectl get nodes -o yaml`, or facts.",
    "hybridgpu",
)
NODES_NOT_GIVEN = Rule(
    "import-kubernetes-nodes-not-given",
    Severity.WARNING,
    "Which nodes Kubernetes has is not known, so no node is put down as known to it.",
    "Import with the output of `kubectl get nodes -o yaml` as well.",
    "hybridgpu",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """An inventory as text, the guesses in it, and what is to be said about it; None where there is nothing to say.

    `nodes` are those that it has.
    """

    text: str | None
    guesses: tuple[Guess, ...] = ()
    findings: tuple[Finding, ...] = ()
    nodes: tuple[str, ...] = field(default=())


def draft(sources: Sources) -> Draft:
    """The inventory that says what the sources say. Never raises for what they say."""
    told = Told()
    survey = Survey(sources, told)
    nodes = survey.nodes()
    if not nodes:
        told.add(NO_GPUS, None, "no node with an NVIDIA GPU was found")
        return Draft(None, (), told.findings)
    in_slurm = sources.tree is not None
    in_kubernetes = any_kubernetes(sources.kube) or any(node.seen and node.seen.kept for node in nodes)
    models = Models(card.clue for node in nodes for card in node.cards)
    kubernetes = kubernetes_block(sources.kube) if in_kubernetes else None
    operated = kubernetes is not None and kubernetes.get("delivery") == OPERATOR
    drafting = Drafting(models, told, both=in_slurm and in_kubernetes, operated=operated)
    if sources.consumption:
        drafting.splits = sources.consumption.release.other_gres_confines
    drafts = [made for node in nodes if (made := drafting.draft(node))]
    if not drafts:
        return Draft(None, (), told.findings)
    made_of = {node.name for node in drafts}
    survey.left_out += [node.name for node in nodes if node.name not in made_of]
    entries = [Entry("apiVersion", API_VERSION), Entry("kind", "Inventory"), _metadata(sources)]
    if in_slurm:
        entries.append(Entry("slurm", _slurm(sources, survey, drafts, told)))
    elif not in_kubernetes:
        why = "neither Slurm's files nor Kubernetes' were given"
        entries.append(Entry("slurm", Block((Entry("version", NEWEST.major, why),))))
    if kubernetes is not None:
        entries.append(Entry("kubernetes", kubernetes))
        if in_slurm and not sources.kube.nodes:
            hosts = fold_hosts(node.name for node in drafts)
            told.add(NODES_NOT_GIVEN, None, f"no Node is among the files: {hosts} are put down as Slurm's")
    folded = fold(drafts)
    entries += [Entry("nodeClasses", Block(tuple(folded.classes), tall=True)), Entry("nodes", tuple(folded.entries))]
    text, guesses = text_of(Block(tuple(entries)))
    return Draft(text, guesses, told.findings, tuple(node.name for node in drafts))


def _metadata(sources: Sources) -> Entry:
    """The site's name: the cluster's, as far as it can be one."""
    pair = sources.tree.files.setting("ClusterName") if sources.tree else None
    name = re.sub(r"[^a-z0-9-]+", "-", pair.value.lower()).strip("-")[: DNS_LABEL.longest].strip("-") if pair else ""
    why = "" if name else "no file names the cluster"
    return Entry("metadata", Block((Entry("name", name or "site"),)), why)


def _slurm(sources: Sources, survey: Survey, drafts: Sequence[NodeDraft], told: Told) -> Block:
    tree, consumption = sources.tree, sources.consumption
    assert tree is not None and consumption is not None  # noqa: S101 - they come together
    mine = [node for node in drafts if not node.schedulers or Scheduler.SLURM in node.schedulers]
    names = [node.name for node in mine]
    found = detections(tree.files, names, consumption.release)
    return slurm_block(
        Site(
            files=tree.files,
            release=consumption.release,
            release_guess=sources.release_guess,
            drafts=mine,
            autodetect=autodetect_of(found, told),
            raw=raw_lines(tree.files, names, survey.left_out, consumption.release, told),
        ),
        told,
    )
