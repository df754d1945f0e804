"""Offers: what slurmd makes of a node's files, in its order, and what each release does differently."""

from __future__ import annotations

import pytest

from hybridgpu.consumers.slurm import RELEASES, Registered, consume, load
from hybridgpu.model.offer import OtherGres, SlurmDevice, SlurmOffer
from tests.consumers.slurm.sites import CAPS, MIG, found, judged, site

TWO = "Name=gpu Type=a100 File=/dev/nvidia[0-1]"


def gpu(n: int, kind: str | None = "a100", shares: int = 0, **more: object) -> SlurmDevice:
    return SlurmDevice(type=kind, files=(f"/dev/nvidia{n}",), shares=shares, **more)  # type: ignore[arg-type]


def instance(cap: int, shares: int = 0) -> SlurmDevice:
    return SlurmDevice("1g.10gb", ("/dev/nvidia0", f"{CAPS}{cap}", f"{CAPS}{cap + 1}"), shares)


OFFERS: dict[str, tuple[dict[str, str], SlurmOffer]] = {
    "whole GPUs": (site(), SlurmOffer((gpu(0), gpu(1)))),
    "slurm.conf's order of types numbers the devices": (
        site("gpu:h100:1,gpu:a100:1", ["Name=gpu Type=a100 File=/dev/nvidia0", "Name=gpu Type=h100 File=/dev/nvidia1"]),
        SlurmOffer((gpu(1, "h100"), gpu(0))),
    ),
    "an entry without a type takes any and drops the type": (site("gpu:2"), SlurmOffer((gpu(0, None), gpu(1, None)))),
    "what is too much is cut off at the end": (site("gpu:a100:1"), SlurmOffer((gpu(0),))),
    "cores and links": (
        site("gpu:2", "Name=gpu File=/dev/nvidia0 Cores=0-3 Links=-1,4\nName=gpu File=/dev/nvidia1 CPUs=4-7 Link=4,-1"),
        SlurmOffer((gpu(0, None, cores="0-3", links=(-1, 4)), gpu(1, None, cores="4-7", links=(4, -1)))),
    ),
    "MIG instances": (site("gpu:1g.10gb:2", MIG), SlurmOffer((instance(66), instance(75)))),
    "shares spread, the remainder to the later GPUs": (
        site("gpu:a100:4,shard:10", "Name=gpu Type=a100 File=/dev/nvidia[0-3]\nName=shard Count=10", types="gpu,shard"),
        SlurmOffer((gpu(0, shares=2), gpu(1, shares=2), gpu(2, shares=3), gpu(3, shares=3)), "shard"),
    ),
    "shares by file, in the order of the GPUs": (
        site(
            "gpu:a100:2,mps:300",
            [TWO, "Name=mps File=/dev/nvidia1 Count=100", "Name=mps File=/dev/nvidia0 Count=200"],
            types="mps,gpu",
        ),
        SlurmOffer((gpu(0, shares=200), gpu(1, shares=100)), "mps"),
    ),
    "shares of MIG instances": (
        site("gpu:1g.10gb:2,shard:6", [*MIG, "Name=shard Count=6"], types="gpu,shard"),
        SlurmOffer((instance(66, 3), instance(75, 3)), "shard"),
    ),
    "a GPU without shares": (
        site("gpu:a100:2,shard:4", [TWO, "Name=shard File=/dev/nvidia1 Count=4"], types="gpu,shard"),
        SlurmOffer((gpu(0), gpu(1, shares=4)), "shard"),
    ),
    "other GRES, with and without files": (
        site(
            "gpu:a100:2,nic:3,hybridgpu_k8s:2",
            [TWO, "Name=hybridgpu_k8s File=/dev/nvidia[4-5]"],
            types="gpu,nic,hybridgpu_k8s",
        ),
        SlurmOffer(
            (gpu(0), gpu(1)),
            None,
            (OtherGres("nic", None, 3), OtherGres("hybridgpu_k8s", None, 2, ("/dev/nvidia4", "/dev/nvidia5"))),
        ),
    ),
    "records that begin with Name come first": (
        site("gpu:2", ["NodeName=n1 Name=gpu File=/dev/nvidia0", "Name=gpu File=/dev/nvidia1"]),
        SlurmOffer((gpu(1, None), gpu(0, None))),
    ),
    "no GPUs": (site("nic:1", "", types="gpu,nic"), SlurmOffer((), None, (OtherGres("nic", None, 1),))),
}


