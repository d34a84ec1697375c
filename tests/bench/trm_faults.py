"""What loss, slow and silent receivers, a blocked switch and a forger do to writes by multicast."""

import os
import signal
import statistics

from results import Row, say
from trm_lab import MULTICAST, RECEIVERS, TrmLab, is_exact, payload_rate

KIB = 1 << 10
LOSSES = ((0.1, 0.95), (1, 0.85), (5, 0.5))  # per cent, and what is to be left of the rate
OTHERS_MIN, SETTLED_S, PAUSE_MAX_S, FORGED_MIN = 0.9, 2, 1.0, 0.9
VICTIM = RECEIVERS[1]  # not the one that answers
OTHERS = tuple(host for host in RECEIVERS if host != VICTIM)
WRITE = {"write_bytes": 8 * KIB, "every_word": True}
# As a coordinator does: a write is over when the logger, the first receiver, has it.
BY_LOGGER = WRITE | {"outstanding": 64, "answers": 1, "interval": 0.02}


def rates(lines: list[dict], begin_s: float, end_s: float) -> dict[str, float]:
    """Bytes a second that each receiver got between two moments of the run."""
    inside = [each for each in lines if begin_s <= each["t"] <= end_s]
    if len(inside) < 2:
        return {}
    first, last = inside[0], inside[-1]
    return {host: (last["bytes"][i] - first["bytes"][i]) / (last["t"] - first["t"]) for i, host in enumerate(RECEIVERS)}


def longest_pause(lines: list[dict], begin_s: float, end_s: float) -> float:
    """The longest time in which no write was completed."""
    longest, since, completed = 0.0, begin_s, None
    for each in lines:
        if each["t"] < begin_s or each["t"] > end_s:
            continue
        if each["completed"] != completed:
            longest = max(longest, each["t"] - since) if completed is not None else longest
            since, completed = each["t"], each["completed"]
    return max(longest, end_s - since)


