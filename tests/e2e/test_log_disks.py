"""Several log disks: one log over all of them, disks that come and go while the server runs, and one that is lost."""

import signal
import subprocess

import hammer
import pytest
from mariner import Daemon, wait_until

VOLUME = "db1"
LOG = {"max_size": "128M", "track_size": "8M"}
STORAGE = {"lag_max": "32M", "apply_delay": "200ms"}
LOAD = ("--writes", 600, "--depth", 40)
BATCH = b"MBTH"


def disks(daemon: Daemon, *names: str) -> list[str]:
    return [str(daemon.state / name) for name in names]


def reload(daemon: Daemon, paths: list[str], says: str):
    seen = len([line for line in daemon.log_lines() if says in line])
    daemon._log["disks"] = paths
    daemon.write_config()
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len([line for line in daemon.log_lines() if says in line]) > seen, 10, f"'{says}' in the log")


def check(campaign: hammer.Campaign, url: str):
    verified = campaign.verify(url)
    assert verified["faults"] == [], verified["faults"]


def findings(daemon: Daemon, name: str) -> list[str]:
    answer = daemon.cli("--json", "doctor", check=False).json()
    return [finding["found"] for finding in answer["findings"] if finding["check"] == name]


def test_two_disks_are_one_log_through_kills(folder, seed):
    with Daemon(folder, storage=STORAGE) as daemon:
        daemon._log = {**LOG, "disks": disks(daemon, "log0", "log1")}
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        campaign = hammer.Campaign(folder / "journals")
        for round in range(4):
            campaign.run(url, *LOAD, "--seed", seed + round)
            daemon.kill()
            daemon.start()
            check(campaign, url)
        for path in daemon._log["disks"]:
            with open(path, "rb") as log:
                log.seek(1 << 20)
                assert log.read(32 << 20).count(BATCH) > 10, f"{path} is used"
        assert len(findings(daemon, "log disk")) == 2


def test_a_disk_is_added_and_another_taken_out_while_it_runs(folder, seed):
    with Daemon(folder, log=LOG, storage=STORAGE, window="6s") as daemon:
        daemon.start()
        old, new = disks(daemon, "log0", "log1")
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        campaign = hammer.Campaign(folder / "journals")
        campaign.run(url, *LOAD, "--seed", seed)
        check(campaign, url)
        load = campaign.start(url, "--writes", 1500, "--depth", 40, "--seed", seed + 1)
        reload(daemon, [old, new], "a log disk was added")
        reload(daemon, [new], "takes no more records")
        report = load.report()
        assert load.code == hammer.DONE, report
        check(campaign, url)
        assert any("being emptied" in found for found in findings(daemon, "log disk"))
        # What it holds is still needed, and is read from it after a restart too.
        daemon.kill()
        daemon.start()
        check(campaign, url)

        def let_go() -> bool:
            campaign.run(url, *LOAD, "--seed", seed + 2)
            return any("holds nothing any more" in line for line in daemon.log_lines())

        wait_until(let_go, 60, "the old disk is empty")
        check(campaign, url)
        daemon.kill()
        (daemon.state / "log0").unlink()
        daemon.start()
        check(campaign, url)
        assert len(findings(daemon, "log disk")) == 1


def test_the_last_disk_stays_and_a_missing_one_is_named(folder, seed):
    with Daemon(folder, storage=STORAGE) as daemon:
        daemon._log = {**LOG, "disks": disks(daemon, "log0", "log1")}
        daemon.start()
        url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])
        campaign = hammer.Campaign(folder / "journals")
        campaign.run(url, *LOAD, "--seed", seed)
        check(campaign, url)
        wait_until(lambda: findings(daemon, f"image of {VOLUME}") == ["0 MiB not applied yet"], 20, "the image has it all")
        assert daemon.stop() == 0
        lost = daemon.state / "log1"
        lost.rename(folder / "elsewhere")
        daemon.start(wait=False)
        assert daemon.process.wait(20) != 0
        assert str(lost) in daemon.tail() and "[log] lost" in daemon.tail(), daemon.tail()
        # It will not come back: what the image holds is served all the same.
        daemon._log["disks"] = disks(daemon, "log0")
        daemon._log["lost"] = [str(lost)]
        daemon.start()
        assert any("declared lost" in line for line in daemon.log_lines())
        check(campaign, url)


@pytest.fixture
def device(folder):
    """An empty block device of 128 MiB, and the file below it."""
    file = folder / "device"
    with open(file, "wb") as made:
        made.truncate(128 << 20)
    loop = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True)
    if loop.returncode != 0:
        pytest.skip(f"no loop device can be had here: {loop.stderr}")
    yield loop.stdout.strip(), file
    subprocess.run(["losetup", "--detach", loop.stdout.strip()], check=True)


def refused(daemon: Daemon, path: str, why: str):
    daemon._log["disks"] = [*daemon._log["disks"][:1], path]
    daemon.write_config()
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: any(path in line and why in line for line in daemon.log_lines()), 10, f"'{why}' in the log")


def test_a_device_that_holds_something_is_not_taken(folder, device):
    path, file = device
    with Daemon(folder, log=LOG) as daemon:
        daemon.start()
        with open(file, "r+b") as raw:
            raw.seek((64 << 10) + 64)
            raw.write(b"_BHRfS_M")  # Btrfs: its first blocks are zeros
        before = file.read_bytes()
        refused(daemon, path, "found data at byte 65600; is it the right one?")
        assert file.read_bytes() == before
        # One that is mounted is not even looked at.
        at = folder / "at"
        at.mkdir()
        subprocess.run(["mkfs.ext4", "-q", path], check=True)
        subprocess.run(["mount", path, at], check=True)
        try:
            refused(daemon, path, "is in use; unmount it")
        finally:
            subprocess.run(["umount", at], check=True)
        # Emptied as the message says, it is taken, and it is in use then.
        for offset in (0, 127 << 20):
            subprocess.run(["blkdiscard", "-f", "-z", "-o", str(offset), "-l", str(1 << 20), path], check=True)
        reload(daemon, [*daemon._log["disks"][:1], path], path)
        wait_until(lambda: len(findings(daemon, "log disk")) == 2, 10, "the disk is used")
        assert subprocess.run(["mount", path, at], capture_output=True).returncode != 0
        assert daemon.process.poll() is None
