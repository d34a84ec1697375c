"""Nodes get to know each other: `mariner node init`, `invite` and `enrol`, with the real daemon."""

import os
import socket
import ssl
import stat
import subprocess

import pytest

import mariner

DONE, FAILED, USAGE = 0, 1, 2


@pytest.fixture
def cluster(folder):
    """The first node of a cluster, serving; yields (daemon, folder of its certificates, enrol port)."""
    pki = folder / "pki"
    (port,) = mariner.free_ports(1)
    made = command("node", "init", "--cluster", "north", "--node", "n1", "--pki", pki)
    assert made.returncode == DONE, made.stderr
    daemon = mariner.Daemon(folder / "n1", more_config=f'[cluster]\npki = "{pki}"\nenrol = "127.0.0.1:{port}"\n')
    daemon.start()
    try:
        yield daemon, pki, port
    finally:
        daemon.stop()


def command(*arguments, stdin=None):
    """`mariner` where there is no daemon."""
    return subprocess.run([mariner.MARINER, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                          input=stdin)


def openssl(*arguments):
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, timeout=60)


def listening(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_a_new_node_gets_its_certificate(cluster, folder):
    daemon, pki, port = cluster
    assert not listening(port), "nobody is waited for"
    invitation = daemon.ask("node", "invite", "n2")
    assert invitation["cluster"] == "north" and invitation["address"] == f"127.0.0.1:{port}"
    assert listening(port)
    new = folder / "n2" / "pki"
    enrolled = command("node", "enrol", "-", "--pki", new, stdin=invitation["token"] + "\n")
    assert enrolled.returncode == DONE, enrolled.stderr
    assert "This node is n2 of cluster north now." in enrolled.stdout

    # What another program makes of the files.
    verified = openssl("verify", "-x509_strict", "-CAfile", new / "ca.crt", new / "node.crt")
    assert verified.returncode == 0, verified.stderr
    text = openssl("x509", "-in", new / "node.crt", "-noout", "-ext", "subjectAltName").stdout
    assert "URI:mariner://north/n2" in text
    assert (new / "ca.crt").read_text() == (pki / "ca.crt").read_text()
    assert not (new / "ca.key").exists()
    assert stat.S_IMODE(os.stat(new / "node.key").st_mode) == 0o600

    # Neither a second time nor over what is there.
    again = command("node", "enrol", invitation["token"], "--pki", new)
    assert again.returncode == FAILED and "never replaced" in again.stderr
    mariner.wait_until(lambda: not listening(port), 20, "the end of listening for new nodes")


def test_wrong_tokens(cluster, folder):
    daemon, _, port = cluster
    token = daemon.ask("node", "invite", "n2")["token"]
    where, fingerprint, secret = token.rsplit("/", 2)
    nowhere = folder / "nowhere"

    def refused(bad: str, words: str):
        answer = command("node", "enrol", bad, "--pki", nowhere)
        assert answer.returncode in (FAILED, USAGE), answer.stdout
        assert words in answer.stderr
        assert secret not in answer.stderr
        assert not nowhere.exists()

    refused(token[:-1], "secret does not have 32 hexadecimal digits")
    refused(f"{where}/{fingerprint}/{'0' * 32}", "there is no such invitation")
    refused(f"{where}/{'0' * 64}/{secret}", "not of the cluster that has made the invitation")
    first = command("node", "enrol", token, "--pki", folder / "first")
    assert first.returncode == DONE, first.stderr
    # The listener is there for another invitation; the used one is named.
    daemon.ask("node", "invite", "n3")
    refused(token, "the invitation of n2 was used already")
    assert "an attempt to enrol was refused" in daemon.log_file.read_text()


def test_whoever_else_connects_does_no_harm(cluster):
    daemon, _, port = cluster
    daemon.ask("node", "invite", "n2")
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    for text in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 5000, os.urandom(3000)):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(text)
    # A client that speaks TLS and then any bytes.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as s:
        assert s.version() == "TLSv1.3"
        s.sendall(b"\xff" * 64)
        s.settimeout(10)
        assert s.recv(100) == b"", "cut"
    older = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    older.check_hostname = False
    older.verify_mode = ssl.CERT_NONE
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        older.wrap_socket(socket.create_connection(("127.0.0.1", port)))
    for s in silent:
        s.close()
    assert daemon.ask("status")["ready"]
    lines = [line for line in daemon.log_file.read_text().splitlines() if "enrol was refused" in line]
    assert 1 <= len(lines) <= 20


def test_where_there_is_no_authority(folder):
    daemon = mariner.Daemon(folder / "alone")
    daemon.start()
    try:
        answer = daemon.cli("node", "invite", "n2", check=False)
        assert answer.code == USAGE and "[cluster] enrol" in answer.err
    finally:
        daemon.stop()
