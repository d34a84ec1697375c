"""A Debian root file system in which packages are installed, upgraded and removed by dpkg.

The archives lie elsewhere, as on a mirror; what is on the volume is what dpkg unpacks and keeps of
them. Their scripts run in the root file system, in namespaces of their own, without network."""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Iterator

from programs import done
from results import say

PATIENCE_S = 1800

# What the scripts of packages need. Unpacked by hand first and then by dpkg, as Debian's installers
# do it.
BASE = """
  libc6 libc-bin libgcc-s1 gcc-12-base dash bash base-files base-passwd coreutils debconf
  debianutils diffutils dpkg findutils grep gzip init-system-helpers login mawk ncurses-base
  ncurses-bin passwd perl-base sed sensible-utils sysvinit-utils tar util-linux libacl1 libattr1
  libaudit1 libaudit-common libblkid1 libbz2-1.0 libcap-ng0 libcap2 libcrypt1 libdebconfclient0
  libgmp10 liblzma5 libmd0 libmount1 libpam0g libpcre2-8-0 libselinux1 libsemanage2 libsepol2
  libsmartcols1 libtinfo6 libuuid1 libzstd1 zlib1g
""".split()
SMALL_BASE = """
  libc6 dash coreutils debconf dpkg libacl1 libattr1 libgmp10 libselinux1 libpcre2-8-0 tar sed
  grep
""".split()
FEW = "libxml2 libkrb5-3 curl libcurl4 bind9-libs tzdata".split()
MANY = FEW + """
  openssl libssl3 sudo openssh-client nginx perl perl-modules-5.36 libperl5.36
  libpython3.11-minimal python3.11-minimal libpython3.11-stdlib python3.11 git git-man
  postgresql-15 postgresql-client-15 systemd libsystemd0 openssh-server apache2-bin
  mariadb-server-core samba-libs libruby3.1 libgs10 libnode108 python3-django libglib2.0-0
  libglib2.0-data locales libmagickcore-6.q16-6 qemu-utils php8.2-cli libc6-dev linux-libc-dev
  vim-runtime vim-common
""".split()


@dataclasses.dataclass(frozen=True)
class Upgrade:
    """A package's archives. The same one twice, where there is one version only: it is installed
    again."""

    name: str
    old: pathlib.Path
    new: pathlib.Path


class Packages:
    name = "packages"

    def __init__(self, short: bool, cache: pathlib.Path):
        self._few, self._cache = short, cache / "debs"

    def lacks(self) -> str:
        """Empty: it can be done here."""
        missing = [
            tool for tool in ("apt-get", "apt-cache", "dpkg", "unshare") if not shutil.which(tool)
        ]
        return f"{', '.join(missing)} of Debian" if missing else ""

    def prepare(self):
        """Fetches what is not in the cache yet."""
        self._cache.mkdir(parents=True, exist_ok=True)
        base, names = (SMALL_BASE, FEW) if self._few else (BASE, MANY)
        versions = versions_of([*base, *names])
        self._base = fetched(self._cache, [(name, versions[name][-1]) for name in base])
        old, new = (
            fetched(self._cache, [(name, versions[name][place]) for name in names])
            for place in (0, -1)
        )
        self._upgrades = [Upgrade(*each) for each in zip(names, old, new)]
        again = [each.name for each in self._upgrades if each.old == each.new]
        say(f"packages: {len(self._upgrades)}; of one version only: {', '.join(again) or 'none'}")

    def steps(self, root: pathlib.Path) -> Iterator[str]:
        """Goes on to the next step when it is asked for its name."""
        for archive in self._base:
            run("dpkg-deb", "-x", archive, root)
        for folder in ("dev", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "dev" / "null").touch()  # (no device: scripts write little to it)
        (root / "var" / "lib" / "dpkg" / "status").touch()
        self._dpkg(root, "--unpack", *self._base)
        yield "the base"
        half = len(self._upgrades) // 2
        for some in (self._upgrades[:half], self._upgrades[half:]):
            for each in some:
                self._dpkg(root, "--unpack", each.old)
            yield f"installed, to {some[-1].name}"
        for some in (self._upgrades[:half], self._upgrades[half:]):
            for each in some:
                self._dpkg(root, "--unpack", each.new)
            yield f"upgraded, to {some[-1].name}"
        self._dpkg(
            root,
            "--remove",
            *(
                each.name
                for each in self._upgrades[half:]
                if each.name not in ("libssl3", "perl-modules-5.36")
            ),
        )
        yield "half of them removed"

    @staticmethod
    def _dpkg(root: pathlib.Path, *arguments):
        environment = {
            "PATH": os.defpath + ":/usr/sbin:/sbin:/usr/bin",
            "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C",
        }
        run(
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--net",
            "--ipc",
            "--uts",
            "dpkg",
            f"--root={root}",
            "--force-all",
            "--no-triggers",
            *arguments,
            env=environment,
        )


def fetched(cache: pathlib.Path, wanted: list[tuple[str, str]]) -> list[pathlib.Path]:
    """The archives of packages, each a name and a version; fetches those that the cache lacks."""

    def found() -> list[list[pathlib.Path]]:
        return [
            list(cache.glob(f"{name}_{version.replace(':', '%3a')}_*.deb"))
            for name, version in wanted
        ]

    if missing := [
        f"{name}={version}" for (name, version), files in zip(wanted, found()) if not files
    ]:
        run("apt-get", "-q", "download", *missing, cwd=cache)
    return [files[0].resolve() for files in found()]


def versions_of(names: list[str]) -> dict[str, list[str]]:
    """Those that the machine's mirrors have, oldest first."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for row in run("apt-cache", "madison", *names).splitlines():
        name, version, where = (cell.strip() for cell in row.split("|"))
        if name in found and where.endswith("Packages"):
            found[name].add(version)
    missing = [name for name, versions in found.items() if not versions]
    if missing:
        raise RuntimeError(f"the lists of apt do not have {', '.join(missing)}; run apt-get update")
    return {
        name: run("sort", "-V", input="\n".join(versions)).splitlines()
        for name, versions in found.items()
    }


def run(*command, **options) -> str:
    return done(*command, timeout_s=PATIENCE_S, **options)
