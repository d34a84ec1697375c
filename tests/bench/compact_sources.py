"""A source tree under git, checked out at one version after another; the repository is beside it.

The kernel's, at the versions that Debian's mirrors have, without its drivers; else, and in a short
run, this project's own."""

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from compact_packages import fetched, run, versions_of
from results import HERE, say

PACKAGE = "linux-source-6.1"
LEFT_OUT = (
    "drivers",
    "sound",
    "tools",
    "Documentation",
    "arch/a*",
    "arch/m*",
    "arch/p*",
    "arch/r*",
    "arch/s*",
)
VERSIONS_MAX = 5
POINTS = {"full": 15, "short": 6}  # of this project's own history
OWN = HERE.parents[2]


class Sources:
    name = "sources"

    def __init__(self, short: bool, cache: pathlib.Path):
        self._short, self._cache = short, cache / "sources"

    def lacks(self) -> str:
        """Empty: it can be done here."""
        return "" if shutil.which("git") else "git"

    def prepare(self):
        """Makes the repository of the kernel's versions that is cloned, once."""
        self._origin, self._points = OWN, []
        if not self._short:
            try:
                self._prepare_kernel()
            except AssertionError as error:
                say(f"sources: this project's own, for the kernel's are not to be had: {error}")
        if not self._points:
            self._prepare_own()

    def steps(self, root: pathlib.Path) -> Iterator[str]:
        """Goes on to the next step when it is asked for its name."""
        tree = root / "tree"
        git(
            root, "clone", "-q", "--no-hardlinks", "--no-checkout", "--no-local", self._origin, tree
        )
        yield "the repository"
        for number, point in enumerate(self._points, 1):
            git(tree, "checkout", "-q", "--detach", point)
            yield f"version {number}"
        git(tree, "worktree", "add", "-q", "--detach", root / "newest", self._points[-1])
        yield "the newest one beside it"
        git(tree, "checkout", "-q", "--detach", self._points[len(self._points) // 2])
        git(tree, "gc", "-q")
        yield "back to the middle"

    def _prepare_own(self):
        commits = git(OWN, "rev-list", "--first-parent", "--reverse", "HEAD").split()
        points = POINTS["short" if self._short else "full"]
        if len(commits) < points:
            raise RuntimeError(
                f"this repository has {len(commits)} commits, {points} are needed: "
                "it was cloned without its history"
            )
        self._points = [commits[(len(commits) - 1) * at // (points - 1)] for at in range(points)]

    def _prepare_kernel(self):
        versions = versions_of([PACKAGE])[PACKAGE]
        if len(versions) < 2:
            raise AssertionError(f"there is one version of {PACKAGE} only")
        count = min(VERSIONS_MAX, len(versions))
        versions = [versions[(len(versions) - 1) * at // (count - 1)] for at in range(count)]
        origin = self._cache / "kernel"
        if not origin.exists():
            self._make(origin, versions)
        self._origin, self._points = origin, git(origin, "rev-list", "--reverse", "HEAD").split()

    def _make(self, origin: pathlib.Path, versions: list[str]):
        fresh = origin.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        git(fresh, "init", "-q")
        for version in versions:
            say(f"sources: {PACKAGE} {version}")
            archive = fetched(self._cache, [(PACKAGE, version)])[0]
            for each in fresh.iterdir():
                if each.name != ".git":
                    run("rm", "-r", each)
            self._unpack(archive, fresh)
            git(fresh, "add", "--all", "--force")  # (it asks git to leave most out)
            git(fresh, "commit", "-q", "-m", version)
            archive.unlink()
        git(fresh, "gc", "-q")
        fresh.rename(origin)

    @staticmethod
    def _unpack(archive: pathlib.Path, folder: pathlib.Path):
        """Of the kernel's archive within the package's, all that is not left out."""
        without = " ".join(f"--exclude='*-source-*/{each}'" for each in LEFT_OUT)
        subprocess.run(
            [
                "bash",
                "-o",
                "pipefail",
                "-c",
                f"""
            dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards '*.tar.xz' |
              tar -xJ --strip-components=1 -C "$2" {without}""",
                "-",
                archive,
                folder,
            ],
            check=True,
            timeout=600,
        )


def git(folder: pathlib.Path, *arguments) -> str:
    """With no settings but its own, and nothing of it in the background."""
    settings = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }
    who = [
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@localhost",
        "-c",
        "gc.auto=0",
        "-c",
        "safe.directory=*",
    ]
    return run("git", "-C", folder, *who, *arguments, env=settings)
