"""Rendered files in live clusters of every release: nodes register, jobs get what they ask and nobody else's card.

Everything goes through the command line, as an admin's files would. Scripts that exit 0 stand where gpu.conf names
hooks; the cards are character devices with nothing behind them. What is expected is written down here by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.slurm.cluster import FIRST_PORT, Cluster, NotGranted
from testbed.slurm.root import SlurmRoot
from tests.slurm.live import command, rendered, states

BOX = {"CPUs": 32, "Sockets": 2, "CoresPerSocket": 16, "RealMemory": 1000}
CLASSES: dict[str, dict[str, Any]] = {
    "dgx": {"model": "A100-SXM4-80GB", "gpus": 4},
    "old": {"model": "A100-SXM4-40GB", "gpus": 2},
    "mixed": {"gpus": [{"model": "H100-80GB-HBM3", "count": 2}, {"model": "H100-NVL", "count": 1}]},
    "tesla": {"model": "T4", "gpus": 2, "type": "t4"},
    "nvl": {"model": "H100-NVL", "gpus": 2},
    "h200": {"model": "H200", "gpus": 2},
    "b200": {"model": "B200", "gpus": 2},
}


@dataclass(frozen=True)
class Entry:
    """A node entry: one host, its class, what its `sharing` says, and other keys of the entry."""

    host: str
    of: str
    sharing: dict[str, Any]
    more: Mapping[str, Any] | None = None


def inventory(release: str, entries: Sequence[Entry], site: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The inventory of these nodes, each with a port of its own, since all are on one machine."""
    used = {entry.of for entry in entries}
    return {
        "apiVersion": "hybridgpu/v1",
        "kind": "Inventory",
        "metadata": {"name": "live"},
        "slurm": {"version": release, **({"site": dict(site)} if site else {})},
        "kubernetes": {"delivery": "device-plugin", "namespace": "gpu"},
        "nodeClasses": {name: {**CLASSES[name], "slurm": dict(BOX)} for name in CLASSES if name in used},
        "nodes": [
            {
                "hosts": entry.host,
                "class": entry.of,
                "owner": "slurm",
                "sharing": entry.sharing,
                **(entry.more or {}),
                "slurm": {"Port": FIRST_PORT + number, **(entry.more or {}).get("slurm", {})},
            }
            for number, entry in enumerate(entries)
        ],
    }


@contextmanager
def live(
    root: SlurmRoot,
    entries: Sequence[Entry],
    folder: Path,
    site: Mapping[str, Any] | None = None,
    scripts: Mapping[str, str] | None = None,
    devices: Sequence[str] = (),
) -> Iterator[Cluster]:
    """A cluster on what is rendered for these nodes, all registered."""
    files = rendered(inventory(root.release, entries, site), folder)
    hosts = [entry.host for entry in entries]
    with Cluster(root, {**files, **(scripts or {})}, hosts, devices) as cluster:
        cluster.wait_registered()
        yield cluster


def shown(cluster: Cluster) -> dict[str, str]:
    """Each node's GRES as scontrol shows them."""
    return {host: node["Gres"] for host, node in cluster.show_nodes().items()}


def mig(**layout: dict[str, int] | str) -> dict[str, Any]:
    """A `sharing` block in mode mig; `gpus_0_1` is the GPU set 0-1, `all` all of them."""
    sets = {name.removeprefix("gpus_").replace("_", "-"): cut for name, cut in layout.items()}
    return {"mode": "mig", "layout": sets}


MIXED = (
    Entry("whole", "dgx", {"mode": "exclusive"}),
    Entry("models", "mixed", {"mode": "exclusive"}),
    Entry("sliced", "tesla", {"mode": "time-slicing", "replicas": 4}),
    Entry("daemons", "h200", {"mode": "mps", "replicas": 4}),
    Entry("cut", "dgx", mig(gpus_0={"3g.40gb": 2}, gpus_1_3={"1g.10gb": 7})),
    Entry("partly", "mixed", mig(gpus_0="off", gpus_1={"2g.20gb": 3, "1g.10gb": 1}, gpus_2={"1g.12gb": 7})),
    Entry("media", "b200", mig(gpus_0={"1g.23gb+me": 1, "1g.23gb": 6}, gpus_1={"7g.180gb": 1})),
)
"""All four modes, several models, a card left whole beside cut ones, a profile with an attribute, a colliding one."""

