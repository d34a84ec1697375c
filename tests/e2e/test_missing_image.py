"""A volume whose image is not there at a start: the others are served, and it is when the image is back."""

import pathlib

import iscsi_pdu
from mariner import lun_checksum, qemu_io, wait_until

BLOCK = 4096
SERVICE_UNAVAILABLE = 0x0301


def written(daemon, name: str, byte: int) -> dict:
    volume = daemon.create(name, "16M")
    qemu_io(daemon.url(volume["iqn"]), f"write -q -P {byte} 0 64k", f"write -q -P {byte} 1M 64k")
    return daemon.ask("volume", "show", name)


def state_of(daemon, name: str) -> str:
    return daemon.ask("volume", "show", name)["state"]


def test_the_others_are_served_and_it_is_when_it_is_back(daemon, folder):
    def checksum_of(target):
        return lun_checksum(daemon.url(target["iqn"]), folder / "lun")

    there, missing = written(daemon, "db1", 0x11), written(daemon, "db2", 0x22)
    view = daemon.expose("db2", "now", "--name", "lab", "--writable")
    qemu_io(daemon.url(view["iqn"]), f"write -q -P {0x33} 2M {BLOCK}")
    checksum, seen = checksum_of(missing), checksum_of(view)
    assert daemon.stop() == 0
    image = pathlib.Path(missing["image_path"])
    image.rename(f"{image}.away")
    daemon.start()

    qemu_io(daemon.url(there["iqn"]), f"read -q -P {0x11} 0 64k", f"write -q -P {0x44} 0 {BLOCK}")
    shown = daemon.ask("volume", "show", "db2")
    assert shown["state"] == "failed" and str(image) in shown["failure"]
    assert f"db2 is not served: {shown['failure']}" in daemon.cli("volume", "list").out
    assert "not served" in daemon.cli("view", "list").out
    for iqn in (missing["iqn"], view["iqn"]):
        status, _, connection = iscsi_pdu.login_answer((daemon.address, daemon.port), iqn)
        connection.close()
        assert status == SERVICE_UNAVAILABLE
    refused = daemon.cli("rollback", "db2@-1ms", "--yes", check=False)
    assert refused.code == 1 and "is not served" in refused.err, refused
    assert int(daemon.ask("history", "show", "db2")["writes"]) > 0
    assert 'mariner_volume_serving{volume="db2"} 0' in daemon.http("/metrics")[1]
    found = daemon.cli("--json", "doctor", check=False).json()["findings"]
    assert [each["level"] for each in found if each["check"] == "volume db2"] == ["error"]

    pathlib.Path(f"{image}.away").rename(image)
    wait_until(lambda: state_of(daemon, "db2") == "ready", 20, "the volume is served again")
    assert (checksum_of(missing), checksum_of(view)) == (checksum, seen)
    assert 'mariner_volume_serving{volume="db2"} 1' in daemon.http("/metrics")[1]


def test_where_none_can_be_served_the_daemon_does_not_start(daemon):
    image = pathlib.Path(written(daemon, "db1", 0x11)["image_path"])
    assert daemon.stop() == 0
    image.rename(f"{image}.away")
    daemon.start(wait=False)
    wait_until(lambda: daemon.process.poll() is not None, 20, "the daemon ends")
    assert daemon.process.returncode == 1
    said = daemon.tail()
    assert "no volume can be served; db1" in said and str(image) in said
    pathlib.Path(f"{image}.away").rename(image)
    daemon.start()
    assert state_of(daemon, "db1") == "ready"
