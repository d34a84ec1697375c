"""Questions about files that the daemon answers: it runs the real uvfs beside itself, and tells what that prints."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

import mariner
from programs import done

VOLUME = "db1"
LARGE = 64 << 20
QUERIES_MAX = 8


@pytest.fixture
def served(daemon, folder):
    """A volume with a small file, and one that is larger than all buffers on its way."""
    content = folder / "content"
    content.mkdir()
    (content / "small").write_text("small\n")
    with open(content / "large", "wb") as large:
        for i in range(LARGE >> 20):
            large.write(i.to_bytes(4, "big") * (1 << 18))
    image = folder / "disk.raw"
    done("mke2fs", "-q", "-t", "ext4", "-b", 4096, "-d", content, image, "131072k")
    daemon.ask("volume", "import", VOLUME, image)
    return daemon


class Connection(http.client.HTTPConnection):
    def __init__(self, path: pathlib.Path):
        super().__init__("mariner", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.path))

    def ask(self, **words):
        self.request("POST", "/v1/files", json.dumps(words))
        return self.getresponse()


def children(daemon) -> list[int]:
    """The programs that the daemon runs beside itself."""
    threads = pathlib.Path(f"/proc/{daemon.process.pid}/task")
    all_of = " ".join((each / "children").read_text() for each in threads.iterdir())
    return [int(each) for each in all_of.split() if pathlib.Path(f"/proc/{each}/comm").read_text() == "uvfs\n"]


def descriptors(daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


def peak_bytes(daemon) -> int:
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()).group(1))


def test_the_daemon_answers(served):
    connection = Connection(served.socket)
    answer = connection.ask(verb="cat", object=f"{VOLUME}:/small")
    assert (answer.status, answer.read()) == (200, b"small\n")
    # One after the other on a connection.
    answer = connection.ask(verb="ls", object=f"{VOLUME}:/", json=True)
    assert sorted(each["name"]["text"] for each in json.loads(answer.read())["entries"]) == ["large", "lost+found", "small"]
    for words, status in (({"verb": "mount", "object": VOLUME}, 400), ({"verb": "ls", "object": "--image=/etc"}, 400), ({"words": "x"}, 400)):
        answer = connection.ask(**words)
        assert answer.status == status, answer.read()
        answer.read()


def test_the_command_says_what_uvfs_says(served):
    """Asked by the daemon or by the command itself: the same words, the same code."""
    for words in (["ls", f"{VOLUME}:/"], ["cat", f"{VOLUME}:/nothing"], ["ls", f"{VOLUME}:/@sometime"], ["ls", "nobody:/"],
                  ["find", VOLUME, "--name", "s*"], ["versions", f"{VOLUME}:/small", "--json"], ["ls", f"{VOLUME}:/@#99999999"]):
        for zone in ("", "Asia/Kathmandu"):
            environment = {**os.environ, "TZ": zone} if zone else dict(os.environ)
            direct = subprocess.run([mariner.UVFS, *words, "--socket", served.socket], capture_output=True, text=True, env=environment, timeout=60)
            asked = subprocess.run([mariner.MARINER, "fs", *words, "--socket", served.socket], capture_output=True, text=True, env=environment,
                                   timeout=60)
            assert (asked.returncode, asked.stdout, asked.stderr) == (direct.returncode, direct.stdout, direct.stderr), words


def test_a_large_file_comes_whole_and_in_little_memory(served):
    before = peak_bytes(served)
    with subprocess.Popen([mariner.MARINER, "fs", "cat", f"{VOLUME}:/large", "--socket", served.socket], stdout=subprocess.PIPE) as cat:
        for i in range(LARGE >> 20):
            assert cat.stdout.read(1 << 20) == i.to_bytes(4, "big") * (1 << 18)
        assert cat.stdout.read() == b""
    assert cat.returncode == 0
    assert peak_bytes(served) - before < 48 << 20


def test_a_client_that_goes_ends_its_query(served):
    open_before = descriptors(served)
    connection = Connection(served.socket)
    answer = connection.ask(verb="cat", object=f"{VOLUME}:/large")
    assert answer.read(4) == bytes(4)
    (query,) = children(served)
    about = pathlib.Path(f"/proc/{query}/status").read_text()
    assert "Seccomp:\t2\n" in about and "NoNewPrivs:\t1\n" in about
    # It waits: nobody takes what it prints.
    times: list[list[str]] = [[]]

    def stands_still() -> bool:
        times.append(pathlib.Path(f"/proc/{query}/stat").read_text().split()[13:15])
        return times[-1] == times[-2]

    mariner.wait_until(stands_still, 20, "it waits for its client", interval_s=0.3)
    answer.close()
    connection.close()
    mariner.wait_until(lambda: not children(served), 20, "the query ends")
    mariner.wait_until(lambda: descriptors(served) <= open_before, 90, "nothing of it is left")


def test_a_crash_is_an_error_of_one_client(served):
    one, other = (Connection(served.socket) for _ in range(2))
    begun = one.ask(verb="cat", object=f"{VOLUME}:/large")
    begun.read(1)
    (query,) = children(served)
    os.kill(query, signal.SIGSEGV)
    rest = begun.read()
    assert len(rest) < LARGE - 1
    assert other.ask(verb="cat", object=f"{VOLUME}:/small").read() == b"small\n"
    with subprocess.Popen([mariner.MARINER, "fs", "cat", f"{VOLUME}:/large", "--socket", served.socket], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as cat:
        cat.stdout.read(1)
        os.kill(children(served)[0], signal.SIGSEGV)
        cat.stdout.read()
        assert b"uvfs was ended by signal 11" in cat.stderr.read()
    assert cat.returncode == 1


def test_so_many_at_a_time_and_no_more(served):
    connections = [Connection(served.socket) for _ in range(QUERIES_MAX)]
    answers = [each.ask(verb="cat", object=f"{VOLUME}:/large") for each in connections]
    assert all(each.read(1) == b"\0" for each in answers)
    refused = served.cli("fs", "cat", f"{VOLUME}:/small", check=False)
    assert refused.code == 1 and "8 questions about files are being answered" in refused.err
    # The daemon does everything else meanwhile.
    assert served.ask("volume", "show", VOLUME)["name"] == VOLUME
    answers[0].close()
    connections[0].close()
    mariner.wait_until(lambda: served.cli("fs", "cat", f"{VOLUME}:/small", check=False).code == 0, 20, "there is room for one again")


def test_all_are_ended_with_the_daemon(served):
    connection = Connection(served.socket)
    connection.ask(verb="cat", object=f"{VOLUME}:/large").read(1)
    (query,) = children(served)
    served.stop()
    mariner.wait_until(lambda: not pathlib.Path(f"/proc/{query}").exists(), 20, "the query has ended")


def test_a_program_that_answers_may_only_read(daemon, folder):
    """Whatever a forged file system has made of it. In the place of uvfs: a script that tries."""
    daemon.create(VOLUME, "64M")
    here = folder / "bin"
    here.mkdir()
    os.link(daemon.program, here / "marinerd")
    (here / "uvfs").write_text("""#!/usr/bin/python3
import http.client, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[-1].removeprefix("--socket="))
for method, path in (("POST", "/v1/volumes/db1/past"), ("GET", "/v1/volumes/db1/history"), ("GET", "/v1/volumes"), ("DELETE", "/v1/volumes/db1"),
                     ("POST", "/v1/volumes/db1/rollback"), ("POST", "/v1/files")):
    connection = Connection("mariner")
    connection.request(method, path)
    print(connection.getresponse().status)
""")
    (here / "uvfs").chmod(0o755)
    daemon.stop()
    daemon.program = here / "marinerd"
    daemon.start()
    assert daemon.cli("fs", "ls", f"{VOLUME}:/").out.split() == ["200", "200", "403", "403", "403", "403"]
    assert daemon.ask("volume", "show", VOLUME)["name"] == VOLUME
