"""A description is read strictly: what is wrong with it is said with its line, and no machine is made."""

from __future__ import annotations

import ctypes
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.driver import command, library
from tests.driver.world import Untyped

A100 = {"model": "A100-SXM4-80GB"}


def make(folder: Path, description: Untyped, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    path = folder / "machine.json"
    path.write_text(description if isinstance(description, str) else json.dumps(description))
    status = command.main(["--root", str(folder / "root"), "make", str(path)])
    return status, capfd.readouterr().err


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("", "1:1: expected a value"),
        ('{"gpus": []', "1:12: expected `,` or `}`"),
        ('{"gpus": [],}', "1:13: nothing follows the comma"),
        ('{"gpus": [], "gpus": []}', 'the key "gpus" is there twice'),
        ('{"gpus": []} x', "something follows the value"),
        ('{"gpus": [1.5]}', "only integers are taken"),
        ('{"gpus": [01]}', "expected a value"),
        ('{"gpus": "\\u0041"}', "an escape that is not taken"),
        ("[" * 40, "too deep"),
        ([], "must be an object with `gpus`"),
        ({}, "must be an object with `gpus`"),
        ({"gpus": {}}, "gpus: must be a list"),
        ({"gpus": [1]}, "must be an object"),
        ({"gpus": [{}]}, "needs a model"),
        ('{\n"gpus": [\n{"model": "A101"}]}', "3:11: model: no such model"),
        ({"gpus": [A100], "drvier": "1.0"}, "drvier: there is no such key"),
        ({"gpus": [{**A100, "mionr": 1}]}, "mionr: there is no such key"),
        ({"gpus": [{**A100, "minor": "1"}]}, "minor: must be an integer"),
        ({"gpus": [{**A100, "minor": 32}]}, "minor: must be 0 to 31"),
        ({"gpus": [{**A100, "uuid": "GPU-xyz"}]}, "uuid: is not GPU- and"),
        ({"gpus": [{**A100, "pci": "07:00"}]}, "pci: is not a PCI address"),
        ({"gpus": [{**A100, "pci": "0000:07:00.0"}, {**A100, "pci": "0000:06:00.0"}]}, "in the order of their PCI"),
        ({"gpus": [{**A100, "minor": 1}, A100]}, "the same minor"),
        ({"gpus": [{**A100, "cpus": "3-1"}]}, "cpus: is not a list of CPUs"),
        ({"gpus": [{**A100, "count": 33}]}, "count: must be 1 to 32"),
        ({"gpus": [{**A100, "count": 0}]}, "count: must be 1 to 32"),
        ({"gpus": [{"model": "A101", "count": -1}]}, "count: must be 1 to 32"),
        ({"gpus": [{**A100, "pci": "0000:-1:00.0"}]}, "pci: is not a PCI address"),
        ({"gpus": [{**A100, "pci": "0x00:01:00.0"}]}, "pci: is not a PCI address"),
        ({"gpus": [{**A100, "count": 2, "minor": 1}]}, "count: cannot stand beside"),
        ({"gpus": [{**A100, "count": 32}, A100]}, "one card too many"),
        ({"gpus": [{**A100, "links": [1]}]}, "a link leads to"),
        ({"gpus": [{**A100, "links": ["swtich"]}]}, "links: must be up to 36"),
        ({"gpus": [{**A100, "passthrough": 1}]}, "passthrough: must be true or false"),
        ({"gpus": [{**A100, "graphics_clocks": [1, 2, 3]}]}, "must be the highest, the lowest"),
        ({"gpus": [A100], "driver": "550"}, "driver: is not a version"),
        ({"gpus": [A100], "cuda": "12"}, "cuda: is not a version"),
        ({"gpus": [A100], "cuda": "-1.4"}, "cuda: is not a version"),
        ({"gpus": [A100], "cuda": " 12.4"}, "cuda: is not a version"),
        ('{"gpus": []}\0{"gpus": 1}', "a zero byte is there, 12 bytes in"),
        (" " * (2**20 + 1), "File too large"),
        ({"gpus": [A100], "addressing": "ast"}, "addressing: must be none, hmm or ats"),
        ({"gpus": [A100], "fabric": {"cluster": "1"}}, "cluster: is not a UUID"),
    ],
)
def test_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str], description: Untyped, message: str) -> None:
    status, error = make(tmp_path, description, capfd)
    assert status == command.FAILED
    assert message in error
    assert not (tmp_path / "root").exists()


def test_a_description_comes_in_pieces(tmp_path: Path) -> None:
    """As through a pipe, of which a read gives what is there."""
    text = json.dumps({"gpus": [A100]}).encode()
    pipe = tmp_path / "machine.json"
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as end:
            end.write(text[:9])
            time.sleep(0.1)
            end.write(text[9:])

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(write)
        with library.over(tmp_path / "root", pipe) as driver:
            assert driver.nvmlDeviceGetCount_v2(ctypes.byref(count := ctypes.c_uint())) == 0
        written.result(timeout=10)
    assert count.value == 1


def test_a_state_keeps_its_description(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path, {"gpus": [A100]}, capfd) == (0, "")
    assert make(tmp_path, {"gpus": [A100]}, capfd) == (0, "")
    status, error = make(tmp_path, {"gpus": [A100, A100]}, capfd)
    assert status == command.FAILED
    assert "was made from another description" in error


def test_cards_in_their_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    described = {"gpus": [{**A100, "count": 8}, {"model": "NVIDIA H100 80GB HBM3", "minor": 30}]}
    assert make(tmp_path, described, capfd)[0] == 0
    assert command.main(["--root", str(tmp_path / "root"), "show"]) == 0
    gpus = json.loads(capfd.readouterr().out)["gpus"]
    assert [gpu["minor"] for gpu in gpus] == [*range(8), 30]
    assert gpus[-1]["model"] == "H100-80GB-HBM3"
    assert len({gpu["uuid"] for gpu in gpus}) == 9
    assert [gpu["pci"] for gpu in gpus] == sorted(gpu["pci"] for gpu in gpus)
