"""Writes to three nodes by multicast beside three connections, in a lab with a switch that snoops.

    trm.py [--short] [--only PART[,PART]]

Memory to memory, as in the dissertation's section 4.6.7; the end-to-end figures have real daemons. What is honest to say
about each figure stands in NOTES."""

import argparse
import dataclasses
import statistics
import sys
import pathlib
import tempfile

import curve
import trm_end_to_end
from ending import end_cleanly
from results import OUT, Row, describe, header, line, machine, say, write_json
from trm_faults import Faults
from trm_lab import BYSTANDER, CONNECTIONS, MULTICAST, PLAIN, RECEIVERS, TrmLab, is_exact, payload_rate, wire_share

KIB, MIB = 1 << 10, 1 << 20
RATES = ("100mbit", "1gbit")
SIZES = (8 * KIB, 256 * KIB)
AGGREGATES = (1, 2, 4, 8, 16, 32, 64)
FILES = (8 * KIB, 40 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB)
OF_THEORY, LATENCY_MAX, CPU_MAX = 0.98, 1.05, 0.6
WIRE_MAX = {1500: 1.09, 9000: 1.04}
# The dissertation's, section 4.6.7: measured, and in theory.
PAPER = {"100mbit": (2.70, 2.72), "aggregate of 8, 1 Gbit/s": (2.68, 2.73)}
PARTS = ("throughput", "wire", "aggregation", "files", "latency", "cpu", "faults", "forged", "end_to_end")

NOTES = """\
- A sender, three receivers and a bystander are network namespaces on one machine, with a cable each to a bridge that snoops
  IGMP and has a querier (deploy/lab). Cables are shaped to the rate that is named (tbf), both ways. All share the machine's
  processors, the switch included: at 1 Gbit/s these may be the bound and not the link; `wire` says how much of it was used.
- Ours and the three unicast streams are the same program, the nodes' bus (tests/bench/trm_load.cc): headers and payloads over
  TLS connections, or the payloads by multicast, authenticated and encrypted as well. *Plain TCP* protects nothing: three
  sockets, a header of 64 bytes, many writes for a system call.
- Memory to memory: a receiver checks each write's number and content, computes the checksums that a log would want where they did not come along, and
  answers at the end of the event loop's turn. {outstanding} writes are outstanding unless it is said otherwise; each ends when all three have it.
- *In theory* is the ratio of bytes that the sender puts on its link for a byte of payload, by connections to by multicast, counted
  at its interface in the same runs (Ethernet frames without preamble, checksum and gap).
- Each figure is the median of {rounds} rounds of {seconds:g} s in which all took turns; a ratio is the median of the rounds' ratios.
- CPU is all the time in which the first processor was not idle while the sender was pinned to it: the sender, and its host's part
  of the network (packet steering; nothing is segmented by hardware, and the shaper's timers are there, too). Receivers, their hosts and the switch had the other one.
- Loss is of all IPv4 packets delivered to that receiver, connections' included, in the switch; every word is compared."""


@dataclasses.dataclass(frozen=True)
class Scale:
    name: str
    rounds: int
    seconds: float
    fault_s: float       # of each part of a fault's run
    pause_s: float       # of the paused receiver
    forged: int
    forge_s: float
    points: int = 99     # of curves


FULL = Scale("full", 3, 3, 5, 30, 1_000_000, 30)
SHORT = Scale("short", 1, 0.5, 1.5, 3, 20_000, 2, 2)
OUTSTANDING = 64


def size_name(size: int) -> str:
    return f"{size // KIB} KiB" if size < MIB else f"{size // MIB} MiB"


def median(values: list) -> float | None:
    return statistics.median(values) if values and None not in values else None


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


