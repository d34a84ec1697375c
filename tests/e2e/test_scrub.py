"""Damage in old history: found without anybody asking for it, named, and never served as data."""

import re
import subprocess

from mariner import Daemon, sequence_of, wait_until

VOLUME = "db1"
BLOCK = 4096
# A pass takes a second.
LOG = {"max_size": "128M", "track_size": "8M", "scrub_rate": "128M"}
OLD, NEW, FILL = 0x5A, 0x77, 0x11
AT = 1 << 20
DAMAGED = 3  # of the 16 blocks at AT


def io(url: str, *commands: str) -> str:
    words = [word for command in commands for word in ("-c", command)]
    read_only = [] if any(command.startswith("write") for command in commands) else ["-r"]
    run = subprocess.run(["qemu-io", "-f", "raw", "-t", "none", *read_only, *words, url], capture_output=True, text=True)
    return run.stdout + run.stderr


def metric(daemon: Daemon, name: str) -> float:
    return float(re.search(rf"^{name}{{.*}} (\S+)$", daemon.http("/metrics")[1], re.MULTILINE).group(1))


def flip(daemon: Daemon, byte: int):
    """In the log, of the DAMAGED'th block that holds OLD only."""
    with open(daemon.state / "log0", "r+b", buffering=0) as log:
        contents = log.read()
        at = -BLOCK
        for _ in range(DAMAGED + 1):
            at = contents.index(bytes([OLD]) * 64, at + BLOCK) // BLOCK * BLOCK
        log.seek(at + 1000)
        log.write(bytes([byte]))


def scrub_finding(daemon: Daemon) -> dict:
    answer = daemon.cli("--json", "doctor", check=False).json()
    return next(finding for finding in answer["findings"] if finding["check"] == "log scrub")


def wait_for_damage(daemon: Daemon, blocks: int):
    wait_until(lambda: metric(daemon, "mariner_log_damaged_blocks") == blocks, 8, f"{blocks} damaged blocks are known")


def test_a_flipped_byte_is_found_named_and_not_served(folder):
    with Daemon(folder, log=LOG) as daemon:
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        io(url, f"write -P {OLD} {AT} 64k")
        old = sequence_of(daemon.ask("volume", "show", VOLUME)["newest"])
        io(url, f"write -P {NEW} {AT} 64k", *[f"write -P {FILL} {16 + 4 * i}M 4M" for i in range(5)])
        passed = metric(daemon, "mariner_log_scrub_rounds_total")
        wait_until(lambda: metric(daemon, "mariner_log_scrub_rounds_total") >= passed + 2, 8, "two passes")
        assert metric(daemon, "mariner_log_scrub_bytes_total") > 8 << 20
        assert metric(daemon, "mariner_log_damaged_blocks") == 0
        finding = scrub_finding(daemon)
        assert finding["level"] == "ok" and "last full pass" in finding["found"], finding

        flip(daemon, OLD ^ 4)
        wait_for_damage(daemon, 1)
        finding = scrub_finding(daemon)
        assert finding["level"] == "error" and finding["advice"], finding
        assert f"{VOLUME}: LBN {AT // BLOCK + DAMAGED} to {AT // BLOCK + DAMAGED} of write {old}," in finding["found"]
        assert daemon.cli("doctor", check=False).code == 1
        passed = metric(daemon, "mariner_log_scrub_rounds_total")
        wait_until(lambda: metric(daemon, "mariner_log_scrub_rounds_total") > passed, 8, "another pass")
        lines = [line for line in daemon.log_lines() if "the log is damaged" in line]
        assert len(lines) == 1, lines
        assert f"volume={VOLUME} sequence={old} " in lines[0]

        # The moment that needs it: an error for the block, the truth for its neighbours.
        view = daemon.url(daemon.expose(VOLUME, f"#{old}")["iqn"])
        assert "Input/output error" in io(view, f"read -P {OLD} {AT + DAMAGED * BLOCK} 4k")
        for at in (AT + (DAMAGED - 1) * BLOCK, AT + (DAMAGED + 1) * BLOCK):
            assert "read 4096/4096" in (out := io(view, f"read -P {OLD} {at} 4k")) and "failed" not in out, out
        assert "failed" not in (out := io(url, f"read -P {NEW} {AT} 64k")), out

        # What is sound again is forgotten.
        contents = (daemon.state / "log0").read_bytes()
        with open(daemon.state / "log0", "r+b", buffering=0) as log:
            log.seek(contents.index(bytes([OLD] * 1000 + [OLD ^ 4] + [OLD] * 1000)) + 1000)
            log.write(bytes([OLD]))
        wait_for_damage(daemon, 0)
        assert scrub_finding(daemon)["level"] == "ok"
        assert daemon.stop() == 0
