"""Many views at once: how soon one is there, whether all are exact, and what they cost the volume's writer."""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import statistics
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import loads
import servers
from history import Measured, Scale
from mariner import AdminConnection, Failed
from results import Row, header, line, number, say

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 4096
PROGRAM = loads.mariner.BUILD / "tests" / "bench" / "mariner-views-load"
VOLUME = "bench"
WRITER = loads.Load("writer", "4 KiB random write, depth 32", True, True, BLOCK, 32)

VIEWS_MAX = 255  # ViewSet::kViewsMax
EXPOSE_MS_MAX = 50
WRITER_MIN = 0.8
CLIENTS = 16
FLOOD = 16  # reads outstanding
NEEDS_S = 10  # of the writer, beside readers
STORAGE = {"pending_memory": "64M", "lag_max": "128M", "apply_delay": "200ms"}

ALONE, IDLE, VIEWS, CURRENT, FLOODED = "alone", "idle", "views", "current", "flooded"
BESIDE = {ALONE: "without views", IDLE: "{views} views with a session each, idle", VIEWS: "{views} views, all read",
          CURRENT: "the same reads, of the volume itself", FLOODED: "{views} views, {flood} reads at a time"}

NOTES = """\
- Exposing is timed from the request to the answer, over the admin socket with a connection for each request, as the client
  library does it. The moment is `now`, so it waits for what is on its way to the log. *Under load*: beside a writer of 4 KiB at
  random, 32 outstanding. The rows have the slowest of {views} in a row. *At once*: {clients} clients.
- A first block: from the login of an initiator that knows the target's name to a block of it, in a program that runs already.
- The writer ({warmup:g} s of warm-up, then {seconds:g} s) has the image's lag at its bound ({lag}). Views keep the log, so none of it is given up meanwhile,
  without them neither: what that costs is not in these figures. In each of {rounds} rounds, with a daemon of its own, all take turns; a ratio is the
  median of the rounds' ratios.
- {views} views of {views} moments are read at random at the same time, each over a session of its own, one after the other, so that
  each is read all the time: one read is outstanding in all, of a program that shares cores and disk with the writer and the daemon. Beside
  it {flood} of them, which want as much of both as the writer does; the same reads, over as many sessions, of the volume itself (whose
  image is in the page cache, while what a view shows is read from the log); and as many sessions that do nothing.
- Exact: between two moments {phase} known blocks were written, each with a content of its own; what is read of a view is
  compared byte by byte with what its moment must show. The writer overwrites all of the volume meanwhile."""


@dataclasses.dataclass(frozen=True)
class Sizes:
    views: int
    volume_bytes: int
    log_bytes: int
    phase_blocks: int
    rounds: int
    warmup_s: float
    seconds: float
    initialise_s: float  # patience with the log's first writing

    @property
    def blocks(self) -> int:
        return self.volume_bytes // BLOCK


FULL = Sizes(VIEWS_MAX, 512 * MIB, 8 * GIB, 256, 5, 2, 5, 60)
SHORT = Sizes(20, 64 * MIB, GIB, 64, 1, 0.2, 0.8, 1)


class Programs:
    """mariner-views-load on a volume whose story `seed` tells."""

    def __init__(self, sizes: Sizes, seed: int):
        self._story = ["--seed", str(seed), "--blocks", str(sizes.blocks), "--phase-blocks", str(sizes.phase_blocks)]
        self._sizes = sizes

    @staticmethod
    def start(*arguments) -> subprocess.Popen:
        return subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def ask(program: subprocess.Popen, text: str) -> str:
        program.stdin.write(text + "\n")
        program.stdin.flush()
        answer = program.stdout.readline()
        if not answer:
            raise Failed(f"mariner-views-load ended with {program.wait()}")
        return answer.strip()

    @staticmethod
    def end(program: subprocess.Popen) -> str:
        out = program.communicate(timeout=loads.PATIENCE_S)[0]
        if program.returncode != 0:
            raise Failed(f"mariner-views-load ended with {program.returncode}")
        return out

    @contextlib.contextmanager
    def ended(self, program: subprocess.Popen):
        try:
            yield program
        finally:
            if program.poll() is None:
                program.kill()
            program.wait()

    def write(self, url: str):
        return self.ended(self.start("write", url, *self._story))

    def first(self):
        return self.ended(self.start("first"))

    def read(self, depth: int, *flags: str):
        return self.ended(self.start("read", *self._story, "--phases", self._sizes.views, "--depth", depth, *flags))


