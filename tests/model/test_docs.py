"""docs/catalogue.md says what the catalogue says."""

from __future__ import annotations

import re
from pathlib import Path

from hybridgpu.model.naming import colliding_profiles, gres_id

TEXT = (Path(__file__).parents[2] / "docs" / "catalogue.md").read_text(encoding="utf-8")


def test_the_table_of_prefixed_profiles_is_complete() -> None:
    rows = re.findall(r"^\| (\d+g\.\d+gb) .*\| (\d+g\.\d+gb) ", TEXT, re.MULTILINE)
    assert {profile for row in rows for profile in row} == colliding_profiles()
    assert all(gres_id(one) == gres_id(other) for one, other in rows)
