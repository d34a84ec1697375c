"""The tables of index_papers.py: what the papers say, and ours beside it.

What the papers say: the BOSC paper (its figures 2 to 10 and table 1) and the dissertation (3.2 to 3.8, 3.11, 4.20, tables 3.1 and
3.2), as far as their text gives numbers; where it gives only a direction, that."""

import dataclasses
import statistics

import index_growth
from results import Row, get, header, line, number


@dataclasses.dataclass(frozen=True)
class Found:
    memory: dict
    variants: dict
    sweeps: dict
    finds: dict
    recovery: dict
    cdp: dict
    growth: dict


def rate(phases: dict, name: str) -> float | None:
    phase = phases.get(name)
    return phase["updates_per_s"] if phase else None


def ratio(a: float | None, b: float | None) -> str:
    return "–" if not a or not b else f"{a / b:,.1f}×"


def milliseconds(us: float | None) -> str:
    return "–" if us is None else f"{us / 1000:,.3f}"


def figure_3_2(scale, found: dict) -> tuple[str, list[Row]]:
    lines = [f"### Figure 3.2: updates against memory ({scale.index_mib / 1024:g} GiB index, 64 KiB leaves, 64 B records; the paper's: 16 GB, "
             "256 MB to 1.5 GB, four rotating disks and one for the log)", "",
             *header("memory", "insert: BOSC, with its log", "vanilla, without any", "", "update: BOSC", "vanilla", "")]
    rows = []
    for memory in scale.memories_mib:
        cells = [f"{memory} MiB"]
        for phase in ("insert", "update"):
            ours, rival = rate(found["bosc", memory], phase), rate(found["vanilla", memory], phase)
            cells += [f"{number(ours)}/s", f"{number(rival)}/s", ratio(ours, rival)]
            rows.append(Row(f"3.2.{phase}.{memory}", f"Figure 3.2: random {phase}s, {memory} MiB", "/s", ours, rival, "vanilla", scale.seconds,
                            scale.name))
        lines.append(line(*cells))
    lines += ["", "The paper: 6,410/s against 311/s at 1 GB, 20×; the same for updates. Vanilla gains little by memory, BOSC nearly as much as it gets, "
              "until memory exceeds what comes in during a cycle."]
    return "\n".join(lines), rows


def figure_3_3(scale, found: dict) -> tuple[str, list[Row]]:
    paper = {"One-Queue-Append": "≈ 20", "One-Queue-Trail": "20", "Multi-Queue-Append": "2,386", "BOSC": "6,058"}
    lines = [f"### Figure 3.3: who commits how, and which log ({scale.warehouses} warehouses, records of 112 B, 64 KiB leaves, "
             f"{scale.trace_memory_mib} MiB; the paper's: 80 warehouses, 64 GB, 1 GB). All updates are durable before they count", "",
             *header("", "TPC-C updates", "p50 / p99 ms", "all of TPC-C: updates", "and lookups", "uniform inserts", "B written each",
                     "the paper's, requests")]
    rows = []
    for name, phases in found.items():
        durable = get(phases, "tpcc", "durable_us") or {}
        lines.append(line(name, f"{number(rate(phases, 'tpcc'))}/s",
                          f"{milliseconds(durable.get('p50'))} / {milliseconds(durable.get('p99'))}",
                          f"{number(rate(phases, 'tpcc-reads'))}/s", f"{number(get(phases, 'tpcc-reads', 'reads_per_s'))}/s",
                          f"{number(rate(phases, 'insert'))}/s", number(get(phases, "insert", "written_bytes")),
                          f"{paper[name]}/s" if name in paper else ""))
        if name != "BOSC":
            for phase, what in (("tpcc", "TPC-C updates"), ("insert", "uniform inserts")):
                rows.append(Row(f"3.3.{phase}.{name}", f"Figure 3.3: {what}", "/s", rate(found["BOSC"], phase), rate(phases, phase), name,
                                scale.seconds, scale.name))
    lines += ["", "Append: a file that grows, fdatasync for all that waits. Trail: Mariner's log writer; nothing rotates here, so that it has no head to follow "
              "and appends to tracks. One-Queue: one FIFO queue; when it is full its first 32 updates are committed in the order of addresses (the paper does not "
              "say how many). Multi-Queue: a queue for each block, committed in runs, in place. BOSC adds a thread that applies, a cache, and checkpoints: its index "
              "survives a crash. The trace is made after the specification, not recorded; the paper's requests have lookups among them, but at 6,058/s on three disks "
              "none that reads. Lookups of BOSC wait for the disk together, those of the others one after another."]
    return "\n".join(lines), rows


DIRECTIONS = {
    "3.4": ("leaf size", "16 to 1,024 KB, 64 GB, 1 GB of queues, 64 B records",
            "larger leaves take more; clustered and sequential gain more than random"),
    "3.5": ("record size", "64 to 1,024 B, 64 KB leaves, 128 GB", "larger records take fewer"),
    "3.6": ("record and leaf size", "their ratio fixed, 128 GB", "falls"),
    "3.7": ("index size", "16 to 128 GB, 16 KB leaves, 64 B records", "random falls, update as insert; sequential hardly falls"),
    "3.8": ("memory", "512 to 1,536 MB, 64 KB leaves, 128 GB", "random and clustered rise, less than in proportion; sequential hardly"),
}