class Faults:
    def __init__(self, lab: TrmLab, scale):
        self.lab, self.scale = lab, scale
        self.rows: list[Row] = []
        self.runs: dict[str, list[dict]] = {}

    def measure(self):
        for rate in ("100mbit", "1gbit"):
            self.lab.set_rate(rate)
            self._loss(rate)
        self.lab.set_rate("100mbit")
        self._slow()
        self._paused()
        self._killed()
        self._blocked()

    def _row(self, *args, **more):
        self.rows.append(Row(*args, scale=self.scale.name, **more))

    def _keep(self, key: str, run: dict) -> dict:
        if run["failure"]:
            say(f"{key}: {run['failure']}")
        # (Lines of every 20 ms are looked at, not kept.)
        self.runs.setdefault(key, []).append({name: value for name, value in run.items() if name != "lines"})
        return run

    # -- loss ----------------------------------------------------------------------------------------

    def _loss(self, rate: str):
        for percent, goal in LOSSES:
            for victims, words in (((VICTIM,), "one receiver"), (RECEIVERS, "all receivers")):
                say(f"loss of {percent} % at {words}, {rate} ...")
                clean, lossy = [], []
                for _ in range(self.scale.rounds):
                    clean.append(self._lossy(rate, 0, ()))
                    lossy.append(self._lossy(rate, percent, victims))
                self._loss_row(rate, percent, goal, words, lossy, clean)

    def _lossy(self, rate: str, percent: float, victims: tuple[str, ...]) -> dict:
        for host in victims:
            self.lab.control("loss", host, str(percent))
        try:
            return self._keep(f"loss.{rate}.{percent}.{len(victims)}", self.lab.run(MULTICAST, self.scale.seconds, outstanding=512, **WRITE))
        finally:
            for host in victims:
                self.lab.control("loss", host, "0")

    def _loss_row(self, rate: str, percent: float, goal: float, words: str, lossy: list[dict], clean: list[dict]):
        values = [[payload_rate(run) for run in runs] for runs in (lossy, clean)]
        whole = None not in values[0] + values[1]
        wrong = sum(run.get("bad", 0) + run.get("missed", 0) for run in lossy)
        self._row(f"loss.{rate}.{percent}.{'one' if words.startswith('one') else 'all'}", f"8 KiB writes, {rate}, {percent} % lost at {words}; {wrong} corrupt or missing",
                  "MB/s", *(statistics.median(each) / 1e6 if whole else None for each in values), "nothing lost", self.scale.seconds * self.scale.rounds, goal=goal, needs_s=5,
                  lacks="" if all(map(is_exact, lossy)) else "not every write was right",
                  paired=statistics.median(a / b for a, b in zip(*values)) if whole else None)

    # -- one receiver that is slow, silent, or gone -----------------------------------------------------

    def _others(self, key: str, what: str, fault, seconds: float, mend=None, least_s: float = 5):
        """How fast the others are before, and from two seconds after the fault on."""
        say(f"{what} ...")
        before_s = self.scale.fault_s
        running = self.lab.start(MULTICAST, before_s + seconds, **BY_LOGGER)
        try:
            running.wait_for(before_s)
            fault(running)
            at = running.lines[-1]["t"]
            running.wait_for(before_s + seconds - 0.1)
        finally:
            if mend is not None:
                mend(running)
        run = self._keep(key, running.result())
        if run["failure"]:
            return self._row(key, what, "MB/s", None, None, "before", 0, goal=OTHERS_MIN)
        before, after = rates(run["lines"], 0, before_s), rates(run["lines"], at + SETTLED_S, before_s + seconds)
        worst = min(OTHERS, key=lambda host: after.get(host, 0) / before[host])
        self._row(key, f"{what}: what the others get, from {SETTLED_S} s after it on; {run['bad']} corrupt", "MB/s", after.get(worst, 0) / 1e6, before[worst] / 1e6, "before",
                  max(0.0, seconds - SETTLED_S), goal=OTHERS_MIN, needs_s=least_s, lacks="some writes were corrupt" if run["bad"] else "")
        pause = longest_pause(run["lines"], at, before_s + seconds - 0.1)
        self._row(f"{key}.pause", f"{what}: the longest pause of writes (less is better)", "s", pause, PAUSE_MAX_S, "a second", seconds, less_is_better=True)

    def _slow(self):
        self._others("slow", "one receiver's link at a tenth of the rate", lambda _: self.lab.control("rate", VICTIM, "10mbit"), 2 * self.scale.fault_s + SETTLED_S,
                     lambda _: self.lab.control("rate", VICTIM, self.lab.rate))

    def _paused(self):
        def resume(running):
            os.kill(running.pids[VICTIM], signal.SIGCONT)
        self._others("paused", f"one receiver paused for {self.scale.pause_s:g} s", lambda running: os.kill(running.pids[VICTIM], signal.SIGSTOP), self.scale.pause_s, resume)

    def _killed(self):
        self._others("killed", "one receiver killed", lambda running: os.kill(running.pids[VICTIM], signal.SIGKILL), self.scale.fault_s + SETTLED_S, least_s=3)

    # -- multicast that ends and comes back --------------------------------------------------------------

    def _blocked(self):
        say("multicast blocked in the switch ...")
        part = self.scale.fault_s
        running = self.lab.start(MULTICAST, 3 * part, **BY_LOGGER)
        try:
            running.wait_for(part)
            self.lab.control("block-multicast")
            blocked = running.lines[-1]
            running.wait_for(2 * part)
        finally:
            self.lab.control("allow-multicast")
        allowed = running.lines[-1]
        run = self._keep("blocked", running.result())
        if run["failure"]:
            return self._row("blocked", "multicast blocked in the switch", "s", None, PAUSE_MAX_S, "the bound", 0, goal=1, less_is_better=True)
        end = run["lines"][-1]
        faults = [] if is_exact(run) else ["not every write was right"]
        if allowed["taking_part"] != 0:
            faults.append("somebody still took part while it was blocked")
        if end["taking_part"] != len(RECEIVERS):
            faults.append("not all took part again at the end")
        self._row("blocked", "multicast blocked in the switch: the longest pause of writes (less is better)", "s", longest_pause(run["lines"], blocked["t"], 3 * part - 0.1),
                  PAUSE_MAX_S, "the bound", 2 * part, goal=1, less_is_better=True, needs_s=5, lacks="; ".join(faults))
        before, meanwhile, after = (rates(run["lines"], a, b) for a, b in ((0, part), (blocked["t"] + SETTLED_S, allowed["t"]), (allowed["t"] + SETTLED_S, 3 * part)))
        for key, values, words in (("blocked.meanwhile", meanwhile, "while it is blocked, over connections"), ("blocked.after", after, "when it is let through again")):
            self._row(key, f"8 KiB writes, 100 Mbit/s, {words}", "MB/s", min(values.values(), default=0) / 1e6, min(before.values()) / 1e6, "before", part)

    # -- somebody without the key ------------------------------------------------------------------------

    def measure_forged(self):
        say("forged datagrams ...")
        self.lab.set_rate("1gbit")
        before_s, seconds = self.scale.fault_s, self.scale.forge_s
        options = WRITE | {"outstanding": 512, "interval": 0.1}
        running = self.lab.start(MULTICAST, before_s + seconds, **options)
        running.wait_for(before_s)
        began = running.lines[-1]
        forger = self.lab.forge(count=self.scale.forged, seconds=seconds - 1)
        said, complaints = forger.communicate(timeout=seconds + 60)
        ended = running.lines[-1]
        run = self._keep("forged", running.result())
        if run["failure"] or forger.returncode != 0:
            say(f"forged: {run['failure']}{complaints}")
            return self._row("forged", "forged datagrams", "MB/s", None, None, "before", 0, goal=FORGED_MIN)
        run["forger"] = said
        before, meanwhile = rates(run["lines"], 0, began["t"]), rates(run["lines"], began["t"], ended["t"])
        self._row("forged", f"8 KiB writes, 1 Gbit/s, while {self.scale.forged:,} random, forged and replayed datagrams come; {run['bad'] + run['missed']} accepted", "MB/s",
                  min(meanwhile.values()) / 1e6, min(before.values()) / 1e6, "before", ended["t"] - began["t"], goal=FORGED_MIN, needs_s=10,
                  lacks="" if is_exact(run) else "not every write was right")
