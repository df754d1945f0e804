"""Which Go builds the API server: what stands in for Go here says only which release it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kubernetes import golang
from testbed.kubernetes.golang import FETCHED, Go


@pytest.mark.parametrize(
    ("releases", "chosen"),
    [
        ({}, None),
        ({"a": "go1.19.8"}, None),
        ({"a": "devel"}, None),
        ({"a": "go1.24.4"}, ("a", f"go{FETCHED}")),
        ({"a": "go1.26.0"}, ("a", "local")),
        ({"a": "go1.30rc1"}, ("a", "local")),
        ({"a": "go1.19.8", "b": "go1.26.8"}, ("b", "local")),
    ],
    ids=str,
)
def test_the_machines_own_is_taken_where_it_will_do(
    releases: dict[str, str], chosen: tuple[str, str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, release in releases.items():
        (tmp_path / name).write_text(
            f'#!/bin/sh\n[ "$GOTOOLCHAIN" = local ] && echo "go version {release} linux/amd64"\n'
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(golang, "_PLACES", tuple(str(tmp_path / name) for name in ("a", "b")))
    assert Go.installed() == (Go(str(tmp_path / chosen[0]), chosen[1]) if chosen else None)