def figures_3_4_to_3_8(scale, found: dict) -> tuple[str, list[Row]]:
    lines = [f"### Figures 3.4 to 3.8: BOSC with its log, inserts a second (otherwise: {scale.swept_index_mib} MiB index, {scale.swept_memory_mib} MiB of "
             "memory, 64 KiB leaves or, in 3.7, 16 KiB; 64 B records)", "",
             *header("figure", "", "random", "update", "clustered", "sequential", "CPU us random / sequential")]
    rows = []
    notes = []
    for figure, points in found.items():
        what, papers, direction = DIRECTIONS[figure]
        for at, phases in points.items():
            cpu = " / ".join(f"{get(phases, phase, 'cpu_us') or 0:.2f}" for phase in ("insert", "sequential"))
            lines.append(line(f"{figure} {what}", at, *(number(rate(phases, p)) for p in ("insert", "update", "clustered", "sequential")), cpu))
        first, last = list(points.values())[0], list(points.values())[-1]
        seen = ", ".join(f"{name} {ratio(rate(last, phase), rate(first, phase))}"
                         for phase, name in (("insert", "random"), ("update", "update"), ("clustered", "clustered"), ("sequential", "sequential")))
        notes.append(f"- {figure} ({papers}): {direction}. Here, the last to the first: {seen}.")
        for phase in ("insert", "sequential"):
            rows.append(Row(f"{figure}.{phase}", f"Figure {figure}: {phase}, {list(points)[-1]} to {list(points)[0]}", "/s", rate(last, phase),
                            rate(first, phase), list(points)[0], scale.seconds, scale.name))
    notes.append("- The paper: 140 us of CPU for a random insert, 67 for a sequential one.")
    return "\n".join([*lines, "", *notes]), rows


def table_3_1(scale, found: dict) -> tuple[str, list[Row]]:
    lines = [f"### Table 3.1: lookups, mean ms ({scale.find_versions:,} versions, 4 KiB leaves, {scale.find_memory_mib} MiB; the paper's: 4 KB, 256 MB)", "",
             *header("", "with BOSC", "without", "ratio", "the paper's: with", "without")]
    rows = []
    short = "" if scale.name == "full" else "the goal needs the full size"
    ours, rival, paced = found["bosc"], found["vanilla"], found.get("at its rate", {})
    for what, run, key, papers in (("point, alone", paced, "find_after", ("10.20", "10.19")),
                                   ("range of 1,000 keys, alone", paced, "scan_after", ("15.75", "15.76")),
                                   ("point, beside as many inserts", paced, "find_during", ("", "")),
                                   ("point, beside all the inserts it takes", ours, "find_during", ("", ""))):
        a, b = get(run, key, "mean_us"), get(rival, key, "mean_us")
        lines.append(line(what, milliseconds(a), milliseconds(b), ratio(a, b), *papers))
        goal = None if "all the inserts" in what else 1.05
        rows.append(Row(f"3.1.{what}", f"Table 3.1: {what} (less is better)", "us", a, b, "vanilla", scale.seconds, scale.name, goal,
                        less_is_better=True, lacks=short))
    lines += ["", "Alone: after as many inserts as vanilla took in the same time, so that both hold the same. "
              f"Beside all the inserts it takes: {number(get(ours, 'versions_per_s'))}/s with BOSC, {number(get(rival, 'versions_per_s'))}/s without."]
    return "\n".join(lines), rows


def table_3_2(scale, found: dict) -> tuple[str, list[Row]]:
    lines = [f"### Table 3.2 and Figure 3.11: a start after a crash ({scale.recovered_versions:,} versions in the index, medians of {scale.rounds}; the paper's: "
             "64 GB, 256 MB)", "",
             *header("", "index GiB", "in the log", "into queues", "youngest s", "checkpoint and nodes s", "learning from leaves s", "MiB read for that", "log and queues s", "all s", "pending a second")]
    rows = []
    for key in ("new", "old"):
        for start in found[key].get("starts", []):
            youngest, opened, learnt, replayed = (statistics.median(start[name]) for name in ("youngest_s", "open_s", "learn_s", "replay_s"))
            together = statistics.median(map(sum, zip(start["open_s"], start["learn_s"], start["replay_s"])))
            lines.append(line("ours", f"{start['index_bytes'] / 2**30:.2f}", number(start["records"]), number(start["queued"]), f"{youngest:.4f}",
                              f"{opened:.2f}", f"{learnt:.2f}", number(start["learn_bytes"] / 2**20), f"{replayed:.2f}", f"{together:.2f}", number(start["queued"] / together)))
            if key == "new":
                last = start["pending"] == scale.pending[-1]
                rows.append(Row(f"3.2.start.{start['pending']}", f"a start with {start['pending']:,} pending updates (less is better)", "s", together, 1.5,
                                "the most it may take", together, scale.name, 1 if last else None, less_is_better=True,
                                lacks="" if scale.name == "full" else "the goal needs 500,000"))
    for name, papers in (("the paper's B+ tree", ("64", "498,370", "448,504", "0.87", "", "", "", "32", "32.9", "13,600")),
                         ("its hash table", ("", "1,897,640", "1,364,983", "0.86", "", "", "", "23", "23.9", "57,200"))):
        lines.append(line(name, *papers))
    return "\n".join(lines), rows


