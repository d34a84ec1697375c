"""A Linux that has its root file system on a LUN: written there from the host, booted, used, shut down, and looked at from the host."""

import hashlib
import subprocess

import pytest

import guest as linux
import mariner

pytestmark = [pytest.mark.slow, pytest.mark.long]

VOLUME = "root"


@pytest.fixture
def network():
    with linux.Network((linux.HOST_ADDRESS, linux.HOST_ADDRESS_2)) as network:
        yield network


@pytest.fixture
def daemon(folder, network):
    with mariner.Daemon(folder, address=linux.HOST_ADDRESS, prefix=network.prefix) as daemon:
        yield daemon.start()


def boot(folder, network, daemon, command: str) -> str:
    """Boots from the volume, runs a command, and shuts down."""
    root = (daemon.ask("volume", "show", VOLUME)["iqn"], daemon.portal())
    with linux.FullGuest(folder, network, root_lun=root) as guest:
        guest.start()
        assert guest.run("awk '$2 == \"/\" && $1 != \"rootfs\" {print $1}' /proc/mounts") == "/dev/sda"
        out = guest.run(command)
        guest.power_off()
    return out


def test_a_system_boots_from_a_lun_and_goes_back_in_time(folder, network, daemon):
    image, back = linux.FullGuest.files() / "root.img", folder / "back.img"
    daemon.create(VOLUME, f"{image.stat().st_size >> 20}M")
    url = daemon.volume_url(VOLUME)

    def on_host(*command: str) -> str:
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, f"{command}: exit {run.returncode}\n{run.stdout}{run.stderr}"
        return run.stdout

    on_host(*network.prefix, "qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", str(image), url)
    daemon.ask("mark", "add", VOLUME, "installed")
    said = boot(folder, network, daemon, "dd if=/dev/urandom of=/written bs=64k count=128 2>/dev/null; md5sum < /written")

    on_host(*network.prefix, "qemu-img", "convert", "-f", "raw", "-O", "raw", url, str(back))
    on_host("/sbin/e2fsck", "-fn", str(back))
    on_host("/sbin/debugfs", "-R", f"dump /written {folder / 'written'}", str(back))
    assert hashlib.md5((folder / "written").read_bytes()).hexdigest() == said.split()[0]

    daemon.rollback(VOLUME, "mark:installed")
    assert boot(folder, network, daemon, "ls /written 2>/dev/null || echo nothing") == "nothing"
