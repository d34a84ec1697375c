#!/bin/bash
# From a clone to a running server: builds Mariner and starts it with a 1 GiB volume "demo".
#
#   deploy/quickstart.sh           starts it, or finds it running and does no harm
#   deploy/quickstart.sh --demo    ... and tours the product in under a minute, checking every byte
#   deploy/quickstart.sh --stop    stops it; the data stays
#
#   --prefix FOLDER    where its state lives (build/quickstart in the clone)
#   --portal ADDRESS   where it listens (0.0.0.0:3260)
#
# Nothing is installed but Debian packages; everything else stays inside the clone.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd -P)

action=start prefix=$root/build/quickstart portal=0.0.0.0:3260
while [ $# -gt 0 ]; do
  case $1 in
    --demo) action=demo ;;
    --stop) action=stop ;;
    --prefix) prefix=$(realpath -m "${2:?--prefix needs a folder}"); shift ;;
    --portal) portal=${2:?--portal needs ADDRESS:PORT}; shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

marinerd=$root/build/release/server/node/marinerd
mariner_program=$root/build/release/server/client/mariner
config=$prefix/marinerd.toml pid_file=$prefix/marinerd.pid log=$prefix/marinerd.log
socket=$prefix/admin.sock
# A unix socket's path has at most 107 characters.
[ ${#socket} -le 100 ] || socket=/tmp/mariner-$(echo "$prefix" | sha256sum | cut -c1-12).sock

say() { if [ -t 1 ]; then printf '\e[1m%s\e[0m\n' "$*"; else printf '%s\n' "$*"; fi; }
die() { printf '%s\n' "$*" >&2; exit 1; }
mariner() { "$mariner_program" --socket "$socket" "$@"; }

# The process of the pid file, if it is ours and alive.
running() {
  local pid
  pid=$(cat "$pid_file" 2> /dev/null) || return 1
  [ "$(readlink "/proc/$pid/exe" 2> /dev/null | sed 's/ (deleted)$//')" = "$marinerd" ] && echo "$pid"
}

stop() {
  local pid
  if ! pid=$(running); then
    say "Mariner is not running."
    return
  fi
  kill "$pid"
  for _ in $(seq 100); do
    running > /dev/null || { rm -f "$pid_file"; say "Mariner has stopped. Its data is in $prefix."; return; }
    sleep 0.1
  done
  die "marinerd (process $pid) does not stop; its log is $log"
}

build() {
  say "Packages"
  deploy/install-packages.sh --build-only
  say "Build (a few minutes the first time)"
  mkdir -p build
  # Without the tests' libraries, unless the tests have been built here already.
  local options=()
  [ -f build/release/CMakeCache.txt ] || options=(-DMARINER_TESTS=OFF)
  cmake --preset release "${options[@]}" > build/quickstart-configure.log 2>&1 ||
    { tail -n 30 build/quickstart-configure.log >&2; die "configuring failed: build/quickstart-configure.log"; }
  NINJA_STATUS='[%p] ' cmake --build build/release --target marinerd mariner ifsck ifsck-capture uvfs 2>&1 |
    tee build/quickstart-build.log | show_progress ||
    { tail -n 30 build/quickstart-build.log >&2; die "the build failed: build/quickstart-build.log"; }
}

# How far ninja is: on a terminal in one line, elsewhere every ten per cent.
show_progress() {
  local line percent shown=0
  while IFS= read -r line; do
    [[ $line =~ ^\[\ *([0-9]+)%\] ]] || continue
    percent=${BASH_REMATCH[1]}
    if [ -t 1 ]; then
      printf '\r%s %%' "$percent"
    elif [ $((percent / 10)) -gt $((shown / 10)) ]; then
      printf '%s %%\n' "$percent"
    fi
    shown=$percent
  done
  if [ -t 1 ]; then printf '\r      \r'; fi
}

write_config() {
  mkdir -p "$prefix/state"
  [ ! -e "$config" ] || return 0   # yours, if you have changed it
  cat > "$config" << TOML
version = 1
roles   = ["standalone"]
[server]
portals   = ["$portal"]
admin     = "$socket"
http      = "127.0.0.1:9860"
state_dir = "$prefix/state"
[log]
disks    = ["$prefix/state/log0"]
max_size = "2G"
[[volume]]
name   = "demo"
size   = "1G"
window = "3d"
TOML
}

start() {
  local pid
  if pid=$(running); then
    say "Mariner is running already (process $pid)."
    return
  fi
  build
  write_config
  say "Start"
  setsid "$marinerd" --config "$config" >> "$log" 2>&1 < /dev/null &
  echo $! > "$pid_file"
  for _ in $(seq 300); do
    running > /dev/null || { tail -n 20 "$log" >&2; die "marinerd has ended; its log is $log"; }
    if mariner --json volume show demo > /dev/null 2>&1; then return; fi
    sleep 0.1
  done
  tail -n 20 "$log" >&2
  die "marinerd is not ready after 30 s; its log is $log"
}

# field NAME: a string or number of the JSON on standard input; NAME may be a path a.b.
field() { python3 -c 'import json,sys
value = json.load(sys.stdin)
for name in sys.argv[1].split("."): value = value[name]
print(value)' "$1"; }

# views_of VOLUME: the names of its views, of the list on standard input.
views_of() { python3 -c 'import json,sys
for view in json.load(sys.stdin)["views"]:
    if view["volume"] == sys.argv[1]: print(view["name"])' "$1"; }

address_of_portal() {
  local address
  address=$(sed -n 's/^portals *= *\["\([^"]*\)".*/\1/p' "$config")
  echo "${address/0.0.0.0/127.0.0.1}"
}

print_next_steps() {
  local iqn host port
  iqn=$(mariner --json volume show demo | field iqn)
  port=$(address_of_portal); host=${port%:*}; port=${port##*:}
  # Listening everywhere: the address by which others know this machine.
  if grep -q '^portals.*0\.0\.0\.0' "$config"; then
    host=$(hostname -I 2> /dev/null | awk '{print $1}')
    host=${host:-127.0.0.1}
  fi
  cat << TEXT

The volume "demo" (1 GiB) is ready at $host:$port as
  $iqn

From a Linux host (package open-iscsi):
  iscsiadm -m discovery -t sendtargets -p $host:$port
  iscsiadm -m node -T $iqn -p $host:$port --login

From Windows (PowerShell as administrator):
  Start-Service MSiSCSI
  New-IscsiTargetPortal -TargetPortalAddress $host -TargetPortalPortNumber $port
  Connect-IscsiTarget -NodeAddress $iqn

Here:
  alias mariner='$mariner_program --socket $socket'
  mariner history show demo --since -1h          what was written, and when
  mariner view expose demo@-10m                  the disk of ten minutes ago, as a disk beside it
  mariner rollback demo@-10m --dry-run           what going back would change
  mariner rollback demo@-10m                     going back
  mariner rollback undo demo                     and returning

A tour that checks every byte:   deploy/quickstart.sh --demo
To stop it:                      deploy/quickstart.sh --stop
TEXT
}

# The tour. Its volume is its own, so that "demo" may hold what you like.
tour() {
  local volume=tour iqn url now first second view portal_address
  portal_address=$(address_of_portal)
  # io [-r] URL COMMAND...: qemu-io; -r opens the disk for reading only.
  io() {
    local words=() command out
    if [ "$1" = -r ]; then words+=(-r); shift; fi
    for command in "${@:2}"; do words+=(-c "$command"); done
    out=$(qemu-io -f raw "${words[@]}" "$1" 2>&1) && ! grep -q 'verification failed' <<< "$out" ||
      die "what was read is not what was expected: $out"
  }
  # What an interrupted tour has left.
  if mariner --json volume show $volume > /dev/null 2>&1; then
    for view in $(mariner --json view list | views_of $volume); do
      mariner --yes --quiet view unexpose "$view" > /dev/null
    done
    mariner --yes --quiet volume delete $volume --force > /dev/null
  fi
  iqn=$(mariner --json volume create $volume --size 256M --window 1h | field iqn)
  url=iscsi://$portal_address/$iqn/0

  say "1. A host writes 64 MiB, and notes the time"
  io "$url" "write -P 0x11 0 64M"
  now=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
  first=$(mariner --json volume show $volume | field newest.sequence)
  mariner mark add $volume before-the-accident
  echo "   it is $now"

  say "2. An accident: the first half is overwritten, a piece is erased"
  io "$url" "write -P 0xee 0 32M" "discard 40M 8M" "read -P 0xee 0 32M" "read -P 0 40M 8M"
  second=$(mariner --json volume show $volume | field newest.sequence)

  say "3. Every write was remembered"
  mariner history show $volume --since -10m

  say "4. The disk before the accident, as a disk beside the damaged one"
  view=$(mariner --json view expose "$volume@$now")
  [ "$(field at.sequence <<< "$view")" = "$first" ] || die "the view is of another moment: $view"
  io -r "iscsi://$portal_address/$(field iqn <<< "$view")/0" "read -P 0x11 0 64M"
  io "$url" "read -P 0xee 0 32M"
  echo "   64 MiB checked: the view has the old bytes, the disk still the new ones"
  mariner --yes --quiet view unexpose "$(field name <<< "$view")"

  say "5. Going back: first only the question, then the deed"
  mariner rollback "$volume@mark:before-the-accident" --dry-run
  mariner --yes rollback "$volume@mark:before-the-accident" --force
  io "$url" "read -P 0x11 0 64M"
  echo "   64 MiB checked: the accident did not happen"

  say "6. Going back is no loss either: undo"
  mariner --yes rollback undo $volume --force
  io "$url" "read -P 0xee 0 32M" "read -P 0x11 32M 8M" "read -P 0 40M 8M" "read -P 0x11 48M 16M"
  echo "   64 MiB checked: the disk is as it was at write $second"

  mariner --yes --quiet volume delete $volume --force > /dev/null
  say "Every step gave the bytes that it should."
}

case $action in
  stop) stop ;;
  start) start; print_next_steps ;;
  demo) start; tour ;;
esac
