"""A site's Kubernetes configuration, as files: what is found in it, where, and what is not."""

from __future__ import annotations

import random
from pathlib import Path
from textwrap import dedent, indent

import pytest

from hybridgpu.consumers.kubernetes import (
    chartvalues,
    configmaps,
    configrules,
    driftjudge,
    gather,
    judge_configuration,
    kubejudge,
    migchoice,
    operandjudge,
    policy,
    policyjudge,
)
from hybridgpu.files.kinds import inputs
from hybridgpu.model.finding import Finding, Severity
from tests.conftest import soak

RULES = {
    rule.id
    for module in (configmaps, policy, chartvalues, policyjudge, migchoice, kubejudge, operandjudge, driftjudge)
    for rule in module.RULES
} | {configrules.SEVERAL_NO_DEFAULT.id, configrules.OPERATOR_NO_DEFAULT.id}

TIMES = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
MPS = TIMES.replace("timeSlicing", "mps")
PLAIN = "version: v1\nflags: {migStrategy: mixed}\n"
MIG = dedent(
    """\
    version: v1
    mig-configs:
      all-disabled:
      - {devices: all, mig-enabled: false}
      mine:
      - {devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}
      other:
      - {devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}
    """
)


def config_map(name: str = "plugin", space: str = "gpu-operator", **keys: str) -> str:
    """A ConfigMap whose data begins in line 4."""
    space = f", namespace: {space}" if space else ""
    data = "".join(f"  {key.replace('_', '.')}: |\n{indent(text, '    ')}" for key, text in keys.items())
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{space}}}\ndata:\n{data}"


def cluster_policy(spec: str, space: str = "gpu-operator") -> str:
    """A ClusterPolicy whose spec is in line 4."""
    space = f", namespace: {space}" if space else ""
    return f"apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {{name: cp{space}}}\nspec: {{{spec}}}\n"


def policy_of(name: str = "plugin", default: str = "", more: str = "") -> str:
    default = f", default: {default}" if default else ""
    return cluster_policy(f"devicePlugin: {{config: {{name: {name}{default}}}}}{more}")


def node(label: str = "", mig: str = "", name: str = "n1", **labels: str) -> str:
    """A Node with four A100 of 80 GB; its labels begin in line 6."""
    lines = [f"    nvidia.com/device-plugin.config: {label}"] if label else []
    lines += [f"    nvidia.com/mig.config: {mig}"] if mig else []
    told = {"gpu.product": "NVIDIA-A100-SXM4-80GB", "gpu.count": '"4"', "gpu.present": '"true"', **labels}
    lines += [f"    nvidia.com/{key}: {value}" for key, value in told.items()]
    return f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels:\n" + "\n".join(lines) + "\n"


def daemon_set(container: str, volumes: str = "") -> str:
    pod = f"{{containers: [{container}], volumes: [{volumes}]}}"
    return (
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: ds, namespace: gpu-operator}\n"
        f"spec: {{template: {{spec: {pod}}}}}\n"
    )


MOUNTED = "volumeMounts: [{name: c, mountPath: /config}]"
VOLUME = "{name: c, configMap: {name: plugin}}"


def static(env: str) -> str:
    command = "command: [nvidia-device-plugin, --config-file=/config/config.yaml]"
    return daemon_set(f"{{name: x, {command}, env: [{env}], {MOUNTED}}}", VOLUME)


CHART = "config:\n  map:\n    four: |\n" + indent(TIMES, "      ")
MPS_CHART = CHART.replace("timeSlicing", "mps")


def judged(folder: Path, files: dict[str, str]) -> list[Finding]:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    found, findings = gather(list(inputs(str(folder))))
    return [*findings, *judge_configuration(found)]


def told(finding: Finding) -> str:
    place = finding.place
    assert place is not None
    return f"{finding.rule.id} {Path(place.file).stem}:{place.line}"


Case = tuple[dict[str, str], dict[str, tuple[str, ...]]]


def argo(source: str, chart: str = "gpu-operator", space: str = "gpu-operator") -> str:
    """An Application whose values begin in line 9."""
    return (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: gpu, namespace: argocd}\nspec:\n"
        f"  destination: {{namespace: {space}}}\n  source:\n    chart: {chart}\n    helm:\n" + indent(source, " " * 6)
    )