class Bench:
    def __init__(self, scale: Scale, parts: list[str]):
        self.scale, self.parts = scale, parts
        self.runs: dict[str, list[dict]] = {}
        self.rows: list[Row] = []
        self.curves: dict[str, dict] = {}

    def measure(self):
        with TrmLab("100mbit") as lab:
            before = lab.multicast_packets(BYSTANDER)
            if "throughput" in self.parts:
                self._throughput(lab)
            if "latency" in self.parts:
                self._latency(lab)
            if "aggregation" in self.parts:
                self._aggregation(lab)
            if "files" in self.parts:
                self._files(lab)
            if "cpu" in self.parts:
                self._cpu(lab)
            faults = Faults(lab, self.scale)
            if "faults" in self.parts:
                faults.measure()
            if self.runs:
                self._bystander(lab, before)
            if "forged" in self.parts:  # last: there the bystander joins
                faults.measure_forged()
            self.rows += faults.rows
            self.runs |= faults.runs
        if "wire" in self.parts:
            with TrmLab("100mbit", 9000) as lab:
                self._wire(lab)
        if "end_to_end" in self.parts:
            self._end_to_end()

    def _run(self, lab: TrmLab, key: str, way: str, seconds: float | None = None, **options) -> dict:
        if "outstanding" not in options:
            options["outstanding"] = OUTSTANDING
        run = lab.run(way, seconds or self.scale.seconds, **options)
        if run["failure"]:
            say(f"{key}: {run['failure']}")
        elif not is_exact(run):
            say(f"{key}: {run['bad']} writes were bad, {run['missed']} missed")
        self.runs.setdefault(key, []).append(run)
        return run

    def _row(self, *args, **more):
        self.rows.append(Row(*args, scale=self.scale.name, **more))

    # -- how fast ----------------------------------------------------------------------------------

    def _throughput(self, lab: TrmLab):
        for rate in RATES:
            lab.set_rate(rate)
            for size in SIZES:
                self._throughput_of(lab, rate, size)

    def _throughput_of(self, lab: TrmLab, rate: str, size: int):
        key = f"throughput.{rate}.{size // KIB}k"
        say(f"{key} ...")
        runs = {way: [] for way in (MULTICAST, CONNECTIONS, PLAIN)}
        for _ in range(self.scale.rounds):
            for way, mine in runs.items():
                mine.append(self._run(lab, f"{key}.{way}", way, write_bytes=size))
        rates = {way: [payload_rate(run) for run in mine] for way, mine in runs.items()}
        wires = {way: [wire_share(run) for run in mine] for way, mine in runs.items()}
        seconds = self.scale.seconds * self.scale.rounds
        what = f"{size_name(size)} writes to three, {rate}"
        for way, name in ((CONNECTIONS, "three TLS connections"), (PLAIN, "three plain TCP connections")):
            seen = [ratio(a, b) for a, b in zip(rates[MULTICAST], rates[way])]
            theory = [ratio(a, b) for a, b in zip(wires[way], wires[MULTICAST])]
            self._row(f"{key}.{way}", what, "MB/s", _mb(median(rates[MULTICAST])), _mb(median(rates[way])), name, seconds, paired=median(seen))
            self._row(f"{key}.{way}.of_theory", f"{what}: that ratio, of what bytes on the wire allow", "×", median(seen), median(theory),
                      f"in theory, over {name}", seconds, goal=OF_THEORY if way == CONNECTIONS else None, needs_s=5,
                      lacks="" if all(map(_went_by_multicast, runs[MULTICAST])) else "not all payloads went by multicast",
                      paired=median([ratio(a, b) for a, b in zip(seen, theory)]))
        self._row(f"{key}.link", f"{what}: of the sender's link used", "MB/s on the wire",
                  _mb(median([_product(a, b) for a, b in zip(rates[MULTICAST], wires[MULTICAST])])), _bits(rate) / 8e6, "the link", seconds)
        if rate == RATES[0]:
            self._wire_row(1500, size, median(wires[MULTICAST]), seconds)

    def _wire_row(self, mtu: int, size: int, share: float | None, seconds: float):
        self._row(f"wire.{mtu}.{size // KIB}k", f"{size_name(size)} writes, MTU {mtu}: bytes on the sender's link for a byte of payload "
                  "(less is better)", "B/B", share, WIRE_MAX[mtu], "the bound", seconds, goal=1 if size == 8 * KIB else None,
                  less_is_better=True, needs_s=2)

    def _wire(self, lab: TrmLab):
        for size in SIZES:
            runs = [self._run(lab, f"wire.9000.{size // KIB}k", MULTICAST, write_bytes=size) for _ in range(self.scale.rounds)]
            self._wire_row(9000, size, median([wire_share(run) for run in runs]), self.scale.seconds * self.scale.rounds)

    # -- the paper's figures -----------------------------------------------------------------------

    def _aggregation(self, lab: TrmLab):
        """Figure 4.18: 4 KiB writes, so many issued at a time."""
        lab.set_rate("1gbit")
        seen, theory = [], []
        for aggregate in AGGREGATES[:self.scale.points]:
            say(f"aggregation of {aggregate} ...")
            pair = [self._run(lab, f"aggregation.{aggregate}.{way}", way, write_bytes=4 * KIB, aggregate=aggregate) for way in (MULTICAST, CONNECTIONS)]
            rates, wires = [payload_rate(run) for run in pair], [wire_share(run) for run in pair]
            seen.append((aggregate, ratio(*rates)))
            theory.append((aggregate, ratio(wires[1], wires[0])))
            self._row(f"aggregation.{aggregate}", f"4 KiB writes, {aggregate} at a time, 1 Gbit/s (Figure 4.18; the paper at 8: 2.68×, in theory 2.73×)",
                      "MB/s", _mb(rates[0]), _mb(rates[1]), "three TLS connections", self.scale.seconds)
        self.curves["aggregation"] = {"title": "Degree of aggregation (the paper's Figure 4.18): 4 KiB writes, 1 Gbit/s",
                                      "x": "writes issued at a time", "seen": seen, "theory": theory,
                                      "marks": [curve.Mark("paper", 8, 2.68), curve.Mark("paper, in theory", None, 2.73)]}

    def _files(self, lab: TrmLab):
        """Figure 4.19: so much, from the first byte until all have the last one."""
        lab.set_rate("1gbit")
        seen, theory = [], []
        for size in FILES[:self.scale.points]:
            say(f"files of {size_name(size)} ...")
            pair = [self._run(lab, f"files.{size // KIB}k.{way}", way, max(self.scale.seconds, size / 20e6 * 5 if self.scale is FULL else 0), write_bytes=8 * KIB,
                              file_bytes=size) for way in (MULTICAST, CONNECTIONS)]
            times = [median(run.get("files_s", [])) for run in pair]
            seen.append((size / KIB, ratio(times[1], times[0])))
            self._row(f"files.{size // KIB}k", f"a file of {size_name(size)} in 8 KiB writes, 1 Gbit/s (Figure 4.19): time (less is better)", "ms",
                      _ms(times[0]), _ms(times[1]), "three TLS connections", sum(sum(run.get("files_s", [])) for run in pair) / 2, less_is_better=True)
        self.curves["files"] = {"title": "File size (the paper's Figure 4.19): 8 KiB writes, 1 Gbit/s", "x": "file size in KiB", "seen": seen,
                                "theory": theory, "marks": [curve.Mark("paper", 256, 2.2), curve.Mark("paper", 4096, 2.6)]}

    # -- what it costs -----------------------------------------------------------------------------

    def _latency(self, lab: TrmLab):
        lab.set_rate("100mbit")
        say("latency ...")
        size = 8 * KIB
        runs = {"ours": [], "tls": [], "plain": []}
        for _ in range(self.scale.rounds):
            runs["ours"].append(self._run(lab, "latency.multicast", MULTICAST, write_bytes=size, outstanding=1))
            for name, way in (("tls", CONNECTIONS), ("plain", PLAIN)):
                runs[name].append(self._run(lab, f"latency.one.{way}", way, receivers=RECEIVERS[:1], write_bytes=size, outstanding=1))
        p50 = {name: [None if run["failure"] else run["latency_us"]["p50"] for run in mine] for name, mine in runs.items()}
        for rival, words in (("tls", "a TLS connection to one receiver"), ("plain", "plain TCP to one receiver")):
            self._row(f"latency.{rival}", "8 KiB writes one at a time, 100 Mbit/s, by multicast to three: median until all have it (less is better)", "us",
                      median(p50["ours"]), median(p50[rival]), words, self.scale.seconds * self.scale.rounds,
                      goal=LATENCY_MAX if rival == "tls" else None, less_is_better=True, needs_s=5,
                      paired=median([ratio(a, b) for a, b in zip(p50["ours"], p50[rival])]))

    def _cpu(self, lab: TrmLab):
        lab.set_rate("1gbit")
        with lab.steered():
            for size in SIZES:
                self._cpu_of(lab, size)

    def _cpu_of(self, lab: TrmLab, size: int):
        say(f"cpu of {size_name(size)} ...")
        runs = {way: [] for way in (MULTICAST, CONNECTIONS, PLAIN)}
        for _ in range(self.scale.rounds):
            for way, mine in runs.items():
                mine.append(self._run(lab, f"cpu.{size // KIB}k.{way}", way, write_bytes=size, pin=True))
        # (Then the figure says nothing of who was measured.)
        busy = any(_was_never_idle(run) for mine in runs.values() for run in mine)
        for name, figure, goal in (("", _processor_ns, CPU_MAX), (".process", _process_ns, None)):
            costs = {way: [figure(run) for run in mine] for way, mine in runs.items()}
            what = "the sender's CPU" if goal else "the sender's process alone"
            for way, rival in ((CONNECTIONS, "three TLS connections"), (PLAIN, "three plain TCP connections")):
                self._row(f"cpu.{size // KIB}k.{way}{name}", f"{size_name(size)} writes to three, 1 Gbit/s: {what} for a byte of payload (less is better)",
                          "ns", median(costs[MULTICAST]), median(costs[way]), rival, self.scale.seconds * self.scale.rounds,
                          goal=goal if way == CONNECTIONS else None, less_is_better=True, needs_s=5,
                          lacks="something else kept the first processor busy" if busy else "",
                          paired=median([ratio(a, b) for a, b in zip(costs[MULTICAST], costs[way])]))

    def _bystander(self, lab: TrmLab, before: int):
        members = min(lab.multicast_packets(host) for host in RECEIVERS)
        self._row("bystander", "payload datagrams that a bystander got (less is better)", "", lab.multicast_packets(BYSTANDER) - before, members or None,
                  "that each receiver got", self.scale.seconds, goal=0, less_is_better=True)

    def _end_to_end(self):
        scale = trm_end_to_end.Scale(self.scale.name, self.scale.rounds, 1 if self.scale is FULL else 0.3, self.scale.seconds, 256 * MIB if self.scale is FULL else 64 * MIB)
        with tempfile.TemporaryDirectory(prefix="trm-", dir=OUT) as folder:
            end_to_end = trm_end_to_end.EndToEnd(scale, pathlib.Path(folder))
            end_to_end.measure()
        self.rows += end_to_end.rows()
        self.runs |= {f"end_to_end.{key}": runs for key, runs in end_to_end.runs.items()}

    # -- what comes of it --------------------------------------------------------------------------

    def draw(self):
        for name, each in self.curves.items():
            series = [(label, [p for p in each[key] if p[1] is not None]) for key, label in (("seen", "measured"), ("theory", "in theory"))]
            series = [(label, points) for label, points in series if len(points) > 1]
            if series:
                text = curve.lines(each["title"], curve.Axis(each["x"], logarithmic=True), curve.Axis("times three connections"), series, each["marks"])
                (OUT / f"trm-{name}.svg").write_text(text)

    def table(self, about: dict) -> str:
        lines = header("", "Mariner", "beside", "ratio", "goal")
        for row in self.rows:
            record = row.record(about)
            seen = "–" if record["ratio"] is None else f"{record['ratio']:.3g}×"
            goal = "" if row.goal is None else f"{'≤' if row.less_is_better else '≥'} {row.goal:g}"
            verdict = "" if row.goal is None else ", holds" if record["holds"] else f", does not hold{'; ' + record['lacks'] if record['lacks'] else ''}"
            lines.append(line(row.what, f"**{_figure(row.ours)} {row.unit}**", f"{_figure(row.rival)} {row.unit} ({row.rival_name})", seen, goal + verdict))
        notes = NOTES.format(rounds=self.scale.rounds, seconds=self.scale.seconds, outstanding=OUTSTANDING)
        return "\n\n".join(["\n".join(lines), notes + "\n" + trm_end_to_end.NOTES, "Measured on " + describe(about)])


