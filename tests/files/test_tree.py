"""Writing a tree: what is ours is replaced, what is not is never lost, and a reader sees whole files only."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hybridgpu.files import diff
from hybridgpu.files.stamp import Ownership, group_id, ownership, stamp, without_stamp
from hybridgpu.files.tree import Content, compare, locked, write

FOLDERS = {"slurm": re.compile(r"[ab]\.conf"), "nodes": re.compile(r".*\.json")}


def content(name: str, text: str) -> Content:
    return lambda: stamp(name, text.encode())


def wanted(**texts: str) -> dict[str, Content]:
    return {name.replace("__", "/").replace("_", "."): content(name, text) for name, text in texts.items()}


def names(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "slurm").iterdir())


def put(root: Path, files: dict[str, Content]) -> None:
    plan = compare(root, files, FOLDERS)
    write(root, plan, files, ("slurm",))


def test_a_new_tree_is_created_and_then_unchanged(tmp_path: Path) -> None:
    files = wanted(slurm__a_conf="x=1\n", nodes__n1_json="{}\n")
    plan = compare(tmp_path, files, FOLDERS)
    assert plan.create == ("nodes/n1.json", "slurm/a.conf")
    write(tmp_path, plan, files, ("slurm",))
    assert (tmp_path / "slurm/a.conf").read_bytes() == files["slurm/a.conf"]()
    again = compare(tmp_path, files, FOLDERS)
    assert again.unchanged == ("nodes/n1.json", "slurm/a.conf")
    assert not again.changes


def test_ours_is_replaced_and_what_is_no_longer_wanted_removed(tmp_path: Path) -> None:
    put(tmp_path, wanted(slurm__a_conf="x=1\n", slurm__b_conf="y=1\n"))
    files = wanted(slurm__a_conf="x=2\n")
    plan = compare(tmp_path, files, FOLDERS)
    assert (plan.replace, plan.remove) == (("slurm/a.conf",), ("slurm/b.conf",))
    write(tmp_path, plan, files, ("slurm",))
    assert names(tmp_path) == ["a.conf"]
    assert without_stamp((tmp_path / "slurm/a.conf").read_bytes()) == b"x=2\n"


@pytest.mark.parametrize("damage", ["foreign", "edited", "symlink", "folder", "fifo"])
def test_what_is_not_ours_is_an_obstacle(tmp_path: Path, damage: str) -> None:
    files = wanted(slurm__a_conf="x=1\n")
    put(tmp_path, files)
    path = tmp_path / "slurm/a.conf"
    if damage == "edited":
        path.write_bytes(path.read_bytes() + b"z=3\n")
    else:
        path.unlink()
    if damage == "foreign":
        path.write_text("Name=gpu\n")
    elif damage == "symlink":
        path.symlink_to("/etc/hostname")
    elif damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    plan = compare(tmp_path, wanted(slurm__a_conf="x=2\n"), FOLDERS)
    assert [o.path for o in plan.obstacles] == ["slurm/a.conf"]
    assert plan.obstacles[0].movable is (damage != "folder")
    assert not plan.replace


def test_an_edited_file_that_is_no_longer_wanted_stays(tmp_path: Path) -> None:
    put(tmp_path, wanted(slurm__a_conf="x=1\n"))
    path = tmp_path / "slurm/a.conf"
    path.write_bytes(path.read_bytes() + b"mine=1\n")
    assert compare(tmp_path, {}, FOLDERS).remove == ()


def test_an_obstacle_is_moved_aside_but_over_nothing(tmp_path: Path) -> None:
    path = tmp_path / "slurm/a.conf"
    path.parent.mkdir()
    path.write_text("mine\n")
    files = wanted(slurm__a_conf="x=1\n")
    put(tmp_path, files)
    assert (tmp_path / "slurm/a.conf.orig").read_text() == "mine\n"
    path.write_text("mine again\n")
    (obstacle,) = compare(tmp_path, files, FOLDERS).obstacles
    assert (obstacle.path, obstacle.movable) == ("slurm/a.conf", False)
    assert "a.conf.orig is there already" in obstacle.why


def test_a_leftover_of_a_killed_run_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm/.a.conf.hybridgpu").write_text("half")
    put(tmp_path, wanted(slurm__a_conf="x=1\n"))
    assert names(tmp_path) == ["a.conf"]


def test_litter_of_nodes_that_went_is_swept_and_copies_of_people_stay(tmp_path: Path) -> None:
    put(tmp_path, wanted(nodes__n1_json="{}\n", slurm__a_conf="x=1\n"))
    (tmp_path / "nodes/.n9.json.hybridgpu").write_text("half")
    backup = tmp_path / "slurm/a.conf.bak"
    backup.write_bytes((tmp_path / "slurm/a.conf").read_bytes())
    plan = compare(tmp_path, {}, FOLDERS)
    assert plan.litter == ("nodes/.n9.json.hybridgpu",)
    assert plan.remove == ("nodes/n1.json", "slurm/a.conf")
    write(tmp_path, plan, {}, ("slurm",))
    assert names(tmp_path) == ["a.conf.bak"]


@pytest.mark.parametrize("what", ["file", "link"])
def test_a_folder_that_is_none_is_an_obstacle_and_nothing_is_written(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "slurm"
    folder.write_text("") if what == "file" else folder.symlink_to(tmp_path / "nowhere")
    plan = compare(tmp_path, wanted(slurm__a_conf="x=1\n"), FOLDERS)
    assert [(o.path, o.why, o.movable) for o in plan.obstacles] == [("slurm", "not a folder", False)]


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(FileExistsError, match="is not a folder"):
        compare(tmp_path / "out", {}, FOLDERS)


def test_mode_and_owner_are_kept_and_the_umask_is_not_asked(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        put(tmp_path, wanted(slurm__a_conf="x=1\n"))
        path = tmp_path / "slurm/a.conf"
        assert path.stat().st_mode & 0o7777 == 0o644
        assert path.parent.stat().st_mode & 0o7777 == 0o755
        path.chmod(0o640)
        put(tmp_path, wanted(slurm__a_conf="x=2\n"))
        assert path.stat().st_mode & 0o7777 == 0o640
    finally:
        os.umask(old)


def test_an_empty_root_made_for_the_lock_goes_again(tmp_path: Path) -> None:
    with locked(tmp_path / "new/out"):
        assert (tmp_path / "new/out").is_dir()
    assert not (tmp_path / "new/out").exists()


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path: Path) -> None:
    put(tmp_path, wanted(slurm__a_conf="x=1\n"))
    before = (tmp_path / "slurm/a.conf").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            put(tmp_path, wanted(slurm__a_conf="x=2\n"))
    assert (tmp_path / "slurm/a.conf").read_bytes() == before
    assert names(tmp_path) == ["a.conf"]


def test_a_second_writer_is_kept_out(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(BlockingIOError), locked(tmp_path):
        pass
    with locked(tmp_path):
        pass


def test_stamps_tell_ours_from_edited_and_foreign() -> None:
    ours = stamp("a.conf", b"x=1\n", "0123456789")
    assert ownership(ours) is Ownership.OURS
    assert ownership(ours.replace(b"x=1", b"x=2")) is Ownership.EDITED
    assert ownership(b"x=1\n") is Ownership.FOREIGN
    assert ownership(b"") is Ownership.FOREIGN
    as_json = stamp("n.json", b'"node": "n"}\n')
    assert ownership(as_json) is Ownership.OURS
    assert without_stamp(as_json) == b'"node": "n"}\n'


def test_the_set_id_depends_on_every_file() -> None:
    one = group_id({"a": b"1", "b": b"2"})
    assert one == group_id({"b": b"2", "a": b"1"})
    assert one not in {group_id({"a": b"1", "b": b"3"}), group_id({"a": b"1"}), group_id({"a": b"1", "c": b"2"})}


def test_equal_changes_of_nodes_are_shown_once(tmp_path: Path) -> None:
    nodes = ["n1", "n2", "n3"]
    old = {f"nodes/{n}.json": content("x.json", f'"node": "{n}",\n"mode": "mps"}}\n') for n in nodes}
    new = {f"nodes/{n}.json": content("x.json", f'"node": "{n}",\n"mode": "mig"}}\n') for n in nodes}
    write(tmp_path, compare(tmp_path, old, FOLDERS), old, ())
    lines = list(diff.unified(tmp_path, compare(tmp_path, new, FOLDERS), new))
    assert lines[:2] == ["--- a/nodes/n[1-3].json", "+++ b/nodes/n[1-3].json"]
    assert lines[3:] == [' "node": "NAME",', '-"mode": "mps"}', '+"mode": "mig"}']
