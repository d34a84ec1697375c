"""What a marinerd holds, looked at every second: memory, descriptors, threads, connections, sessions, CPU."""

import json
import os
import pathlib
import re
import threading
import time

import servers
from servers import mariner

INTERVAL_S = 1.0
# As /proc/net/tcp names states: a listener; a connection that only the kernel remembers.
NO_CONNECTION = {"0A", "06"}


def connections(port: int) -> int:
    """Of the listener at `port`, those that a process has or has yet to take."""
    found = 0
    for row in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        local, state = row.split()[1], row.split()[3]
        found += int(local.split(":")[1], 16) == port and state not in NO_CONNECTION
    return found


class DaemonWatch:
    """Takes samples while it is entered. A sample's `t` is of time.monotonic()."""

    def __init__(self, server: servers.Mariner):
        self._server = server
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.samples: list[dict] = []
        self.trouble = ""  # why there are no more

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def files(self) -> list[str]:
        """What its descriptors are, but for connections."""
        found = []
        for link in pathlib.Path(f"/proc/{self._server.pid}/fd").iterdir():
            try:
                found.append(os.readlink(link))
            except FileNotFoundError:
                pass  # closed meanwhile
        return sorted(re.sub(r"\[\d+\]", "", name) for name in found)

    def sample(self) -> dict:
        """Of now; whoever is asked over a connection is asked behind the counting of descriptors."""
        daemon = self._server.daemon
        proc = pathlib.Path(f"/proc/{self._server.pid}")
        status = (proc / "status").read_text()
        kib = {key: int(re.search(rf"{key}:\s+(\d+)", status).group(1)) for key in ("VmRSS", "RssAnon", "Threads")}
        cpu = (proc / "stat").read_text().rsplit(")", 1)[1].split()
        out = {"t": time.monotonic(), "rss": kib["VmRSS"] * 1024, "anonymous": kib["RssAnon"] * 1024,
               "threads": kib["Threads"], "descriptors": len(os.listdir(proc / "fd")),
               "connections": connections(daemon.port),
               "cpu_s": (int(cpu[11]) + int(cpu[12])) / os.sysconf("SC_CLK_TCK")}
        out |= self._metrics(daemon.http("/metrics")[1])
        admin = mariner.AdminConnection(daemon.socket)
        try:
            out["payload"] = int(json.loads(admin.ask("GET", "/v1/status")[1]).get("payload_memory_bytes", 0))
        finally:
            admin.close()
        return out

    @staticmethod
    def _metrics(text: str) -> dict:
        names = {"mariner_iscsi_sessions": "sessions", "mariner_commit_lag_seconds": "lag_s", "mariner_log_used_bytes": "log_used",
                 "mariner_log_limit_bytes": "log_limit", "mariner_index_pending_updates": "index_pending",
                 "mariner_log_payload_bytes_total": "logged"}
        sums = dict.fromkeys(names.values(), 0.0)
        for row in text.splitlines():
            name = names.get(row.split("{")[0].split(" ")[0])
            if name is not None:
                sums[name] += float(row.split()[-1])
        return sums

    def _run(self):
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self.samples.append(self.sample())
            except (OSError, ValueError, AttributeError) as error:
                self.trouble = f"{type(error).__name__}: {error}"
                return
            due = max(due + INTERVAL_S, time.monotonic())
            self._stop.wait(due - time.monotonic())
