"""mariner-geometry on what does not rotate: it says so, and leaves everything as it was."""

import json
import os
import subprocess

import mariner

FOUND, FAILED, USAGE, NO_GEOMETRY = 0, 1, 2, 3


def geometry(*arguments):
    return subprocess.run([mariner.MARINER.parent / "mariner-geometry", *map(str, arguments)],
                          capture_output=True, text=True, timeout=600)


def state_of(path):
    status = path.stat()
    return path.read_bytes(), status.st_size, status.st_blocks, status.st_mtime_ns, status.st_ctime_ns


def test_a_file_has_no_geometry_and_stays_as_it_is(folder):
    path = folder / "log.disk"
    path.write_bytes(os.urandom(4 << 20))
    before = state_of(path)
    answer = geometry(path)
    assert answer.returncode == NO_GEOMETRY, answer
    assert "append placement" in answer.stdout
    assert "zone" not in answer.stdout
    assert answer.stderr == "", "progress is for terminals"
    found = geometry("--json", path)
    assert found.returncode == NO_GEOMETRY
    verdict = json.loads(found.stdout)
    assert verdict["device"] == str(path) and verdict["verdict"] in ("does-not-rotate", "unclear")
    assert verdict["sectors"] == "1024" and verdict["sector_bytes"] == 4096
    assert "zones" not in verdict
    assert state_of(path) == before


def test_writing_is_refused_for_a_file(folder):
    path = folder / "log.disk"
    path.write_bytes(os.urandom(1 << 20))
    before = state_of(path)
    answer = geometry("--write", path)
    assert (answer.returncode, answer.stdout) == (USAGE, "")
    assert str(path) in answer.stderr and "block device" in answer.stderr
    assert state_of(path) == before


def test_what_is_no_disk_is_refused(folder):
    for path, found in [(folder, "a directory"), ("/dev/null", "a character device")]:
        answer = geometry(path)
        assert (answer.returncode, answer.stdout) == (USAGE, "")
        assert found in answer.stderr and "block device" in answer.stderr
    assert geometry(folder / "none").returncode == FAILED
    assert geometry().returncode == USAGE
    assert geometry("--frobnicate", folder).returncode == USAGE
    assert geometry("--help").returncode == FOUND


def test_the_manual_page_names_every_option():
    page = (mariner.ROOT / "deploy" / "man" / "mariner-geometry.1").read_text().replace("\\", "")
    for option in ("--write", "--json", "--version", "--help"):
        assert option in page and option in geometry("--help").stdout
