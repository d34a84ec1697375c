"""mariner-hammer from Python: a load in the background, and what became of its writes."""

import json
import pathlib
import subprocess

import mariner

HAMMER = mariner.BUILD / "tests" / "hammer" / "mariner-hammer"
REGION_BYTES = 64 << 20

DONE, FAULT, CANNOT, LOST, REFUSED = 0, 1, 3, 10, 11


class NotBegun(mariner.Failed):
    """It could not be carried out, and nothing was written."""


class Load:
    """A running load; `report()` waits for its end."""

    def __init__(self, process: subprocess.Popen, begun):
        self._process = process
        self._begun = begun
        self.code: int | None = None

    def report(self, timeout_s: float = 120) -> dict:
        try:
            out, err = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, err = self._process.communicate()
            raise mariner.Failed(f"the hammer did not end: {out}{err}")
        self.code = self._process.returncode
        if self.code == CANNOT:
            raise NotBegun(err)
        if self.code not in (DONE, LOST, REFUSED):
            raise mariner.Failed(f"the hammer ended with {self.code}: {out}{err}")
        return json.loads(out)

    def stop(self) -> dict:
        """Asks for its end, which one that has not written yet does not reach before it has."""
        mariner.wait_until(lambda: self._begun() or not self.running(), 30, "the hammer begins")
        self._process.terminate()
        return self.report()

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def running(self) -> bool:
        return self._process.poll() is None


class Campaign:
    """Rounds of load on one volume, whose journals are in `folder`. `prefix` runs the hammer in a network namespace."""

    def __init__(self, folder: pathlib.Path, region_bytes: int = REGION_BYTES, prefix: list[str] | None = None):
        self.folder = folder
        self.region_bytes = region_bytes
        self.prefix = prefix or []

    def _arguments(self, verb: str, url: str, *options) -> list[str]:
        return [*self.prefix, str(HAMMER), verb, url, str(self.folder), "--region-bytes", str(self.region_bytes),
                *map(str, options)]

    def start(self, url: str, *options) -> Load:
        before = self._rounds()
        return Load(subprocess.Popen(self._arguments("run", url, *options), text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE),
                    lambda: self._rounds() > before)

    def _rounds(self) -> int:
        return len(list(self.folder.glob("*.journal")))

    def run(self, url: str, *options) -> dict:
        load = self.start(url, *options)
        report = load.report()
        if load.code != DONE:
            raise mariner.Failed(f"the load did not end as asked: {report}")
        return report

    def _verified(self, arguments: list[str]) -> dict:
        run = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
        if run.returncode not in (0, FAULT):
            raise (NotBegun if run.returncode == CANNOT else mariner.Failed)(f"{' '.join(arguments)}: {run.stderr}")
        return json.loads(run.stdout)

    def verify(self, url: str) -> dict:
        """The volume right after a round. `faults` of the answer is empty if all is well."""
        return self._verified(self._arguments("verify", url))

    def verify_moment(self, url: str, history: pathlib.Path, sequence: int, *options) -> dict:
        """A LUN that shows the moment `sequence`."""
        return self._verified(self._arguments("verify-view", url, "--history", history,
                                              "--sequence", sequence, *options))


def login(url: str, timeout_s: float = 30) -> float:
    """Repeats until a login succeeds; returns the seconds that it took."""
    run = subprocess.run([str(HAMMER), "login", url, "--timeout", str(timeout_s)],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise mariner.Failed(f"login to {url}: {run.stderr}")
    return json.loads(run.stdout)["seconds"]
