"""Values of a NodeName line that Slurm resets. tests/slurm/test_values.py holds the same lines against slurmd."""

from __future__ import annotations

import pytest

from tests.consumers.slurm.sites import judged, site

RESET = {
    "MemSpecLimit=100 RealMemory=100": "MemSpecLimit=100 is not less than RealMemory, 100",
    "MemSpecLimit=1k RealMemory=1024": "MemSpecLimit=1k",
    "MemSpecLimit=5": "RealMemory, 1",
    "RealMemory=0": "RealMemory=0",
    "CPUs=8 CoreSpecCount=8": "CoreSpecCount=8 leaves none of the 8 cores",
    "CPUs=8 Sockets=2 CoresPerSocket=4 CoreSpecCount=9": "CoreSpecCount=9",
    "CPUs=8 CPUSpecList=8": "CPUSpecList=8 goes beyond the node's 8 CPUs",
    "CPUs=8 CPUSpecList=7,9": "CPUSpecList=7,9",
    "CPUs=2 CPUSpecList=1:": "CPUSpecList=1:",
    "CPUs=8 CPUSpecList=0-1 CoreSpecCount=1": "CoreSpecCount=1 is not taken beside CPUSpecList",
    "CPUs=0": "CPUs=0 is invalid",
    "Procs=0": "Procs=0 is invalid",
    "Sockets=0": "Sockets=0 is invalid",
    "CoresPerSocket=0": "CoresPerSocket=0 is invalid",
    "ThreadsPerCore=0": "ThreadsPerCore=0 is invalid",
    "Boards=0": "Boards=0 is invalid",
    "SocketsPerBoard=0": "SocketsPerBoard=0 is invalid",
    "Sockets=2 SocketsPerBoard=2": "Sockets=2 is not taken beside SocketsPerBoard",
    "Boards=4 Sockets=2": "Boards=4 is more than the 2 sockets",
    "CPUs=0 Boards=2": "Boards=2",
    "CPUs=7 Sockets=2 CoresPerSocket=4": "CPUs=7 is none of 2 sockets, 8 cores, 8 threads",
    "CpuBind=foo": "CpuBind=foo",
    "CpuBind=cores,threads": "CpuBind=cores,threads",
}
KEPT = (
    *("MemSpecLimit=99 RealMemory=100", "RealMemory=100 MemSpecLimit=0", "CPUs=8 CoreSpecCount=7"),
    *(
        "CPUs=8 CPUSpecList=0-7",
        "CPUs=8 CPUSpecList=abc",
        "CPUs=8 CPUSpecList=0-8:2",
        "CPUs=8 CPUSpecList=1 CoreSpecCount=0",
    ),
    *("CPUs=UNLIMITED", "CpuBind=Core,verbose", "CpuBind=off", "Port=1", "Port=65535", "Port=80x", "Weight=UNLIMITED"),
    *("Boards=2 SocketsPerBoard=2", "CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", "TmpDisk=4294967295"),
)
DEADLY = (
    "Port=0",
    "Port=65536",
    "Port=abc",
    "Port=-1",
    "TmpDisk=4294967296",
    "CPUs=65536",
    "CPUs=1k",
    "RealMemory=1.5",
)
SEVERAL = ("CPUs=0 Boards=2 Sockets=1", "CPUs=4 CoreSpecCount=9 CPUSpecList=9", "CPUs=0 CpuBind=x MemSpecLimit=1")


@pytest.mark.parametrize("text", RESET)
def test_a_value_that_slurm_resets_is_a_warning(text: str) -> None:
    findings = judged(site(nodes=f"NodeName=n1 {text}", records="", types=None)).findings
    assert any(RESET[text] in finding.message for finding in findings), findings
    assert all(finding.severity == "warning" for finding in findings)


@pytest.mark.parametrize("text", KEPT)
def test_a_value_that_slurm_keeps_is_none(text: str) -> None:
    assert judged(site(nodes=f"NodeName=n1 {text}", records="", types=None)).findings == ()


@pytest.mark.parametrize("text", DEADLY)
def test_a_value_that_slurm_dies_of(text: str) -> None:
    assert judged(site(nodes=f"NodeName=n1 {text}", records="", types=None)).fatal