WRAPPED = {
    # what: file, line of the strategy that is none
    "Argo CD, an object": (argo("valuesObject:\n  mig: {strategy: mixd}\n"), 10),
    "Argo CD, a text": (argo("values: |\n  operator: {}\n  mig: {strategy: mixd}\n"), 11),
    "Argo CD, a quoted text": (argo('values: "mig: {strategy: mixd}"\n'), 9),
    "Argo CD, several sources": (
        argo("values: |\n  mig: {strategy: mixd}\n")
        .replace("  source:", "  sources:\n  -")
        .replace("  -\n    chart", "  - chart"),
        10,
    ),
    "Argo CD, an umbrella": (argo("valuesObject: {gpu-operator: {mig: {strategy: mixd}}}\n", "ours"), 9),
    "Flux": (
        (
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: g}\nspec:\n"
            "  chart: {spec: {chart: gpu-operator}}\n  values: {mig: {strategy: mixd}}\n"
        ),
        6,
    ),
    "Flux, an umbrella": (
        (
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: g}\nspec:\n"
            "  chart: {spec: {chart: ours}}\n  values: {gpu-operator: {mig: {strategy: mixd}}}\n"
        ),
        6,
    ),
    "k3s": (
        (
            "apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: {name: g}\nspec:\n"
            "  chart: nvidia/gpu-operator\n  valuesContent: |-\n    mig:\n      strategy: mixd\n"
        ),
        8,
    ),
    "Kustomize": (
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nhelmCharts:\n"
            "- name: gpu-operator\n  valuesInline: {mig: {strategy: mixd}}\n"
        ),
        5,
    ),
    "an umbrella's values": ("global: {}\ngpu-operator:\n  mig: {strategy: mixd}\n", 3),
}


@pytest.mark.parametrize("what", WRAPPED)
def test_values_of_a_chart_are_found_in_what_wraps_them(what: str, tmp_path: Path) -> None:
    text, line = WRAPPED[what]
    (found,) = [f for f in judged(tmp_path, {"w": text}) if f.severity is Severity.ERROR]
    assert found.rule.id == "k8s-policy-value" and found.place is not None and found.place.line == line


def test_both_parts_of_an_umbrella_are_judged_and_a_config_in_a_text_has_its_places(tmp_path: Path) -> None:
    one = CHART.replace("replicas: 4", "replicas: 1")
    text = "gpu-operator:\n  mig: {strategy: mixd}\nnvidia-device-plugin:\n" + indent(one, "  ")
    files = {"u": text, "a": argo("values: |\n" + indent(one, "  "), "nvidia-device-plugin")}
    wanted = {"k8s-policy-value u:2", "k8s-plugin-replicas u:11", "k8s-plugin-replicas a:17"}
    assert {told(f) for f in judged(tmp_path, files)} >= wanted


def test_the_namespace_of_an_application_is_the_one_it_installs_into(tmp_path: Path) -> None:
    values = "valuesObject: {devicePlugin: {config: {name: plugin, default: a}}}\n"
    files = {"a": argo(values), "cm": config_map(a=TIMES)}
    assert not [f for f in judged(tmp_path, files) if f.severity is not Severity.INFO]


def test_a_file_that_no_policy_names_is_taken_for_the_one_in_force(tmp_path: Path) -> None:
    files = {"cp": cluster_policy("mig: {strategy: mixed}"), "mig": MIG, "n": node(mig="mine")}
    (found,) = [f for f in judged(tmp_path, files) if "label" in f.rule.id]
    assert (told(found), found.severity) == ("k8s-mig-label-of-a-file-alone n:6", Severity.INFO)


def test_a_layout_for_cards_without_mig_is_told_once_at_the_label(tmp_path: Path) -> None:
    product = {"gpu.product": "Tesla-V100-SXM2-32GB"}
    files = {"mig": MIG, "a": node(mig="mine", name="a", **product), "b": node(mig="mine", name="b", **product)}
    (found,) = [f for f in judged(tmp_path, files) if f.rule.id == "k8s-mig-not-capable"]
    assert told(found) == "k8s-mig-not-capable a:6" and "a, b" in found.message and "V100" in found.message


def plugin_set(args: str, space: str = "gpu-operator", volume: str = VOLUME, env: str = "") -> str:
    """A DaemonSet of one's own; its command line is in line 5, its volume in line 7."""
    text = daemon_set(
        f"{{name: nvidia-device-plugin-ctr, image: nvcr.io/nvidia/k8s-device-plugin:v1,\n"
        f"args: [{args}], env: [{env}],\n{MOUNTED}}}",
        f"\n{volume}",
    )
    return text.replace("namespace: gpu-operator", f"namespace: {space}")


FILE = "--config-file=/config/config.yaml"


def shared_node(label: str, replicas: int, allocatable: int = 8) -> str:
    """A node that shows so many shares a card; the label of their number is in line 10."""
    labels = {"gpu.replicas": f'"{replicas}"', "gpu.sharing-strategy": "time-slicing"}
    return node(label, **labels) + f"status: {{allocatable: {{nvidia.com/gpu: '{allocatable}'}}}}\n"


