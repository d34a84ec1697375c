"""Several runs of the tests beside each other: each test is in one of them, and they do not take each other's ports."""

import pytest

import mariner
from taking_turns import TakingTurns


def test_each_file_is_taken_by_one_run_which_keeps_it(tmp_path):
    runs = [TakingTurns(f"{number}/3:{tmp_path}") for number in (1, 2, 3)]
    files = [f"tests/e2e/test_{name}.py" for name in "abcdef"]
    for number, file in enumerate(files):
        first = runs[number % 3]
        assert first.takes(file)
    for number, file in enumerate(files):
        assert [run.takes(file) for run in runs] == [number % 3 == each for each in range(3)]


def test_who_takes_turns_alone_takes_everything(tmp_path):
    assert all(TakingTurns(f"1/1:{tmp_path}").takes(f"tests/e2e/test_{name}.py") for name in "abc")


@pytest.mark.parametrize("share", ["", "1", "1/2", "1/2:", "0/2:folder", "3/2:folder", "one/2:folder"])
def test_nonsense_is_refused(share):
    with pytest.raises(pytest.UsageError, match="NUMBER/COUNT:FOLDER is expected"):
        TakingTurns(share)


def test_ports_are_divided(monkeypatch):
    monkeypatch.setattr(mariner, "_ports_share", None)  # what it was comes back
    rests = []
    for number in (1, 2):
        mariner.share_ports(number, 2)
        ports = mariner.free_ports(20)
        assert len({port % 2 for port in ports}) == 1
        rests.append(ports[0] % 2)
    assert sorted(rests) == [0, 1]
