"""Slurm's own gpu/nvml plugin over the simulated cards finds what we derive of the facts, and takes what we render.

The machine's CPUs are simulated as well, through hwloc, so that cores are those of the machine, not of this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybridgpu.consumers.slurm import RELEASES, DetectedGpu, detected_from
from hybridgpu.devices.factsfile import as_json
from hybridgpu.devices.factsof import facts_of
from hybridgpu.devices.nvml import Nvml
from hybridgpu.devices.observe import look
from hybridgpu.inventory.load import load_site
from hybridgpu.model import site as model
from hybridgpu.model.facts import Facts
from hybridgpu.model.finding import Finding
from hybridgpu.render.proof import expected, prove
from hybridgpu.render.slurm import gres_types
from hybridgpu.render.tree import render_tree, slurm_texts
from testbed.driver import library
from testbed.driver.livemachine import MachineCluster
from testbed.driver.machine import Machine
from testbed.driver.slurmroot import MachineRoot, plugin
from testbed.slurm.cluster import ports
from testbed.slurm.root import SlurmdReport, SlurmRoot
from tests.conftest import lacking
from tests.devices.machines import MACHINES, Built
from tests.sites import SLURM_CONF
from tests.slurm.live import rendered, states
from tests.slurm.test_discovered import inventory

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def nvml_root(slurm_root: SlurmRoot) -> SlurmRoot:
    if plugin(slurm_root) is None:
        lacking(f"the root with Slurm {slurm_root.version} has no gpu/nvml plugin")
    return slurm_root


@dataclass(frozen=True)
class Seen:
    """A machine, and what discover says of it."""

    built: Built
    machine: Machine
    facts: Facts


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    """Machines of the table by name, each made once; they are only looked at."""
    made: dict[str, Seen] = {}

    def of(name: str) -> Seen:
        if name not in made:
            made[name] = discovered(MACHINES[name], tmp_path_factory.mktemp(name))
        return made[name]

    return of


def discovered(built: Built, root: Path, host: str = "n1") -> Seen:
    machine = built.make(root)
    with library.over(machine.root):
        found = facts_of(look(Nvml(), machine.root), host)
    assert found.facts is not None
    return Seen(built, machine, found.facts)


@pytest.mark.parametrize("name", MACHINES)
def test_the_plugin_finds_what_the_facts_say(name: str, nvml_root: SlurmRoot, seen: Callable[[str], Seen]) -> None:
    """Types, files, cores, links and unique ids: as slurmd lists what it takes, and logs what it finds."""
    one = seen(name)
    told = detected_from({"n1": one.facts}, RELEASES[nvml_root.release])["n1"]
    by_type = ",".join(f"gpu:{kind}:{sum(gpu.type == kind for gpu in told)}" for kind in {gpu.type: 0 for gpu in told})
    root = MachineRoot.over(nvml_root, one.machine)
    taken = root.slurmd_g({"slurm.conf": conf(one, by_type), **DETECT}, "n1")
    assert not taken.died
    assert [DetectedGpu(d.type or "", d.files, d.cores, d.links) for d in taken.devices] == sorted(told, key=position)

    found = root.slurmd_g({"slurm.conf": conf(one, f"gpu:{len(told)}"), **DETECT}, "n1", options=["-vvv"])
    assert sorted(logged(found, r"of system device `(.*?)`")) == sorted(gpu.type for gpu in told)
    if nvml_root.release in SILENT:
        return
    ids = [i.uuid for card in one.facts.gpus for i in card.instances if card.mig_enabled]
    assert list(logged(found, r" UUID: (GPU-\S+)")) == [card.uuid for card in one.facts.gpus]
    assert list(logged(found, r" UniqueID: (\S+)")) == list(logged(found, r" MIG UUID: (\S+)")) == ids


SILENT = ("22.05",)
"""Releases whose slurmd -G logs nothing of what it finds."""

DETECT = {"gres.conf": "AutoDetect=nvml\n"}


def conf(one: Seen, gres: str) -> str:
    """A slurm.conf that asks for this on the machine."""
    cpus = one.built.cpus.sockets
    sockets, cores, threads = len(cpus), len(cpus[0]), len(cpus[0][0])
    return (
        "ClusterName=t\nSlurmctldHost=localhost\nSelectType=select/cons_tres\nGresTypes=gpu\n"
        f"NodeName=n1 CPUs={sockets * cores * threads} Sockets={sockets} CoresPerSocket={cores} "
        f"ThreadsPerCore={threads} RealMemory=1000 Gres={gres}\nPartitionName=p Nodes=n1\n"
    )


def logged(report: SlurmdReport, what: str) -> Iterator[str]:
    return (found[1] for message in report.messages if (found := re.search(what, message)))


def position(gpu: DetectedGpu) -> tuple[bool, int, list[int]]:
    """Slurm's order: by the place of -1 in the links, then by the numbers of the files."""
    links = gpu.links.split(",") if gpu.links else []
    return not links, links.index("-1") if links else 0, [int(n) for n in re.findall(r"\d+", ",".join(gpu.files))]