SHOWN = {
    "whole": "gpu:a100-sxm4-80gb:4",
    "models": "gpu:h100_80gb_hbm3:2,gpu:h100_nvl:1",
    "sliced": "gpu:t4:2,shard:t4:8",
    "daemons": "gpu:h200:2,mps:h200:200",
    "cut": "gpu:3g.40gb:2,gpu:1g.10gb:21",
    "partly": "gpu:h100_80gb_hbm3:1,gpu:2g.20gb:3,gpu:1g.10gb:1,gpu:1g.12gb:7",
}
"""What scontrol shows. `media` is judged by its jobs: which profile lies first is NVIDIA's matter."""

JOBS: tuple[tuple[str, str, tuple[tuple[str, str | None, int], ...], int | None], ...] = (
    ("whole", "gpu:a100-sxm4-80gb:4", (("gpu", "a100-sxm4-80gb", 4),), 4),
    ("whole", "gpu:1", (("gpu", "a100-sxm4-80gb", 1),), 1),
    ("models", "gpu:h100_80gb_hbm3:2,gpu:h100_nvl:1", (("gpu", "h100_80gb_hbm3", 2), ("gpu", "h100_nvl", 1)), 3),
    ("sliced", "gpu:t4:2", (("gpu", "t4", 2),), 2),
    ("sliced", "shard:4", (("shard", None, 4),), 1),
    ("daemons", "gpu:h200:1", (("gpu", "h200", 1),), 1),
    ("daemons", "mps:100", (("mps", None, 100),), None),
    ("cut", "gpu:3g.40gb:2", (("gpu", "3g.40gb", 2),), 2),
    ("cut", "gpu:1g.10gb:21", (("gpu", "1g.10gb", 21),), 21),
    ("partly", "gpu:1g.12gb:7,gpu:1g.10gb:1", (("gpu", "1g.12gb", 7), ("gpu", "1g.10gb", 1)), 8),
    ("partly", "gpu:h100_80gb_hbm3:1", (("gpu", "h100_80gb_hbm3", 1),), 1),
    ("media", "gpu:1g.23gb+me:1", (("gpu", "1g.23gb+me", 1),), 1),
    ("media", "gpu:b200_1g.23gb:6", (("gpu", "b200_1g.23gb", 6),), 6),
    ("media", "gpu:7g.180gb:1", (("gpu", "7g.180gb", 1),), 1),
)
"""Node, request, what is granted, and how many devices the task sees; an mps task without our hooks sees none."""

TOO_MUCH = (
    ("whole", "gpu:a100-sxm4-80gb:5"),
    ("whole", "gpu:t4:1"),
    ("sliced", "shard:9"),
    ("daemons", "mps:201"),
    ("cut", "gpu:3g.40gb:3"),
    ("cut", "gpu:1g.10gb+me:1"),
    ("partly", "gpu:h100_80gb_hbm3:2"),
    ("media", "gpu:1g.23gb+me:2"),
)