def _mb(value: float | None) -> float | None:
    return None if value is None else value / 1e6


def _ms(value: float | None) -> float | None:
    return None if value is None else value * 1e3


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a * b


def _bits(rate: str) -> float:
    return float(rate.removesuffix("gbit")) * 1e9 if rate.endswith("gbit") else float(rate.removesuffix("mbit")) * 1e6


def _processor_ns(run: dict) -> float | None:
    return _ns_a_byte(run, run.get("processor_s"))


def _was_never_idle(run: dict) -> bool:
    return not run["failure"] and (run.get("processor_s") or 0) >= 0.95 * run["seconds"]


def _process_ns(run: dict) -> float | None:
    return _ns_a_byte(run, sum(run.get("sender_cpu_s", {}).values()))


def _ns_a_byte(run: dict, seconds: float | None) -> float | None:
    rate = payload_rate(run)
    return None if not rate or seconds is None else seconds / (rate * run["seconds"]) * 1e9


def _went_by_multicast(run: dict) -> bool:
    return not run["failure"] and run["multicast_bytes"] >= 0.9 * payload_rate(run) * run["seconds"] and run["dismissals"] == 0


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="under a minute or two; shows that it works")
    parser.add_argument("--only", default=",".join(PARTS), help="some of: %(default)s")
    options = parser.parse_args()
    parts = options.only.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--only {','.join(sorted(unknown))}: expected some of {','.join(PARTS)}")
    end_cleanly()
    OUT.mkdir(parents=True, exist_ok=True)
    about = machine(OUT.resolve())
    bench = Bench(SHORT if options.short else FULL, parts)
    try:
        bench.measure()
    finally:
        records = [row.record(about) for row in bench.rows]
        write_json(OUT / "trm.json", records)
        write_json(OUT / "trm-runs.json", bench.runs)
    bench.draw()
    print(bench.table(about))
    missing = [record["id"] for record in records if record["goal"] is not None and not record["holds"]]
    if missing:
        say("does not hold: " + ", ".join(missing))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