FIRES: dict[str, Case] = {
    "a config that was edited under its key": (
        {"cm": config_map(ts4=TIMES.replace("replicas: 4", "replicas: 10")), "n": shared_node("ts4", 4)},
        {"k8s-config-drift n:10": ("nvidia.com/gpu.replicas is 4", "'ts4'", "10", "Restart")},
    ),
    "a config that shares nothing any more": (
        {"cm": config_map(ts4=PLAIN), "n": shared_node("ts4", 4)},
        {"k8s-config-drift n:10": ("is 4", "has 1")},
    ),
    "mps, and a policy without feature discovery": (
        {"cp": policy_of(default="a", more=", gfd: {enabled: false}"), "cm": config_map(a=MPS)},
        {"k8s-chart-mps-without-discovery cp:4": ("'a'", "gfd.enabled")},
    ),
    "a flag with a slip": (
        {"ds": plugin_set(f"{FILE}, --mig-stratgy=mixed"), "cm": config_map(config_yaml=TIMES)},
        {"k8s-operand-unknown-flag ds:5": ("--mig-stratgy", "--mig-strategy")},
    ),
    "flags with underscores": (
        {"ds": plugin_set("--mig_strategy, mixed")},
        {"k8s-operand-unknown-flag ds:5": ("--mig_strategy", "--mig-strategy")},
    ),
    "a ConfigMap of another namespace, mounted": (
        {"ds": plugin_set(FILE, "kube-system"), "cm": config_map(space="kube-systen", config_yaml=TIMES)},
        {"k8s-policy-wrong-namespace ds:7": ("kube-systen", "kube-system")},
    ),
    "a ConfigMap with a slip, mounted": (
        {"ds": plugin_set(FILE, volume=VOLUME.replace("plugin", "plugni")), "cm": config_map(config_yaml=TIMES)},
        {"k8s-policy-no-such-configmap ds:7": ("plugni", "did you mean plugin?")},
    ),
    "a config file that is no key": (
        {"ds": plugin_set(FILE), "cm": config_map(config_yml=TIMES)},
        {"k8s-operand-no-such-config-file ds:5": ("/config/config.yaml", "config.yml")},
    ),
    "mps without a root in a DaemonSet of one's own": (
        {"ds": plugin_set(FILE), "cm": config_map(config_yaml=MPS)},
        {"k8s-plugin-mps-root cm:9": ("mps-root", "MPS_ROOT")},
    ),
    "mps without a root, and a file that is no key": (
        {"ds": plugin_set(FILE), "cm": config_map(config_yml=MPS)},
        {"k8s-operand-no-such-config-file ds:5": (), "k8s-plugin-mps-root cm:9": ("MPS_ROOT",)},
    ),
    "mps without a root, of another namespace": (
        {"ds": plugin_set(FILE, "kube-system"), "cm": config_map(space="default", config_yaml=MPS)},
        {"k8s-policy-wrong-namespace ds:7": (), "k8s-plugin-mps-root cm:9": ("MPS_ROOT",)},
    ),
    # case: files, {rule and place: words in message or hint}
    "a value that is no text": (
        {"cm": config_map(a=TIMES) + "  b: {version: v1, sharing: {}}\n  c: 4\n"},
        {
            "k8s-configmap-not-a-string cm:11": ("'b'", "mapping", "string"),
            "k8s-configmap-not-a-string cm:12": ("'c'",),
        },
    ),
    "a mapping instead of a text, alone": (
        {"cm": config_map() + "  any: {version: v1, sharing: {timeSlicing: {resources: []}}}\n"},
        {"k8s-configmap-not-a-string cm:5": ("'any'", "|")},
    ),
    "the place inside a block": (
        {"cm": config_map(any=TIMES.replace("replicas: 4", "replicas: 1"))},
        {"k8s-plugin-replicas cm:10": (">= 2",)},
    ),
    "a config that cannot be read": (
        {"cm": config_map(any="sharing:\n  timeSlicing: [\n")},
        {"k8s-plugin-yaml cm:8": ()},
    ),
    "several keys, none of them default": (
        {"cm": config_map(a=TIMES, b=PLAIN)},
        {"k8s-config-several-no-default cm:1": ("a, b", "default")},
    ),
    "a key of an object twice": (
        {"cm": config_map(a=TIMES) + "  a: |\n    version: v1\n"},
        {"k8s-yaml-key-twice cm:11": ("'a'",)},
    ),
    # The operator.
    "wrong namespace": (
        {"cm": config_map(space="kube-system", any=TIMES), "cp": policy_of(default="any")},
        {"k8s-policy-wrong-namespace cp:4": ("namespace", "kube-system", "gpu-operator")},
    ),
    "wrong namespace, the operator's not said": (
        {
            "cm": config_map(space="default", any=TIMES),
            "cp": cluster_policy("devicePlugin: {config: {name: plugin, default: any}}", ""),
        },
        {"k8s-policy-wrong-namespace cp:4": ("namespace", "default")},
    ),
    "wrong namespace, the operator's DaemonSet tells which": (
        {
            "cm": config_map(space="nvidia", any=TIMES),
            "cp": policy_of(default="any").replace(", namespace: gpu-operator", ""),
            "ds": daemon_set("{name: nvidia-device-plugin, image: a}").replace(
                "{name: ds", "{name: nvidia-device-plugin-daemonset"
            ),
        },
        {"k8s-policy-wrong-namespace cp:4": ("namespace nvidia,", "gpu-operator")},
    ),
    "wrong namespace of the MIG file": (
        {
            "cm": config_map("mig", "default", config_yaml=MIG),
            "cp": cluster_policy("migManager: {config: {name: mig}}"),
        },
        {"k8s-policy-wrong-namespace cp:4": ("migManager.config.name", "default")},
    ),
    "a name nearly right": (
        {"cm": config_map("plugin-configs", any=TIMES), "cp": policy_of("plugin-config", "any")},
        {"k8s-policy-no-such-configmap cp:4": ("plugin-config", "plugin-configs?")},
    ),
    "a default that is not there": (
        {"cm": config_map(any=TIMES), "cp": policy_of(default="anny")},
        {"k8s-config-default-without-key cp:4": ("'anny'", "'any'")},
    ),
    "the operator takes nothing by itself": (
        {"cm": config_map(default=TIMES), "cp": policy_of()},
        {"k8s-config-operator-no-default cp:4": ("devicePlugin.config.default", "default")},
    ),
    "the operator, one node without a label": (
        {"cm": config_map(a=TIMES), "cp": policy_of(), "n": node("a"), "m": node(name="n2")},
        {"k8s-config-operator-no-default cp:4": ("n2",)},
    ),
    "the operator's strategy beats the config's": (
        {"cm": config_map(any=PLAIN), "cp": policy_of(default="any", more=", mig: {strategy: single}")},
        {"k8s-plugin-overruled cm:7": ("MIG_STRATEGY=single", "mig.strategy", "migStrategy")},
    ),
    "the strategy that the operator's chart sets by itself": (
        {
            "cm": config_map(any=PLAIN),
            "v": "driver: {enabled: false}\ndevicePlugin: {config: {name: plugin, default: any}}\n",
        },
        {"k8s-plugin-overruled cm:7": ("MIG_STRATEGY=single", "mig.strategy")},
    ),
    "a strategy that does not exist": (
        {"cm": config_map(any=TIMES), "cp": policy_of(default="any", more=", mig: {strategy: mixd}")},
        {"k8s-policy-value cp:4": ("mig.strategy", "'mixd'", "mixed?")},
    ),
    "a default layout that the operator does not take": (
        {"cp": cluster_policy("migManager: {config: {default: all-balanced}}")},
        {"k8s-policy-value cp:4": ("all-balanced", "all-disabled")},
    ),
    "misspelt keys": (
        {"cp": cluster_policy("devicePlugn: {}, migManager: {confg: {}}, mig: {stratgy: mixed}")},
        {"k8s-policy-misspelt-key cp:4": ("devicePlugn", "devicePlugin?")},
    ),
    "mps beside mixed by the operator": (
        {"cm": config_map(any=MPS), "cp": policy_of(default="any", more=", mig: {strategy: mixed}")},
        {"k8s-plugin-mps-mixed cm:9": ("mixed", "MIG", "mig.strategy")},
    ),
    "misspelt keys further down": (
        {"cp": cluster_policy("driver: {upgradePolicy: {autoUpgrad: false}}, daemonsets: {toleration: []}")},
        {"k8s-policy-misspelt-key cp:4": ("autoUpgrade?", "spec.driver.upgradePolicy")},
    ),
    "values of the operator that begin like the plugin's": (
        {"v": "devicePlugin: {config: {nam: plugin}}\n"},
        {"k8s-policy-misspelt-key v:1": ("'nam'", "name?")},
    ),
    "mig-manager's key in the operator's values": (
        {"v": "migManager:\n  config:\n    create: true\n    name: x\n    data:\n      mig.yaml: 'version: v1'\n"},
        {"k8s-mig-key-missing v:5": ("config.yaml", "mig.yaml")},
    ),
    "data that nobody creates": (
        {"v": "driver: {}\ndevicePlugin:\n  config:\n    name: x\n    data: {any: 'version: v1'}\nmig: {}\n"},
        {"k8s-policy-data-not-created v:5": ("create: true",)},
    ),
    "nothing to create": (
        {"v": "driver: {}\ndevicePlugin:\n  config:\n    create: true\n    name: x\nmig: {}\n"},
        {"k8s-policy-create-without v:4": ("devicePlugin.config.data",)},
    ),
    "configs in the operator's values": (
        {
            "v": "driver: {}\nmig: {strategy: ''}\ndevicePlugin:\n  config:\n    create: true\n    name: x\n"
            "    default: b\n    data:\n      a: |-\n" + indent(TIMES.replace("4", "1"), "        ")
        },
        {
            "k8s-plugin-replicas v:14": (">= 2",),
            "k8s-config-default-without-key v:7": ("'b'",),
        },
    ),
    # Labels.
    "a label without a key": (
        {"cm": config_map(default=TIMES, four=TIMES), "n": node("for")},
        {"k8s-config-label-without-key n:6": ("n1", "'for'", "'four'")},
    ),
    "a label without a key, under the operator": (
        {"cm": config_map(default=PLAIN, four=TIMES), "cp": policy_of(default="default"), "n": node("five")},
        {"k8s-config-label-without-key n:6": ("n1", "'five'", "default, four")},
    ),
    "too many shares for an old card": (
        {
            "cm": config_map(default=MPS.replace("4}", "20}")),
            "n": node("default", **{"gpu.product": "Tesla-V100-SXM2-32GB"}),
        },
        {"k8s-plugin-mps-replicas cm:10": ("20", "16")},
    ),
    "mps for a node in MIG mode": (
        {
            "cm": config_map(default=MPS),
            "n": node("default", **{"mig.strategy": "mixed", "mig-1g.10gb.count": '"28"', "gpu.replicas": '"0"'}),
        },
        {"k8s-plugin-mps-and-mig cm:9": ("MIG mode: 0, 1, 2, 3",)},
    ),
    "a default that offers more": (
        {
            "cm": config_map(any=TIMES, own=PLAIN),
            "cp": policy_of(default="any"),
            "n": node("own"),
            "m": node("own", name="n2"),
        },
        {"k8s-config-default-offers-more m:6": ("n2: 'any'", "offers 16")},
    ),
    # MIG.
    "mig-manager's key": (
        {"cm": config_map("mig", mig_yaml=MIG), "cp": cluster_policy("migManager: {config: {name: mig}}")},
        {"k8s-mig-key-missing cm:1": ("config.yaml", "mig.yaml")},
    ),
    "a MIG label that the file in force does not have": (
        {
            "cm": config_map("mig", config_yaml=MIG),
            "cp": cluster_policy("migManager: {config: {name: mig}}"),
            "n": node(mig="all-1g.10gb"),
        },
        {"k8s-mig-label-without-config n:6": ("n1", "all-1g.10gb")},
    ),
    "a MIG label that is not generated for the cards": (
        {"cp": cluster_policy("mig: {strategy: mixed}"), "n": node(mig="all-1g.5gb")},
        {"k8s-mig-label-without-config n:6": ("all-1g.5gb", "all-1g.10gb")},
    ),
    "a MIG label misspelt, no policy known": (
        {"mig": MIG, "n": node(mig="mne")},
        {"k8s-mig-label-without-config n:6": ("'mne'", "'mine'")},
    ),
    "a MIG config that does not go on the node's cards": (
        {"mig": MIG, "n": node(mig="other")},
        {"k8s-mig-unknown-profile mig:8": ("'other'", "1g.5gb")},
    ),
    "strategy single and a layout of several profiles, no config at all": (
        {"cp": cluster_policy("mig: {strategy: single}"), "n": node(mig="all-balanced"), "m": node(mig="all-1g.10gb")},
        {
            "k8s-plugin-cards n:6": ("n1", "more than one MIG device type"),
            "k8s-plugin-invalid-labels n:6": ("n1", "MIG-INVALID"),
        },
    ),
    "strategy single and a layout of several profiles, a file of one's own": (
        {
            "cm": config_map(any="version: v1\nflags: {migStrategy: single}\n"),
            "cp": policy_of(default="any", more=", migManager: {config: {name: mig}}"),
            "mig": config_map("mig", config_yaml=MIG.replace("{1g.10gb: 7}", "{1g.10gb: 2, 3g.40gb: 1}")),
            "n": node(mig="mine"),
        },
        {
            "k8s-plugin-cards cm:7": ("more than one MIG device type",),
            "k8s-plugin-invalid-labels cm:7": ("MIG-INVALID",),
        },
    ),
    "mps on cards that a label will cut": (
        {"cm": config_map(any=MPS), "cp": policy_of(default="any"), "n": node(mig="all-1g.10gb")},
        {"k8s-plugin-mps-and-mig cm:9": ("MIG mode: 0, 1, 2, 3",)},
    ),
    # The chart.
    "name and map": (
        {"v": CHART + "  name: plugin\n"},
        {"k8s-chart-name-and-map v:2": ("config.name", "plugin")},
    ),
    "several keys and no default in the chart": (
        {"v": CHART + "    five: |\n" + indent(TIMES, "      ")},
        {"k8s-config-no-default v:2": ("five, four",)},
    ),
    "a default that the chart does not have": (
        {"v": CHART + "  default: fuor\n"},
        {"k8s-config-default-without-key v:9": ("'fuor'", "'four'")},
    ),
    "the chart's namespace": ({"v": CHART + "namespace: x\n"}, {"k8s-chart-namespace v:9": ("--namespace",)}),
    "an unknown fallback": (
        {"v": CHART + "    five: |\n      version: v1\n  fallbackStrategies: [name, empty]\n"},
        {"k8s-chart-fallback v:11": ("'name'", "named?"), "k8s-config-no-default v:2": ("unknown fallback",)},
    ),
    "misspelt keys of the chart": (
        {"v": "migStrategi: mixed\nconfig:\n  mapp: {}\ngfd: {enable: true}\n"},
        {
            "k8s-chart-misspelt-key v:1": ("migStrategi", "migStrategy?"),
            "k8s-chart-misspelt-key v:3": ("mapp", "under config", "map?"),
            "k8s-chart-misspelt-key v:4": ("enable", "enabled?"),
        },
    ),
    "a value that the plugin does not take": (
        {"v": "migStrategy: mixxed\ndeviceListStrategy: envvar\n"},
        {"k8s-plugin-flag v:1": ("MIG_STRATEGY=mixxed", "mixed?")},
    ),
    "mps without feature discovery": (
        {"v": MPS_CHART},
        {"k8s-chart-mps-without-discovery v:3": ("'four'", "gfd.enabled")},
    ),
    "mps with feature discovery switched off": (
        {"v": MPS_CHART + "gfd: {enabled: false}\n"},
        {"k8s-chart-mps-without-discovery v:9": ("gfd.enabled",)},
    ),
    "the chart's strategy beats the config's": (
        {"v": "migStrategy: single\nconfig:\n  map:\n    a: |\n" + indent(PLAIN, "      ")},
        {"k8s-plugin-overruled v:6": ("MIG_STRATEGY=single",)},
    ),
    "a mapping in config.map": (
        {"v": "config:\n  map:\n    a: {version: v1}\n"},
        {"k8s-configmap-not-a-string v:3": ("'a'",)},
    ),
    # DaemonSets.
    "a static DaemonSet without a root for mps": (
        {"cm": config_map(config_yaml=MPS), "ds": static("")},
        {"k8s-plugin-mps-root cm:9": ("MPS_ROOT", "--mps-root")},
    ),
    "a DaemonSet with a wrong flag": (
        {"ds": daemon_set("{name: x, args: [--mig-strategy, mixd], image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0}")},
        {"k8s-plugin-flag ds:4": ("MIG_STRATEGY=mixd", "mixed?")},
    ),
}