@pytest.fixture(scope="module")
def mixed(slurm_root: SlurmRoot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with live(slurm_root, MIXED, tmp_path_factory.mktemp("mixed")) as cluster:
        yield cluster


def test_every_node_registers_and_none_is_invalid(mixed: Cluster) -> None:
    assert states(mixed) == dict.fromkeys(mixed.nodes, "IDLE")
    assert {host: text for host, text in shown(mixed).items() if host in SHOWN} == SHOWN


@pytest.mark.parametrize(("node", "asked", "granted", "devices"), JOBS)
def test_a_job_is_granted_what_it_asks(
    mixed: Cluster,
    node: str,
    asked: str,
    granted: tuple[tuple[str, str | None, int], ...],
    devices: int | None,
) -> None:
    grant = mixed.srun(f"--gres={asked}", f"--nodelist={node}")
    assert grant.nodes == node
    assert sorted((each.name, each.type, each.count) for each in grant.gres) == sorted(granted)
    visible = grant.environment.get("CUDA_VISIBLE_DEVICES")
    assert (visible and len(set(visible.split(",")))) == devices


@pytest.mark.parametrize(("node", "asked"), TOO_MUCH)
def test_more_than_there_is_is_not_granted(mixed: Cluster, node: str, asked: str) -> None:
    with pytest.raises(NotGranted, match=r"not available|Invalid generic resource"):
        mixed.srun(f"--gres={asked}", f"--nodelist={node}", timeout=2)


def test_a_shared_card_is_not_given_whole(mixed: Cluster) -> None:
    job = mixed.sbatch("--gres=shard:1", "--nodelist=sliced")
    try:
        mixed.wait_job(job, "RUNNING")
        assert mixed.srun("--gres=gpu:t4:1", "--nodelist=sliced").environment["CUDA_VISIBLE_DEVICES"] == "1"
        with pytest.raises(NotGranted):
            mixed.srun("--gres=gpu:t4:2", "--nodelist=sliced", timeout=2)
    finally:
        mixed.inside.run(["scancel", job])
        mixed.wait_job(job, "CANCELLED")


COLLIDING = (
    Entry("a100", "old", mig(gpus_0={"4g.20gb": 1, "3g.20gb": 1}, gpus_1={"7g.40gb": 1})),
    Entry("b200", "b200", mig(gpus_0={"1g.23gb": 7}, gpus_1={"2g.45gb": 3})),
    Entry("nvl", "nvl", mig(gpus_0={"3g.47gb": 2}, gpus_1={"4g.47gb": 1})),
    Entry("h200", "h200", mig(gpus_0={"2g.35gb": 3}, gpus_1={"4g.71gb": 1, "3g.71gb": 1})),
)
OWN = {
    "a100": {"a100_4g.20gb": 1, "3g.20gb": 1, "a100_7g.40gb": 1},
    "b200": {"b200_1g.23gb": 7, "b200_2g.45gb": 3},
    "nvl": {"h100_nvl_3g.47gb": 2, "h100_nvl_4g.47gb": 1},
    "h200": {"h200_2g.35gb": 3, "h200_4g.71gb": 1, "3g.71gb": 1},
}
"""The types of each node; without their prefixes 4g.20gb would be 1g.23gb to Slurm, and 7g.40gb 2g.45gb."""


def test_nobody_gets_a_card_whose_profile_has_the_same_id(
    slurm_root: SlurmRoot, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with live(slurm_root, COLLIDING, tmp_path) as cluster:
        assert states(cluster) == dict.fromkeys(OWN, "IDLE")
        for node, types in OWN.items():
            for kind, count in types.items():
                grant = cluster.srun(f"--gres=gpu:{kind}:{count}")
                assert (grant.nodes, [(each.type, each.count) for each in grant.gres]) == (node, [(kind, count)])
                for other in OWN.keys() - {node}:
                    with pytest.raises(NotGranted):
                        cluster.srun(f"--gres=gpu:{kind}:1", f"--nodelist={other}", timeout=2)
    named = sum(len(types) for types in OWN.values())
    asked = named * (len(OWN) - 1)
    record_property(
        "measured", f"Slurm {slurm_root.version}: {named} types, {asked} requests on another's node, none granted"
    )


SITE: Mapping[str, Any] = {
    "gresTypes": ["nic"],
    "gres": ["NodeName=whole,cut,daemons Name=nic File=/dev/nic[0-1]"],
    "prolog": ["/etc/slurm/site.d/*"],
    "taskProlog": "/etc/slurm/task.sh",
    "prologFlags": ["Alloc"],
}
WITH_NICS = (
    Entry("whole", "dgx", {"mode": "exclusive"}, {"slurm": {"Gres": "nic:2"}}),
    Entry("cut", "dgx", mig(all={"1g.10gb": 7}), {"slurm": {"Gres": "nic:2"}}),
    Entry("daemons", "tesla", {"mode": "mps", "replicas": 4}, {"slurm": {"Gres": "nic:2"}}),
    Entry("plain", "tesla", {"mode": "time-slicing", "replicas": 4}),
)

NIC_JOBS = (("whole", "gpu", ":a100-sxm4-80gb", 4), ("cut", "gpu", ":1g.10gb", 28), ("daemons", "mps", "", 50))


def test_what_the_site_has_works_beside_ours(slurm_root: SlurmRoot, tmp_path: Path) -> None:
    """Its GRES are granted together with GPUs, and its prolog runs."""
    site = dict(SITE)
    if slurm_root.release == "22.05":
        site["prolog"] = ["/etc/slurm/prolog.d/*"]  # which holds ours too: 22.05 takes one Prolog line only
    mark = "#!/bin/sh\n: >/run/site-prolog-$SLURM_JOB_ID\n"
    scripts = {site["prolog"][0].replace("*", "10-mark"): mark}
    with live(slurm_root, WITH_NICS, tmp_path, site, scripts, ["/dev/nic0", "/dev/nic1"]) as cluster:
        assert states(cluster) == dict.fromkeys(cluster.nodes, "IDLE")
        for node, name, kind, count in NIC_JOBS:
            grant = cluster.srun(f"--gres={name}{kind}:{count},nic:2", f"--nodelist={node}")
            assert {(each.name, each.count) for each in grant.gres} == {(name, count), ("nic", 2)}
            assert cluster.inside.path(f"/run/site-prolog-{grant.job}").exists()
        with pytest.raises(NotGranted):
            cluster.srun("--gres=nic:1", "--nodelist=plain", timeout=2)


SPLIT = (
    Entry("halves", "dgx", {"mode": "exclusive"}, {"owner": {"slurm": "0-1", "kubernetes": "2-3"}}),
    Entry(
        "shares",
        "dgx",
        {"mode": "time-slicing", "replicas": 4},
        {"owner": {"slurm": "0-2", "kubernetes": "3"}},
    ),
    Entry(
        "instances",
        "dgx",
        mig(gpus_0_1={"3g.40gb": 2}, gpus_2_3={"1g.10gb": 7}),
        {"owner": {"slurm": "0-1", "kubernetes": "2-3"}},
    ),
    Entry("ours", "dgx", {"mode": "exclusive"}),
)


can_split = pytest.mark.parametrize(
    "slurm_root", [pytest.param(release, marks=pytest.mark.slurm) for release in ("24.11", "26.05")], indirect=True
)


@pytest.fixture
def split(slurm_root: SlurmRoot, tmp_path: Path) -> Iterator[Cluster]:
    with live(slurm_root, SPLIT, tmp_path) as cluster:
        yield cluster


@can_split
def test_a_split_node_offers_slurm_its_own_cards(split: Cluster) -> None:
    assert states(split) == dict.fromkeys(split.nodes, "IDLE")
    assert shown(split) == {
        "halves": "gpu:a100-sxm4-80gb:2,hybridgpu_k8s:2",
        "shares": "gpu:a100-sxm4-80gb:3,shard:a100-sxm4-80gb:12,hybridgpu_k8s:1",
        "instances": "gpu:3g.40gb:4,hybridgpu_k8s:2",
        "ours": "gpu:a100-sxm4-80gb:4",
    }
    for node, asked, visible in (("halves", "gpu:2", {"0,1"}), ("shares", "shard:4", set("012"))):
        grant = split.srun(f"--gres={asked}", f"--nodelist={node}")
        assert grant.environment["CUDA_VISIBLE_DEVICES"] in visible
    assert split.srun("--gres=gpu:3g.40gb:4").nodes == "instances"


@can_split
@pytest.mark.parametrize(
    ("node", "asked"),
    [("halves", "gpu:3"), ("shares", "gpu:4"), ("shares", "shard:13"), ("instances", "gpu:1g.10gb:1")],
)
def test_a_card_of_kubernetes_is_no_gpu_to_slurm(split: Cluster, node: str, asked: str) -> None:
    with pytest.raises(NotGranted):
        split.srun(f"--gres={asked}", f"--nodelist={node}", timeout=2)


@can_split
def test_cards_of_kubernetes_that_a_job_holds_can_be_asked_by_nobody_else(split: Cluster) -> None:
    holder = split.sbatch("--gres=hybridgpu_k8s:2", "--nodelist=halves", user="root")
    split.wait_job(holder, "RUNNING")
    with pytest.raises(NotGranted):
        split.srun("--gres=hybridgpu_k8s:1", "--nodelist=halves", timeout=2)
    assert split.srun("--gres=gpu:2", "--nodelist=halves").environment["CUDA_VISIBLE_DEVICES"] == "0,1"


@pytest.mark.parametrize(
    ("entries", "site", "why"),
    [
        pytest.param(SPLIT, None, "24.11", id="split nodes"),
        pytest.param(WITH_NICS[1:2], SITE, "prolog", id="a prolog elsewhere beside ours: the last line alone counts"),
    ],
)
def test_what_22_05_cannot_do_is_refused(
    entries: Sequence[Entry], site: Mapping[str, Any] | None, why: str, tmp_path: Path
) -> None:
    done = command(inventory("22.05", entries, site), tmp_path)
    assert done.returncode == 1
    assert why in done.stderr.lower()
    assert not (tmp_path / "out").exists()
