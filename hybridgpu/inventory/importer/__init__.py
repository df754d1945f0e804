"""From what a site has to a first inventory: Slurm's files, Kubernetes objects and facts, read backwards.

What Slurm makes of its files is asked from consumers, so that what is taken over is what is in force, not what was
meant. Everything that had to be guessed is marked in the text; whether nothing was lost is proven in check, by
rendering it again.
"""

from hybridgpu.inventory.importer.draft import NO_GPUS, NODES_NOT_GIVEN, Draft, draft
from hybridgpu.inventory.importer.greslines import FLAGS_LOST, LINE_LOST
from hybridgpu.inventory.importer.nodes import (
    LAYOUT_IMPOSSIBLE,
    MODEL_UNKNOWN,
    MODES_DIFFER,
    SHARING_LOST,
    SPLIT_IMPOSSIBLE,
)
from hybridgpu.inventory.importer.parameters import STATE_DROPPED, STATE_LOST, VALUE_LOST
from hybridgpu.inventory.importer.slurmsite import DETECTIONS_DIFFER, SETTING_LOST, TASK_PROLOG_HIDDEN
from hybridgpu.inventory.importer.sources import Sources
from hybridgpu.inventory.importer.survey import (
    CARDS_UNKNOWN,
    INSTANCE_UNKNOWN,
    NAME_ILLEGAL,
    NOT_NVIDIA,
    ONLY_FACTS,
    WITHOUT_GPUS,
)

RULES = (
    *(NO_GPUS, NODES_NOT_GIVEN, WITHOUT_GPUS, NOT_NVIDIA, NAME_ILLEGAL, INSTANCE_UNKNOWN, CARDS_UNKNOWN, ONLY_FACTS),
    *(
        MODEL_UNKNOWN,
        LAYOUT_IMPOSSIBLE,
        MODES_DIFFER,
        SHARING_LOST,
        SPLIT_IMPOSSIBLE,
        VALUE_LOST,
        STATE_LOST,
        STATE_DROPPED,
    ),
    *(SETTING_LOST, TASK_PROLOG_HIDDEN, DETECTIONS_DIFFER, LINE_LOST, FLAGS_LOST),
)
"""Every rule that making a draft can fire."""

__all__ = ["RULES", "Draft", "Sources", "draft"]
