"""Every GPU model as it must look to Slurm: written down by hand, importing nothing of hybridgpu.

Driver's names and memory: NVIDIA's list of supported chips, data sheets. Types: the driver's name without the vendor
(NVIDIA, Tesla) in lower case, spaces as `_`. How a card is cut is `cuts`' table.
"""

from __future__ import annotations

from dataclasses import dataclass

_ROWS = """\
NVIDIA A100-SXM4-40GB | a100-sxm4-40gb | 40 eighths
NVIDIA A100-SXM4-80GB | a100-sxm4-80gb | 80 eighths
NVIDIA A100-PCIE-40GB | a100-pcie-40gb | 40 eighths
NVIDIA A100 80GB PCIe | a100_80gb_pcie | 80 eighths
NVIDIA A100-SXM-64GB | a100-sxm-64gb | 64
NVIDIA A100X | a100x | 80 eighths
NVIDIA PG506-232 | pg506-232 | 96 eighths
NVIDIA A800-SXM4-40GB | a800-sxm4-40gb | 40 eighths
NVIDIA A800-SXM4-80GB | a800-sxm4-80gb | 80 eighths
NVIDIA A800 80GB PCIe | a800_80gb_pcie | 80 eighths
NVIDIA A800 40GB Active | a800_40gb_active | 40 eighths
NVIDIA A30 | a30 | 24 quarters
NVIDIA A30X | a30x | 24 quarters
NVIDIA H100 80GB HBM3 | h100_80gb_hbm3 | 80 eighths
NVIDIA H100 PCIe | h100_pcie | 80 eighths
NVIDIA H100 NVL | h100_nvl | 94 eighths
NVIDIA H100 | h100 | 94 eighths | H100-SXM5-94GB
NVIDIA H100 SXM5 96GB | h100_sxm5_96gb | 96 eighths
NVIDIA H100 SXM5 64GB | h100_sxm5_64gb | 64
NVIDIA H800 | h800 | 80 eighths
NVIDIA H800 PCIe | h800_pcie | 80 eighths
NVIDIA H800 NVL | h800_nvl | 94 eighths
NVIDIA H20 | h20 | 96 eighths
NVIDIA H20-3e | h20-3e | 141 eighths
NVIDIA H200 | h200 | 141 eighths
NVIDIA H200 NVL | h200_nvl | 141 eighths
NVIDIA GH200 480GB | gh200_480gb | 96 eighths
NVIDIA GH200 120GB | gh200_120gb | 96 eighths
NVIDIA GH200 144G HBM3e | gh200_144g_hbm3e | 144 eighths
NVIDIA B200 | b200 | 180 eighths
NVIDIA GB200 | gb200 | 186 eighths
NVIDIA GB200 | gb200 | 189 eighths | GB200-189GB
NVIDIA B300 SXM6 AC | b300_sxm6_ac | 269 eighths
NVIDIA GB300 | gb300 | 278 eighths
NVIDIA RTX PRO 6000 Blackwell Server Edition | rtx_pro_6000_blackwell_server_edition | 96 twelfths
NVIDIA RTX PRO 6000 Blackwell Workstation Edition | rtx_pro_6000_blackwell_workstation_edition | 96 twelfths
NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition | rtx_pro_6000_blackwell_max-q_workstation_edition | 96 twelfths
NVIDIA RTX PRO 5000 Blackwell | rtx_pro_5000_blackwell | 48 halves
NVIDIA RTX PRO 5000 72GB Blackwell | rtx_pro_5000_72gb_blackwell | 72
NVIDIA RTX PRO 4500 Blackwell | rtx_pro_4500_blackwell | 32 halves
Tesla K80 | k80 | 12
Tesla M40 | m40 | 12
Tesla M60 | m60 | 8
Tesla P4 | p4 | 8
Tesla P40 | p40 | 24
Tesla P100-PCIE-12GB | p100-pcie-12gb | 12
Tesla P100-PCIE-16GB | p100-pcie-16gb | 16
Tesla P100-SXM2-16GB | p100-sxm2-16gb | 16
Tesla V100-SXM2-16GB | v100-sxm2-16gb | 16
Tesla V100-SXM2-32GB | v100-sxm2-32gb | 32
Tesla V100-SXM3-32GB | v100-sxm3-32gb | 32
Tesla V100-PCIE-16GB | v100-pcie-16gb | 16
Tesla V100-PCIE-32GB | v100-pcie-32gb | 32
Tesla V100S-PCIE-32GB | v100s-pcie-32gb | 32
Tesla V100-FHHL-16GB | v100-fhhl-16gb | 16
Tesla V100-DGXS-16GB | v100-dgxs-16gb | 16
Tesla V100-DGXS-32GB | v100-dgxs-32gb | 32
NVIDIA TITAN V | titan_v | 12
Quadro GV100 | quadro_gv100 | 32
NVIDIA TITAN Xp | titan_xp | 12
NVIDIA GeForce GTX 1080 Ti | geforce_gtx_1080_ti | 11
NVIDIA TITAN RTX | titan_rtx | 24
NVIDIA GeForce RTX 2080 Ti | geforce_rtx_2080_ti | 11
Quadro RTX 5000 | quadro_rtx_5000 | 16
Quadro RTX 6000 | quadro_rtx_6000 | 24
Quadro RTX 8000 | quadro_rtx_8000 | 48
Tesla T4 | t4 | 16
NVIDIA A2 | a2 | 16
NVIDIA A10 | a10 | 24
NVIDIA A10G | a10g | 24
NVIDIA A16 | a16 | 16
NVIDIA A40 | a40 | 48
NVIDIA RTX A4000 | rtx_a4000 | 16
NVIDIA RTX A4500 | rtx_a4500 | 20
NVIDIA RTX A5000 | rtx_a5000 | 24
NVIDIA RTX A5500 | rtx_a5500 | 24
NVIDIA RTX A6000 | rtx_a6000 | 48
NVIDIA GeForce RTX 3080 | geforce_rtx_3080 | 10
NVIDIA GeForce RTX 3080 Ti | geforce_rtx_3080_ti | 12
NVIDIA GeForce RTX 3090 | geforce_rtx_3090 | 24
NVIDIA GeForce RTX 3090 Ti | geforce_rtx_3090_ti | 24
NVIDIA L2 | l2 | 24
NVIDIA L4 | l4 | 24
NVIDIA L20 | l20 | 48
NVIDIA L40 | l40 | 48
NVIDIA L40S | l40s | 48
NVIDIA RTX 4000 Ada Generation | rtx_4000_ada_generation | 20
NVIDIA RTX 4500 Ada Generation | rtx_4500_ada_generation | 24
NVIDIA RTX 5000 Ada Generation | rtx_5000_ada_generation | 32
NVIDIA RTX 5880 Ada Generation | rtx_5880_ada_generation | 48
NVIDIA RTX 6000 Ada Generation | rtx_6000_ada_generation | 48
NVIDIA GeForce RTX 4080 | geforce_rtx_4080 | 16
NVIDIA GeForce RTX 4080 SUPER | geforce_rtx_4080_super | 16
NVIDIA GeForce RTX 4090 | geforce_rtx_4090 | 24
NVIDIA GeForce RTX 4090 D | geforce_rtx_4090_d | 24
NVIDIA GeForce RTX 5070 Ti | geforce_rtx_5070_ti | 16
NVIDIA GeForce RTX 5080 | geforce_rtx_5080 | 16
NVIDIA GeForce RTX 5090 | geforce_rtx_5090 | 32
NVIDIA RTX PRO 4000 Blackwell | rtx_pro_4000_blackwell | 24
"""
"""Driver's name | type of the whole card | GiB, and which table of `cuts` | our name, where it isn't the driver's."""


@dataclass(frozen=True)
class Card:
    """A model: `family` names its table of cuts, empty where MIG has none."""

    driver_name: str
    type: str
    gib: int
    family: str

    @property
    def profile_prefix(self) -> str:
        """What stands before a profile that needs it: the type up to its first hyphen, as AutoDetect=nvml names it."""
        return self.type.split("-")[0]


def _cards() -> dict[str, Card]:
    cards = {}
    for row in _ROWS.splitlines():
        driver_name, kind, memory, *name = row.split(" | ")
        gib, _, family = memory.partition(" ")
        ours = name or [driver_name.removeprefix("NVIDIA ").removeprefix("Tesla ").replace(" ", "-")]
        cards[ours[0]] = Card(driver_name, kind, int(gib), family)
    return cards


CARDS = _cards()
"""By our name: the driver's without the vendor, spaces as hyphens."""