@pytest.mark.parametrize("name", OFFERS)
def test_a_node_offers_what_slurmd_makes_of_its_files(name: str) -> None:
    files, offer = OFFERS[name]
    for release in ("23.11", "24.11", "26.05"):
        assert judged(files, release).offer_of("n1") == offer


def test_nodes_of_one_line_differ_by_the_records_that_name_them() -> None:
    files = site(
        nodes="NodeName=n[1-3] CPUs=8 Gres=gpu:1",
        records="NodeName=n[1,3] Name=gpu File=/dev/nvidia0\nNodeName=n2 Name=gpu File=/dev/nvidia7",
    )
    result = judged(files)
    assert [result.offer_of(f"n{n}") for n in (1, 2, 3)] == [SlurmOffer((gpu(n, None),)) for n in (0, 7, 0)]
    assert result.nodes["n1"] is result.nodes["n3"]
    assert result.offer_of("n4") is None and result.findings == ()


def test_a_fatal_file_leaves_no_offer_and_says_so() -> None:
    one = judged(
        site(nodes="NodeName=n[1-2] CPUs=8 Gres=gpu:1", records="NodeName=n1 Name=gpu File=/dev/nvidia[0-1] Count=3")
    )
    assert (one.fatal, one.nodes["n1"].fatal, one.offer_of("n1"), one.nodes["n2"].fatal) == (False, True, None, False)
    both = judged(site(records=f"{TWO} Fiel=x"))
    assert (both.fatal, both.nodes["n1"].fatal, both.offer_of("n1")) == (True, True, None)


def test_a_mig_instance_falls_apart_on_the_release_that_splits_it() -> None:
    """Run on 22.05.8: once mps or shard is in GresTypes, three files are three GPUs."""
    files = site("gpu:1g.10gb:2", MIG, types="gpu,shard")
    old = judged(files, "22.05")
    assert [device.files for device in old.offer_of("n1").gpus][:3] == [  # type: ignore[union-attr]
        ("/dev/nvidia0",),
        (f"{CAPS}66",),
        (f"{CAPS}67",),
    ]
    assert {finding.rule.id for finding in old.findings} == {"slurm-mig-split"}
    assert judged(site("gpu:1g.10gb:2", MIG), "22.05").findings == ()
    assert judged(files, "23.02").findings == ()


Row = tuple[str, str | None, int, tuple[str, ...]]


def registered(files: dict[str, str], release: str) -> list[Row] | None:
    result = judged(files, release).nodes.get("n1")
    return None if result is None or result.fatal else [(r.name, r.type, r.count, r.files) for r in result.registered]


