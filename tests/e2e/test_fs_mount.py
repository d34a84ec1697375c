"""The past of a volume as a mounted tree, as other programs use it: rsync, file handles, Samba, NFS; and nothing changes it."""

import contextlib
import ctypes
import errno
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess

import pytest

import mariner
from files_story import VOLUME, Story
from programs import done, run

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK),
                                reason="mounts with FUSE for others, as root")
DEPLOY = mariner.ROOT / "deploy"


class Mounted:
    def __init__(self, story: Story):
        self.story = story
        self.where = story.folder / "history"
        self.where.mkdir()
        story.daemon.ask("mark", "add", f"{VOLUME}@#{story.made}", "begin")
        story.daemon.cli("fs", "mount", VOLUME, str(self.where), "--allow-other")
        self.then = self.where / f"@#{story.made}"


@pytest.fixture
def mounted(daemon, folder):
    one = Mounted(Story(daemon, folder))
    try:
        yield one
    finally:
        done("umount", one.where)


@contextlib.contextmanager
def running(words: list, log: pathlib.Path, is_ready, **options):
    """A server for as long as this lasts. Its children end with it, as it is their group's first."""
    with open(log, "wb") as output:
        server = subprocess.Popen([str(word) for word in words], stdout=output, stderr=output, start_new_session=True, **options)
    try:
        mariner.wait_until(lambda: server.poll() is not None or is_ready(), 30, f"{words[0]} answers")
        assert server.poll() is None, log.read_text()
        yield server
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, 9)
            server.wait(10)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_rsync_copies_a_moment(mounted):
    copy = mounted.story.folder / "copy"
    done("rsync", "-aHAX", "--checksum", f"{mounted.then}/tree", copy)
    done("diff", "-r", "--no-dereference", mounted.story.folder / "content" / "tree", copy / "tree")
    assert (copy / "tree" / "twin").stat().st_ino == (copy / "tree" / "deep" / "file").stat().st_ino
    again = done("rsync", "-aHAX", "--itemize-changes", f"{mounted.then}/tree", copy)
    assert again == ""


