"""A Linux guest in QEMU, on a network of its own, driven over its serial console (guest/agent.sh)."""

import dataclasses
import hashlib
import os
import pathlib
import random
import re
import shlex
import shutil
import socket
import subprocess
import threading
import time

import mariner
from namespaces import Namespace

HERE = pathlib.Path(__file__).resolve().parent
CACHE = mariner.BUILD.parent / "guest"
HOST_ADDRESS = "192.0.2.1"
GUEST_ADDRESS = "192.0.2.2"
# Of the second card, which only the full guest has.
HOST_ADDRESS_2 = "198.51.100.1"
GUEST_ADDRESS_2 = "198.51.100.2"
PAGE = 4096
POOL_PAGES = 64


class Network(Namespace):
    """A network namespace with a tap device for each of the host's addresses."""

    def __init__(self, addresses: tuple[str, ...] = (HOST_ADDRESS,)):
        super().__init__()
        for number, address in enumerate(addresses):
            self.run(f"ip tuntap add tap{number} mode tap")
            self.run(f"ip addr add {address}/24 dev tap{number}")
            self.run(f"ip link set tap{number} up")


class Lines:
    """A serial line of the guest as a stream of lines."""

    def __init__(self, path: pathlib.Path, transcript):
        self._socket = None
        # (The file is there before who listens.)
        mariner.wait_until(lambda: self._connect(path), 10, f"QEMU's serial line {path}")
        self._buffer = b""
        self._transcript = transcript

    def _connect(self, path: pathlib.Path) -> bool:
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            self._socket.close()
            return False
        return True

    def send(self, line: str):
        self._socket.sendall(line.encode() + b"\n")

    def receive(self, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                raise mariner.Failed(f"the guest said nothing for {timeout_s} s") from None
            if not data:
                raise mariner.Failed("the guest is gone")
            self._transcript.write(data)
            self._transcript.flush()
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line.decode(errors="replace").rstrip("\r")

    def close(self):
        self._socket.close()


KERNEL_OPTIONS = "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off"


def card(number: int) -> list[str]:
    """QEMU's options for a network card on tap<number>."""
    return ["-netdev", f"tap,id=n{number},ifname=tap{number},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=n{number},romfile="]


class Guest:
    """The small guest: everything in its initramfs, one network card, the pool of `Writer` in /pool."""

    memory_mb = 320

    def __init__(self, folder: pathlib.Path, network: Network, programs: tuple[pathlib.Path, ...] = ()):
        self.folder = folder
        self._network = network
        self._programs = programs  # statically linked; they are in its root
        self._console = None
        self.writer_line = None
        self._process: subprocess.Popen | None = None
        self.pool = random.Random(7).randbytes(POOL_PAGES * PAGE)

    def boot_options(self) -> list[str]:
        """Builds what the guest is made of, and says to QEMU what to boot on which devices."""
        subprocess.run([str(HERE / "guest" / "build.sh"), str(CACHE)], check=True)
        (self.folder / "pool").write_bytes(self.pool)
        for program in self._programs:
            shutil.copy(program, self.folder)
        initrd = self._initrd(CACHE, self.folder, "pool", *(program.name for program in self._programs))
        return [*card(0), "-kernel", str(CACHE / "vmlinuz"), "-initrd", initrd,
                "-append", f"{KERNEL_OPTIONS} address={GUEST_ADDRESS}/24"]

    def _initrd(self, image: pathlib.Path, folder: pathlib.Path, *files: str) -> str:
        """The image's initramfs with more files of a folder."""
        initrd = self.folder / "initrd"
        more = subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input="\n".join(files).encode(),
                              cwd=folder, capture_output=True, check=True).stdout
        # Concatenated archives are one initramfs; each starts at a multiple of four.
        base = (image / "initrd").read_bytes()
        initrd.write_bytes(base + bytes(-len(base) % 512) + more)
        return str(initrd)

    def start(self) -> "Guest":
        options = self.boot_options()
        sockets = [pathlib.Path(f"/tmp/mariner-guest-{os.getpid()}-{id(self)}-{i}.sock") for i in range(2)]
        serial = []
        for number, path in enumerate(sockets):
            path.unlink(missing_ok=True)
            serial += ["-chardev", f"socket,id=c{number},path={path},server=on,wait=on",
                       "-serial", f"chardev:c{number}"]
        command = [*self._network.prefix, "qemu-system-x86_64", "-accel", "tcg,thread=multi",
                   "-smp", "2", "-cpu", "Nehalem", "-m", str(self.memory_mb), "-nodefaults", "-nographic",
                   "-no-reboot", *serial, *options]
        self._qemu_log = open(self.folder / "qemu.log", "ab")
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._qemu_log,
                                         stderr=self._qemu_log, start_new_session=True)
        self._transcripts = [open(self.folder / f"serial{i}.log", "ab") for i in range(2)]
        self._console = Lines(sockets[0], self._transcripts[0])
        self.writer_line = Lines(sockets[1], self._transcripts[1])
        for path in sockets:
            path.unlink(missing_ok=True)
        while "@@READY" not in (line := self._console.receive(120)):
            if "@@FAILED" in line:
                raise mariner.Failed(f"the guest did not boot: {line}")
        return self

    def power_off(self, timeout_s: float = 60):
        """Shuts the guest down as init does: what it has mounted is clean afterwards."""
        self._console.send("exit")
        self._process.wait(timeout_s)

    def run(self, command: str, timeout_s: float = 120, check: bool = True) -> str:
        """Runs a line of shell in the guest and returns what it printed."""
        self._console.send(command)
        lines = []
        while True:
            line = self._console.receive(timeout_s)
            done = re.fullmatch(r"(.*)@@DONE (\d+)", line)
            if not done:
                lines.append(line)
                continue
            lines.append(done.group(1))
            out = "\n".join(lines).strip()
            if check and done.group(2) != "0":
                raise mariner.Failed(f"in the guest: {command}: exit {done.group(2)}\n{out}")
            return out

    def begin(self, command: str):
        """Runs it beside what follows. A grandchild: the end of a child would interrupt the shell that reads our lines."""
        self.run(f"( ({command}) & )")

    def login(self, iqn: str, portal: str) -> str:
        """Discovers and logs in; returns the disk's device."""
        return self.run(f"login {shlex.quote(iqn)} {portal}").splitlines()[-1]

    def complaints(self) -> str:
        """What the kernel has to say about I/O errors and file systems since the last call, if anything."""
        return self.run("dmesg -c | grep -E 'I/O error|EXT4-fs (error|warning)|Remounting|Aborting journal'",
                        check=False)

    def close(self):
        if self._process and self._process.poll() is None:
            self._process.kill()
        if self._process:
            self._process.wait()
            for line in (self._console, self.writer_line):
                if line:
                    line.close()
            for file in (self._qemu_log, *self._transcripts):
                file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class FullGuest(Guest):
    """The full guest (guest/build_full.sh): two network cards, and a root file system on a disk of its own
    whose changes are thrown away, or on a LUN: (IQN, portal)."""

    memory_mb = 768

    def __init__(self, folder: pathlib.Path, network: Network, root_lun: tuple[str, str] | None = None):
        super().__init__(folder, network)
        self._root_lun = root_lun

    @staticmethod
    def files() -> pathlib.Path:
        """The folder with vmlinuz, initrd and root.img, made if they are not there."""
        folder = CACHE / "full"
        subprocess.run([str(HERE / "guest" / "build_full.sh"), str(folder)], check=True)
        return folder

    def boot_options(self) -> list[str]:
        files = self.files()
        words = [KERNEL_OPTIONS, f"address0={GUEST_ADDRESS}/24", f"address1={GUEST_ADDRESS_2}/24"]
        disk = []
        if self._root_lun:
            words += [f"target={self._root_lun[0]}", f"portal={self._root_lun[1]}"]
        else:
            disk = ["-drive", f"file={files / 'root.img'},format=raw,if=virtio,snapshot=on"]
        # With what the tests say to it, so that the image needs not be built again when that changes.
        initrd = self._initrd(files, HERE / "guest", "agent.sh", "full_agent.sh")
        return [*card(0), *card(1), *disk, "-kernel", str(files / "vmlinuz"), "-initrd", initrd, "-append",
                " ".join(words)]


