"""The devices port over cards in memory: a `Cutter`. What a card answers is the card's own business."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hybridgpu.devices.port import ComputeInstance, Cut, GpuInstance, NotDone, Unread
from hybridgpu.errors import Unavailable
from hybridgpu.lab.card import NOT_FOUND, NOT_SUPPORTED, SUCCESS, Broken, LabCard
from hybridgpu.model.gpu import Placement
from hybridgpu.model.sharing import ComputeMode

_ANSWERS = {
    Broken.LOST: "GPU_IS_LOST",
    Broken.UNKNOWN: "UNKNOWN",
    Broken.RESET_REQUIRED: "RESET_REQUIRED",
}


class LabCards:
    """A machine's cards by UUID. One that is taken away is not found; one that hangs raises Unavailable."""

    def __init__(self, cards: Iterable[LabCard]) -> None:
        self.cards = {card.uuid: card for card in cards}

    def look(self, card: str) -> Cut | Unread:
        """All of one card."""
        found = self._card(card)
        return found.seen() if isinstance(found, LabCard) else Unread(found.call, found.answer)

    def set_mig(self, card: str, on: bool) -> str | NotDone:
        """The activation's answer."""
        found = self._card(card)
        if isinstance(found, NotDone):
            return found
        answer, activation = found.set_mig(on)
        return activation if answer == SUCCESS else NotDone("nvmlDeviceSetMigMode", answer)

    def set_compute_mode(self, card: str, mode: ComputeMode) -> NotDone | None:
        """Sets it."""
        return self._change(card, "nvmlDeviceSetComputeMode", lambda found: found.set_compute_mode(mode))

    def create_gpu_instance(self, card: str, profile: str, placement: Placement) -> NotDone | None:
        """Creates it there."""

        def create(found: LabCard) -> str:
            known = found.model.profile(profile)
            return f"no profile {profile}" if known is None else found.create_instance(known, placement)

        return self._change(card, "nvmlDeviceCreateGpuInstanceWithPlacement", create)

    def create_compute_instance(self, card: str, placement: Placement, slices: int) -> NotDone | None:
        """Creates it in the GPU instance at this place."""

        def create(found: LabCard, at: GpuInstance) -> str:
            if slices not in found.compute_sizes(at):
                return f"no profile of {slices} slices"
            return found.create_compute(at, slices)

        return self._within(card, placement, "nvmlGpuInstanceCreateComputeInstance", create)

    def destroy_compute_instance(self, card: str, placement: Placement, compute: ComputeInstance) -> NotDone | None:
        """Destroys it, where it is what was seen."""

        def destroy(found: LabCard, at: GpuInstance) -> str:
            return found.destroy_compute(at, compute) if compute in at.computes else NOT_FOUND

        return self._within(card, placement, "nvmlComputeInstanceDestroy", destroy)

    def destroy_gpu_instance(self, card: str, instance: GpuInstance) -> NotDone | None:
        """Destroys it, where it is what was seen."""

        def destroy(found: LabCard, at: GpuInstance) -> str:
            same = (at.gi, at.profile) == (instance.gi, instance.profile)
            return found.destroy_instance(at) if same else NOT_FOUND

        return self._within(card, instance.placement, "nvmlGpuInstanceDestroy", destroy)

    def _card(self, uuid: str) -> LabCard | NotDone:
        card = self.cards.get(uuid)
        if card is None:
            return NotDone("nvmlDeviceGetHandleByUUID", NOT_FOUND)
        if card.broken is Broken.HANG:
            raise Unavailable("device", (), "the driver did not answer: a card hangs")
        if card.broken in _ANSWERS:
            return NotDone("nvmlDeviceGetMigMode", _ANSWERS[card.broken])
        return card

    def _change(self, uuid: str, call: str, change: Callable[[LabCard], str]) -> NotDone | None:
        card = self._card(uuid)
        if isinstance(card, NotDone):
            return card
        answer = change(card)
        return None if answer == SUCCESS else NotDone(call, answer)

    def _within(
        self, uuid: str, placement: Placement, call: str, change: Callable[[LabCard, GpuInstance], str]
    ) -> NotDone | None:
        """A change to the GPU instance at a place."""

        def at(card: LabCard) -> str:
            if not card.mig:
                return NOT_SUPPORTED
            found = next((i for i in card.instances.values() if i.placement == placement), None)
            return NOT_FOUND if found is None else change(card, found)

        return self._change(uuid, call, at)