# What pjdfstest asks of a read-only file system: each has to be refused with EROFS.
CHANGES = {
    "chmod": lambda at: os.chmod(at / "notes", 0o600),
    "chmod of a directory": lambda at: os.chmod(at / "tree", 0o700),
    "chown": lambda at: os.chown(at / "notes", 65533, 65533),
    "lchown": lambda at: os.lchown(at / "tree" / "link", 65533, 65533),
    "link": lambda at: os.link(at / "notes", at / "other"),
    "mkdir": lambda at: os.mkdir(at / "other"),
    "mkfifo": lambda at: os.mkfifo(at / "other"),
    "mknod of a file": lambda at: os.mknod(at / "other", stat.S_IFREG | 0o600),
    "mknod of a device": lambda at: os.mknod(at / "other", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
    "mknod of a socket": lambda at: os.mknod(at / "other", stat.S_IFSOCK | 0o600),
    "open to write": lambda at: os.open(at / "notes", os.O_WRONLY),
    "open to read and write": lambda at: os.open(at / "notes", os.O_RDWR),
    "open to truncate": lambda at: os.open(at / "notes", os.O_RDONLY | os.O_TRUNC),
    "open to append": lambda at: os.open(at / "notes", os.O_WRONLY | os.O_APPEND),
    "open to create": lambda at: os.open(at / "other", os.O_RDONLY | os.O_CREAT, 0o600),
    "open to create and write": lambda at: os.open(at / "other", os.O_WRONLY | os.O_CREAT, 0o600),
    "open without a name": lambda at: os.open(at / "tree", os.O_WRONLY | os.O_TMPFILE, 0o600),
    "rename": lambda at: os.rename(at / "notes", at / "other"),
    "rename of a directory": lambda at: os.rename(at / "tree", at / "other"),
    "rename onto another": lambda at: os.rename(at / "notes", at / "tree" / "deep" / "file"),
    "rmdir": lambda at: os.rmdir(at / "lost+found"),
    "symlink": lambda at: os.symlink("notes", at / "other"),
    "truncate": lambda at: os.truncate(at / "notes", 1),
    "unlink": lambda at: os.unlink(at / "notes"),
    "unlink of a link": lambda at: os.unlink(at / "tree" / "link"),
    "utimensat": lambda at: os.utime(at / "notes", (1, 1)),
    "utimensat to now": lambda at: os.utime(at / "notes"),
    "setxattr": lambda at: os.setxattr(at / "notes", "user.one", b"1"),
    "removexattr": lambda at: os.removexattr(at / "notes", "user.one"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_nothing_changes_the_past(read_only, change):
    with pytest.raises(OSError) as refused:
        change(read_only)
    assert refused.value.errno == errno.EROFS


@pytest.fixture(scope="module")
def read_only(tmp_path_factory):
    """A moment of an image: nothing that is tried on it leaves a trace."""
    folder = tmp_path_factory.mktemp("read_only")
    content = folder / "content"
    (content / "tree" / "deep").mkdir(parents=True)
    (content / "notes").write_text("one\n")
    (content / "tree" / "deep" / "file").write_text("deep\n")
    (content / "tree" / "link").symlink_to("deep/file")
    done("mke2fs", "-q", "-t", "ext4", "-d", content, folder / "disk.raw", "16m")
    where = folder / "history"
    where.mkdir()
    done(mariner.UVFS, "mount", "--image", folder / "disk.raw", where)
    try:
        yield where / "@now"
        assert sorted(os.listdir(where / "@now")) == ["lost+found", "notes", "tree"]
        assert (where / "@now" / "notes").read_text() == "one\n"
    finally:
        done("umount", where)


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("handle", ctypes.c_ubyte * 128)]


def handle_of(path: pathlib.Path) -> Handle:
    handle, mount_id = Handle(bytes=128), ctypes.c_int()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.name_to_handle_at(-100, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount_id), 0) == 0, os.strerror(ctypes.get_errno())
    return handle


def open_handle(where: pathlib.Path, handle: Handle) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    mount = os.open(where, os.O_RDONLY)
    try:
        file = libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDONLY)
    finally:
        os.close(mount)
    if file < 0:
        raise OSError(ctypes.get_errno(), "open_by_handle_at")
    return file


def forget_names() -> None:
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("2")


def test_what_was_open_is_found_again_by_its_handle(mounted):
    """As an NFS server does it for a client that has kept a handle for long: the kernel has forgotten the file since."""
    paths = [mounted.then / "notes", mounted.then / "tree" / "deep" / "file", mounted.then / "tree" / "deep", mounted.where / "versions" / "notes"]
    handles = [handle_of(path) for path in paths]
    forget_names()
    with os.fdopen(open_handle(mounted.where, handles[0])) as file:
        assert file.read() == "one\ntwo\n"
    with os.fdopen(open_handle(mounted.where, handles[1])) as file:
        assert file.read() == "deep\n" * 5000
    for handle, path in zip(handles[2:], paths[2:]):
        folder = open_handle(mounted.where, handle)
        assert sorted(os.listdir(folder)) == sorted(os.listdir(path))
        os.close(folder)
    # The numbers of another mount are other things.
    done("umount", mounted.where)
    mounted.story.daemon.cli("fs", "mount", VOLUME, str(mounted.where), "--allow-other")
    assert (mounted.then / "tree" / "deep" / "file").exists()
    forget_names()
    with pytest.raises(OSError) as stale:
        open_handle(mounted.where, handles[0])
    assert stale.value.errno == errno.ESTALE


def snapshot_of_mark(mounted) -> str:
    names = os.listdir(mounted.where / "snapshots")
    assert all(re.fullmatch(r"@GMT-\d{4}\.\d\d\.\d\d-\d\d\.\d\d\.\d\d", name) for name in names)
    return next(name for name in names if (mounted.where / "snapshots" / name / "notes").exists())