FULL_POLICY = "mig: {strategy: mixed}, devicePlugin: {enabled: true, config: {name: plugin, default: default}, env: []}"
FINE = config_map(
    "fine", "", a100=PLAIN + TIMES[12:], t4=TIMES.replace("sharing", "flags: {migStrategy: none}\nsharing")
)
OTHERS = {
    "values of some chart": "resources: {limits: {nvidia.com/gpu: 1}}\nreplicas: 2\n",
    "a manifest": "apiVersion: v1\nkind: Pod\nspec: {containers: [{resources: {limits: {nvidia.com/gpu: 2}}}]}\n",
    "a script": "#!/bin/sh\nexport MIG_STRATEGY=mixed\nkubectl get nodes | grep nvidia.com/gpu: || exit\n",
    "half a script": "set -e; kubectl get node -o yaml | grep 'nvidia.com/gpu: ' > x\n: [\n",
    "feature flags": "version: v1\nflags: {dark: true}\n",
    "metres a second": "version: v1\nspeed: {mps: 4}\n",
    "Prometheus": "groups:\n- {name: gpu, rules: [{expr: 'sum(nvidia_com_gpu)'}]}\n",
    "the plugin's chart": "migStrategy: mixed\nconfig: {map: {a: 'version: v2'}}\n",
    "the operator's chart": "devicePlugin: {config: {name: x}}\nmig: {strategy: nonsense}\n",
    "no YAML": "a: [\n",
    "nothing": "",
}