def figure_4_20(scale, found: dict) -> tuple[str, list[Row]]:
    paper = {"no index": "> 5,000 blocks/s", "BOSC": "less than 15 % slower", "BOSC, append-like logging": "more than 85 % slower (BOSC paper: up to 80 %)",
             "vanilla (TPIE)": "more than 95 % slower; BOSC is more than 45×", "no index, append-like logging": "–"}
    base = get(found["no index"], "rate")
    lines = [f"### Figure 4.20: blocks of 4 KiB logged and indexed a second (random, 32 outstanding, {scale.cdp_memory_mib} MiB, {scale.cdp_versions:,} versions "
             "before; the paper's: 20 GB of versions, 64 MB)", "",
             *header("", "blocks/s", "slower by", "p50 / p99 ms", "the paper's")]
    rows = []
    for name, run in found.items():
        speed = get(run, "rate")
        slower = "–" if not speed or not base or name == "no index" else f"{100 * (1 - speed / base):.0f} %"
        lines.append(line(name, number(speed), slower,
                          f"{milliseconds(get(run, 'latency_us', 'p50'))} / {milliseconds(get(run, 'latency_us', 'p99'))}", paper[name]))
        if name == "BOSC":
            rows.append(Row("4.20.bosc", "Figure 4.20: blocks logged and indexed, to those only logged", "/s", speed, base, "no index", 2 * scale.seconds,
                            scale.name, 0.85, lacks="" if scale.name == "full" else "the goal needs the full size"))
        elif name != "no index":
            rows.append(Row(f"4.20.{name}", "Figure 4.20: blocks logged and indexed", "/s", get(found["BOSC"], "rate"), speed, name, 2 * scale.seconds,
                            scale.name))
    lines += ["", "Its axis is the time between requests; here it is the least. Nothing rotates: append-like logging lacks not the head's position but the batch "
              "writer and tracks that are there already."]
    return "\n".join(lines), rows


def growth(scale, found: dict) -> tuple[str, list[Row]]:
    lines = [f"### Growth: metadata written for a byte of data, random writes of 4 KiB ({scale.growth_versions:,} versions kept in LT and TL, 16 KiB leaves)", "",
             *header("memory", "index GiB", "index to memory", "versions/s", "measured", "predicted: sweeps without end", "one sweep after another",
                     "the latter without chunks", "commits of a leaf apart, versions: measured", "predicted")]
    rows = []
    for memory, run in found.items():
        disk, written = get(run, "disk_bytes"), get(run, "written_bytes")
        if not disk or written is None:
            lines.append(line(f"{memory} MiB", run["failure"], *[""] * 8))
            continue
        leaves = index_growth.lt_leaves_of(disk, scale.growth_versions)
        predicted = index_growth.predict(memory << 20, leaves)
        cycles = run["cycles"] or 1
        tl = index_growth.TL_RECORD * index_growth.TL_LEAF_OVERHEAD
        apart = index_growth.BLOCK / max(written - tl, 1)
        lines.append(line(f"{memory} MiB", f"{disk / 2**30:.2f}", f"{disk / 2**20 / memory:.1f}", number(run["versions_per_s"]), f"{written / 4096:.4f}",
                          f"{predicted.least / 4096:.4f}", f"{predicted.most / 4096:.4f}", f"{predicted.plain / 4096:.4f}", f"{apart:.1f}",
                          f"{predicted.x_least:.1f} to {predicted.x_most:.1f}"))
        rows.append(Row(f"growth.{memory}", f"metadata for a byte of data, index {disk / 2**20 / memory:.0f} times the memory, {cycles} cycles (less is better)",
                        "B", written / 4096, predicted.most / 4096, "predicted, one sweep after another", run["measured_s"], scale.name,
                        less_is_better=True))
    lines += ["", "The derivation stands in tests/bench/index_growth.py: a sweep rewrites nearly every leaf, whatever is pending for it, so that a version costs "
              "(bytes of a leaf) / (versions that a leaf gets between two commits), and those follow from memory / leaves."]
    return "\n".join(lines), rows


def tell(scale, found: Found) -> tuple[str, list[Row]]:
    parts = [figure_3_2(scale, found.memory), figure_3_3(scale, found.variants), figures_3_4_to_3_8(scale, found.sweeps),
             table_3_1(scale, found.finds), table_3_2(scale, found.recovery), figure_4_20(scale, found.cdp), growth(scale, found.growth)]
    return "\n\n".join(text for text, _ in parts), [row for _, rows in parts for row in rows]
