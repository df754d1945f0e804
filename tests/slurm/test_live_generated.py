"""Live clusters of every release on generated inventories: all modes, models and sites that can be drawn together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from testbed.slurm.cluster import Cluster, ports
from testbed.slurm.root import SlurmRoot
from tests.conftest import soak
from tests.slurm.inventories import Case, Node, cases
from tests.slurm.live import rendered, states

CAN_SPLIT = {"22.05": False, "24.11": True, "26.05": True}


def test_nodes_register_and_jobs_get_all_there_is(
    slurm_root: SlurmRoot,
    tmp_path_factory: pytest.TempPathFactory,
    record_property: Callable[[str, object], None],
) -> None:
    """Every node is IDLE, and one job is granted every GPU and instance of a node, another all shares of a card."""
    counts: Counter[str] = Counter()

    @settings(max_examples=soak(4, 100), suppress_health_check=list(HealthCheck))
    @given(cases(slurm_root.release, splits=CAN_SPLIT[slurm_root.release]))
    def judge(case: Case) -> None:
        one_machine(case)
        files = rendered(case.inventory, tmp_path_factory.mktemp("case"), case.facts)
        hosts = [node.name for node in case.nodes]
        with Cluster(slurm_root, files, hosts) as cluster:
            cluster.wait_registered()
            assert states(cluster) == dict.fromkeys(hosts, "IDLE")
            for node in case.nodes:
                counts["jobs"] += grants(cluster, node)
        counts["clusters"] += 1
        counts["nodes"] += len(hosts)

    judge()
    record_property(
        "measured",
        f"Slurm {slurm_root.version}: {counts['clusters']} clusters, {counts['nodes']} nodes registered and none "
        f"INVALID, {counts['jobs']} jobs granted what they asked",
    )


def one_machine(case: Case) -> None:
    """Let each entry have its first host only, with a port of its own."""
    port_of = ports(node.name for node in case.nodes)
    for entry, node in zip(case.inventory["nodes"], case.nodes, strict=True):
        entry["hosts"] = node.name
        entry["slurm"] = {"Port": port_of[node.name]}


def grants(cluster: Cluster, node: Node) -> int:
    """Ask for all that the node must have; how many jobs that took."""
    types = Counter(row.type for row in node.gpus)
    asked = [",".join(f"gpu:{kind}:{count}" for kind, count in types.items())]
    expected: list[dict[tuple[str, str | None], int]] = [{("gpu", kind): count for kind, count in types.items()}]
    if node.shared:
        asked.append(f"{node.shared}:{node.shares}")
        expected.append({(node.shared, None): node.shares})
    if node.nics:
        asked.append(f"nic:{node.nics}")
        expected.append({("nic", None): node.nics})
    for request, wanted in zip(asked, expected, strict=True):
        grant = cluster.srun(f"--gres={request}", f"--nodelist={node.name}")
        assert grant.nodes == node.name
        assert {(each.name, each.type): each.count for each in grant.gres} == wanted
    return len(asked)
