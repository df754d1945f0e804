"""A NodeConfig as the JSON file of its node: what that node must be, one device a line so that a diff can be read.

The body is made once for all nodes that share it; only the names differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hybridgpu.model.site import Device, NodeBody, NodeConfig, Site, SlurmSite
from hybridgpu.render.gres import gres_value, shares_per_gpu
from hybridgpu.render.kubernetes.node import node_side


def node_file(config: NodeConfig, body: str) -> bytes:
    """The content of `nodes/NAME.json` below its stamp; `body` is what `node_body` gave for the config's body."""
    names: dict[str, Any] = {
        "apiVersion": "hybridgpu/v1",
        "kind": "NodeConfig",
        "node": config.name,
        "kubernetes_name": config.kubernetes_name,
        "addresses": dict(config.addresses),
    }
    return (_fields(names) + ",\n" + body + "\n}\n").encode()


def node_body(site: Site, body: NodeBody) -> str:
    """All fields of a NodeConfig that equal nodes share, without the outer braces."""
    sharing = body.sharing
    fields: dict[str, Any] = {
        "site": site.name,
        "class": body.node_class,
        "schedulers": list(body.schedulers),
        "mode": sharing.mode,
        "sharing": {
            "replicas": sharing.replicas,
            "mig_strategy": sharing.mig_strategy,
            "rename_by_default": sharing.rename_by_default,
            "fail_requests_greater_than_one": sharing.fail_requests_greater_than_one,
            "whole_gpu_jobs": sharing.whole_gpu_jobs,
            "compute_mode": sharing.compute_mode,
        },
        "slurm": _slurm(site, body),
        "kubernetes": node_side(body, site.kubernetes),
        "clients": list(site.clients),
    }
    gpus = ",\n".join(f"  {json.dumps(gpu)}" for gpu in _gpus(body))
    devices = ",\n".join(f"  {json.dumps(_device(device))}" for device in body.devices)
    return f'{_fields(fields)},\n"gpus": [\n{gpus}\n],\n"devices": [\n{devices}\n]'


def _fields(fields: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())


def _slurm(site: Site, body: NodeBody) -> dict[str, Any] | None:
    if body.slurm is None:
        return None
    had = site.slurm.site if site.slurm else SlurmSite()
    shares = shares_per_gpu(body)
    return {
        "version": body.slurm.version,
        "auto_detect": body.slurm.autodetect,
        "parameters": dict(body.slurm.parameters),
        "gres": gres_value(body),
        "shares_per_gpu": {shares[0]: shares[1]} if shares else {},
        "task_prolog": had.task_prolog,
    }


def _gpus(body: NodeBody) -> Iterator[dict[str, Any]]:
    """What each card must be, by index: model, owner, MIG mode, and compute mode while a whole-GPU job has a daemon."""
    cut = {device.index for device in body.devices if device.profile}
    mode = body.sharing.compute_mode
    for index, (model, owner) in enumerate(zip(body.models, body.owners, strict=True)):
        yield {"index": index, "model": model, "owner": owner, "mig": index in cut, "compute_mode": mode}


def _device(device: Device) -> dict[str, Any]:
    placement = device.placement
    return {
        "index": device.index,
        "pci_bus_id": device.pci_bus_id,
        "minor": device.minor,
        "files": device.files,
        "type": device.type,
        "profile": device.profile,
        "placement": {"start": placement.start, "size": placement.size} if placement else None,
        "cores": device.cores,
        "links": device.links,
        "memory_bytes": device.memory_bytes,
        "assumed": device.assumed,
    }
