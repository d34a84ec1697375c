"""Going back, at the level of blocks: by mark, time and sequence number, undone, across crashes, and through views."""

import subprocess
import time

import pytest

import hammer
from mariner import sequence_of, time_text

VOLUME = "db1"


class Story:
    """A volume with a load's history; the hammer's model knows each of its moments."""

    def __init__(self, daemon, folder):
        self.daemon = daemon
        self.folder = folder
        self.campaign = hammer.Campaign(folder / "journals")
        self.url = daemon.url(daemon.create(VOLUME, "64M")["iqn"])

    def write(self, writes: int = 800):
        # The hammer's own reads know nothing of rollbacks: the comparison below does.
        self.campaign.run(self.url, "--writes", writes, "--read-percent", 0)

    def newest(self) -> int:
        return sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])

    def check(self, url: str, sequence: int, *options):
        history = self.daemon.history_file(VOLUME, self.folder / "history.json")
        report = self.campaign.verify_moment(url, history, sequence, *options)
        assert report["faults"] == [], (sequence, report["faults"])
        return report

    def check_now(self):
        self.check(self.url, self.newest())


@pytest.fixture
def story(daemon, folder):
    return Story(daemon, folder)


def qemu_io(url: str, *commands: str) -> tuple[int, str]:
    words = [w for c in commands for w in ("-c", c)]
    run = subprocess.run(["qemu-io", "-f", "raw", *words, url], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def test_by_mark_time_and_sequence_and_undo(story):
    daemon = story.daemon
    story.write()
    daemon.ask("mark", "add", VOLUME, "first")
    story.write()
    asked_ns = time.time_ns()
    story.write()
    number = story.newest()
    story.write()
    story.check_now()

    answer = daemon.rollback(VOLUME, "mark:first")
    assert sequence_of(answer) == story.newest()
    story.check_now()
    daemon.ask("rollback", "undo", VOLUME, "--force")
    story.check_now()

    answer = daemon.rollback(VOLUME, time_text(asked_ns))
    story.check(story.url, sequence_of(answer["target"]), "--asked-ns", asked_ns)
    story.check_now()
    story.write()
    story.check_now()

    daemon.rollback(VOLUME, f"#{number}")
    story.check_now()
    daemon.ask("rollback", "undo", VOLUME, "--force")
    story.check_now()


def test_a_dry_run_changes_nothing(story):
    story.write()
    before = story.newest()
    story.write()
    newest = story.newest()
    answer = story.daemon.rollback(VOLUME, f"#{before}", "--dry-run")
    assert answer["dry_run"] and sequence_of(answer["target"]) == before
    assert int(answer["undone_writes"]) > 0
    assert story.newest() == newest
    story.check_now()


@pytest.mark.parametrize("undo_after_restart", [False, True])
def test_kill_right_after_a_rollback(story, undo_after_restart):
    story.write(2000)
    number = story.newest() // 2
    story.daemon.rollback(VOLUME, f"#{number}")
    story.daemon.kill()
    story.daemon.start()
    story.check_now()
    story.check(story.url, number)
    if undo_after_restart:
        story.daemon.ask("rollback", "undo", VOLUME, "--force")
        story.check_now()
    story.write()
    story.check_now()


def test_every_moment_stays_exact_around_rollbacks(story):
    story.write()
    first = story.newest()
    story.write()
    second = story.newest()
    story.daemon.rollback(VOLUME, f"#{first}")
    third = story.newest()
    story.write()
    fourth = story.newest()
    for sequence in (first // 2, first, second - 1, second, third, third + 1, fourth):
        view = story.daemon.expose(VOLUME, f"#{sequence}")
        assert sequence_of(view["at"]) == sequence
        story.check(story.daemon.url(view["iqn"]), sequence)
        story.daemon.ask("view", "unexpose", view["name"])


def test_a_view_stays_while_the_volume_goes_on(story):
    story.write()
    number = story.newest()
    view = story.daemon.expose(VOLUME, f"#{number}")
    url = story.daemon.url(view["iqn"])
    story.check(url, number)
    story.write()
    story.daemon.rollback(VOLUME, f"#{number // 2}")
    story.check(url, number)
    code, out = qemu_io(url, "write 0 4k")
    assert code != 0 or "failed" in out, "a read-only view took a write"
    story.check(url, number)


def test_a_writable_view_is_its_own_disk(story):
    story.write()
    number = story.newest()
    view = story.daemon.expose(VOLUME, f"#{number}", "--writable")
    url = story.daemon.url(view["iqn"])
    story.check(url, number)
    code, out = qemu_io(url, "write -P 0x42 1M 256k", "write -P 0x43 1100k 512", "write -z 2M 64k",
                        "read -P 0x42 1M 50k", "read -P 0 2M 64k")
    assert code == 0 and "failed" not in out, out
    story.check_now()
    assert story.newest() == number, "a write to a view is no write of the volume"
    code, out = qemu_io(url, "read -P 0x42 1M 50k")
    assert code == 0 and "failed" not in out, out
    story.daemon.ask("view", "unexpose", view["name"])
    assert qemu_io(url, "read 0 4k")[0] != 0, "the view is still there"


def test_a_mark_keeps_its_moment_through_a_crash(story):
    story.write()
    mark = story.daemon.ask("mark", "add", VOLUME, "kept", "--lock", "1h")
    number = sequence_of(mark["at"])
    story.write()
    story.daemon.kill()
    story.daemon.start()
    view = story.daemon.expose(VOLUME, "mark:kept")
    assert sequence_of(view["at"]) == number
    story.check(story.daemon.url(view["iqn"]), number)
