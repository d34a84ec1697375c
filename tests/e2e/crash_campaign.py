"""What the kill loop and the power cuts have in common: rounds of load, a crash, and the questions after it."""

import random
import statistics
import time

import hammer
import mariner

VOLUME = "db1"


class CrashCampaign:
    """Every round's writes stay on record, so that each check covers the whole history."""

    def __init__(self, daemon: mariner.Daemon, seed: int):
        self.daemon = daemon
        self.random = random.Random(seed)
        self.rounds = hammer.Campaign(daemon.folder / "journals")
        self.url = ""
        self.began_ns = 0
        self.restart_seconds: list[float] = []
        self.acknowledged = 0
        self.present = 0
        self.absent = 0

    def prepare(self):
        self.daemon.start()
        self.daemon.create(VOLUME, "64M")
        self.url = self.daemon.volume_url(VOLUME)
        self.began_ns = time.time_ns()

    def load_until(self, crash, acknowledgements_min: int = 1) -> dict:
        """Runs the load with at least 32 writes outstanding, and `crash` at a random moment of it."""
        rounds_before = len(self._journals())
        moment = acknowledgements_min + self.random.randrange(3000)
        load = self.rounds.start(self.url, "--depth", 40, "--seconds", 60,
                                 "--seed", self.random.randrange(1, 1 << 62))
        try:
            mariner.wait_until(lambda: len(self._journals()) > rounds_before
                               and (self._journals()[-1].read_text().count("\nA ")
                                    >= moment),
                               60, f"{moment} acknowledgements")
            if not load.running():
                raise mariner.Failed(f"the load ended before the crash: {load.report()}")
            crash()
            report = load.report()
        finally:
            load.kill()
        assert load.code in (hammer.LOST, hammer.REFUSED), report
        self.acknowledged += report["acknowledged"]
        return report

    def _journals(self) -> list:
        return sorted(self.rounds.folder.glob("*.journal"))

    def restart(self) -> float:
        began = time.monotonic()
        self.daemon.start(wait=False)
        try:
            hammer.login(self.url, 60)
        except mariner.Failed as error:
            raise mariner.Failed(f"{error}\n{self.daemon.tail()}")
        seconds = time.monotonic() - began
        self.restart_seconds.append(seconds)
        self.daemon.wait_ready()
        return seconds

    def summary(self) -> str:
        return (f"{self.acknowledged} acknowledged writes, all there; of the unacknowledged "
                f"{self.present} present and {self.absent} absent, each whole; restart to first "
                f"login: median {statistics.median(self.restart_seconds):.2f} s, longest "
                f"{max(self.restart_seconds):.2f} s")

    def check_volume(self):
        report = self.rounds.verify(self.url)
        assert report["faults"] == [], report["faults"]
        # The image may hold what the history lost.
        newest = mariner.sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])
        assert newest >= self.acknowledged, f"{self.acknowledged} acknowledged, newest is #{newest}"
        self.present += report["present"]
        self.absent += report["absent"]

    def check_random_moment(self):
        """Exposes a random moment, by time or by sequence number, and compares all of it."""
        history = self.daemon.history_file(VOLUME, self.daemon.folder / "history.json")
        options = []
        if self.random.random() < 0.5:
            asked_ns = self.random.randrange(self.began_ns, time.time_ns())
            moment = mariner.time_text(asked_ns)
            options = ["--asked-ns", asked_ns]
        else:
            newest = mariner.sequence_of(self.daemon.ask("volume", "show", VOLUME)["newest"])
            moment = f"#{self.random.randrange(1, newest + 1)}"
        view = self.daemon.expose(VOLUME, moment)
        try:
            report = self.rounds.verify_moment(self.daemon.url(view["iqn"]), history,
                                               mariner.sequence_of(view["at"]), *options)
            assert report["faults"] == [], (moment, view["at"], report["faults"])
        finally:
            self.daemon.ask("view", "unexpose", view["name"])
