# The guest's side of the conversation with the test.
#
# ttyS0: the test sends a line of shell, the guest runs it and answers with its output and a line
# "@@DONE <exit code>". ttyS1: the writer asks before each file, and the test answers with its clock.

serve() {
  stty -echo raw -F /dev/ttyS0
  stty -echo raw -F /dev/ttyS1
  echo "@@READY" > /dev/ttyS0
  while read -r line; do
    eval "$line" > /tmp/out 2>&1 < /dev/null
    code=$?
    cat /tmp/out
    echo "@@DONE $code"
  done < /dev/ttyS0 > /dev/ttyS0
}

# write_files FOLDER FIRST: numbered files, each fsynced, until the test answers "stop". File N is
# "file N <the host's clock>" and a piece of /pool whose place and length follow from N.
write_files() {
  n=$2
  exec 9<> /dev/ttyS1
  while echo "NEXT $n" >&9 && read -r clock <&9 && [ "$clock" != stop ]; do
    { echo "file $n $clock"
      dd if=/pool bs=4096 skip=$((n % 48)) count=$((n % 16 + 1)) 2>/dev/null
    } | dd of="$1/f$n" bs=64k conv=fsync 2>/dev/null || { echo "ERROR $n" >&9; break; }
    n=$((n + 1))
  done
  exec 9>&-
}

# login IQN PORTAL: discovers, logs in, and prints the disk's name.
login() {
  iscsiadm -m discovery -t st -p "$2" | grep -q " $1\$" || return 1
  iscsiadm -m node -T "$1" -p "$2" -l > /dev/null || return 1
  i=0
  while [ $i -lt 100 ]; do
    for session in /sys/class/iscsi_session/session*; do
      [ "$(cat "$session/targetname")" = "$1" ] || continue
      for disk in "$session"/device/target*/*/block/*; do
        [ -b "/dev/${disk##*/}" ] && { echo "/dev/${disk##*/}"; return 0; }
      done
    done
    sleep 0.1
    i=$((i + 1))
  done
  return 1
}

logout() { iscsiadm -m node -T "$1" -u > /dev/null; }

# replay_and_check DISK: a file system as after a power cut: replays the journal, then must be clean.
replay_and_check() {
  e2fsck -E journal_only -p "$1" > /tmp/replay 2>&1 || { code=$?; [ $code -le 1 ] || { cat /tmp/replay; return $code; }; }
  e2fsck -fn "$1" > /tmp/fsck 2>&1 || { code=$?; cat /tmp/replay /tmp/fsck; return $code; }
}
