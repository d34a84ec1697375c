"""What checks of file systems found of a volume's moments is kept with them, and shown in its history."""

import http.client
import json
import socket
import subprocess
import time

import pytest

VOLUME = "db1"


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("mariner", timeout=30)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


def call(daemon, method: str, path: str, message: dict | None = None) -> tuple[int, dict]:
    connection = OverSocket(daemon.socket)
    connection.request(method, f"/v1/volumes/{VOLUME}{path}", body=message and json.dumps(message))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def verdict(sequence: int, what: str = "clean", **more) -> dict:
    return {"at": {"sequence": str(sequence)}, "verdict": what, "level": 1, **more}


def save(daemon, *verdicts: dict) -> dict:
    status, answer = call(daemon, "PUT", "/verdicts", {"verdicts": list(verdicts)})
    assert status == 200, answer
    return answer


def known(daemon, query: str = "") -> dict[int, str]:
    status, answer = call(daemon, "GET", f"/verdicts{query}")
    assert status == 200, answer
    return {int(each["at"]["sequence"]): each["verdict"] for each in answer["verdicts"]}


@pytest.fixture
def written(daemon):
    """With a volume of five writes."""
    url = daemon.url(daemon.create(VOLUME, "16M")["iqn"])
    commands = [word for i in range(5) for word in ("-c", f"write -P {i + 1} {i * 4096} 4096")]
    subprocess.run(["qemu-io", "-f", "raw", *commands, url], check=True, capture_output=True)
    return daemon


def test_kept_listed_and_shown(written):
    save(written, verdict(1), verdict(3, "damaged", findings="4"), verdict(5, "repairable", blocks_mended="2"))
    assert known(written) == {1: "clean", 3: "damaged", 5: "repairable"}
    assert known(written, "?since.sequence=2&until.sequence=4") == {3: "damaged"}
    history = written.ask("history", "show", VOLUME, "--buckets", "10")
    assert [each["kind"] for each in history["events"]] == ["clean", "damaged", "repairable"]
    assert history["events"][1]["text"] == "level 1: 4 findings"
    for kind in ("clean", "repairable", "damaged"):
        assert sum(bucket[kind] for bucket in history["buckets"]) == 1, kind
    text = written.cli("history", "show", VOLUME).out
    assert "+ clean  ~ repairable  ! damaged" in text
    assert "level 1: 2 blocks to mend" in text


def test_they_outlive_a_crash_and_go_with_the_volume(written):
    save(written, verdict(2))
    written.kill()
    written.start()
    assert known(written) == {2: "clean"}
    written.ask("volume", "delete", VOLUME)
    written.create(VOLUME, "16M")
    assert known(written) == {}


def test_a_better_check_counts_and_nonsense_is_refused(written):
    save(written, verdict(2, "damaged", level=2))
    save(written, verdict(2, "clean", level=3))
    assert known(written) == {2: "damaged"}
    save(written, verdict(2, "clean"))
    assert known(written) == {2: "clean"}
    status, answer = call(written, "PUT", "/verdicts", {"verdicts": [verdict(2, "dirty")]})
    assert status == 400 and 'expected clean, repairable or damaged, found "dirty"' in answer["error"]["message"]
    status, answer = call(written, "PUT", "/verdicts", {"verdicts": [verdict(2000)]})
    assert status == 422, answer
    assert call(written, "POST", "/verdicts", {})[0] == 405


def test_how_long_checks_took_is_a_metric(written):
    before = time.time_ns()
    save(written, verdict(2, duration_ns="1500000000"), verdict(3, duration_ns="500000000"))
    text = written.http("/metrics")[1]
    assert f'mariner_fsck_duration_seconds_count{{volume="{VOLUME}"}} 2\n' in text
    assert f'mariner_fsck_duration_seconds_sum{{volume="{VOLUME}"}} 2\n' in text
    checked = call(written, "GET", "/verdicts")[1]["verdicts"][0]["checked_ns"]
    assert before <= int(checked) <= time.time_ns()