NIC: Row = ("nic", None, 4, ())
ZERO = site("nic:4", "Name=nic Count=0", types="nic")
TWICE = site("fpga:2", "Name=fpga File=/dev/nvidia0,/dev/nvidia0", types="fpga")
PLAIN: list[Row] = [("fpga", None, 2, ("/dev/nvidia0", "/dev/nvidia0"))]
SUFFIX = site(nodes="NodeName=n[1-2]x,n1 CPUs=8 Gres=nic:4", records="", types="nic")
UNREAD = site("nic:4", "Name=nic File=/a MultipleFiles=/b,/c garbage", types=None)
BARE = site(
    "gpu:2", [f"Name=gpu File=/dev/nvidia{n} Flags={flag}" for n, flag in ((0, "explicit"), (1, "one_sharing"))]
)
FOUND: dict[str, tuple[dict[str, str], str, list[Row] | None]] = {
    "a record that counts nothing gives its place away": (ZERO, "22.05 24.11 26.05", [NIC]),
    "without GresTypes gres.conf is not opened": (UNREAD, "22.05 24.11 26.05", []),
    "a plain GRES may name a file twice": (TWICE, "22.05", PLAIN),
    "a plain GRES may not name a file twice": (TWICE, "23.02 24.11 26.05", None),
    "a suffix behind a bracket is refused": (SUFFIX, "22.05 23.02", None),
    "a suffix behind a bracket is taken": (SUFFIX, "23.11 24.11 26.05", [NIC]),
    "flags that name no environment must agree": (BARE, "23.02 24.11 25.11", None),
    "flags that name no environment need not agree": (
        BARE,
        "22.05 26.05",
        [("gpu", None, 1, ("/dev/nvidia0",)), ("gpu", None, 1, ("/dev/nvidia1",))],
    ),
    "a key of a later release is fatal in a default line": (
        site(nodes="NodeName=DEFAULT Topology=x\nNodeName=n1 CPUs=8 Gres=nic:4", types="nic"),
        "22.05 24.11",
        None,
    ),
    "a number that is none is fatal in a default line": (
        site(nodes="NodeName=DEFAULT Weight=-1\nNodeName=n1 CPUs=8 Gres=nic:4", types="nic"),
        "22.05 24.11 26.05",
        None,
    ),
    "a huge count is cut to what slurm.conf says": (
        site("nic:4", "Name=nic Count=-3", types="nic"),
        "22.05 24.11 26.05",
        [NIC],
    ),
    "a count without digits is none": (
        site("nic:4", 'Name=nic Count=""', types="nic"),
        "22.05 24.11 26.05",
        [NIC],
    ),
    "a bad list of nodes in gres.conf is another node's": (
        site("nic:4", "NodeName=n[1 Name=nic Count=2", types="nic"),
        "22.05 24.11 26.05",
        [NIC],
    ),
    "names in another case are counted, and lost": (
        site("gpu:1", "Name=GPU File=/dev/nvidia0"),
        "22.05 24.11 26.05",
        [("GPU", None, 1, ("/dev/nvidia0",))],
    ),
}
"""What slurmd taught us when the generated pairs were compared (tests/slurm/test_agreement.py): each was once wrong."""


@pytest.mark.parametrize("name", FOUND)
def test_what_slurmd_taught_us(name: str) -> None:
    files, releases, rows = FOUND[name]
    for release in releases.split():
        assert registered(files, release) == rows, release


def test_a_share_record_loses_its_links() -> None:
    files = site("gpu:a100:2,mps:8", [TWO, "Name=mps File=/dev/nvidia[0-1] Count=8 Links=-1"], types="gpu,mps")
    rows = judged(files).nodes["n1"].registered
    assert rows[0] == Registered("mps", "a100", 4, ("/dev/nvidia0",)) and rows[1].links is None


