"""libiscsi's conformance suite, test by test: each in a process of its own, on a disk that no other test touched.

One process for all would not do: libiscsi 1.19 spoils the CDBs of later tests on thin disks, and a disk that one
test leaves reserved fails all those behind it. Its own summary counts a test that skipped itself as passed; here
it is skipped (`[SKIPPED]` among what the test says).
"""

import concurrent.futures
import contextlib
import dataclasses
import pathlib
import re
import subprocess

import digest_relay
import mariner

PROGRAM = "iscsi-test-cu"
DISK_SIZE = "128M"
# Nobody looks back: the log never fills up with history that is to be kept.
WINDOW = "1s"
TIMEOUT_S = 120
# The second is the other path of the multipath tests.
ADDRESSES = ("127.0.0.1", "127.0.0.2")
USER, SECRET = "suite", "suite's own secret"
MUTUAL_USER, MUTUAL_SECRET = "target", "the target's secret"
# Families for disks that cannot be written: views.
OF_THE_PAST = {"ReadOnly"}
# Families for disks whose medium can be ejected.
OF_REMOVABLE_MEDIA = {"NoMedia", "PreventAllow", "StartStopUnit"}
PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclasses.dataclass(frozen=True)
class Variant:
    """What all tests of a run have in common."""
    name: str
    block_bytes: int = 512
    chap: bool = False  # mutual
    digests: bool = False  # of headers and data, by digest_relay
    lent: bool = False  # Mariner's sockets to threads

    def url(self, address: str, port: int, iqn: str, lun: int) -> str:
        who = f"{USER}%{SECRET}@" if self.chap else ""
        mutual = f"?target_user={MUTUAL_USER}&target_password={MUTUAL_SECRET}" if self.chap else ""
        return f"iscsi://{who}{address}:{port}/{iqn}/{lun}{mutual}"


VARIANTS = {v.name: v for v in (Variant("plain"), Variant("chap", chap=True),
                                Variant("digests", digests=True), Variant("4kn", block_bytes=4096),
                                Variant("lent", lent=True))}


@dataclasses.dataclass(frozen=True)
class Outcome:
    name: str
    verdict: str
    why: str  # of a skip in libiscsi's words, of a failure the first assertion that failed
    report: str


def listed_tests() -> list[str]:
    """Family.Test of all, in the program's order."""
    out = subprocess.run([PROGRAM, "-l"], capture_output=True, text=True).stdout
    return re.findall(r"^ALL\.(\w+\.[\w-]+)$", out, re.MULTILINE)


def family_of(name: str) -> str:
    return name.split(".")[0]


def judge(name: str, report: str) -> Outcome:
    """What a run of one test says."""
    summary = re.search(r"^\s*tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", report, re.MULTILINE)
    # The program goes on in the same line.
    faults = re.findall(r"^\s+\d+\.\s+(.*?)(?:    Send .*)?$", report, re.MULTILINE)
    if summary is None and faults:  # it broke down behind the test
        return Outcome(name, FAILED, faults[0], report)
    if summary is None or summary.groups()[:2] != ("1", "1"):
        end = " ".join(report.strip().splitlines()[-2:])
        return Outcome(name, FAILED, f"it did not run: {end}", report)
    if summary.group(4) != "0":
        return Outcome(name, FAILED, faults[0] if faults else "no assertion is named", report)
    body = report[report.find("Suite:"):report.find("Run Summary")]
    # What follows the verdict is the program's own cleaning up.
    body = re.split(r"(?:passed|FAILED)\s+Send PRIN/READ_KEYS", body)[0]
    skipped = re.search(r"\[SKIPPED\](.*)", body)
    return Outcome(name, SKIPPED if skipped else PASSED, skipped.group(1).strip() if skipped else "", report)


def run_test(name: str, urls: list[str]) -> Outcome:
    """One test, with all that it may destroy. The second URL is another path to the first one's disk."""
    command = [PROGRAM, "-d", "-S", "-V", "-t", f"ALL.{name}", *urls]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode(errors="replace")
        return Outcome(name, FAILED, f"it did not end within {TIMEOUT_S} s", said)
    return judge(name, run.stdout)


class MarinerDisks:
    """A marinerd with a volume for each test, which is deleted after it."""

    def __init__(self, folder: pathlib.Path, variant: Variant):
        folder.mkdir(parents=True, exist_ok=True)
        self.variant = variant
        self._daemon = mariner.Daemon(folder, more_addresses=ADDRESSES[1:],
                                      more_config=self._config(folder), window=WINDOW)
        self._relays: list[digest_relay.DigestRelay] = []

    def _config(self, folder: pathlib.Path) -> str:
        lines = []
        if self.variant.chap:
            for file, secret in (("secret", SECRET), ("mutual", MUTUAL_SECRET)):
                (folder / file).write_text(secret)
                (folder / file).chmod(0o600)
            lines += [f"[auth.{USER}]", f'secret_file = "{folder}/secret"', f'mutual_user = "{MUTUAL_USER}"',
                      f'mutual_secret_file = "{folder}/mutual"']
        return "\n".join(lines) + "\n"

    @staticmethod
    def _volume(name: str) -> str:
        return name.lower().replace(".", "-")

    def __enter__(self):
        if self.variant.lent:
            self._daemon.configure_server(socket_threads="2", socket_threads_load="0%")
        self._daemon.start()
        if self.variant.digests:
            for address in ADDRESSES:
                self._relays.append(digest_relay.DigestRelay(address, self._daemon.port))
        return self

    def __exit__(self, *_):
        for relay in self._relays:
            relay.close()
        self._daemon.close()

    def digests(self) -> tuple[int, int]:
        """How many PDUs had a digest of their header and of their data so far."""
        return sum(relay.header_digests for relay in self._relays), sum(relay.data_digests for relay in self._relays)

    @contextlib.contextmanager
    def disk(self, name: str):
        """The URLs of the test's disk."""
        volume = self._volume(name)
        removable = ["--removable"] if family_of(name) in OF_REMOVABLE_MEDIA else []
        self._daemon.create(volume, DISK_SIZE, "--block-size", self.variant.block_bytes, "--sanitize", *removable)
        if self.variant.chap:
            self._daemon.ask("target", "auth", "set", volume, USER)
        view = self._daemon.expose(volume, "#0") if family_of(name) in OF_THE_PAST else None
        iqn = (view or self._daemon.ask("volume", "show", volume))["iqn"]
        ports = [relay.port for relay in self._relays] or [self._daemon.port] * len(ADDRESSES)
        yield [self.variant.url(address, port, iqn, mariner.LUN) for address, port in zip(ADDRESSES, ports)]
        if view:
            self._daemon.ask("view", "unexpose", view["name"], "--force")
        self._daemon.ask("volume", "delete", volume, "--force")


class Runner:
    """Runs tests ahead, `workers` at a time: most of a test's time is waiting."""

    def __init__(self, disks, names: list[str], workers: int = 4):
        self._disks = disks
        self._pool = concurrent.futures.ThreadPoolExecutor(workers)
        self._outcomes = {name: self._pool.submit(self._run, name) for name in names}

    def _run(self, name: str) -> Outcome:
        with self._disks.disk(name) as urls:
            return run_test(name, urls)

    def outcome(self, name: str) -> Outcome:
        return self._outcomes[name].result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._pool.shutdown(cancel_futures=True)
