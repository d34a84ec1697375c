"""How long it takes to find a log again: figures of mariner-log-recovery as rows."""

import dataclasses
import json
import math
import pathlib
import statistics
import subprocess

import servers  # shows Python where the end-to-end drivers are
from results import Row, header, line, number, say

RECOVERY = servers.mariner.BUILD / "tests" / "bench" / "mariner-log-recovery"
PATIENCE_S = 600

# The goals, and what it takes to have reached one.
RECORDS, RECORDS_S_MAX = 1_000_000, 2.0
TRACKS, READS_A_HALVING_MAX = 1_000_000, 3

NOTES = """\
- The log to be recovered is made in bulk, as a writer would have left it, and read with O_DIRECT by as many threads as the
  daemon uses, in turn with and without putting its records into the index of versions; the median of {rounds} counts.
- The search for the youngest track is counted at {levels:,} fill levels of a log whose headers are made up as they are read;
  the greatest count is shown."""


@dataclasses.dataclass(frozen=True)
class RecoveryScale:
    records: int
    rounds: int

    @property
    def disk_bytes(self) -> int:
        """Payloads and headers, and some tracks more."""
        return self.records * 33 // 32 * 4096 + (512 << 20)


class LogRecovery:
    def __init__(self, scale: RecoveryScale, folder: pathlib.Path):
        self._scale = scale
        self._folder = folder
        self.records: dict = {"failure": "not measured"}
        self.tracks: dict = {"failure": "not measured"}

    def measure(self):
        say(f"recovering a log of {self._scale.records:,} records")
        self.records = _run("records", "--folder", self._folder, "--records", self._scale.records,
                            "--rounds", self._scale.rounds)
        self.tracks = _run("tracks", "--tracks", TRACKS)

    def rows(self, scale: str) -> list[Row]:
        records = self.records if not self.records["failure"] else {}
        tracks = self.tracks if not self.tracks["failure"] else {}
        seconds = records.get("replay_s", [])
        fewer = f"measured with {self._scale.records:,} records, the goal needs {RECORDS:,}"
        what = f"recovery of {self._scale.records:,} records in batches of 32"
        return [
            Row("recovery_records", f"{what}: time to replay them (less is better)", "s", _median(seconds),
                RECORDS_S_MAX, "the most it may take", sum(seconds), scale, 1, less_is_better=True,
                lacks=fewer if self._scale.records < RECORDS else ""),
            Row("recovery_records.scan", f"{what}: without the index (less is better)", "s",
                _median(records.get("scan_s", [])), _median(seconds), "with it", sum(records.get("scan_s", [])), scale,
                less_is_better=True),
            Row("recovery_records.read", f"{what}: bytes read (less is better)", "MB",
                _millions(records.get("bytes_read")), _millions(records.get("log_bytes")), "the whole log",
                sum(seconds), scale, less_is_better=True),
            Row("recovery_tracks", f"the youngest of {TRACKS:,} tracks: tracks read to find it (less is better)", "reads",
                tracks.get("reads_max"), READS_A_HALVING_MAX * math.log2(TRACKS), "3 x log2 of the tracks",
                tracks.get("seconds", 0), scale, 1, less_is_better=True),
        ]

    def notes(self) -> str:
        return NOTES.format(rounds=self._scale.rounds, levels=self.tracks.get("levels", 0))

    def table(self) -> str:
        lines = header("recovery", "reads", "bytes read", "threads")
        lines.append(line(f"{self._scale.records:,} records", number(self.records.get("reads")),
                          number(self.records.get("bytes_read")), number(self.records.get("threads"))))
        return "\n".join(lines)


def _run(*arguments) -> dict:
    """What mariner-log-recovery measured; with `failure` if it could not."""
    try:
        done = subprocess.run([str(RECOVERY), *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return {"failure": "it hangs"}
    return json.loads(done.stdout) if done.stdout else {"failure": done.stderr.strip() or "it ended without a word"}


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _millions(value: int | None) -> float | None:
    return None if value is None else value / 1e6
