"""The C code's own tests, under ASan and UBSan; and its house rules, which no Python tool counts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.driver import library

LONGEST_FILE, LONGEST_FUNCTION, LONGEST_LINE = 400, 60, 120
SOURCES = [*sorted(library.HERE.glob("*.[ch]")), *sorted(Path(__file__).parent.glob("*.[ch]"))]


def test_the_c_code_is_clean_under_the_sanitizers() -> None:
    done = subprocess.run(
        ["make", "--silent", "-C", str(library.HERE), f"PYTHON={sys.executable}", "check"],
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "GPUSIM"))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the C code is clean" in done.stdout


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_c_is_short_and_says_why_it_is(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert text.startswith("/* ")
    assert len(lines) <= LONGEST_FILE
    assert max(map(len, lines)) <= LONGEST_LINE
    bodies = re.findall(r"^\{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)
    assert max((body.count("\n") for body in bodies), default=0) <= LONGEST_FUNCTION
