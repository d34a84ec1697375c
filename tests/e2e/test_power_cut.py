"""Power cuts under load, with log, image and index on a disk that forgets what was not flushed."""

import time

import pytest

from crash_campaign import CrashCampaign
from mariner import BUSY_INDEX, Daemon, Failed, wait_until
from powerdisk import PowerDisk

pytestmark = pytest.mark.slow

# Long enough that many cuts fall between a write and its flush.
FLUSH_DELAY_US = 300


def wait_quiet(disk: PowerDisk):
    """Until the daemon has written its log's space once: the cuts are to hit the load, not that."""
    def quiet():
        before = disk.statistics()["volatile_writes"]
        time.sleep(0.3)
        return disk.statistics()["volatile_writes"] == before
    wait_until(quiet, 120, "the log's space is written")


def cut_power(daemon: Daemon, cut):
    """The disk is gone first; then the machine, as far as the daemon is concerned."""
    cut()
    daemon.kill()


def cut_while_it_compacts(campaign: CrashCampaign, disk: PowerDisk, seed: int):
    campaign.daemon.ask("log", "compact")
    time.sleep(campaign.random.uniform(0, 0.5))
    cut_power(campaign.daemon, lambda: disk.cut(seed))


@pytest.fixture
def disk(folder):
    with PowerDisk(folder, FLUSH_DELAY_US) as disk:
        yield disk


# Either way in which a log disk makes a write durable.
@pytest.fixture(params=["fua", "flush"])
def durability(request):
    return request.param


@pytest.fixture
def daemon_on_disk(folder, disk, durability, long_run):
    log = {"max_size": "16G" if long_run else "1G", "durability": durability, "compact_cpu": "100%"}
    with Daemon(folder, disk.mount / "state", log=log, index=BUSY_INDEX) as daemon:
        yield daemon


# 200 cuts in a long run, in parts, so that no log grows too large.
def pytest_generate_tests(metafunc):
    if "part" in metafunc.fixturenames:
        metafunc.parametrize("part", range(4 if metafunc.config.getoption("--long") else 1))


def test_power_cuts_lose_nothing_acknowledged(daemon_on_disk, disk, durability, part, seed, long_run):
    campaign = CrashCampaign(daemon_on_disk, seed + part)
    campaign.prepare()
    for cut in range(25 if long_run else 3):
        wait_quiet(disk)
        before = disk.statistics()
        cut_seed = campaign.random.randrange(1 << 32)
        if cut % 2 == 0:
            campaign.load_until(lambda: cut_power(daemon_on_disk, lambda: disk.cut(cut_seed)))
        else:
            campaign.load_until(lambda: cut_while_it_compacts(campaign, disk, cut_seed))
        after = disk.statistics()
        print(f"cut {cut_seed}: {after}")
        # Nothing else writes with O_DSYNC: the way that is tested is the way that was taken.
        assert (after["durable_writes"] != before["durable_writes"]) == (durability == "fua")
        disk.unmount()
        disk.power_on()
        campaign.restart()
        campaign.check_volume()
        campaign.check_random_moment()
    assert daemon_on_disk.index_checkpoints() > 0
    print(campaign.summary())


def test_a_missing_flush_is_noticed(folder, durability, seed):
    """The test above has teeth: with a disk that lies about the log's flushes, it finds the loss."""
    log = {"max_size": "2G", "durability": durability}
    with PowerDisk(folder) as disk, Daemon(folder, disk.mount / "state", log=log) as daemon:
        campaign = CrashCampaign(daemon, seed)
        campaign.prepare()
        wait_quiet(disk)
        disk.lie_about("log0")
        campaign.load_until(lambda: cut_power(daemon, disk.cut_keeping_nothing),
                            acknowledgements_min=200)
        assert int(disk.statistics()["lies"]) > 0
        disk.unmount()
        disk.power_on()
        with pytest.raises((AssertionError, Failed)) as loss:
            campaign.restart()
            campaign.check_volume()
        print(f"noticed: {loss.value}")
