# What the tests of the full guest say more than once.

# disks IQN: the disks of all sessions with this target, one a line.
disks() {
  for session in /sys/class/iscsi_session/session*; do
    [ "$(cat "$session/targetname" 2>/dev/null)" = "$1" ] || continue
    for disk in "$session"/device/target*/*/block/*; do
      [ -b "/dev/${disk##*/}" ] && echo "/dev/${disk##*/}"
    done
  done
}

start_udev() {
  /lib/systemd/systemd-udevd --daemon 2> /dev/null
  udevadm trigger --subsystem-match=block
  udevadm settle -t 60
}

# clean_up: unmounts, logs out and forgets everything, whatever a test left.
clean_up() {
  for place in $(awk '$2 ~ "^/(mnt|view)" {print $2}' /proc/mounts | sort -r); do umount -l "$place"; done
  if pidof multipathd > /dev/null; then
    multipath -F
    killall multipathd
    while pidof multipathd > /dev/null; do sleep 0.1; done
  fi
  iscsiadm -m node -u > /dev/null 2>&1
  iscsiadm -m node -o delete > /dev/null 2>&1
  rm -rf /etc/iscsi/ifaces/*
  killall systemd-udevd 2> /dev/null
  dmesg -c > /dev/null
  [ -z "$(ls /sys/class/iscsi_session)" ]
}

# login_as NAME IQN PORTAL: a session of an initiator of this name, beside others; prints its disk.
login_as() {
  if ! [ -e "/etc/iscsi/ifaces/$1" ]; then
    iscsiadm -m iface -I "$1" -o new > /dev/null || return 1
    iscsiadm -m iface -I "$1" -o update -n iface.initiatorname -v "iqn.2026-11.org.mariner:$1" > /dev/null || return 1
  fi
  before=$(disks "$2")
  # Without discovery, which forgets what it finds in the name of another.
  iscsiadm -m node -T "$2" -p "$3,1" -I "$1" -o new > /dev/null || return 1
  iscsiadm -m node -T "$2" -p "$3" -I "$1" -l > /dev/null || return 1
  new_disk "$2" "$before"
}

# new_disk IQN BEFORE: waits for a disk of this target that is not among those before, and prints it.
new_disk() {
  i=0
  while [ $i -lt 100 ]; do
    for one in $(disks "$1"); do
      case " $(echo $2) " in *" $one "*) continue ;; esac
      # As udev does; sg_xcopy finds a disk by it.
      mkdir -p /dev/block
      ln -sf "$one" "/dev/block/$(cat "/sys/block/${one##*/}/dev")"
      echo "$one"
      return 0
    done
    sleep 0.1
    i=$((i + 1))
  done
  return 1
}

all_vpd_pages() {
  for page in $(sg_vpd --page=0 --raw "$1" | tail -c +6 | hexdump -v -e '1/1 "%02x "'); do sg_vpd --page="0x$page" "$1"; done
}

# verified_writes FILE SIZE [OPTION...]: writes all of it in random order and reads back what it wrote, on the way and at the end.
verified_writes() {
  name=$1 size=$2
  shift 2
  fio --name=verified --filename="$name" --size="$size" --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
    --verify=crc32c --verify_fatal=1 --verify_backlog=256 --verify_state_save=0 --fallocate=none --randrepeat=0 \
    --output=/tmp/fio.$$ "$@" || { cat /tmp/fio.$$; return 1; }
}

# writes_and_trims DISK: verified writes beside discards of what was written before; what was discarded is zeros.
writes_and_trims() {
  dd if=/dev/urandom of="$1" bs=1M seek=8 count=8 oflag=direct 2>/dev/null || return 1
  # Not of the same blocks: fio 3.33 ends in an assertion where writes turn into discards (trim_percentage).
  verified_writes "$1" 8m --name=trims --filename="$1" --offset=8m --size=8m --rw=randtrim --bs=16k --verify=0 || return 1
  dd if="$1" of=/tmp/trimmed bs=1M skip=8 count=8 iflag=direct 2>/dev/null || return 1
  cmp -n 8388608 /tmp/trimmed /dev/zero
}

