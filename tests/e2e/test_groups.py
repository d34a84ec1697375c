"""Groups: data and log on two LUNs, which a mark, a view and a rollback take at one point, whatever is under way and whatever crashes."""

import http.client
import itertools
import json
import random
import struct
import threading
import time

import pytest

import libiscsi
from mariner import AdminConnection, Daemon, Failed, time_text, wait_until

GROUP, DATA, LOG = "g1", "db1-data", "db1-log"
BLOCK = 4096
PIECE = 16  # blocks of a larger write
UNIT_ATTENTION = 6
UNDISTURBED = 3  # rollbacks, to know how long one takes
_numbers = itertools.count(1)


class Host:
    """A session with one of the targets, which takes unit attentions as they come."""

    def __init__(self, daemon, iqn: str):
        number = next(_numbers)
        self.session = libiscsi.Session(daemon.portal(), iqn, f"iqn.2026-11.org.mariner:host{number}", 1, number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def _command(self, cdb: bytes, data: bytes = b"", expected: int = 0) -> libiscsi.Answer:
        while True:
            answer = self.session.command(cdb, data, expected)
            if answer.status == libiscsi.GOOD:
                return answer
            if answer.status != libiscsi.CHECK_CONDITION:
                raise libiscsi.Failed(f"the connection is gone: {answer}")
            assert answer.sense[0] == UNIT_ATTENTION, answer

    def write(self, block: int, number: int, blocks: int = 1):
        """Returns when it is acknowledged."""
        cdb = struct.pack(">BBQIBB", 0x8A, 0, block * BLOCK // 512, blocks * BLOCK // 512, 0, 0)
        self._command(cdb, struct.pack("<Q", number) * (blocks * BLOCK // 8))

    def read(self, block: int = 0) -> int:
        """The number that all of the block holds."""
        cdb = struct.pack(">BBQIBB", 0x88, 0, block * BLOCK // 512, BLOCK // 512, 0, 0)
        words = struct.unpack(f"<{BLOCK // 8}Q", self._command(cdb, expected=BLOCK).data)
        assert len(set(words)) == 1, "a torn block"
        return words[0]


class Writer(threading.Thread):
    """Writes a counter to the data and, when that is acknowledged, to the log; so at any moment log <= data <= log + 1."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.hosts = [Host(daemon, daemon.ask("volume", "show", name)["iqn"]) for name in (DATA, LOG)]
        self.ending = threading.Event()
        self.failure: Exception | None = None
        # Goes on from what it finds, as a database does.
        data, log = (host.read() for host in self.hosts)
        assert log <= data <= log + 1
        self.number = data

    def run(self):
        try:
            while not self.ending.is_set():
                self.hosts[1].write(0, self.number)
                self.number += 1
                self.hosts[0].write(0, self.number)
        except Exception as failure:
            self.failure = failure

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join()
        for host in self.hosts:
            host.session.close()
        assert self.failure is None, self.failure


class Load(threading.Thread):
    """Writes to other blocks of a volume, until it is ended or the daemon is gone: whoever holds the volume up has what to hold up."""

    def __init__(self, daemon, name: str):
        super().__init__(daemon=True)
        self.host = Host(daemon, daemon.ask("volume", "show", name)["iqn"])
        self.ending = threading.Event()
        self.writes = 0

    def run(self):
        try:
            for number in itertools.count(1):
                if self.ending.is_set():
                    return
                self.host.write(1 + number % 200, number)
                self.writes += 1
        except libiscsi.Failed:
            self.host.session.drop()
            self.host = None

    def end(self):
        self.ending.set()
        self.join()
        if self.host is not None:
            self.host.session.close()


class Pair:
    """Two volumes as a group."""

    def __init__(self, daemon: Daemon):
        self.daemon = daemon
        for name in (DATA, LOG):
            daemon.create(name, "64M")
        daemon.ask("group", "create", GROUP, DATA, LOG)
        self.created_ns = time.time_ns()

    def numbers(self) -> tuple[int, int]:
        out = []
        for name in (DATA, LOG):
            with Host(self.daemon, self.daemon.ask("volume", "show", name)["iqn"]) as host:
                out.append(host.read())
        return tuple(out)

    def write(self, number: int):
        for name in (DATA, LOG):
            with Host(self.daemon, self.daemon.ask("volume", "show", name)["iqn"]) as host:
                host.write(0, number)

    def at(self, moment: str, *flags: str) -> tuple[int, int]:
        """What a view of that moment shows."""
        view = self.daemon.expose(f"group:{GROUP}", moment, *flags)
        out = []
        for part in view["views"]:
            with Host(self.daemon, part["iqn"]) as host:
                out.append(host.read())
        self.daemon.ask("view", "unexpose", view["name"])
        data, log = out
        assert log <= data <= log + 1, (moment, out)
        return data, log

    def at_random(self, rng: random.Random) -> tuple[int, int]:
        return self.at(time_text(rng.randrange(self.created_ns, time.time_ns())))

    def rollback(self, moment: str) -> dict:
        return self.daemon.rollback(f"group:{GROUP}", moment)

    def ask_for_rollback(self, mark: str):
        """In one request, which a crash may cut off."""
        body = json.dumps({"at": {"mark": mark}, "force": True}).encode()
        try:
            AdminConnection(self.daemon.socket).ask("POST", f"/v1/groups/{GROUP}/rollback", body)
        except (OSError, http.client.HTTPException):
            pass


@pytest.fixture
def pair(daemon):
    return Pair(daemon)


def test_any_moment_is_one_of_both(pair, seed, long_run):
    """Views while the writer goes on, and of random moments before, across rollbacks and a crash."""
    rng = random.Random(seed)
    rounds, views = (20, 20) if long_run else (4, 6)
    for number in range(rounds):
        with Writer(pair.daemon) as writer:
            began = writer.number
            for _ in range(views):
                pair.at("now")
                pair.at_random(rng)
            pair.daemon.ask("mark", "add", f"group:{GROUP}", f"m{number}")
            wait_until(lambda: writer.number > began + 50 or writer.failure, 30, "the writer goes on")
        before = pair.numbers()
        marked = pair.at(f"mark:m{number}")
        answer = pair.rollback(f"mark:m{number}")
        assert pair.numbers() == marked
        assert pair.at(f"mark:{answer['before_mark']}") == before
        if number % 2 == 1:
            pair.daemon.kill()
            pair.daemon.start()
            assert pair.numbers() == marked
        if number % 3 == 2:
            pair.daemon.ask("rollback", "undo", f"group:{GROUP}", "--force")
            assert pair.numbers() == before
        for _ in range(views):
            pair.at_random(rng)


def test_there_is_no_moment_between_the_records_of_a_rollback(pair):
    pair.write(1)
    pair.daemon.ask("mark", "add", f"group:{GROUP}", "one")
    pair.write(2)
    pair.rollback("mark:one")

    def recorded(name: str) -> int:
        history = pair.daemon.ask("history", "show", name, "--writes", 100)
        return max(int(each["time_ns"]) for each in history["write_list"] if each["kind"] == "rollback")

    times = sorted(recorded(name) for name in (DATA, LOG))
    assert times[0] < times[1]
    assert pair.at(time_text(times[0])) == (2, 2)
    assert pair.at(time_text(times[1] - 1)) == (2, 2)
    assert pair.at(time_text(times[1])) == (1, 1)


@pytest.mark.slow
def test_kill_in_the_middle_of_rollbacks(folder, seed, long_run):
    """Both are at the mark afterwards, or neither is; with hosts that write to other blocks. Two log disks, so that the records are no
    one write."""
    rng = random.Random(seed)
    with Daemon(folder, log={"disks": [str(folder / "log0"), str(folder / "log1")]}) as daemon:
        pair = Pair(daemon.start())
        outcomes = {"before": 0, "after": 0}
        took: list[float] = []  # without a crash
        for number in range(1, 201 if long_run else 21):
            pair.write(2 * number - 1)
            daemon.ask("mark", "add", f"group:{GROUP}", f"m{number}")
            pair.write(2 * number)
            loads = [Load(daemon, name) for name in (DATA, LOG)]
            for load in loads:
                load.start()
            wait_until(lambda: all(load.writes > 10 for load in loads), 30, "the load writes")
            rollback = threading.Thread(target=pair.ask_for_rollback, args=(f"m{number}",))
            began = time.monotonic()
            rollback.start()
            if number <= UNDISTURBED:
                rollback.join()
                took.append(time.monotonic() - began)
            else:
                time.sleep(rng.uniform(0, 1.2 * min(took)))  # the moment of the crash is what is random here
            daemon.kill()
            rollback.join()
            for load in loads:
                load.end()
            daemon.start()
            numbers = pair.numbers()
            assert numbers in ((2 * number - 1,) * 2, (2 * number,) * 2), numbers
            outcomes["after" if numbers[0] % 2 else "before"] += 1
            group = daemon.ask("group", "show", GROUP)
            assert not group.get("rolling_back", False)
            pair.at("now")
        completed = sum("was interrupted, and is completed" in line for line in daemon.log_lines())
        assert outcomes["after"] >= UNDISTURBED
        print(f"rollbacks of {1000 * min(took):.1f} ms and more; {outcomes}, of which {completed} were completed by the next start")


def test_a_group_and_its_members(pair):
    """What is refused, and how it is said."""
    daemon = pair.daemon
    daemon.create("tmp", "16M")
    created = daemon.ask("group", "show", GROUP)
    assert [member["volume"] for member in created["members"]] == [DATA, LOG]
    pair.write(1)
    before_ns = time.time_ns()
    refused = daemon.cli("volume", "delete", DATA, "--yes", check=False)
    assert refused.code == 4 and f"is in the group {GROUP}" in refused.err, refused
    daemon.ask("group", "add", GROUP, "tmp")
    refused = daemon.cli("view", "expose", f"group:{GROUP}@{time_text(before_ns)}", check=False)
    assert refused.code == 3 and "tmp joined the group" in refused.err, refused
    daemon.ask("group", "remove", GROUP, "tmp")
    assert pair.at(time_text(before_ns)) == (1, 1)
    for wrong, code in ((f"group:{GROUP}@#1", 2), (f"group:{GROUP}@mark:none", 1), ("group:none@now", 1)):
        assert daemon.cli("view", "expose", wrong, check=False).code == code, wrong
    daemon.ask("mark", "add", f"group:{GROUP}", "kept", "--lock", "1h")
    marks = daemon.ask("mark", "list", DATA)["marks"]
    assert [mark["name"] for mark in marks] == [f"{GROUP}/kept"]
    assert daemon.cli("group", "delete", GROUP, "--yes", check=False).code == 4
    daemon.ask("mark", "remove", f"group:{GROUP}", "kept")
    daemon.ask("group", "delete", GROUP)
    assert pair.numbers() == (1, 1)
    assert daemon.ask("group", "list").get("groups", []) == []


def test_a_writable_view_and_its_end(pair):
    pair.write(1)
    view = pair.daemon.expose(f"group:{GROUP}", "now", "--writable", "--name", "lab")
    pair.write(2)
    iqns = [part["iqn"] for part in view["views"]]
    for iqn in iqns:
        with Host(pair.daemon, iqn) as host:
            assert host.read() == 1
            host.write(0, 9)
    pair.daemon.kill()
    pair.daemon.start()
    for iqn in iqns:
        with Host(pair.daemon, iqn) as host:
            assert host.read() == 9
    assert pair.numbers() == (2, 2)
    with pytest.raises(Failed, match="is a part of lab"):
        pair.daemon.cli("view", "unexpose", f"lab-{LOG}")
    pair.daemon.ask("view", "unexpose", "lab")
    assert pair.daemon.ask("view", "list").get("views", []) == []


def test_a_full_log_drops_views_and_marks_of_all_members(folder):
    """Only one of them is written to: what goes, goes for both."""
    log = {"max_size": "128M", "track_size": "8M", "on_full": "shorten-window"}
    with Daemon(folder, log=log, storage={"lag_max": "32M", "apply_delay": "50ms"}, window="1h") as daemon:
        pair = Pair(daemon.start())
        pair.write(1)
        written_ns = time.time_ns()
        daemon.ask("mark", "add", f"group:{GROUP}", "loose")
        daemon.expose(f"group:{GROUP}", "now", "--name", "lost")
        with Host(daemon, daemon.ask("volume", "show", LOG)["iqn"]) as host:
            numbers = itertools.count(1)

            def gone() -> bool:
                for number in itertools.islice(numbers, 50):
                    host.write(1 + number * PIECE % 15_000, number, PIECE)
                views = daemon.ask("view", "list").get("views", [])
                marks = daemon.ask("mark", "list", f"group:{GROUP}").get("marks", [])
                assert len(views) in (0, 2)
                return not views and not marks

            wait_until(gone, 240, "the log is full")
        assert daemon.ask("mark", "list", DATA).get("marks", []) == []
        refused = daemon.cli("view", "expose", f"group:{GROUP}@{time_text(written_ns)}", check=False)
        assert refused.code == 3 and LOG in refused.err, refused