@dataclass(frozen=True)
class Site:
    """A machine in an inventory: `parameters` of its NodeName line, and its class's `type`."""

    parameters: dict[str, str]
    type: str | None = None


PLAIN = Site({})
QUARTERS = Site({"Sockets": "8", "CoresPerSocket": "16"})
"""Where cards are near a quarter of a socket: as slurmd counts under numa_node_as_socket."""

OTHERWISE = ("dgx-a100-mig", "hgx-h200-mig", "rtx-pro-6000")
"""Machines with an instance that 22.05 calls otherwise: 1g.10gb+me (1g.10gb), 3g.71gb (3g.70gb), 2g.48gb (2g.47gb)."""

SITES = {"dgx-a100": QUARTERS, "dgx-a100-mig": QUARTERS, "rtx-pro-6000": Site({}, "rtx")}
"""An RTX PRO 6000 and its instances begin with the same name: the type of the whole card must be the shorter one."""


def entered(built: Built, release: str, site: Site) -> dict[str, Any]:
    """The inventory of the machine with autoDetect: nvml."""
    wanted = inventory(built, release)
    wanted["slurm"]["autoDetect"] = "nvml"
    wanted["nodeClasses"]["c"]["slurm"] |= site.parameters
    wanted["nodeClasses"]["c"] |= {"type": site.type} if site.type else {}
    return wanted


@pytest.mark.parametrize(
    ("name", "site", "refused_by"),
    [
        *((name, SITES.get(name, PLAIN), ("22.05",) if name in OTHERWISE else ()) for name in MACHINES),
        ("rtx-pro-6000", PLAIN, ("22.05", "24.11", "26.05")),
    ],
)
def test_slurmd_takes_what_is_rendered(
    name: str,
    site: Site,
    refused_by: tuple[str, ...],
    nvml_root: SlurmRoot,
    seen: Callable[[str], Seen],
    tmp_path: Path,
) -> None:
    """Where the proof has nothing against it slurmd has not a word, and offers what was asked for; else it does not."""
    one = seen(name)
    compiled, texts, errors = compile_and_prove(one, entered(one.built, nvml_root.release, site), tmp_path)
    assert bool(errors) == (nvml_root.release in refused_by), errors
    report = MachineRoot.over(nvml_root, one.machine).slurmd_g({"slurm.conf": SLURM_CONF, **texts}, "n1")
    complaints = [message for message in report.messages if not message.endswith(COUNTED)]
    offer = expected(compiled.nodes["n1"].body, gres_types(compiled))
    wanted = [(d.type, d.files, d.cores, d.links and ",".join(map(str, d.links))) for d in offer.gpus]
    found = [(d.type, d.files, d.cores, d.links) for d in report.devices]
    assert (not report.died and complaints == [] and found == wanted) == (not errors), report