CLEAN: dict[str, dict[str, str]] = {
    "the shares of the config": {"cm": config_map(ts=TIMES), "n": shared_node("ts", 4)},
    "the shares of before, and nothing offered": {"cm": config_map(ts=TIMES), "n": shared_node("ts", 8, allocatable=0)},
    "cards in MIG mode": {"cm": config_map(ts=TIMES), "n": shared_node("ts", 0)},
    "a policy that runs no plugin": {
        "cp": cluster_policy(
            "devicePlugin: {enabled: false, config: {name: pluginn, default: nothing}}, mig: {strategy: single}"
        ),
        "cm": config_map(a=TIMES, default=PLAIN),
        "n": node(**{"mig.config": "all-balanced"}),
    },
    "a policy that runs no mig-manager": {
        "cp": cluster_policy("migManager: {enabled: false, config: {name: mig}}, mig: {strategy: mixed}"),
        "n": node(mig="nothing-like-it"),
    },
    "mps, and a policy that runs feature discovery": {
        "cp": policy_of(default="a"),
        "cm": config_map(a=MPS),
    },
    "a DaemonSet of one's own, with flags of all kinds": {
        "ds": plugin_set(f"{FILE}, --mig-strategy=none, --driver-root, /, --kubelet-socket=/x, --of-the-next-release"),
        "cm": config_map(config_yaml=TIMES),
    },
    "a config file that a volume calls so": {
        "ds": plugin_set(FILE, volume="{name: c, configMap: {name: plugin, items: [{key: ts, path: config.yaml}]}}"),
        "cm": config_map(ts=TIMES),
    },
    "mps with a root in a DaemonSet of one's own": {
        "ds": plugin_set(FILE, env="{name: MPS_ROOT, value: /run/nvidia/mps}"),
        "cm": config_map(config_yaml=MPS),
    },
    "a ConfigMap alone": {"cm": config_map(any=TIMES)},
    "no namespace": {"cm": config_map(space="", any=TIMES)},
    "with a default": {"cm": config_map(default=PLAIN, four=TIMES, mps=MPS)},
    "an empty config": {"cm": config_map(default="", four=TIMES) + "  none:\n"},
    "binaryData": {"cm": config_map(any=TIMES) + "binaryData: {x: AAAA}\n"},
    "the operator": {"cm": config_map(default=PLAIN, four=TIMES), "cp": cluster_policy(FULL_POLICY)},
    "the operator, no namespaces": {
        "cm": config_map(space="", default=PLAIN, four=TIMES),
        "cp": cluster_policy(FULL_POLICY, ""),
    },
    "the operator elsewhere": {
        "cm": config_map(space="nvidia", default=PLAIN),
        "cp": cluster_policy(FULL_POLICY, "nvidia"),
    },
    "the operator beside a plugin of another release": {
        "cm": config_map(space="gpus", default=PLAIN),
        "cp": cluster_policy(FULL_POLICY, ""),
        "ds": daemon_set("{name: x, command: [nvidia-device-plugin]}"),
    },
    "a copy in another namespace": {
        "cm": config_map(space="kube-system", default=PLAIN),
        "cm2": config_map(default=PLAIN),
        "cp": cluster_policy(FULL_POLICY),
    },
    "a ConfigMap that is in the cluster": {"cp": policy_of("somewhere", "any")},
    "strategy none beside the chart's single": {
        "cm": config_map(any=TIMES.replace("sharing", "flags: {migStrategy: none}\nsharing")),
        "cp": policy_of(default="any", more=", mig: {strategy: single}"),
    },
    "mps by the operator": {"cm": config_map(any=MPS), "cp": policy_of(default="any")},
    "the operator, every node labelled": {
        "cm": FINE,
        "cp": policy_of("fine"),
        "n": node("a100"),
        "m": node("t4", name="n2", **{"gpu.product": "Tesla-T4"}),
    },
    "one config for cards cut unlike": {
        "cm": config_map(default=PLAIN, a=PLAIN + TIMES[12:] + "    - {name: nvidia.com/mig-3g.40gb, replicas: 2}\n"),
        "n": node("a"),
    },
    "labels that have their keys": {
        "cm": config_map(default=PLAIN, four=TIMES),
        "n": node("four"),
        "m": node(name="n2"),
    },
    "a label and nothing else": {"n": node("whatever", "all-mine")},
    "generated MIG configs": {
        "cp": cluster_policy("mig: {strategy: mixed}"),
        **{
            f"n{i}": node(mig=name, name=f"n{i}")
            for i, name in enumerate(["all-1g.10gb", "all-balanced", "all-1g.10gb.me"])
        },
    },
    "strategy single and cards cut alike": {
        "cp": cluster_policy("mig: {strategy: single}"),
        "n": node(mig="all-1g.10gb"),
        "m": node(mig="all-disabled", name="n2"),
    },
    "strategy mixed and cards cut unlike": {
        "cp": cluster_policy("mig: {strategy: mixed}"),
        "n": node(mig="all-balanced"),
    },
    "a MIG file of one's own": {
        "cm": config_map("mig", config_yaml=MIG),
        "cp": cluster_policy("migManager: {config: {name: mig, default: all-disabled}}"),
        "n": node(mig="mine"),
    },
    "a MIG config for other cards than the node's": {"mig": MIG, "n": node(mig="mine")},
    "generated names beside a file that may not be in force": {"mig": MIG, "n": node(mig="all-balanced")},
    "the chart": {"v": CHART},
    "the chart, a default by name": {"v": CHART + "    five: |\n      version: v1\n  default: five\n"},
    "the chart, fallback empty": {"v": CHART + "    b: ''\n  fallbackStrategies: [empty]\n"},
    "the chart with mps": {"v": MPS_CHART + "gfd: {enabled: true}\nmigStrategy: none\n"},
    "mps, feature discovery by another release": {
        "v": MPS_CHART,
        "w": "devicePlugin: {enabled: false}\ngfd: {enabled: true}\n",
    },
    "mps, feature discovery by a DaemonSet": {
        "v": MPS_CHART,
        "ds": daemon_set("{name: x, command: [gpu-feature-discovery]}"),
    },
    "the chart with a ConfigMap of one's own": {
        "v": "config: {name: plugin}\n",
        "cm": config_map(space="nvidia-device-plugin", default=PLAIN, four=TIMES),
    },
    "releases that divide the nodes": {
        "v": CHART + "nodeSelector: {pool: a}\n",
        "w": CHART.replace("four", "five") + "nodeSelector: {pool: b}\n",
        "n": node("five").replace("  labels:\n", "  labels:\n    pool: b\n"),
    },
    "a chart in a chart": {"v": "nvidia-device-plugin:\n" + indent(CHART, "  ")},
    "keys nobody knows": {"v": CHART + "extraManifests: []\nmyTeam: {x: 1}\n"},
    "a static DaemonSet": {"cm": config_map(config_yaml=MPS), "ds": static("{name: MPS_ROOT, value: /run/nvidia/mps}")},
    "a static DaemonSet without a config": {
        "ds": daemon_set("{name: x, image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0}")
    },
    **{f"somebody else's: {name}": {"cm": config_map("app", "team", x=text)} for name, text in OTHERS.items()},
    "a config beside other files": {"cm": config_map("app", "", any=TIMES, run_sh="#!/bin/sh\necho {\n")},
}


