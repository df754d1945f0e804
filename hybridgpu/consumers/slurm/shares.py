"""What gres/gpu, gres/mps and gres/shard do with the merged records: device lists, and shares per device.

Source: S:src/plugins/gres/common/gres_c_s.c, S:src/interfaces/gres.c gres_node_config_load.
"""

from __future__ import annotations

from dataclasses import replace

from hybridgpu.consumers.slurm.gresconf import EMPTY_FILE, Record
from hybridgpu.consumers.slurm.nodegres import SHARED
from hybridgpu.consumers.slurm.release import Release
from hybridgpu.consumers.slurm.verdict import Verdict
from hybridgpu.model.finding import Related, Rule, Severity
from hybridgpu.model.naming import gres_id

PLUGINS = ("gpu", "mps", "shard", "nic")
"""GRES names with a plugin of their own in every release."""

DEVICE_TWICE = Rule(
    "slurm-device-twice",
    Severity.ERROR,
    "A device file stands in two records of one name: slurmd stops with a fatal error.",
    "Name each device once.",
    "S:src/interfaces/gres.c gres_node_config_load; slurmd -G on 22.05, 24.11, 26.05",
)
INSTANCE_TWICE = Rule(
    "slurm-instance-twice",
    Severity.ERROR,
    "Two records of one name have the same MultipleFiles: slurmd does not see it, and two jobs get one MIG instance.",
    "Name each instance once: its own two files of /dev/nvidia-caps.",
    "S:src/interfaces/gres.c gres_node_config_load: MultipleFiles are not compared",
)
SHARED_NO_GPU = Rule(
    "slurm-shares-without-gpu",
    Severity.ERROR,
    "The node has mps or shard but no GPU with a device file: slurmd stops with a fatal error.",
    "Give the GPUs of the node their File.",
    "S:src/plugins/gres/common/gres_c_s.c _merge_lists",
)
SHARED_TWO_KINDS = Rule(
    "slurm-shares-with-and-without-file",
    Severity.ERROR,
    "Some of the node's mps or shard have a File and some have not: slurmd stops with a fatal error.",
    "Let the Counts with File add up to exactly what Gres= says, or write one record without File.",
    "S:src/plugins/gres/common/gres_c_s.c _build_shared_list; slurmd -G on 22.05, 24.11, 26.05",
)
SHARES_LOST = Rule(
    "slurm-shares-lost",
    Severity.ERROR,
    "Count is divided by the number of files and the remainder is lost.",
    "Write one record a GPU, with that GPU's Count.",
    "S:src/plugins/gres/common/gres_c_s.c _build_shared_list",
)
SHARES_DISCARDED = Rule(
    "slurm-shares-discarded",
    Severity.ERROR,
    "No GPU of the node has exactly this device file: slurmd discards the shares. A record with MultipleFiles never "
    "matches a MIG instance.",
    "Write the File as the gpu record has it; shares of MIG instances can only be spread evenly (Count without File).",
    "S:src/plugins/gres/common/gres_c_s.c _merge_lists, _delete_leftovers",
)
MPS_ON_MIG = Rule(
    "slurm-mps-on-mig",
    Severity.ERROR,
    "gres/mps looks shares up by device number, which a MIG instance has not: jobs get a wrong thread percentage.",
    "Use whole instances, or shard.",
    "S:src/plugins/gres/mps/gres_mps.c, S:gres_c_s.c _compute_local_id",
)
BOTH_SHARED = Rule(
    "slurm-mps-and-shard",
    Severity.ERROR,
    "A node can share its GPUs one way only: with both, jobs of one kind are not kept off GPUs that are taken.",
    "Give the node mps or shard, not both.",
    "S:src/interfaces/gres.c gres_init_node_config (one alt_gres); commit 1d46dfd3",
)
MIG_SPLIT = Rule(
    "slurm-mig-split",
    Severity.ERROR,
    "Once GresTypes holds mps or shard, each file of a MIG instance becomes a GPU of its own: jobs get devices "
    "that are none.",
    "Update Slurm, or take mps and shard out of GresTypes.",
    "S@22.05:src/plugins/gres/common/gres_c_s.c _build_sharing_list; slurmd -G on 22.05; mended in 23.02.7",
    until="23.02.6",
)

RULES = (
    *(DEVICE_TWICE, INSTANCE_TWICE, SHARED_NO_GPU, SHARED_TWO_KINDS, SHARES_LOST, SHARES_DISCARDED, MPS_ON_MIG),
    *(BOTH_SHARED, MIG_SPLIT),
)


def load(
    merged: list[Record], raw: list[Record], names: tuple[str, ...], release: Release, verdict: Verdict
) -> list[Record]:
    """The records as each context's plugin leaves them, GPUs without a file removed.

    `raw` are the records of gres.conf before the merge: the first of a name decides whether its plugin is loaded.
    """
    records = merged
    for name in names:
        if name in PLUGINS and not _count_only(name, raw):
            if name in SHARED:
                records = _share(records, name, release, verdict)
            _check_twice(records, name, verdict)
        elif release.checks_plain_files and any(r.has_file for r in raw if r.id == gres_id(name)):
            _check_twice(records, name, verdict)
        if verdict.fatal:
            return []
    _judge_sharing(records, verdict)
    if "gpu" not in names:
        return records
    gpu = gres_id("gpu")
    return [r for r in records if r.id != gpu or r.has_file]


def _count_only(name: str, raw: list[Record]) -> bool:
    first = next((r for r in raw if r.id == gres_id(name)), None)
    return first is not None and "CountOnly" in first.flags