# churn FOLDER: makes files and removes them until FOLDER/stop is there, so that the file system discards all the time.
churn() {
  i=0
  until [ -e "$1/stop" ]; do
    dd if=/dev/urandom of="$1/churn$((i % 4))" bs=64k count=32 conv=fsync 2>/dev/null || return 1
    rm "$1/churn$(((i + 2) % 4))" 2>/dev/null
    i=$((i + 1))
    [ $((i % 8)) != 0 ] || /sbin/fstrim "$1" || return 1
  done
}

# exercise FOLDER SECONDS: verified writes of small and large blocks, beside churn, again and again for so long.
exercise() {
  churn "$1" & churning=$!
  end=$(($(date +%s) + $2)) passes=0
  while :; do
    verified_writes "$1/small" 4m || return 1
    verified_writes "$1/large" 32m --bs=64k || return 1
    passes=$((passes + 1))
    [ "$(date +%s)" -lt $end ] || break
    rm "$1/small" "$1/large"
  done
  touch "$1/stop"
  wait $churning || return 1
  rm -f "$1"/churn* "$1/stop"
  echo "$passes passes"
}

# node IQN PORTAL [NAME VALUE]...: makes the record of a target, if there is none, and changes these settings in it.
node() {
  target=$1 portal=$2
  shift 2
  [ -e "/etc/iscsi/nodes/$target/$(echo "$portal" | tr : ,),1" ] ||
    iscsiadm -m node -T "$target" -p "$portal,1" -o new > /dev/null || return 1
  settings=
  while [ $# -gt 0 ]; do
    settings="$settings -n $1 -v $2"
    shift 2
  done
  # shellcheck disable=SC2086  # words
  [ -z "$settings" ] || iscsiadm -m node -T "$target" -p "$portal" -o update $settings
}

# round_trip IQN PORTAL: logs in, writes in a large and in odd pieces, reads it back in others, says what was negotiated, logs out.
round_trip() {
  [ -e /tmp/pattern ] || dd if=/dev/urandom of=/tmp/pattern bs=64k count=3 2>/dev/null
  before=$(disks "$1")
  iscsiadm -m node -T "$1" -p "$2" -l > /dev/null || return 1
  disk=$(new_disk "$1" "$before") || return 1
  dd if=/tmp/pattern of="$disk" bs=192k count=1 seek=1 oflag=direct 2>/dev/null || return 1
  dd if=/tmp/pattern of="$disk" bs=3584 count=8 oflag=direct 2>/dev/null || return 1
  dd if="$disk" of=/tmp/back bs=64k skip=3 count=3 iflag=direct 2>/dev/null || return 1
  cmp /tmp/back /tmp/pattern || return 1
  dd if="$disk" of=/tmp/back bs=28672 count=1 iflag=direct 2>/dev/null || return 1
  cmp -n 28672 /tmp/back /tmp/pattern || return 1
  for session in /sys/class/iscsi_session/session*; do
    [ "$(cat "$session/targetname")" = "$1" ] || continue
    connection=/sys/class/iscsi_connection/connection${session##*session}:0
    echo "$(cat "$session/initial_r2t" "$session/immediate_data" "$session/first_burst_len" "$session/max_burst_len" \
      "$connection/max_recv_dlength" "$connection/header_digest" "$connection/data_digest")"
  done
  iscsiadm -m node -T "$1" -p "$2" -u > /dev/null
}

# heartbeat FILE: writes a block of it and makes it durable, again and again until FILE.stop is there; of each that was, when (in
# seconds since the start) in /tmp/beats, and how it ended in /tmp/beats.end.
heartbeat() {
  rm -f "$1.stop" /tmp/beats /tmp/beats.end
  code=0
  until [ -e "$1.stop" ]; do
    dd if=/dev/zero of="$1" bs=4k count=1 conv=notrunc,fsync 2> /tmp/beats.error || { code=1; break; }
    read -r now _ < /proc/uptime
    echo "$now" >> /tmp/beats
  done
  echo $code > /tmp/beats.end
}

# disk_at ADDRESS: the disk of the session with the portal of this address.
disk_at() {
  for connection in /sys/class/iscsi_connection/connection*; do
    [ "$(cat "$connection/persistent_address" 2>/dev/null)" = "$1" ] || continue
    session=${connection##*connection}
    ls "/sys/class/iscsi_session/session${session%:*}"/device/target*/*/block
  done
}
