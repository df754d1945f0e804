"""The MPS daemons of Slurm's jobs as holders of cards, by what the hooks have written down of them (docs/mps.md).

It is here since nothing but the command line sees both the cards and mps. Nothing is started, stopped or mended: that
is the epilog's and the sweep's.
"""

from __future__ import annotations

from pathlib import Path

from hybridgpu.devices.effect import Card
from hybridgpu.devices.port import Holder, Unread, Use
from hybridgpu.model.facts import Facts
from hybridgpu.mps.daemon import folder_of, names
from hybridgpu.mps.process import boot_id
from hybridgpu.mps.settings import Settings
from hybridgpu.mps.state import State, holders, read_state
from hybridgpu.mps.trouble import Trouble


class JobDaemons:
    """Which of a node's cards, and of its instances as the facts have them, a daemon of this boot has.

    Read anew each time. A daemon that has died counts as well: its cards' compute modes are still to be put back.
    """

    def __init__(self, facts: Facts, run: Path) -> None:
        self._settings = Settings(run=str(run))
        self._places: dict[str, tuple[str, int | None, int | None]] = {
            instance.uuid: (gpu.uuid, instance.gi, instance.ci) for gpu in facts.gpus for instance in gpu.instances
        } | {gpu.uuid: (gpu.uuid, None, None) for gpu in facts.gpus}

    def __call__(self, card: Card) -> tuple[Holder, ...] | Unread:
        """Those on a card; Unread where what is written of one of them cannot be read."""
        found: list[Holder] = []
        for name in names(self._settings):
            folder = folder_of(self._settings, name)
            try:
                state = read_state(folder)
                if state is None or state.boot != boot_id():
                    continue
            except Trouble as trouble:
                return Unread(f"MPS daemon {name}", f"nothing: {trouble}; see `hybridgpu node show`")
            places = [self._places[uuid] for uuid in state.uuids if uuid in self._places]
            pid = _pid(folder, state)
            found += [Holder(pid, Use.DAEMON, gi, ci) for uuid, gi, ci in places if uuid == card.uuid]
        return tuple(found)


def _pid(folder: str, state: State) -> int:
    """The daemon's; while it is being started that of the prolog which does so, 0 where that is not known either."""
    if state.identity is not None:
        return state.identity.pid
    return next((holder.hook.pid for holder in holders(folder) if holder.hook), 0)
