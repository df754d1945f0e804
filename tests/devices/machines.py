"""Ten machines as their makers build them, each with what `discover` must say of it, written down by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testbed.driver.cut import Cut, cut
from testbed.driver.machine import Machine
from tests.devices.sysfs import Cpus, plain
from tests.simulated import nvml

MIB = 2**20
CLOCKS = {"memory_clocks": [1593], "graphics_clocks": [1410, 210, 15]}
"""Every card has some, and Slurm's plugin complains where it is told of none."""


@dataclass(frozen=True)
class Built:
    """A machine: its description and CPUs, what is cut (by card), and per card minor, model, MiB, cores and links."""

    description: Mapping[str, Any]
    cpus: Cpus
    models: Sequence[str]
    mib: Sequence[int]
    minors: Sequence[int]
    cores: Sequence[str]
    links: Sequence[Sequence[int] | None]
    cuts: Mapping[int, Cut] = field(default_factory=dict)

    def make(self, root: Path) -> Machine:
        """The machine below `root`, cut."""
        cards = [{**CLOCKS, **card} for card in self.description["gpus"]]
        machine = Machine.make(root, {**self.description, "gpus": cards})
        self.cpus.write(root)
        with nvml(machine):
            for card, wanted in self.cuts.items():
                cut(card, wanted)
        return machine


def gpus(model: str, pcis: Sequence[str], **more: Sequence[Any]) -> list[dict[str, Any]]:
    """Cards of one model at these addresses; what differs from card to card by name."""
    return [
        {"model": model, "pci": pci, **{name: values[at] for name, values in more.items() if values[at] is not None}}
        for at, pci in enumerate(pcis)
    ]


