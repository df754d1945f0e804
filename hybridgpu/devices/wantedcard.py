"""The cards of a NodeConfig, and whether they and its devices can be true together: no device twice, no impossible cut.

What can be cut from a model is geometry's to say; here is only where in the file it stands. Knows no card that is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from hybridgpu.model.catalogue import NotFound, find
from hybridgpu.model.geometry import Misfit, arrange, misplaced
from hybridgpu.model.gpu import GpuModel
from hybridgpu.model.sharing import ComputeMode, Scheduler
from hybridgpu.model.site import Device


@dataclass(frozen=True, slots=True)
class WantedCard:
    """What one card must be: `model` as the catalogue has it, `mig` whether MIG is on.

    `compute_mode` is that of a job of whole cards with an MPS daemon; at rest every card is in DEFAULT.
    """

    index: int
    model: str
    owner: Scheduler
    mig: bool
    compute_mode: ComputeMode


Numbered = tuple[int, Device]
"""A device, and its place in the list of the file."""


def contradictions(cards: Sequence[WantedCard], devices: Sequence[Device]) -> Iterator[str]:
    """Each way in which they contradict themselves or their model, with its place: `devices[3].placement ...`.

    Each is legal in itself, and the cards' indices are their places in the list.
    """
    numbered = list(enumerate(devices))
    yield from _twice((f"devices[{at}]", d.files, ".files are those of") for at, d in numbered if d.files)
    addresses: dict[tuple[int, str], str] = {}
    for at, device in numbered:
        if device.pci_bus_id:
            addresses.setdefault((device.index, device.pci_bus_id), f"devices[{at}].pci_bus_id")
    yield from _twice(
        (where, index, f" is another address of GPU {index} than") for (index, _), where in addresses.items()
    )
    yield from _twice((where, address, " is that of another card,") for (_, address), where in addresses.items())
    for card in cards:
        yield from _of_card(card, [(at, device) for at, device in numbered if device.index == card.index])


def _twice(values: Iterator[tuple[str, Hashable, str]]) -> Iterator[str]:
    """Of (place, value, how to say it) each whose value an earlier one has."""
    seen: dict[Hashable, str] = {}
    for where, value, how in values:
        if value in seen:
            what = ", ".join(value) if isinstance(value, tuple) else value
            yield f"{where}{how} {seen[value]}" + ("" if isinstance(value, int) else f": {what}")
        seen.setdefault(value, where)


def _of_card(card: WantedCard, devices: Sequence[Numbered]) -> Iterator[str]:
    whole = [at for at, device in devices if device.profile is None]
    cut = [(at, device) for at, device in devices if device.profile is not None]
    mig = f"gpus[{card.index}].mig"
    if card.mig:
        yield from (f"devices[{at}] is a whole card, and {mig} is true; allowed: instances of it" for at in whole)
        if not cut and not whole:
            yield f"{mig} is true, and no device is an instance of the card; allowed: false, or its instances"
    else:
        yield from (f"devices[{at}] is the same card as devices[{whole[0]}]" for at in whole[1:])
        yield from (f"devices[{at}].profile is {d.profile!r}, and {mig} is false; allowed: null" for at, d in cut)
    if cut:
        yield from _cut(card, cut)


def _cut(card: WantedCard, devices: Sequence[Numbered]) -> Iterator[str]:
    model = find(card.model)
    if isinstance(model, NotFound):
        yield f"gpus[{card.index}].model is {card.model!r}, of which it is not known what can be cut: {model.hint}"
        return
    problems = [*_profiles(model, devices), *_places(model, devices)]
    yield from problems
    if not problems:
        fits = arrange(model, Counter(str(device.profile) for _, device in devices))
        if isinstance(fits, Misfit):
            yield f"the instances of gpus[{card.index}]: {fits.reason}"


def _profiles(model: GpuModel, devices: Sequence[Numbered]) -> Iterator[str]:
    """Those that the model does not have."""
    allowed = ", ".join(profile.name for profile in model.profiles) or "null, since it has no MIG"
    for at, device in devices:
        name = str(device.profile)
        if model.profile(name) is None:
            fits = arrange(model, {name: 1})
            near = fits.nearest if isinstance(fits, Misfit) else ()
            hint = f" (did you mean {near[0]}?)" if near else ""
            yield f"devices[{at}].profile is {name!r}{hint}; allowed on {model.name}: {allowed}"


def _places(model: GpuModel, devices: Sequence[Numbered]) -> Iterator[str]:
    """Those that are impossible for their profile; of the others, those that are taken already."""
    right: list[Numbered] = []
    for at, device in devices:
        place = device.placement
        if place is None:
            continue
        if why := misplaced(model, str(device.profile), place):
            yield f"devices[{at}].placement {why}"
            continue
        for earlier, other in right:
            if (other.profile, other.placement) == (device.profile, place):
                yield f"devices[{at}] is the same instance as devices[{earlier}]"
                break
            if other.placement is not None and place.overlaps(other.placement):
                yield f"devices[{at}].placement overlaps that of devices[{earlier}]"
                break
        right.append((at, device))
