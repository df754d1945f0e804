"""The GPU model that somebody asks about MIG: found in the catalogue, or refused with the names that were meant."""

from __future__ import annotations

from hybridgpu.errors import Refused
from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.finding import Finding, Rule, Severity
from hybridgpu.model.gpu import GpuModel

MODEL_UNCLEAR = Rule(
    "mig-model-unclear",
    Severity.ERROR,
    "The word names no GPU model of the catalogue, or several; nothing is shown.",
    "Write the model as the driver names it, or its PCI id.",
    "hybridgpu's catalogue of GPU models",
)
MODEL_WITHOUT_MIG = Rule(
    "mig-model-without-mig",
    Severity.ERROR,
    "The catalogue knows no MIG profiles of this GPU model; there is nothing to show.",
    "Use another way to share the card: time-slicing or mps.",
    "NVIDIA MIG user guide, supported GPUs",
)


def model_with_mig(word: str) -> GpuModel:
    """The model meant, which has MIG. Raises Refused."""
    found = find(word)
    if isinstance(found, NotFound):
        raise Refused([Finding(MODEL_UNCLEAR, None, str(found), found.hint)])
    if not found.has_mig:
        message = f"{found.name} has no MIG profiles" + (f": {found.notes}" if found.notes else "")
        raise Refused([Finding(MODEL_WITHOUT_MIG, None, message, MODEL_WITHOUT_MIG.fix)])
    return found