class Bench:
    def __init__(self, sizes: Sizes, folder: pathlib.Path):
        self.sizes = sizes
        self.folder = folder
        self.exposes: dict[str, list[float]] = {}  # ms, by what
        self.first_ms: list[float] = []
        self.rates: dict[str, list[float]] = {beside: [] for beside in BESIDE}
        self.reads: dict[str, list[dict]] = {beside: [] for beside in BESIDE if beside != ALONE}

    @contextlib.contextmanager
    def server(self, story: int):
        """A daemon of its own, whose volume and log have been written once; the programs for its story."""
        programs = Programs(self.sizes, story)
        with servers.Mariner(self.folder / str(story), self.sizes.volume_bytes, self.sizes.log_bytes, STORAGE) as server:
            self.daemon, self.url = server.daemon, server.url
            server.wait_initialised(self.sizes.initialise_s)
            with programs.write(self.url) as writer:
                Programs.ask(writer, "0")
                Programs.end(writer)
            yield programs
        shutil.rmtree(self.folder / str(story))

    def ask(self, method: str, path: str, body: dict | None = None) -> dict:
        with contextlib.closing(AdminConnection(self.daemon.socket)) as connection:
            status, text = connection.ask(method, path, json.dumps(body).encode() if body else b"")
        if status != 200:
            raise Failed(f"{method} {path}: {status} {text.decode()}")
        return json.loads(text)

    def expose(self, name: str, writable: bool = False) -> tuple[float, str]:
        """How long it took, in ms, and the LUN's URL."""
        begun = time.monotonic()
        view = self.ask("POST", "/v1/views", {"volume": VOLUME, "at": {"now": True}, "name": name, "writable": writable})
        return (time.monotonic() - begun) * 1e3, self.daemon.url(view["iqn"])

    def unexpose_all(self):
        for view in self.ask("GET", "/v1/views").get("views", []):
            # Programs that have just logged out may still be on the way.
            self.ask("DELETE", f"/v1/views/{view['name']}?force=true")

    def write(self, seconds: float) -> dict:
        run = loads.run_iscsi(WRITER, loads.Target(self.url, self.daemon.process.pid),
                              loads.Limits(self.sizes.warmup_s, seconds, self.sizes.volume_bytes))
        if run["failure"]:
            raise Failed(f"the writer: {run['failure']}")
        return run

    @contextlib.contextmanager
    def written(self):
        """A full-speed writer all the while."""
        over, runs = threading.Event(), ThreadPoolExecutor(1)

        def go_on():
            while not over.is_set():
                self.write(1)
        with runs:
            running = runs.submit(go_on)
            try:
                time.sleep(self.sizes.warmup_s)
                yield
            finally:
                over.set()
            running.result()

    # -- exposing ---------------------------------------------------------------------------------

    def measure_expose(self):
        for load in ("", ", under load"):
            with self.written() if load else contextlib.nullcontext():
                for kind, writable in (("read-only", False), ("writable", True)):
                    self.exposes[kind + load] = [self.expose(f"v{i}", writable)[0] for i in range(self.sizes.views)]
                    if not load:
                        self.measure_first()
                    self.unexpose_all()
                    with ThreadPoolExecutor(CLIENTS) as clients:
                        each = clients.map(lambda i, w=writable: self.expose(f"v{i}", w)[0], range(self.sizes.views))
                        self.exposes[f"{kind}, at once{load}"] = list(each)
                    self.unexpose_all()
        for what, times in self.exposes.items():
            say(f"expose {what}: {statistics.median(times):.2f} ms, at most {max(times):.2f}")

    def measure_first(self):
        with Programs(self.sizes, 0).first() as program:
            for view in self.ask("GET", "/v1/views")["views"]:
                self.first_ms.append(float(Programs.ask(program, self.daemon.url(view["iqn"]))))
            Programs.end(program)

    # -- the writer, and what is read -------------------------------------------------------------

    def stamp(self, programs: Programs) -> list[str]:
        """Writes the phases, and exposes the moment behind each but the first; their URLs."""
        urls = []
        with programs.write(self.url) as writer:
            Programs.ask(writer, "0")
            for phase in range(1, self.sizes.views + 1):
                Programs.ask(writer, str(phase))
                urls.append(self.expose(f"v{phase}")[1])
            Programs.end(writer)
        return urls

    def write_beside(self, beside: str, programs: Programs, urls: list[str]):
        if beside == ALONE:
            return self.write(self.sizes.seconds)
        flags = () if beside in (VIEWS, FLOODED) else ("--unverified",)
        with programs.read({IDLE: 0, FLOODED: FLOOD}.get(beside, 1), *flags) as reader:
            Programs.ask(reader, "\n".join([*(f"{phase} {url}" for phase, url in enumerate(urls, 1)), ""]))
            run = self.write(self.sizes.seconds)
            self.reads[beside].append(json.loads(Programs.end(reader)))
        return run

    def measure_writer(self):
        for story in range(1, self.sizes.rounds + 1):
            with self.server(story) as programs:
                self.keep(ALONE, self.write_beside(ALONE, programs, []))
                views = self.stamp(programs)
                for beside in self.reads:
                    urls = [self.url] * len(views) if beside == CURRENT else views
                    self.keep(beside, self.write_beside(beside, programs, urls))
                left = len(self.ask("GET", "/v1/views").get("views", []))
                if left != self.sizes.views:
                    raise Failed(f"{left} of {self.sizes.views} views are left: the log is too small")

    def keep(self, beside: str, run: dict):
        self.rates[beside].append(run["rate"])
        reads = self.reads.get(beside)
        text = f", {reads[-1]['rate']:,.0f} reads/s, {reads[-1]['mismatches']} wrong" if reads else ""
        say(f"round {len(self.rates[beside])}, {beside}: {run['rate']:,.0f} writes/s{text}")

    # -- what comes of it -------------------------------------------------------------------------

    def paired(self, beside: str) -> float:
        return statistics.median(a / b for a, b in zip(self.rates[beside], self.rates[ALONE]))

    def rows(self, scale: Scale) -> list[Row]:
        views, rows = self.sizes.views, []
        for what, times in self.exposes.items():
            key = what.replace(", ", ".").replace(" ", "_")
            rows.append(Row(f"views.expose.{key}", f"expose, {what}: the slowest of {views} (less is better)", "ms", max(times), EXPOSE_MS_MAX, "the most it may be",
                            0, scale.name, 1, less_is_better=True, lacks=scale.lacks))
        rows.append(Row("views.first_block", "from the login to a view to its first block, median (less is better)", "ms", statistics.median(self.first_ms),
                        max(self.first_ms), "the slowest", 0, scale.name, less_is_better=True))
        seconds = self.sizes.rounds * self.sizes.seconds
        alone = statistics.median(self.rates[ALONE])
        for beside, key, goal in ((VIEWS, "views.writer", WRITER_MIN), (IDLE, "views.writer.idle", None), (CURRENT, "views.writer.current", None),
                                  (FLOODED, "views.writer.flooded", None)):
            rows.append(Row(key, f"{WRITER.what}, beside {BESIDE[beside].format(views=views, flood=FLOOD)}", "IO/s", statistics.median(self.rates[beside]), alone, BESIDE[ALONE], seconds, scale.name, goal,
                            needs_s=NEEDS_S, lacks=scale.lacks, paired=self.paired(beside)))
        runs = [*self.reads[VIEWS], *self.reads[FLOODED]]
        reads = sum(run["operations"] for run in runs)
        exact = reads - sum(run["mismatches"] for run in runs)
        rows.append(Row("views.exact", f"reads of {views} views under that load that are exact", "reads", exact, reads, "reads", seconds, scale.name, 1, needs_s=NEEDS_S, lacks=scale.lacks))
        return rows

    def table(self) -> str:
        expose = header("expose, in ms", "median", "p99", "slowest")
        for what, times in self.exposes.items():
            expose.append(line(what, *(f"{value:.2f}" for value in (statistics.median(times), statistics.quantiles(times, n=100)[98], max(times)))))
        writer = header("beside the writer", "writes/s", "to those without views", "reads/s", "latency of a read in µs: p50 / p99", "of one view: least and most reads")
        for beside, what in BESIDE.items():
            runs = self.reads.get(beside, []) if beside != IDLE else []
            median = {key: statistics.median(run[key] for run in runs) for key in ("rate", "least_reads", "most_reads")} if runs else {}
            latency = " / ".join(number(statistics.median(run["latency_us"][p] for run in runs)) for p in ("p50", "p99")) if runs else ""
            writer.append(line(what.format(views=self.sizes.views, flood=FLOOD), number(statistics.median(self.rates[beside])), f"{self.paired(beside):.2f}", number(median["rate"]) if runs else "", latency,
                               f"{median['least_reads']:.0f}, {median['most_reads']:.0f}" if runs else ""))
        return "\n".join(expose) + "\n\n" + "\n".join(writer)


def measure(scale: Scale, folder: pathlib.Path) -> Measured:
    sizes = SHORT if scale.short else FULL
    bench = Bench(sizes, folder)
    bench.measure_writer()
    with bench.server(0):
        bench.measure_expose()
    wrong = next((run["mismatch"] for beside in (VIEWS, FLOODED) for run in bench.reads[beside] if run["mismatches"]), "")
    if wrong:
        say(f"NOT EXACT: {wrong}")
    notes = NOTES.format(views=sizes.views, clients=CLIENTS, warmup=sizes.warmup_s, seconds=sizes.seconds, lag=STORAGE["lag_max"], rounds=sizes.rounds, flood=FLOOD,
                         phase=sizes.phase_blocks)
    return Measured(bench.rows(scale), [bench.table()], notes, {"expose_ms": bench.exposes, "first_ms": bench.first_ms, "rates": bench.rates, "reads": bench.reads})
