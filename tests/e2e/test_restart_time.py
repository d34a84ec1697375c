"""A restart with 1 GiB of unapplied log: the first login succeeds within two seconds."""

import time

import pytest

import hammer
from mariner import Daemon

pytestmark = pytest.mark.slow

UNAPPLIED_BYTES = 1 << 30
REGION_BYTES = 2 << 30   # so large that few writes replace one another
RESTART_SECONDS_MAX = 2.0


def test_restart_with_a_gibibyte_of_unapplied_log(folder):
    # The image is held back, so that all of the load stays in the log.
    storage = {"pending_memory": "4G", "lag_max": "4G", "apply_delay": "1h"}
    with Daemon(folder, log={"max_size": "4G"}, storage=storage) as daemon:
        daemon.start()
        daemon.create("db1", "2G")
        url = daemon.volume_url("db1")
        campaign = hammer.Campaign(folder / "journals", REGION_BYTES)
        unapplied = 0
        for _ in range(16):
            campaign.run(url, "--writes", 1000, "--cells", 512, "--read-percent", 0,
                         "--unmap-percent", 0, "--same-percent", 0)
            unapplied = int(daemon.ask("volume", "show", "db1")["unapplied_bytes"])
            if unapplied >= UNAPPLIED_BYTES:
                break
        assert unapplied >= UNAPPLIED_BYTES, unapplied
        daemon.kill()
        began = time.monotonic()
        daemon.start(wait=False)
        hammer.login(url, 60)
        seconds = time.monotonic() - began
        print(f"restart to first login: {seconds:.2f} s with {unapplied / 2**20:.0f} MiB unapplied")
        daemon.wait_ready()
        report = campaign.verify(url)
        assert report["faults"] == []
        assert seconds <= RESTART_SECONDS_MAX