@dataclasses.dataclass
class WrittenFile:
    number: int
    began_ns: int        # the host's clock before the guest created it
    synced_ns: int = 0   # the host's clock after its fsync had returned; 0: it had not


class Writer:
    """Lets the guest write numbered files and records when, by the host's clock."""

    def __init__(self, guest: Guest, folder: str = "/mnt", first: int = 1):
        self.files: list[WrittenFile] = []
        self.error = ""
        self._guest = guest
        self._stop = threading.Event()
        guest.begin(f"write_files {folder} {first}")
        self._thread = threading.Thread(target=self._answer)
        self._thread.start()

    def _answer(self):
        try:
            while True:
                line = self._guest.writer_line.receive(120)
                now = time.time_ns()
                if not line.startswith("NEXT "):
                    self.error = line
                    return
                if self.files:
                    self.files[-1].synced_ns = now
                if self._stop.is_set():
                    self._guest.writer_line.send("stop")
                    return
                self.files.append(WrittenFile(int(line.split()[1]), time.time_ns()))
                self._guest.writer_line.send(str(self.files[-1].began_ns))
        except mariner.Failed as error:
            self.error = str(error)

    def stop(self) -> list[WrittenFile]:
        self._stop.set()
        self._thread.join()
        if self.error:
            raise mariner.Failed(f"the guest's writer: {self.error}")
        return self.files


def content(guest: Guest, file: WrittenFile) -> bytes:
    start = file.number % 48 * PAGE
    return (f"file {file.number} {file.began_ns}\n".encode()
            + guest.pool[start:start + (file.number % 16 + 1) * PAGE])


def compare_files(guest: Guest, folder: str, files: list[WrittenFile], earliest_ns: int,
                  latest_ns: int | None = None) -> tuple[int, int]:
    """Checks the files under `folder` in the guest against a moment between the two times.

    Every file fsynced before it must be there and whole; none begun after it may be there. Returns
    how many had to be there and how many must not."""
    latest_ns = earliest_ns if latest_ns is None else latest_ns
    out = guest.run(f"cd {folder} && md5sum f* 2>/dev/null; cd /")
    found = {int(m.group(2)): m.group(1) for m in re.finditer(r"^([0-9a-f]{32})  f(\d+)$", out, re.M)}
    required = [f for f in files if f.synced_ns and f.synced_ns <= earliest_ns]
    forbidden = [f for f in files if f.began_ns > latest_ns]
    for file in required:
        assert file.number in found, f"file {file.number}, fsynced before the moment, is missing"
        assert found[file.number] == hashlib.md5(content(guest, file)).hexdigest(), \
            f"file {file.number}, fsynced before the moment, is damaged"
    present = sorted(set(found) & {f.number for f in forbidden})
    assert not present, f"files {present[:5]} are from after the moment"
    return len(required), len(forbidden)
