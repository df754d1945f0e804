"""Facts of what was observed: the pure core, over readings written by hand. No driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hybridgpu.devices.factsof import (
    DEAD,
    EXCLUDED,
    KERNEL_UNREAD,
    MIG_EMPTY,
    MIG_PENDING,
    NO_CARD,
    NO_FILE,
    UNKNOWN_MODEL,
    UNREAD,
    UNTOLD,
    facts_of,
    link_counts,
)
from hybridgpu.devices.kernel import KernelCard, KernelReading
from hybridgpu.devices.observe import Observation
from hybridgpu.devices.port import CardReading, DriverReading, InstanceReading, MigMode, Unread, short_bus_id
from hybridgpu.model.finding import Rule
from hybridgpu.model.gpu import Placement

GIB = 2**30
FILES = frozenset(f"/dev/nvidia{minor}" for minor in range(8))
CAPABILITIES = {"gpu1/gi1/access": 147, "gpu1/gi1/ci0/access": 148}


def card(number: int, **changes: Any) -> CardReading:  # noqa: ANN401 - fields of a record
    whole = CardReading(
        number=number,
        bus_id=f"0000:0{number + 1}:00.0",
        name="NVIDIA A100-SXM4-80GB",
        uuid=f"GPU-{number}",
        minor=number,
        memory_bytes=80 * GIB,
        mig=MigMode(False, False),
        compute_mode="default",
        affinity=0b0011 if number < 2 else 0b1100,
        peers=None,
        instances=(),
    )
    return replace(whole, **changes)


INSTANCE = InstanceReading("MIG-1", "3g.40gb", 1, 0, Placement(0, 4))
CUT = {"mig": MigMode(True, True), "instances": (INSTANCE,)}


def observed(readings: Sequence[CardReading], **changes: Any) -> Observation:  # noqa: ANN401 - fields of a record
    files = FILES | {"/dev/nvidia-caps/nvidia-cap147", "/dev/nvidia-caps/nvidia-cap148"}
    kernel = KernelReading(cards=(), capabilities=CAPABILITIES, files=files)
    return Observation(
        DriverReading("580.95.05", tuple(readings)), replace(kernel, **changes), (0b0001, 0b0010, 0b1100)
    )


def kernel_cards(*bus_ids: str, excluded: bool = False) -> tuple[KernelCard, ...]:
    return tuple(KernelCard(bus_id, 5, "GPU-x", excluded) for bus_id in bus_ids)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["0000:0a:00.0", "0000:09:00.0"], ["0000:09:00.0", "0000:0a:00.0"]),
        (["0001:01:00.0", "0000:ff:00.0"], ["0000:ff:00.0", "0001:01:00.0"]),
        (["10000:01:00.0", "ffff:01:00.0"], ["ffff:01:00.0", "10000:01:00.0"]),
        (["0000:01:1f.0", "0000:01:0a.0", "0000:01:0a.1"], ["0000:01:0a.0", "0000:01:0a.1", "0000:01:1f.0"]),
    ],
)
def test_the_index_is_the_pci_order(ids: list[str], expected: list[str]) -> None:
    found = facts_of(observed([card(at, bus_id=bus_id) for at, bus_id in enumerate(ids)]), "n1")
    assert found.facts is not None
    assert [gpu.pci_bus_id for gpu in found.facts.gpus] == expected
    assert [gpu.index for gpu in found.facts.gpus] == list(range(len(ids)))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB-HBM3"),
        ("Tesla T4", "T4"),
        ("A100-SXM4-80GB", "A100-SXM4-80GB"),
    ],
)
def test_the_model_is_the_drivers_name_without_the_vendor(name: str, model: str) -> None:
    found = facts_of(observed([card(0, name=name)]), "n1")
    assert found.facts is not None
    assert found.facts.gpus[0].model == model


@pytest.mark.parametrize("side", ["cards", "files"])
def test_what_of_the_kernel_was_not_read_is_told(side: str) -> None:
    found = facts_of(observed([card(0)], **{side: Unread("/proc/x", "Permission denied")}), "n1")
    assert found.facts is not None
    assert [finding.rule for finding in found.findings] == [KERNEL_UNREAD]


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("00000000:07:00.0", "0000:07:00.0"),
        ("0000:0A:00.0", "0000:0a:00.0"),
        ("00010000:07:00.0", "10000:07:00.0"),
        ("10000:07:00.0", "10000:07:00.0"),
        ("odd", "odd"),
        ("x:y", "x:y"),
    ],
)
def test_an_address_is_one_text_whoever_writes_it(written: str, short: str) -> None:
    assert short_bus_id(written) == short


ORDER = ("a", "b", "c")


@pytest.mark.parametrize(
    ("index", "peers", "expected"),
    [
        (0, None, None),
        (0, Unread("x", "y"), None),
        (0, ("b", "c", "b"), (-1, 2, 1)),
        (2, ("a",), (1, 0, -1)),
        (1, ("switch",) * 18, (0, -1, 0)),
        (1, ("", "b", "a"), (1, -1, 0)),
    ],
)
def test_links(index: int, peers: tuple[str, ...] | Unread | None, expected: tuple[int, ...] | None) -> None:
    assert link_counts(index, peers, ORDER) == expected


LOST = Unread("nvmlX", "GPU_IS_LOST")
REFUSED = Unread("nvmlX", "NO_PERMISSION")
UNKNOWN = Unread("nvmlX", "UNKNOWN")
GONE = {name: LOST for name in CardReading.__dataclass_fields__ if name != "number"}


@pytest.mark.parametrize(
    ("cards", "kernel", "rule", "said"),
    [
        (
            [card(0), card(1, uuid=LOST)],
            {},
            DEAD,
            "GPU 1 at 0000:02:00.0 (/dev/nvidia1) is dead: nvmlX answered GPU_IS",
        ),
        (
            [card(0), card(1, uuid=UNKNOWN)],
            {},
            DEAD,
            "GPU 1 at 0000:02:00.0 (/dev/nvidia1) is dead: nvmlX answered UNK",
        ),
        ([card(0), card(1, affinity=LOST)], {}, DEAD, "GPU 1 at 0000:02:00.0"),
        ([card(0), card(1, **GONE)], {}, DEAD, "a GPU is dead: nvmlX answered GPU_IS_LOST"),
        (
            [card(1), card(0, **GONE)],
            {"cards": kernel_cards("0000:01:00.0", "0000:02:00.0")},
            DEAD,
            "GPU 0 at 0000:01:00.0 (/dev/nvidia5) is dead: nvmlX answered GPU_IS_LOST",
        ),
        (
            [card(0), card(1)],
            {"cards": kernel_cards("0000:01:00.0", "0000:02:00.0", "0000:03:00.0")},
            DEAD,
            "GPU 2 at 0000:03:00.0 (/dev/nvidia5) is dead: the kernel's driver has it",
        ),
        ([card(0), card(1, bus_id=REFUSED)], {}, UNTOLD, "a GPU: nvmlX answered NO_PERMISSION"),
        ([card(0), card(1, name=REFUSED)], {}, UNTOLD, "GPU 1 at 0000:02:00.0 (/dev/nvidia1): nvmlX answered NO_PERM"),
        ([card(0), card(1, minor=REFUSED)], {}, UNTOLD, "GPU 1 at 0000:02:00.0: nvmlX answered NO_PERMISSION"),
        ([card(0, mig=UNKNOWN)], {}, UNTOLD, "GPU 0 at 0000:01:00.0 (/dev/nvidia0): nvmlX answered UNKNOWN"),
        ([card(0, instances=REFUSED)], {}, UNTOLD, "nvmlX answered NO_PERMISSION"),
        ([card(0, instances=(replace(INSTANCE, gi=REFUSED),))], {}, UNTOLD, "nvmlX answered NO_PERMISSION"),
    ],
)
def test_a_card_without_which_there_are_no_facts(
    cards: list[CardReading], kernel: dict[str, Any], rule: Rule, said: str
) -> None:
    found = facts_of(observed(cards, **kernel), "n1")
    assert found.facts is None
    assert [finding.rule for finding in found.findings] == [rule]
    assert said in found.findings[0].message


@pytest.mark.parametrize(
    ("cards", "kernel", "rule", "said"),
    [
        ([card(0, affinity=REFUSED)], {}, UNREAD, "cores is null: nvmlX answered NO_PERMISSION"),
        ([card(0, affinity=1 << 9)], {}, UNREAD, "cores is null: the driver names no CPU that is online"),
        ([card(0, peers=UNKNOWN)], {}, UNREAD, "links is null: nvmlX answered UNKNOWN"),
        (
            [card(1, mig=MigMode(True, True), instances=(replace(INSTANCE, placement=REFUSED),))],
            {},
            UNREAD,
            "placement is null: nvmlX answered NO_PERMISSION",
        ),
        (
            [card(1, **CUT)],
            {"capabilities": Unread("/proc/x", "Permission denied")},
            UNREAD,
            "gi_minor, ci_minor is null: /proc/x answered Permission denied",
        ),
        ([card(1, **CUT)], {"capabilities": {"gpu1/gi1/access": 147}}, UNREAD, "mig-minors does not list the instance"),
        ([card(0, mig=MigMode(True, False))], {}, MIG_PENDING, "MIG is on, and will be off after a reset"),
        ([card(0, mig=MigMode(False, True))], {}, MIG_PENDING, "MIG is off, and will be on after a reset"),
        ([card(0, mig=MigMode(True, True))], {}, MIG_EMPTY, "MIG is on, and there is no instance"),
        ([card(0, minor=9)], {}, NO_FILE, "there is no /dev/nvidia9"),
        ([card(0, name="NVIDIA Z9")], {}, UNKNOWN_MODEL, "NVIDIA Z9 of 80.0 GiB is not in the catalogue"),
        ([], {}, NO_CARD, "the driver 580.95.05 knows no card"),
        (
            [card(0)],
            {"cards": (*kernel_cards("0000:01:00.0"), *kernel_cards("0000:00:00.0", excluded=True))},
            EXCLUDED,
            "the GPU at 0000:00:00.0 (GPU-x) is excluded",
        ),
    ],
)
def test_what_is_said_beside_the_facts(cards: list[CardReading], kernel: dict[str, Any], rule: Rule, said: str) -> None:
    found = facts_of(observed(cards, **kernel), "n1")
    assert found.facts is not None
    assert [finding.rule for finding in found.findings] == [rule]
    assert said in found.findings[0].message


@pytest.mark.parametrize(
    "cards",
    [
        [card(0), card(1)],
        [card(1, **CUT)],
        [card(0, mig=None)],
        [card(0, compute_mode="prohibited", peers=("0000:02:00.0",)), card(1, peers=("0000:01:00.0",))],
    ],
)
def test_a_sound_node_is_told_without_a_word(cards: list[CardReading]) -> None:
    found = facts_of(observed(cards), "n1")
    assert found.findings == ()
    assert found.facts is not None


def test_a_topology_that_was_not_read_makes_cores_null() -> None:
    seen = replace(observed([card(0)]), topology=Unread("/sys/x", "No such file or directory"))
    found = facts_of(seen, "n1")
    assert found.facts is not None
    assert found.facts.gpus[0].cores is None
    assert [finding.rule for finding in found.findings] == [UNREAD]


def test_everything_wrong_is_said_at_once() -> None:
    cards = [card(0, name=REFUSED, minor=REFUSED), card(1, uuid=LOST), card(2, mig=REFUSED)]
    found = facts_of(observed(cards), "n1")
    assert [finding.rule for finding in found.findings] == [DEAD, UNTOLD, UNTOLD]
