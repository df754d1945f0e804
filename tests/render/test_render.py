"""The fold and its proof: same Site, same bytes; one node's change is one node's; what is not in force is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hybridgpu.consumers import slurm
from hybridgpu.files.tree import Content
from hybridgpu.model.site import Retained, Site
from hybridgpu.render.proof import prove
from hybridgpu.render.retained import retained_from
from hybridgpu.render.slurm import gpu_settings, gres_types
from hybridgpu.render.tree import render_tree, slurm_texts
from tests.sites import inventory, site

NODES = (
    "gpu[1-4] dgx exclusive",
    "gpu[5-6] dgx time-slicing, replicas: 4",
    "m[1-2] dgx mig, layout: {all: {3g.40gb: 2}}",
)
CONF = "ClusterName=t\nSlurmctldHost=c\nSelectType=select/cons_tres\nInclude nodes.conf\nInclude gpu.conf\n"


def offers(rendered: Site) -> dict[str, slurm.NodeResult]:
    files = {**slurm_texts(render_tree(rendered)), "slurm.conf": CONF}
    return dict(slurm.consume(slurm.load(files), slurm.RELEASES["24.11"]).nodes)


def settings(rendered: Site) -> list[str]:
    assert rendered.slurm is not None
    return [f"{s.key}={s.value}" for s in gpu_settings(rendered, rendered.slurm)]


def bytes_of(files: dict[str, Content]) -> dict[str, bytes]:
    return {path: content() for path, content in files.items()}


def test_same_site_same_bytes(tmp_path: Path) -> None:
    text = inventory(*NODES)
    assert bytes_of(render_tree(site(tmp_path, text))) == bytes_of(render_tree(site(tmp_path, text)))


def test_a_changed_node_changes_no_other_nodes_offer(tmp_path: Path) -> None:
    installed = site(tmp_path, inventory(*NODES))
    wanted = site(tmp_path, inventory("gpu[1-4] dgx mig, layout: {all: {1g.10gb: 7}}", *NODES[1:]))
    swapped = replace(installed, nodes={**installed.nodes, "gpu2": wanted.nodes["gpu2"]})
    before, after = offers(installed), offers(swapped)
    assert {name for name in before if before[name].offer != after[name].offer} == {"gpu2"}
    assert after["gpu2"].offer == offers(wanted)["gpu2"].offer


def test_what_is_rendered_is_proven(tmp_path: Path) -> None:
    good = site(tmp_path, inventory(*NODES))
    assert list(prove(good, render_tree(good))) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        ("gres.conf", b"File=/dev/nvidia[0-7]", b"File=/dev/nvidia[0-6]", "slurm-fewer-than-configured"),
        ("gres.conf", b"Count=4", b"Count=3", "slurm-shares-with-and-without-file"),
        ("gres.conf", b"Type=3g.40gb", b"Type=4g.40gb", "slurm-more-than-configured"),
        ("nodes.conf", b"gpu:a100-sxm4-80gb:8", b"gpu:a100-sxm4-80gb:7", "slurm-more-than-configured"),
        ("gpu.conf", b"GresTypes=gpu,shard", b"GresTypes=gpu", "slurm-gres-not-in-grestypes"),
        ("gres.conf", b"nvidia-cap12,", b"nvidia-cap14,", "render-offer-differs"),
        ("gres.conf", b"NodeName=gpu[1-4] Name", b"NodeName=gpu[1-4] Cores=0-127 Name", "render-offer-differs"),
    ],
)
def test_text_that_says_something_else_is_refused(tmp_path: Path, file: str, old: bytes, new: bytes, rule: str) -> None:
    good = site(tmp_path, inventory(*NODES))
    files = render_tree(good)
    damaged = files[f"slurm/{file}"]().replace(old, new)
    assert damaged != files[f"slurm/{file}"]()
    findings = list(prove(good, {**files, f"slurm/{file}": lambda: damaged}))
    assert rule in {f.rule.id for f in findings if f.is_error}, [(f.rule.id, f.message) for f in findings]


def test_gres_types_only_grow(tmp_path: Path) -> None:
    plain = site(tmp_path, inventory("gpu1 dgx exclusive"))
    assert gres_types(plain) == ("gpu",)
    kept = replace(plain, retained=Retained(gres_types=("gpu", "mps", "shard", "nic", "hybridgpu_k8s")))
    assert gres_types(kept) == ("gpu", "mps", "shard", "nic", "hybridgpu_k8s")
    text = b"# Written by hybridgpu render; sha256=0 set=0\nGresTypes=gpu,shard\nPrologFlags=Contain\n"
    assert retained_from({"slurm/gpu.conf": text}) == (Retained(gres_types=("gpu", "shard")), ())
    assert retained_from({}) == (Retained(), ())
    assert retained_from({"slurm/gpu.conf": b"\xff\xfe GresTypes"}) == (Retained(), ())


def test_the_sites_own_is_merged(tmp_path: Path) -> None:
    had = (
        'version: "24.11", accounting: slurmdbd, site: {gresTypes: [nic], prolog: [/etc/slurm/prolog.d/*, /opt/p.sh], '
        "epilog: [/opt/e.sh], taskProlog: /opt/t.sh, prologFlags: [contain, X11], accountingStorageTRES: [gres/nic]}"
    )
    mps = site(tmp_path, inventory("gpu1 dgx mps, replicas: 4", slurm=had))
    assert settings(mps) == [
        "GresTypes=gpu,mps,nic",
        "PrologFlags=contain,X11",
        "Prolog=/etc/slurm/prolog.d/*",
        "Prolog=/opt/p.sh",
        "Epilog=/opt/e.sh",
        "Epilog=/etc/slurm/epilog.d/50-hybridgpu",
        "TaskProlog=/usr/lib/hybridgpu/taskprolog",
        "AccountingStorageTRES=gres/nic,gres/gpu,gres/mps",
    ]
    plain = site(tmp_path, inventory("gpu1 dgx exclusive", slurm=had))
    assert "TaskProlog=/opt/t.sh" in settings(plain)
    assert "Epilog=/opt/e.sh" in settings(plain)
    assert not any("hybridgpu" in line for line in settings(plain))


@pytest.mark.parametrize(
    ("mode", "slurm", "flags"),
    [
        ("mps, replicas: 4", "", ["PrologFlags=Contain"]),
        ("exclusive, mps: {wholeGpuJobs: true}", "", ["PrologFlags=Contain"]),
        ("mig, layout: {all: {1g.10gb: 7}}", "", ["PrologFlags=Alloc"]),
        ("mig, layout: {all: {1g.10gb: 7}}", ", site: {prologFlags: [Serial]}", ["PrologFlags=Serial,Alloc"]),
        ("mig, layout: {all: {1g.10gb: 7}}", ", autoDetect: nvml", []),
        ("mig, layout: {all: {1g.10gb: 7}}", ", hooks: {enabled: false}", []),
        ("exclusive", "", []),
    ],
)
def test_the_hooks_run_before_a_job_and_not_at_its_first_step(
    tmp_path: Path, mode: str, slurm: str, flags: list[str]
) -> None:
    made = site(tmp_path, inventory(f"gpu1 dgx {mode}", slurm=f'version: "24.11"{slurm}'))
    assert [line for line in settings(made) if line.startswith("PrologFlags")] == flags


def test_gpu_conf_says_where_the_sites_own_task_prolog_goes(tmp_path: Path) -> None:
    link = "#   ln -s /opt/t.sh /etc/slurm/taskprolog.d/90-site\n"
    told = {
        (mode, hooks): link
        in slurm_texts(render_tree(site(tmp_path, inventory(f"gpu1 dgx {mode}", slurm=slurm))))["gpu.conf"]
        for mode in ("mps, replicas: 4", "exclusive")
        for hooks in ("true", "false")
        for slurm in [f'version: "24.11", hooks: {{enabled: {hooks}}}, site: {{taskProlog: /opt/t.sh}}']
    }
    assert told == {
        ("mps, replicas: 4", "true"): True,
        ("mps, replicas: 4", "false"): False,
        ("exclusive", "true"): False,
        ("exclusive", "false"): False,
    }


@pytest.mark.parametrize("own", ["/usr/lib/hybridgpu/taskprolog", "/etc/slurm/taskprolog.d/10-site"])
def test_gpu_conf_has_nobody_link_what_is_there_already(tmp_path: Path, own: str) -> None:
    """A link from the folder to the program that runs all of it would run for ever."""
    slurm = f'version: "24.11", site: {{taskProlog: {own}}}'
    text = slurm_texts(render_tree(site(tmp_path, inventory("gpu1 dgx mps, replicas: 4", slurm=slurm))))["gpu.conf"]
    assert "ln -s" not in text


@pytest.mark.parametrize(
    ("had", "runs_ours"),
    [
        ("/etc/slurm/prolog.d/*", True),
        ("/etc/slurm/*/50-*", True),
        ("/etc/slurm/prolog.d/50-hybridgpu", True),
        ("/etc/slurm/*", False),
        ("/etc/*/50-hybridgpu", False),
        ("/etc/slurm/prolog.d/*.sh", False),
    ],
)
def test_our_prolog_is_added_unless_the_sites_pattern_names_it(tmp_path: Path, had: str, runs_ours: bool) -> None:
    mps = site(tmp_path, inventory("gpu1 dgx mps, replicas: 4", slurm=f'version: "24.11", site: {{prolog: ["{had}"]}}'))
    ours = "Prolog=/etc/slurm/prolog.d/50-hybridgpu"
    assert [line for line in settings(mps) if line.startswith("Prolog=")] == list(
        dict.fromkeys([f"Prolog={had}", *([] if runs_ours else [ours])])
    )


def test_a_release_that_takes_one_prolog_refuses_two(tmp_path: Path) -> None:
    had = 'version: "23.11", site: {prolog: [/opt/p.sh]}'
    mps = site(tmp_path, inventory("gpu1 dgx mps, replicas: 4", slurm=had))
    findings = list(prove(mps, render_tree(mps)))
    assert [f.message for f in findings if f.is_error] == [
        "Slurm 23.11 takes one line: Prolog is there twice; Prolog=/etc/slurm/prolog.d/50-hybridgpu holds"
    ]


def test_site_lines_and_addresses_are_written(tmp_path: Path) -> None:
    text = inventory(
        "{hosts: 'n[1-2]', class: dgx, owner: slurm, sharing: {mode: exclusive}, "
        "slurm: {NodeAddr: '10.0.0.[1-2]', Port: '[7001-7002]', Gres: 'nic:2', Feature: 'a,b'}}",
        slurm='version: "24.11", site: {gresTypes: [nic], gres: ["NodeName=n[1-2] Name=nic Count=2"]}',
    )
    texts = slurm_texts(render_tree(site(tmp_path, text)))
    line = next(line for line in texts["nodes.conf"].splitlines() if line.startswith("NodeName"))
    assert line == (
        "NodeName=n[1-2] NodeAddr=10.0.0.[1-2] Port=[7001-7002] CPUs=256 Sockets=2 CoresPerSocket=128 "
        "RealMemory=2000000 Features=a,b Gres=gpu:a100-sxm4-80gb:8,nic:2"
    )
    assert texts["gres.conf"].splitlines()[-1] == "NodeName=n[1-2] Name=nic Count=2"


def test_a_node_outside_slurm_is_not_in_its_files(tmp_path: Path) -> None:
    entry = "{hosts: k1, class: dgx, owner: kubernetes, schedulers: [kubernetes], sharing: {mode: exclusive}}"
    tree = render_tree(site(tmp_path, inventory("gpu1 dgx exclusive", entry)))
    assert "k1" not in tree["slurm/nodes.conf"]().decode()
    assert b'"slurm": null' in tree["nodes/k1.json"]()


def test_what_is_asked_of_the_whole_site_is_not_asked_per_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else ten thousand nodes that differ cost the square of one: seen once, and no clock is needed to see it."""
    asked: list[int] = []

    def counted(whole: Site) -> tuple[str, ...]:
        asked.append(1)
        return gres_types(whole)

    for module in ("notes", "slurm", "proof"):
        monkeypatch.setattr(f"hybridgpu.render.{module}.gres_types", counted)
    times = []
    for number in (2, 12):
        entries = [f"n{n} dgx time-slicing, replicas: {n}" for n in range(2, 2 + number)]
        whole = site(tmp_path, inventory(*entries))
        asked.clear()
        list(prove(whole, render_tree(whole)))
        times.append(len(asked))
    assert times[0] == times[1]