def test_samba_shows_previous_versions(mounted):
    """With deploy/history-samba.conf, but for its paths and that anybody may read."""
    story = mounted.story
    today = story.folder / "today"
    shutil.copytree(story.folder / "content" / "tree", today / "tree", symlinks=True)
    (today / "notes").write_text("of today\n")
    (port,) = mariner.free_ports(1)
    state = story.folder / "samba"
    state.mkdir()
    share = (DEPLOY / "history-samba.conf").read_text().replace("/srv/db1", str(today)).replace("/mnt/history/db1", str(mounted.where))
    places = "".join(f"   {name} = {state}\n" for name in ("private dir", "lock directory", "state directory", "cache directory", "pid directory", "ncalrpc dir", "binddns dir"))
    (state / "smb.conf").write_text(f"""[global]
   server role = standalone server
   smb ports = {port}
   interfaces = lo
   bind interfaces only = yes
   disable spoolss = yes
   load printers = no
   map to guest = Bad User
   guest account = root
{places}
{share}   guest ok = yes
   read only = yes
""")
    words = ["smbd", "--foreground", "--no-process-group", f"--configfile={state / 'smb.conf'}", f"--log-basename={state}", "--debug-stdout"]
    snapshot = snapshot_of_mark(mounted)
    with running(words, state / "log", lambda: answers(port)):
        def ask(command: str) -> str:
            # (Beside it stands its own configuration, so that this machine's is not read.)
            return done("smbclient", "-s", state / "smb.conf", "-p", port, "-N", "//127.0.0.1/db1", "-c", command, cwd=story.folder)
        assert snapshot in ask("allinfo notes")
        ask(f"get {snapshot}\\notes then")
        assert (story.folder / "then").read_text() == "one\ntwo\n"
        ask(f"get {snapshot}\\tree\\deep\\file deep")
        assert (story.folder / "deep").read_text() == "deep\n" * 5000
        ask("get notes now")
        assert (story.folder / "now").read_text() == "of today\n"


def test_nfs_exports_the_past(mounted):
    """With deploy/history-ganesha.conf, but for its path and port; libnfs is the client."""
    story = mounted.story
    (port,) = mariner.free_ports(1)
    state = story.folder / "ganesha"
    state.mkdir()
    text = (DEPLOY / "history-ganesha.conf").read_text().replace("/mnt/history/db1", str(mounted.where)).replace("NFS_Port = 2049", f"NFS_Port = {port}")
    (state / "ganesha.conf").write_text(text.replace("NFS_CORE_PARAM {", "NFS_CORE_PARAM {\n  Bind_addr = 127.0.0.1;")
                                        + f'\nNFSv4 {{ RecoveryBackend = fs; RecoveryRoot = "{state}"; Graceless = true; }}\n')
    snapshot = snapshot_of_mark(mounted)
    server = f"nfs://127.0.0.1/history/db1/snapshots/{snapshot}"
    words = ["ganesha.nfsd", "-F", "-f", state / "ganesha.conf", "-p", state / "pid", "-L", "STDERR"]
    with running(words, state / "log", lambda: answers(port)):
        def ask(program: str, path: str) -> str:
            return done(program, f"{server}{path}?version=4&nfsport={port}")
        listed = ask("nfs-ls", "")
        assert "notes" in listed and "tree" in listed
        assert ask("nfs-cat", "/notes") == "one\ntwo\n"
        forget_names()
        assert ask("nfs-cat", "/notes") == "one\ntwo\n"
        assert "file" in ask("nfs-ls", "/tree/deep")
        # What was its owner's alone still is. (Root is nobody, unless the export says otherwise.)
        private = run("nfs-cat", f"{server}/tree/deep/file?version=4&nfsport={port}")
        assert private.returncode != 0 and "NFS4ERR_ACCESS" in private.stderr
        refused = run("nfs-cp", story.image, f"{server}/other?version=4&nfsport={port}")
        assert refused.returncode != 0
