"""Kill -9 under load, again and again: no acknowledged write is lost, none is torn, every moment is exact."""

import pytest

from crash_campaign import CrashCampaign

pytestmark = pytest.mark.slow


def test_kill_loop(daemon_off, seed, long_run):
    campaign = CrashCampaign(daemon_off, seed)
    campaign.prepare()
    for _ in range(50 if long_run else 6):
        campaign.load_until(daemon_off.kill)
        campaign.restart()
        campaign.check_volume()
        campaign.check_random_moment()
    assert daemon_off.index_checkpoints() > 0
    print(campaign.summary())
