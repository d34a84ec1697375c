"""The configuration of a cluster's node: `mariner config check`, and what enrolling says of it."""

import json
import pathlib
import re
import subprocess

import pytest

import mariner

DONE, FAILED = 0, 1
EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "marinerd-cluster.toml"


def command(*arguments):
    """`mariner` where there is no daemon."""
    return subprocess.run([mariner.MARINER, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def check(folder, text: str):
    """(exit code, problems without the file's name) of a configuration."""
    file = folder / "marinerd.toml"
    file.write_text(text)
    answer = command("config", "check", file, "--json")
    told = json.loads(answer.stdout)
    assert told["valid"] == (answer.returncode == DONE)
    said = command("config", "check", file)
    assert said.returncode == answer.returncode
    lines = [line.removeprefix(f"{file}:") for line in said.stdout.splitlines()]
    return answer.returncode, [line for line in lines if not line.endswith("is valid")]


def line_of(text: str, start: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith(start))


def test_the_example(folder):
    assert check(folder, EXAMPLE.read_text()) == (DONE, [])
    # The other nodes, as its comments say.
    text = EXAMPLE.read_text()
    logger = text[:text.index("[[volume]]")].replace('["target", "storage"]', '["logger"]')
    assert check(folder, logger) == (DONE, [])


REPLICATION = EXAMPLE.read_text().replace("# [replication]", "[replication]")
for key in ("mode ", "group ", "rate_limit", "interface", "encrypt"):
    REPLICATION = REPLICATION.replace(f"\n# {key}", f"\n{key}", 1)


def test_the_example_with_multicast(folder):
    assert REPLICATION.count("# group") == 1  # the volume's
    assert check(folder, REPLICATION) == (DONE, [])
    assert check(folder, REPLICATION.replace("# group", "group")) == (DONE, [])


@pytest.mark.parametrize("right, wrong, problem", [
    ('"multicast"', '"broadcast"', 'replication.mode: expected "multicast" or "unicast", found "broadcast"'),
    ('"239.192.7.1:6003"', '"10.0.0.1:6003"', 'replication.group: "10.0.0.1:6003" is no multicast group'),
    ('"800Mbit"', '"800MB"', "replication.rate_limit: expected 1mbit to 100gbit"),
    ("encrypt ", "encrpyt ", 'replication.encrpyt: unknown key; the nearest that exists is "replication.encrypt"'),
])
def test_what_is_wrong_with_multicast_is_named(folder, right, wrong, problem):
    assert REPLICATION.count(right) == 1
    code, problems = check(folder, REPLICATION.replace(right, wrong))
    assert code == FAILED
    assert len(problems) == 1 and problem in problems[0], problems


@pytest.mark.parametrize("right, wrong, problem", [
    ('"target", "storage"]', '"remote"]', 'roles: the role "remote" is not built yet'),
    ('"target", "storage"]', '"standalone", "storage"]', 'roles: "standalone" stands alone'),
    ('listen = ["10.0.0.1:9862"]', 'listen = ["a:9862"]', 'cluster.listen: "a:9862" is not an address'),
    ('lease  = "3s"', 'lease  = "90s"', "cluster.lease: expected whole seconds, from 2s to 1m, found 1m30s"),
    ('logger  = "c"', 'logger  = "d"', 'volume.logger: there is no [[cluster.node]] "d"'),
    ('storage = ["a", "b"]', 'storage = ["a", "a"]', 'volume.storage: "a" stands there twice'),
    ('promote = "auto"', 'targets = ["a", "d"]', 'volume.targets: there is no [[cluster.node]] "d"'),
    ('promote = "auto"', 'targets = []', 'volume.targets: empty; expected the names of the nodes'),
    ('promote = "auto"', 'promote = "never"', 'volume.promote: expected "auto" or "manual", found "never"'),
])
def test_what_is_wrong_is_named_with_its_line(folder, right, wrong, problem):
    text = EXAMPLE.read_text()
    assert text.count(right) == 1
    text = text.replace(right, wrong)
    code, problems = check(folder, text)
    assert code == FAILED
    (told,) = [each for each in problems if ": warning: " not in each]
    assert told.startswith(f"{line_of(text, wrong.split('=')[0] if '=' in wrong else 'roles')}: {problem}"), told


def test_a_warning_is_no_error(folder):
    text = re.sub("^etcd .*$", 'etcd = ["10.0.0.1:2379"]', EXAMPLE.read_text(), flags=re.MULTILINE)
    code, problems = check(folder, text)
    assert code == DONE
    assert problems[0].startswith(f"{line_of(text, 'etcd')}: warning: cluster.etcd: the loss of 10.0.0.1 alone")


def test_a_node_without_a_certificate_does_not_start_and_says_what_to_do(folder):
    (peers, etcd) = mariner.free_ports(2)  # (a socket's path is short, a test's folder is not)
    file = folder / "marinerd.toml"
    file.write_text(f"""version = 1
roles = ["storage"]
[server]
admin = "/tmp/mariner-{peers}.sock"
http = ""
state_dir = "{folder}/state"
[cluster]
listen = ["127.0.0.1:{peers}"]
etcd = ["127.0.0.1:{etcd}"]
[[cluster.node]]
id = 1
name = "a"
addresses = ["127.0.0.1:{peers}"]
""")
    daemon = subprocess.run([mariner.MARINERD, "--config", file], capture_output=True, text=True, timeout=60)
    assert daemon.returncode == 1
    assert f"{folder}/state/pki" in daemon.stderr + daemon.stdout
    assert "mariner node init" in daemon.stderr + daemon.stdout


def test_what_init_and_enrol_print_belongs_into_the_configuration(folder):
    pki = folder / "pki"
    (port,) = mariner.free_ports(1)
    made = command("node", "init", "--cluster", "north", "--node", "n1", "--pki", pki)
    assert made.returncode == DONE, made.stderr
    with mariner.Daemon(folder / "n1", more_config=f'[cluster]\npki = "{pki}"\nenrol = "127.0.0.1:{port}"\n') as daemon:
        daemon.start()
        token = daemon.ask("node", "invite", "n2")["token"]
        enrolled = command("node", "enrol", token, "--pki", folder / "n2" / "pki")
        assert enrolled.returncode == DONE, enrolled.stderr
    entries = [output[output.index("[[cluster.node]]"):] for output in (made.stdout, enrolled.stdout)]
    head = ('version = 1\nroles = ["logger"]\n[cluster]\nlisten = ["10.0.0.1:9862"]\n'
            'etcd = ["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"]\n')
    # As they stand, they are refused where something has to be filled in, and nowhere else.
    code, problems = check(folder, head + "".join(entries))
    assert code == FAILED
    assert [problem.split(": ")[1] for problem in problems] == [
        "cluster.node.addresses", "cluster.node.id", "cluster.node.addresses"]
    filled = [entries[0].replace("ADDRESS", "10.0.0.1"),
              entries[1].replace("ADDRESS", "10.0.0.2").replace("id = 0", "id = 2")]
    assert check(folder, head + "".join(filled)) == (DONE, [])