def hgx(
    model: str, mib: int, links: int, cpus: Cpus, cores: tuple[str, str], cuts: Mapping[int, Cut] | None = None
) -> Built:
    """Eight cards behind NVSwitches, four a socket."""
    pcis = [f"0000:{bus:02x}:00.0" for bus in (0x18, 0x2A, 0x3A, 0x5D, 0x9A, 0xAB, 0xBA, 0xDB)]
    near = [cpus_of(cpus, at // 4) for at in range(8)]
    return Built(
        {"name": model, "gpus": gpus(model, pcis, cpus=near, links=[["switch"] * links] * 8)},
        cpus,
        [model] * 8,
        [mib] * 8,
        list(range(8)),
        [cores[at // 4] for at in range(8)],
        [[-1 if to == at else 0 for to in range(8)] for at in range(8)],
        cuts or {},
    )


def cpus_of(cpus: Cpus, socket: int) -> str:
    return ",".join(str(cpu) for core in cpus.sockets[socket] for cpu in core)


DGX_CPUS = plain(2, 64, 2, numa=4)
DGX_A100 = Built(
    {
        "name": "dgx-a100",
        "driver": "550.54.15",
        "cuda": "12.4",
        "gpus": gpus(
            "A100-SXM4-80GB",
            [f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")],
            minor=[3, 2, 1, 0, 7, 6, 5, 4],
            cpus=[
                *("48-63,176-191", "48-63,176-191", "16-31,144-159", "16-31,144-159"),
                *("112-127,240-255", "112-127,240-255", "80-95,208-223", "80-95,208-223"),
            ],
            links=[["switch"] * 12] * 8,
        ),
    },
    DGX_CPUS,
    ["A100-SXM4-80GB"] * 8,
    [81920] * 8,
    [3, 2, 1, 0, 7, 6, 5, 4],
    ["48-63", "48-63", "16-31", "16-31", "112-127", "112-127", "80-95", "80-95"],
    [[-1 if to == at else 0 for to in range(8)] for at in range(8)],
)
"""Minors unlike indices, and NPS4: a card is near a quarter of a socket."""

SEVENTHS: Cut = tuple(("1g.10gb", start) for start in range(7))
DGX_A100_MIG = replace(
    DGX_A100,
    cuts={
        0: (("3g.40gb", 0), ("3g.40gb", 4)),
        1: SEVENTHS,
        2: (("7g.80gb", 0),),
        3: (("3g.40gb", 0), ("1g.10gb", 4), ("1g.10gb", 5), ("1g.10gb+me", 6)),
        4: (("4g.40gb", 0), ("2g.20gb", 4), ("1g.20gb", 6)),
    },
)

H100_CPUS = plain(2, 56, 2)
T4_CPUS = plain(2, 12, 1)
MACHINES: dict[str, Built] = {
    "dgx-a100": DGX_A100,
    "dgx-a100-mig": DGX_A100_MIG,
    "hgx-h100": hgx("H100-80GB-HBM3", 81559, 18, H100_CPUS, ("0-55", "56-111")),
    "hgx-h200-mig": hgx(
        "H200",
        143771,
        18,
        H100_CPUS,
        ("0-55", "56-111"),
        cuts=dict.fromkeys(range(8), (("3g.71gb", 0), ("3g.71gb", 4))),
    ),
    "hgx-b200": hgx("B200", 183359, 18, plain(2, 48, 2), ("0-47", "48-95")),
    "a30": Built(
        {
            "name": "a30",
            "gpus": gpus("A30", ["0000:17:00.0", "0000:ca:00.0"], cpus=["0-15", "16-31"], links=[[1] * 4, [0] * 4]),
        },
        plain(2, 16, 1),
        ["A30"] * 2,
        [24576] * 2,
        [0, 1],
        ["0-15", "16-31"],
        [[-1, 4], [4, -1]],
    ),
    "a30-mig": Built(
        {"name": "a30-mig", "gpus": gpus("A30", ["0000:17:00.0", "0000:ca:00.0"], cpus=["0-15", "16-31"])},
        plain(2, 16, 1),
        ["A30"] * 2,
        [24576] * 2,
        [0, 1],
        ["0-15", "16-31"],
        [None] * 2,
        {0: (("2g.12gb", 0), ("1g.6gb", 2), ("1g.6gb", 3))},
    ),
    "rtx-pro-6000": Built(
        {
            "name": "rtx",
            "gpus": gpus(
                "RTX-PRO-6000-Blackwell-Server-Edition", ["0000:01:00.0", "0000:81:00.0"], cpus=["0-31", "0-31"]
            ),
        },
        plain(1, 16, 2),
        ["RTX-PRO-6000-Blackwell-Server-Edition"] * 2,
        [97887] * 2,
        [0, 1],
        ["0-15"] * 2,
        [None] * 2,
        {1: (("2g.48gb", 0), ("1g.24gb", 6), ("1g.24gb", 9))},
    ),
    "l40s": Built(
        {"name": "l40s", "gpus": gpus("L40S", ["0000:3d:00.0", "0000:a1:00.0"], cpus=["0-31", "32-63"])},
        plain(2, 32, 1),
        ["L40S"] * 2,
        [49152] * 2,
        [0, 1],
        ["0-31", "32-63"],
        [None] * 2,
    ),
    "mixed": Built(
        {
            "name": "mixed",
            "gpus": [
                {"model": "T4", "pci": "0000:3b:00.0", "minor": 1, "cpus": "0-11"},
                {"model": "A100-PCIE-40GB", "pci": "0000:af:00.0", "minor": 2, "cpus": "12-23"},
                {"model": "T4", "pci": "0001:02:00.0", "minor": 0, "cpus": "0-23"},
            ],
        },
        T4_CPUS,
        ["T4", "A100-PCIE-40GB", "T4"],
        [16384, 40960, 16384],
        [1, 2, 0],
        ["0-11", "12-23", "0-23"],
        [None] * 3,
        {1: (("3g.20gb", 0), ("2g.10gb", 4), ("1g.5gb", 6))},
    ),
}