def test_every_rule_has_a_firing_case() -> None:
    fired = {rule.split()[0] for _, expected in FIRES.values() for rule in expected}
    infos = {policyjudge.MAP_ASSUMED.id, policyjudge.UNUSED.id, migchoice.LABEL_IN_FILE_ALONE.id}
    assert RULES - fired == infos


@pytest.mark.parametrize("case", FIRES)
def test_what_is_wrong_is_found_where_it_is(case: str, tmp_path: Path) -> None:
    files, expected = FIRES[case]
    found = [finding for finding in judged(tmp_path, files) if finding.severity != Severity.INFO]
    assert {told(finding) for finding in found} == set(expected)
    for rule, words in expected.items():
        texts = [finding.message + finding.hint for finding in found if told(finding) == rule]
        assert [word for word in words if not any(word in text for text in texts)] == [], texts


@pytest.mark.parametrize("case", CLEAN)
def test_what_is_right_has_neither_error_nor_warning(case: str, tmp_path: Path) -> None:
    found = [finding for finding in judged(tmp_path, CLEAN[case]) if finding.severity != Severity.INFO]
    assert [f"{told(finding)} {finding.message}" for finding in found] == []


@pytest.mark.parametrize(
    ("files", "rule"),
    [
        ({"cp": policy_of("somewhere", "any")}, policyjudge.MAP_ASSUMED),
        ({"cm": config_map(any=TIMES), "cp": cluster_policy("mig: {strategy: mixed}")}, policyjudge.UNUSED),
    ],
)
def test_what_is_assumed_is_said(files: dict[str, str], rule: object, tmp_path: Path) -> None:
    assert [finding.rule for finding in judged(tmp_path, files)] == [rule]


