"""iPXE in QEMU as an initiator: a machine without a disk boots from a LUN, with CHAP and without."""

import pathlib
import subprocess

import pytest

import mariner

pytestmark = pytest.mark.slow

HERE = pathlib.Path(__file__).resolve().parent
BLOCK = 512
DISK_BYTES = 16 << 20  # a cylinder, which is what iPXE counts in, has almost 8 MiB
HELLO = b"HELLO FROM THE LUN\r\n"
CONFIG = """
[auth.host1]
secret_file = "{folder}/secret"
mutual_user = "mariner"
mutual_secret_file = "{folder}/mutual_secret"
[[volume]]
name = "open"
size = "16M"
[[volume]]
name = "safe"
size = "16M"
auth = ["host1"]
"""
SECRETS = {"secret": "what.host1.knows", "mutual_secret": "what.mariner.knows"}
ONE_WAY = {"username": "host1", "password": SECRETS["secret"]}
MUTUAL = ONE_WAY | {"reverse-username": "mariner", "reverse-password": SECRETS["mutual_secret"]}


@pytest.fixture
def daemon(folder):
    for name, secret in SECRETS.items():
        file = folder / name
        file.write_text(secret + "\n")
        file.chmod(0o600)
    with mariner.Daemon(folder / "d", more_config=CONFIG.format(folder=folder)) as running:
        yield running.start()


def run(*command) -> str:
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
    return result.stdout


def bootable_image(folder: pathlib.Path) -> pathlib.Path:
    code, image = folder / "boot_sector.o", folder / "boot.img"
    run("as", "--32", HERE / "guest" / "boot_sector.s", "-o", code)
    run("ld", "-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary", code, "-o", image)
    contents = bytearray(image.read_bytes().ljust(DISK_BYTES, b"\0"))
    assert contents[510:512] == b"\x55\xaa"
    contents[100 * BLOCK:100 * BLOCK + len(HELLO)] = HELLO
    image.write_bytes(contents)
    return image


def boot(folder: pathlib.Path, daemon: mariner.Daemon, volume: str, settings: dict[str, str]) -> str:
    """What a machine says on its serial line that is told to boot from the volume's LUN, until it ends or gives up."""
    tftp = folder / "tftp"
    tftp.mkdir(exist_ok=True)
    target = daemon.ask("volume", "show", volume)["iqn"]
    # 10.0.2.2 is this machine's loopback as QEMU's user network shows it.
    (tftp / "script").write_text("\n".join(
        ["#!ipxe", *[f"set {name} {value}" for name, value in settings.items()],
         f"sanboot iscsi:10.0.2.2::{daemon.port}:0:{target} || echo NO DISK", "sleep 1", "poweroff", ""]))
    console = folder / "console"
    console.touch()
    machine = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg", "-m", "64", "-nodefaults", "-nographic", "-no-reboot",
         "-serial", f"file:{console}", "-netdev", f"user,id=n,tftp={tftp},bootfile=script",
         "-device", "virtio-net-pci,netdev=n,bootindex=1", "-device", "isa-debug-exit,iobase=0xf4,iosize=1"],
        stdin=subprocess.DEVNULL)
    try:
        mariner.wait_until(lambda: machine.poll() is not None or b"NO DISK" in console.read_bytes(), 90,
                           "the machine boots or gives up", interval_s=0.1)
    finally:
        machine.kill()
        machine.wait()
        print(console.read_bytes().decode(errors="replace"))
    return console.read_text(errors="replace")


@pytest.mark.parametrize("volume, settings", [
    pytest.param("open", {}, id="open", marks=pytest.mark.long),
    pytest.param("safe", ONE_WAY, id="chap", marks=pytest.mark.long),
    pytest.param("safe", MUTUAL, id="mutual-chap")])
def test_a_machine_boots_from_a_lun(folder, daemon, volume, settings):
    url = daemon.volume_url(volume)
    if settings:
        url = url.replace("iscsi://", f"iscsi://host1%{SECRETS['secret']}@")
    run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", bootable_image(folder), url)
    said = boot(folder, daemon, volume, settings)
    assert HELLO.decode().strip() in said
    assert "BOOT SECTOR WROTE" in said
    back = folder / "back.img"
    run("qemu-img", "convert", "-f", "raw", "-O", "raw", url, back)
    contents = back.read_bytes()
    assert contents[200 * BLOCK:201 * BLOCK] == HELLO.ljust(BLOCK, b"\0")


@pytest.mark.parametrize("settings", [
    pytest.param({}, id="nobody", marks=pytest.mark.long),
    pytest.param(ONE_WAY | {"password": "what.nobody.knows"}, id="a-wrong-secret"),
    pytest.param(MUTUAL | {"reverse-password": "what.another.knows"}, id="a-target-that-proves-something-else",
                 marks=pytest.mark.long)])
def test_a_machine_without_the_secret_does_not(folder, daemon, settings):
    said = boot(folder, daemon, "safe", settings)
    assert "NO DISK" in said
    assert "HELLO" not in said