REASONS = {
    "too few": (site("gpu:a100:3"), "gres/gpu count reported lower than configured (2 < 3)"),
    "part of a socket": (
        site(records=f"{TWO} Cores=0-1"),
        "gres/gpu GRES core specification 0-1 for node n1 doesn't match socket boundaries. (Socket 0 is cores 0-3)",
    ),
    "cores that are no digits are core 0": (
        site(records=f"{TWO} Cores=abc"),
        "gres/gpu GRES core specification 0 for node n1 doesn't match socket boundaries. (Socket 0 is cores 0-3)",
    ),
    "cores beyond": (
        site(records=f"{TWO} Cores=0-8"),
        "no reason given (gres/gpu has Cores=0-8, and node n1 only 8 cores)",
    ),
    "a type in another case": (
        site("gpu:A100:2"),
        "gres/gpu type (a100) reported but not configured",
    ),
    "links too long": (
        site("gpu:a100:1", "Name=gpu Type=a100 File=/dev/nvidia0 Links=-1,4,4"),
        "Invalid GRES Links value (-1,4,4) on node n1: i=1 >= link_len=1.",
    ),
    "links of a device beyond the count": (
        site(
            "gpu:h100:2,gpu",
            ["Name=gpu Type=h100 File=/dev/nvidia0", "Name=gpu Type=h100 File=/dev/nvidia1 Links=0,-1"],
        ),
        None,
    ),
    "one node's files are every node's": (
        site(
            nodes="NodeName=n1 CPUs=8 Sockets=2 CoresPerSocket=4 Gres=nic:1\nNodeName=n2 CPUs=8 Gres=nic:1",
            records="NodeName=n1 Name=nic Count=1 Cores=2-5\nNodeName=n2 Name=nic File=/dev/nvidia8",
            types="nic",
        ),
        "gres/nic GRES core specification 2-5 for node n1 doesn't match socket boundaries. (Socket 0 is cores 0-3)",
    ),
    "shares lost": (
        site("gpu:a100:2,shard:9", [TWO, "Name=shard File=/dev/nvidia[0-1] Count=9"], types="gpu,shard"),
        "gres/shard count reported lower than configured (8 < 9)",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_the_controller_turns_a_node_invalid_for_this_reason(name: str) -> None:
    files, reason = REASONS[name]
    assert judged(files, "24.11").nodes["n1"].invalid == reason


def test_older_controllers_do_not_look_at_sockets_and_types() -> None:
    assert judged(REASONS["part of a socket"][0], "24.05").nodes["n1"].invalid is None
    assert judged(REASONS["a type in another case"][0], "23.02").nodes["n1"].invalid is None
    assert judged(REASONS["a type in another case"][0], "23.11").nodes["n1"].invalid


def test_the_cores_of_several_whole_sockets_are_taken_up_to_25_05() -> None:
    """slurmctld of 24.11 takes them, that of 26.05 does not (run)."""
    files = site(
        records="Name=gpu File=/dev/nvidia0 Cores=0-3", nodes="NodeName=n1 Sockets=4 CoresPerSocket=2 Gres=gpu:1"
    )
    assert [judged(files, release).nodes["n1"].invalid is None for release in ("24.11", "25.05", "25.11")] == [
        True,
        True,
        False,
    ]


def big(nodes: int) -> dict[str, str]:
    hosts = f"n[1-{nodes}]"
    records = [
        f"NodeName={hosts} Name=gpu Type=1g.10gb MultipleFiles=/dev/nvidia{g},{CAPS}{c},{CAPS}{c + 1}"
        for g in range(8)
        for c in range(135 * g + 66, 135 * g + 129, 9)
    ]
    return site(nodes=f"NodeName={hosts} CPUs=128 Gres=gpu:1g.10gb:56", records=records)


def test_ten_thousand_equal_nodes_cost_little_more_than_one() -> None:
    files = load(big(10_000))
    result = consume(files, RELEASES["26.05"])
    assert len(result.nodes) == 10_000 and len({id(node) for node in result.nodes.values()}) == 1
    assert result.findings == () and len(result.offer_of("n9999").gpus) == 56  # type: ignore[union-attr]


def test_nodes_that_say_the_same_on_lines_of_their_own_share_one_result() -> None:
    nodes = "\n".join(f"NodeName=n{n} NodeAddr=a{n} CPUs=8 Gres=gpu:a100:2" for n in range(50))
    records = "\n".join(f"NodeName=n{n} {TWO}" for n in range(50))
    result = judged(site(nodes=nodes, records=records))
    assert len({id(node) for node in result.nodes.values()}) == 1 and result.findings == ()


def test_a_node_that_only_newer_releases_turn_invalid_says_since_when() -> None:
    files = site(records="Name=gpu Type=a100 File=/dev/nvidia[0-1] Cores=0-1")
    assert "(holds since 24.11)" in found(files)["slurm-node-invalid"].message
    assert "slurm-node-invalid" not in found(files, "24.05")
    fewer = found(site(records="Name=gpu Type=a100 File=/dev/nvidia0"))["slurm-fewer-than-configured"]
    assert "INVALID" in fewer.message and "holds" not in fewer.message
