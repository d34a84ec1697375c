#!/bin/bash
# Measures Mariner beside its rivals, in one run on this machine.
#
#   tests/bench/run.sh NAME [--short | --long]
#   tests/bench/run.sh index --papers [--short]
#   tests/bench/run.sh index --end-to-end [--short]
#   tests/bench/run.sh conformance [--short] [--variant NAME] [--family NAME]
#   tests/bench/run.sh apps [--short | --papers] [--load ID]... [--rounds N]
#   tests/bench/run.sh target [--short] [--load ID]...
#
# NAME: target (iSCSI on loopback, against tgt, tgt on Btrfs with snapshots (as root), RocksDB and the raw device), log (the log, against the raw
# device and a naive logger, and its recovery), simdisk (track-based logging on simulated drives,
# beside the dissertation's figures), index (the version indexes, against the same trees with a
# page cache and RocksDB), replication (a volume on three nodes in network namespaces, against a
# single node and against the naive rule, and how it catches up; in six minutes), trm (writes to three nodes by multicast against
# three connections, in a lab of network namespaces, with loss and other faults), conformance (libiscsi's tests, against tgt: what passes, is skipped,
# fails; plain, with CHAP, with digests, with 4,096-byte blocks), ifsck (the incremental check of
# ext2/3/4, against e2fsck; as root, half an hour), uvfs (versions of files found out of those of
# blocks; as root, with FUSE and loop devices, half an hour), sessions (many of them for ten minutes, a quarter of which come and go:
# fair shares beside tgt, flat memory, nothing left behind, every read verified; in seventeen minutes), apps (Postmark, SQLite, PostgreSQL's pgbench
# and single operations on an ext4 over iSCSI, against tgt and a local disk, and the dissertation's
# Figures 4.13 to 4.17 and Table 4.3; as root, with FUSE and loop devices, two hours; installs PostgreSQL
# and nbdfuse; --short: two minutes), flames (where the CPU time of both servers goes: flame graphs; takes perf; --before MARINERD for
# another build beside), threads (what a command costs the daemon's main thread, with socket threads
# and without; in five minutes), tails (what both processors did while a write was slow; takes perf, as root, five minutes) or history (what keeping the past costs
# in the steady state, how fast it is given back, that a window is a promise, what compaction saves, and
# what ways to clean the log would cost in a model; --part NAME for one part; "compact" takes root, FUSE, loop devices, and the network for packages). Prints a table for the README; leaves build/bench/NAME.json
# (rows), NAME-runs.json (what they were made of) and pictures, NAME*.svg. --long is the log's, with
# ten minutes for the tail of its latencies. --short takes under a minute once things are built; it
# shows that all works, not how fast. --papers is the index's: the figures and tables of the BOSC
# paper and of the dissertation's chapters 3 and 4, in half an hour. --end-to-end, too: the log with
# indexes behind it, beside the log alone, in a quarter of an hour; it is a part of the whole as well.
# The whole of the index's and the target's builds the rival RocksDB before it is run the first time (rocksdb.sh).
# MARINER_BUILD names another configured build folder than build/release.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=${1:-}
[ $# -eq 0 ] || shift
case $name in
  target) needs="marinerd mariner mariner-iscsi-load mariner-versioned-store-load" ;;
  flames) needs="marinerd mariner mariner-iscsi-load" ;;
  threads) needs="marinerd mariner mariner-iscsi-load" ;;
  tails) needs="marinerd mariner mariner-iscsi-load" ;;
  conformance) needs="marinerd mariner" ;;
  replication) needs="marinerd mariner mariner-naive-marinerd mariner-iscsi-load" ;;
  sessions) needs="marinerd mariner mariner-sessions-load" ;;
  trm) needs="mariner-trm-load mariner-trm-forge marinerd mariner mariner-iscsi-load" ;;
  history) needs="marinerd mariner mariner-iscsi-load mariner-views-load mariner-cleaner-model" ;;
  uvfs) needs="marinerd mariner uvfs mariner-files-query version-workload" ;;
  ifsck) needs="mariner-ifsck-volume mariner-ifsck-check" ;;
  apps) needs="marinerd mariner mariner-iscsi-load mariner-postmark mariner-paced-load" ;;
  log) needs="mariner-log-load mariner-log-recovery" ;;
  simdisk) needs=mariner-simdisk ;;
  index)
    needs="mariner-index-load mariner-log-load"
    case " $* " in *" --papers "*) needs="$needs mariner-row-load mariner-index-recovery" ;; esac ;;
  *) sed -n '2,34s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

build=${MARINER_BUILD:-$PWD/build/release}
mkdir -p build/bench
log=build/bench/build.log
{
  if [ -z "${MARINER_BUILD:-}" ]; then
    # shellcheck disable=SC2046  # an option or nothing
    deploy/install-packages.sh $([ "$name" != apps ] || echo --apps)
    cmake --preset release -DMARINER_TESTS=ON
  fi
  # shellcheck disable=SC2086  # a list of targets
  cmake --build "$build" --target $needs
} > "$log" 2>&1 || { tail -n 40 "$log" >&2; exit 1; }

case "$name $*" in
  "index ")
    rocksdb=$(tests/bench/rocksdb.sh)
    export LD_LIBRARY_PATH=$rocksdb${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    ;;
  "target "*)  # of a part of the loads when it is built already: that takes a quarter of an hour
    if [ $# = 0 ] || [ -e build/bench/rocksdb/version ]; then
      MARINER_RIVAL_ROCKSDB=$(tests/bench/rocksdb.sh)
      export MARINER_RIVAL_ROCKSDB
    fi
    ;;
esac
export MARINER_BUILD=$build PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "tests/bench/$name.py" "$@"