def compile_and_prove(
    one: Seen, wanted: dict[str, Any], folder: Path
) -> tuple[model.Site, dict[str, str], list[Finding]]:
    """The inventory, read with the machine's facts and rendered, and what the proof has against it."""
    (folder / "n1.json").write_text(as_json(one.facts))
    (folder / "inventory.yaml").write_text(yaml.safe_dump(wanted))
    site = load_site(str(folder / "inventory.yaml"), {"n1": str(folder / "n1.json")}, for_render=True).site
    assert site is not None
    tree = render_tree(site)
    return site, slurm_texts(tree), [finding for finding in prove(site, tree) if finding.is_error]


COUNTED = "GPU system device(s) detected"
"""How a message ends that tells what is there."""


LIVE = {
    "dgx-a100": {"a100-sxm4-80gb": 8},
    "hgx-h100": {"h100_80gb_hbm3": 8},
    "a30-mig": {"a30": 1, "2g.12gb": 1, "1g.6gb": 2},
    "mixed": {"t4": 2, "3g.20gb": 1, "2g.10gb": 1, "1g.5gb": 1},
}


def test_nodes_register_clean(nvml_root: SlurmRoot, tmp_path: Path) -> None:
    """And a job of a MIG instance gets it by its UUID, as the facts have it."""
    made = {f"n{at}": discovered(MACHINES[name], tmp_path / name, f"n{at}") for at, name in enumerate(LIVE)}
    wanted: dict[str, Any] = {}
    for (host, one), name in zip(made.items(), LIVE, strict=True):
        alone = entered(one.built, nvml_root.release, SITES.get(name, PLAIN))
        entry = alone["nodes"][0] | {"hosts": host, "class": host, "slurm": {"Port": ports(made)[host]}}
        wanted = wanted or {**alone, "nodeClasses": {}, "nodes": []}
        wanted["nodeClasses"][host] = alone["nodeClasses"]["c"]
        wanted["nodes"].append(entry)
    files = rendered(wanted, tmp_path, {host: json.loads(as_json(one.facts)) for host, one in made.items()})
    with MachineCluster(nvml_root, files, {host: one.machine for host, one in made.items()}) as cluster:
        cluster.wait_registered()
        assert states(cluster) == dict.fromkeys(made, "IDLE")
        for (host, node), gres in zip(cluster.show_nodes().items(), LIVE.values(), strict=True):
            told = re.sub(r"\(S:[^)]*\)", "", node["Gres"]).split(",")
            assert sorted(told) == sorted(f"gpu:{kind}:{count}" for kind, count in gres.items()), host
        grant = cluster.srun("--nodelist=n2", "--gres=gpu:2g.12gb:1")
        instance = next(i for card in made["n2"].facts.gpus for i in card.instances if i.profile == "2g.12gb")
        assert grant.environment["CUDA_VISIBLE_DEVICES"] == instance.uuid


def test_found_cores_that_are_no_sockets_are_refused(
    nvml_root: SlurmRoot, seen: Callable[[str], Seen], tmp_path: Path
) -> None:
    """Nobody can leave out Cores that the plugin finds: from 24.11 on slurmctld does not take the node, nor we."""
    one = seen("dgx-a100")
    wanted = entered(one.built, nvml_root.release, PLAIN)
    wanted["nodes"][0]["slurm"] = {"Port": ports(["n1"])["n1"]}
    _, texts, errors = compile_and_prove(one, wanted, tmp_path)
    with MachineCluster(nvml_root, texts, {"n1": one.machine}) as cluster:
        cluster.wait_registered()
        state = cluster.show_node("n1")["State"]
    assert (state, [finding.rule.id for finding in errors]) == (
        ("IDLE", []) if nvml_root.release == "22.05" else ("UNKNOWN+DRAIN+INVALID_REG", ["slurm-node-invalid"])
    )