def test_the_second_place_is_named(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, FIRES["wrong namespace"][0])
    assert [Path(related.place.file).name for related in finding.related] == ["cm.yaml"]
    assert finding.related[0].message == "ConfigMap kube-system/plugin"


@pytest.mark.parametrize("shape", ["documents", "list", "json"])
def test_one_file_or_many_are_the_same(shape: str, tmp_path: Path) -> None:
    import json

    import yaml

    texts = FIRES["a default that is not there"][0].values()
    objects = [yaml.safe_load(text) for text in texts]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    text = {"documents": "---\n".join(texts), "list": yaml.safe_dump(listed), "json": json.dumps(listed)}[shape]
    found = [finding for finding in judged(tmp_path, {"all": text}) if finding.severity != Severity.INFO]
    assert [finding.rule for finding in found] == [configrules.DEFAULT_WITHOUT_KEY]


def test_thousands_of_nodes_are_judged_by_their_shape(tmp_path: Path) -> None:
    nodes = "---\n".join(node("four", name=f"n{i}") for i in range(300))
    files = {"cm": config_map(default=MPS, four=MPS.replace("4}", "64}")), "n": nodes}
    found = [finding for finding in judged(tmp_path, files) if finding.severity != Severity.INFO]
    assert [told(finding) for finding in found] == ["k8s-plugin-mps-replicas cm:16"]


SEEDS = [text for files, _ in FIRES.values() for text in files.values()]
PIECES = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "\n",
    "  ",
    "|",
    "null",
    "~",
    "0x1F",
    "1e999",
    "&a ",
    "*a",
    "<<: *a",
    "'",
    '"',
    "%",
]


def test_no_damage_leads_to_a_traceback(tmp_path: Path) -> None:
    drawn = random.Random(5)
    for number in range(soak(600, 20_000)):
        text = drawn.choice(SEEDS) + drawn.choice(["", "---\n" + drawn.choice(SEEDS)])
        for _ in range(drawn.randint(1, 6)):
            at, length = drawn.randrange(len(text) + 1), drawn.choice([0, 0, 1, 4, 30])
            text = text[:at] + drawn.choice(PIECES) + text[at + length :]
        for finding in judged(tmp_path, {"x": text}):
            assert finding.message, (number, text)
            assert finding.place is not None and finding.place.line >= 1, (number, text)