def _check_twice(records: list[Record], name: str, verdict: Verdict) -> None:
    """No device file twice; a MIG instance's files are not looked at by Slurm.

    For a name without a plugin slurmd -G prints the error and goes on, but slurmd does not start.
    """
    seen: set[str] = set()
    instances: dict[frozenset[str], Record] = {}
    for record in records:
        if record.name != name or not record.has_file:
            continue
        if record.multiple:
            first = instances.setdefault(frozenset(record.files), record)
            if first is not record:
                related = [Related(first.place, "the first record")] if first.place else []
                message = f"{name}: {','.join(record.files)} stand in two records"
                verdict.note(INSTANCE_TWICE, record.place, message, related=related)
            continue
        for file in record.files:
            if file in seen:
                verdict.die(DEVICE_TWICE, record.place, f"{name}: {file} is named twice")
            seen.add(file)


def _share(records: list[Record], name: str, release: Release, verdict: Verdict) -> list[Record]:
    """gres_c_s: the shares of one kind laid beside the GPUs, one record each, at the end of the list."""
    gpus = [single for r in records if r.name == "gpu" and r.files for single in _singles(r, release, verdict)]
    shares = _split_shares([r for r in records if r.name == name], verdict)
    rest = [r for r in records if r.name != name and not (r.name == "gpu" and r.has_file)]
    if verdict.fatal:
        return records
    if not gpus:
        if shares:
            verdict.die(SHARED_NO_GPU, shares[0].place, f"{name} on a node without a GPU that has a device file")
        return rest
    if len(shares) == 1 and not shares[0].files:
        paired = _spread(gpus, shares[0])
    else:
        paired = _match(gpus, shares, name, verdict)
    records = rest + paired
    if not sum(r.count for r in records if r.shared):
        return [r for r in records if r.name != name]
    return records


def _singles(record: Record, release: Release, verdict: Verdict) -> list[Record]:
    """One record a GPU; a MIG instance stays whole where the release knows better."""
    if record.multiple and not release.splits_mig:
        return [record]
    if record.multiple:
        message = f"{', '.join(record.files)} become {len(record.files)} GPUs"
        verdict.note(MIG_SPLIT, record.place, message)
    return [replace(record, count=1, files=(file,), has_type=record.type is not None) for file in record.files]


def _split_shares(records: list[Record], verdict: Verdict) -> list[Record]:
    """One record a file, each with an equal part of the Count; or the single record without File."""
    empty = next((r for r in records if r.has_file and not r.files and r.count), None)
    if empty:
        verdict.die(EMPTY_FILE, empty.place, f"the File of {empty.name} is empty")
        return []
    shares: list[Record] = []
    bare = [r for r in records if not r.files]
    filed = [r for r in records if r.files]
    if len(bare) > 1 or (bare and filed):
        what = "with and without File" if filed else "twice without File"
        message = f"{records[0].name} {what}: " + ", ".join(f"Count={r.count}" for r in records)
        verdict.die(SHARED_TWO_KINDS, bare[-1].place, message)
        return []
    for record in records:
        if not record.files:
            shares.append(replace(record, links=None))
            continue
        each, rest = divmod(record.count, len(record.files))
        if rest:
            message = (
                f"{record.name}: Count={record.count} over {len(record.files)} files is {each} each, {rest} are lost"
            )
            verdict.note(SHARES_LOST, record.place, message)
        shares += [replace(record, count=each, files=(file,), links=None) for file in record.files]
    return shares


def _beside(gpu: Record, share: Record, count: int) -> Record:
    """A share record for this GPU: the GPU's type, cores and files, the share's name and count."""
    return replace(
        gpu,
        name=share.name,
        id=share.id,
        count=count,
        shared=True,
        links=None,
        place=share.place,
        flags=gpu.flags | share.flags,
    )


def _spread(gpus: list[Record], share: Record) -> list[Record]:
    """An even spread; what does not divide goes to the later GPUs."""
    paired: list[Record] = []
    left = share.count
    for at, gpu in enumerate(gpus):
        count = left // (len(gpus) - at)
        left -= count
        paired += [_beside(gpu, share, count), gpu]
    return paired


def _match(gpus: list[Record], shares: list[Record], name: str, verdict: Verdict) -> list[Record]:
    """Each GPU with the share record of exactly its file, or with none of them."""
    paired: list[Record] = []
    left = list(shares)
    for gpu in gpus:
        share = next((s for s in left if s.files == gpu.files), None)
        if share is None:
            share = Record(name, gres_id(name), None, 0, (), False, gpu.place, shared=True)
            paired += [_beside(gpu, share, 0), gpu]
            continue
        left.remove(share)
        cores = gpu.cores if gpu.cores is not None else share.cores
        paired += [replace(share, type=gpu.type, has_type=share.has_type or gpu.type is not None, cores=cores), gpu]
    for share in left:
        message = f"{name}: File={','.join(share.files)} is the file of no GPU of the node; {share.count} are discarded"
        verdict.note(SHARES_DISCARDED, share.place, message)
    return paired


def _judge_sharing(records: list[Record], verdict: Verdict) -> None:
    """Sharing that slurmd accepts and that goes wrong later."""
    kinds = {r.name: r for r in records if r.shared and r.count}
    if len(kinds) > 1:
        verdict.note(BOTH_SHARED, kinds["shard"].place, "the node has both mps and shard")
    mps = next((r for r in records if r.name == "mps" and r.count and r.multiple), None)
    if mps is not None:
        verdict.note(MPS_ON_MIG, mps.place, f"mps: {mps.count} on the MIG instance {', '.join(mps.files)}")
