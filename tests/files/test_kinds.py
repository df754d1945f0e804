"""Files are told apart by what they hold, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybridgpu.files.kinds import Kind, inputs, kind_of
from tests.conftest import no_hang

CONTENT = {
    "apiVersion: hybridgpu/v1\nkind: Inventory\n": Kind.INVENTORY,
    "kind: Inventory\n": Kind.INVENTORY,
    "apiVersion: hybridgpu/v1\nkind: Inventroy\n": Kind.INVENTORY,
    '{"apiVersion": "hybridgpu/v1", "kind": "Facts", "node": "n1"}': Kind.FACTS,
    '{"apiVersion": "hybridgpu/v1", "kind": "NodeConfig"}': Kind.OURS,
    '{\n  "apiVersion": "hybridgpu/v1",\n  "kind": "DeviceMap"\n}': Kind.OURS,
    "# a comment\nClusterName=c\nNodeName=n1 Gres=gpu:1\n": Kind.SLURM_CONF,
    "NodeName=n[1-4] CPUs=64 Gres=gpu:8\n": Kind.SLURM_CONF,
    "GresTypes=gpu\n": Kind.SLURM_CONF,
    "AutoDetect=nvml\n": Kind.GRES_CONF,
    "NodeName=n1 AutoDetect=off\n": Kind.GRES_CONF,
    "nodename=n1 name=gpu file=/dev/nvidia0\n": Kind.GRES_CONF,
    "Name = gpu File=/dev/nvidia[0-3]\n": Kind.GRES_CONF,
    "ConstrainDevices=yes\n": Kind.CGROUP_CONF,
    "AutoBasePath=true\nBasePath=/scratch\n": Kind.CONTAINER_CONF,
    "apiVersion: v1\nkind: ConfigMap\n": Kind.MANIFEST,
    "global: {}\ngpu-operator:\n  mig: {strategy: single}\n": Kind.HELM_VALUES,
    "nvidia-device-plugin: {config: {}}\n": Kind.HELM_VALUES,
    "# kubectl\n---\napiVersion: v1\nkind: ConfigMap\ndata: {x: ''}\n": Kind.MANIFEST,
    '{\n    "apiVersion": "v1",\n    "items": [],\n    "kind": "List"\n}\n': Kind.MANIFEST,
    '{"kind":"PodList","apiVersion":"v1","items":[]}': Kind.MANIFEST,
    "version: v1\nmig-configs:\n  all-disabled: []\n": Kind.MIG_PARTED,
    "version: v1\nmig_configs: {}\n": Kind.MIG_PARTED,
    "version: v1\nsharing:\n  timeSlicing: {}\n": Kind.PLUGIN_CONFIG,
    "flags:\n  migStrategy: mixed\n": Kind.PLUGIN_CONFIG,
    "config:\n  map:\n    default: |\n      version: v1\n": Kind.HELM_VALUES,
    "devicePlugin:\n  config:\n    name: x\n": Kind.HELM_VALUES,
    "driver: {enabled: false}\nmig: {strategy: single}\nmigManager: {}\n": Kind.HELM_VALUES,
    "hosts: all\ntasks: []\n": Kind.UNKNOWN,
    "version: 3\nservices: {}\n": Kind.UNKNOWN,
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n": Kind.UNKNOWN,
    "{{- if .Values.x }}\napiVersion: v1\nkind: ConfigMap\n{{- end }}\n": Kind.UNKNOWN,
    "#!/bin/sh\nProlog=x\nName=gpu\n": Kind.UNKNOWN,
    'NAME="Debian GNU/Linux"\nVERSION=12\n': Kind.UNKNOWN,
    "NAME=Fedora\n": Kind.UNKNOWN,
    "Name=nic Count=2\n": Kind.GRES_CONF,
    "slurm_gres_conf: |\n  Name=gpu File=/dev/nvidia0\nslurm_conf: |\n  GresTypes=gpu\n": Kind.UNKNOWN,
    "---\n- copy:\n    content: |\n      NodeName=n1 Name=gpu File=/dev/nvidia0\n": Kind.UNKNOWN,
    "# values\nconfigFiles:\n  gres.conf: |\n    AutoDetect=nvidia\n": Kind.UNKNOWN,
    "#cloud-config\nwrite_files:\n- path: /etc/slurm/slurm.conf\n  content: |\n    ClusterName=c\n": Kind.UNKNOWN,
    "{% for node in nodes %}\nNodeName={{ node }} Gres=gpu:1\n{% endfor %}\n": Kind.UNKNOWN,
    "[slurm]\nClusterName=c\n": Kind.UNKNOWN,
    "\n# x\n  GresTypes = gpu\n": Kind.SLURM_CONF,
    "Include nodes.conf\nGresTypes=gpu\n": Kind.SLURM_CONF,
    "nodeClasses: {}\nnodes: []\n": Kind.INVENTORY,
    "[section]\nkey=value\n": Kind.UNKNOWN,
    "": Kind.UNKNOWN,
    "\n" * 65536: Kind.UNKNOWN,
    " \n" * 32768: Kind.UNKNOWN,
    " " * 65536: Kind.UNKNOWN,
    "a:" * 32768: Kind.UNKNOWN,
    "\x00\xff\xfe": Kind.UNKNOWN,
}


@pytest.mark.parametrize("text", CONTENT, ids=[repr(text[:40]) for text in CONTENT])
def test_a_kind(text: str) -> None:
    with no_hang(10):
        assert kind_of(text.encode()) is CONTENT[text]


def test_a_folder_is_walked_once_links_followed_hidden_files_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "slurm.conf").write_text("ClusterName=c\n")
    (tmp_path / "again.conf").symlink_to("a/slurm.conf")
    (tmp_path / "b.conf").symlink_to("nowhere")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "slurm.conf").write_text("ClusterName=c\n")
    (tmp_path / ".slurm.conf.swp").write_text("ClusterName=c\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = list(inputs(str(tmp_path)))
    assert [(i.path, i.kind, i.root) for i in found] == [
        (str(tmp_path / "again.conf"), Kind.SLURM_CONF, str(tmp_path)),
    ]
    named = list(inputs(str(tmp_path / "a" / "slurm.conf")))
    assert [(i.kind, i.root) for i in named] == [(Kind.SLURM_CONF, "")]
