"""Folding: what Slurm expands again is what went in, in the order in which values are paired."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybridgpu.render.hostlist import fold_device, fold_hosts, fold_paired, fold_ports, sorted_hosts


def expand(hostlist: str) -> list[str]:
    """As the oldest release reads it: several brackets, the last one at the end of the name, the last varies first."""
    return [host for part in split(hostlist) for host in expand_part(part)]


def expand_part(part: str) -> list[str]:
    prefix, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    assert part.endswith("]")
    ranges, _, rest = rest.partition("]")
    hosts = []
    for entry in ranges.split(","):
        first, _, last = entry.partition("-")
        numbers = [f"{n:0{len(first)}}" for n in range(int(first), int(last or first) + 1)]
        hosts += [f"{prefix}{number}{tail}" for number in numbers for tail in expand_part(rest)]
    return hosts


def split(hostlist: str) -> list[str]:
    parts, depth = [""], 0
    for c in hostlist:
        depth += {"[": 1, "]": -1}.get(c, 0)
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


names = st.from_regex(r"[a-z]{1,2}([0-9]{1,3}([a-z-][a-z]?[0-9]{0,2})?)?", fullmatch=True).filter(
    lambda n: not n.endswith("-")
)


@given(st.lists(names, min_size=1, max_size=30, unique=True))
def test_folding_loses_no_host_and_keeps_the_order(hosts: list[str]) -> None:
    assert sorted(expand(fold_hosts(hosts))) == sorted(hosts)
    assert expand(fold_hosts(hosts)) == sorted_hosts(hosts)


@pytest.mark.parametrize(
    ("hosts", "folded"),
    [
        (["n18446744073709551613", "n18446744073709551614"], "n18446744073709551613,n18446744073709551614"),
        (
            ["r99999999999999999999n2", "a1", "r99999999999999999998n1", "a2"],
            "a[1-2],r99999999999999999998n1,r99999999999999999999n2",
        ),
        (["gpu1", "gpu2", "gpu3"], "gpu[1-3]"),
        (["gpu009", "gpu010"], "gpu[009-010]"),
        (["r1n1", "r1n2", "r2n1", "r2n2"], "r[1-2]n[1-2]"),
        (["gpu01-ib", "gpu02-ib"], "gpu01-ib,gpu02-ib"),
        (["login"], "login"),
    ],
)
def test_folded_forms(hosts: list[str], folded: str) -> None:
    assert fold_hosts(hosts) == folded


def test_a_suffix_is_folded_where_every_release_takes_it() -> None:
    assert fold_hosts(["gpu01-ib", "gpu02-ib"], suffix=True) == "gpu[01-02]-ib"
    assert sorted_hosts(["gpu02-ib", "gpu01-ib"], suffix=True) == ["gpu01-ib", "gpu02-ib"]


def test_paired_values_keep_their_order() -> None:
    assert fold_paired(["10.0.0.1", "10.0.0.2"]) == "10.0.0.[1-2]"
    assert fold_paired(["10.0.0.2", "10.0.0.1"]) == "10.0.0.2,10.0.0.1"
    assert fold_paired(["host", "host"]) == "host"
    assert fold_ports(["17001", "17002"]) == "[17001-17002]"
    assert fold_ports(["17002", "17001"]) == "[17002,17001]"
    assert fold_ports(["6818"]) == "6818"
    assert fold_ports(["6818", "6818"]) == "6818"


def test_device_files() -> None:
    assert fold_device([3]) == "/dev/nvidia3"
    assert fold_device([0, 1, 2, 6]) == "/dev/nvidia[0-2,6]"
