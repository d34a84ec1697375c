#!/bin/bash
# Builds Mariner and runs its tests.
#
#   tests/run.sh           what every change must pass: at most five minutes of tests
#   tests/run.sh --quick   under five minutes of tests: unit tests without campaigns, models and
#                          clusters of daemons, and the end-to-end tests that take seconds
#   tests/run.sh --long    everything at full length, with sanitizers
#   tests/run.sh --seed N  repeats the random choices of a failed run
#
# The last line is "N passed, N failed" (and ", N skipped" if there were any). Reports are left in
# build/reports.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

mode=default seed=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) mode=quick ;;
    --long) mode=long ;;
    --seed) seed=(--seed "${2:?--seed needs a number}"); shift ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done

if [ -t 1 ]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'; else bold='' red='' green='' plain=''; fi
reports=$PWD/build/reports
rm -rf "$reports"
mkdir -p "$reports"
python=/usr/bin/python3   # Debian's, which has Debian's pytest
jobs=$(nproc)
passed=0 failed=0 skipped=0

# step [-q] NAME COMMAND...: runs it with its output in a report; shows the output's end if it fails
# (not with -q, for what `count` tells of).
step() {
  local lines=60
  if [ "$1" = -q ]; then
    lines=0
    shift
  fi
  local name=$1 began=$SECONDS
  shift
  printf '%s%-34s%s' "$bold" "$name" "$plain"
  if "$@" > "$reports/$name.log" 2>&1; then
    printf '%sok%s (%s s)\n' "$green" "$plain" $((SECONDS - began))
    return 0
  fi
  printf '%sFAILED%s (%s s), %s:\n' "$red" "$plain" $((SECONDS - began)) "build/reports/$name.log"
  tail -n $lines "$reports/$name.log"
  return 1
}

# must NAME COMMAND...: a step without which nothing else makes sense.
must() {
  step "$@" && return
  failed=$((failed + 1))
  finish
}

# count NAME: adds the results that a JUnit file tells of, and shows each failure; a missing file is a failure.
count() {
  local numbers
  numbers=$("$python" tests/junit_summary.py "$reports/$1.xml") || {
    tail -n 60 "$reports/$1.log"
    numbers="0 1 0"
  }
  read -r p f s <<< "$numbers"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  printf '  %s passed, %s failed, %s skipped\n' "$p" "$f" "$s"
}

finish() {
  local colour=$green
  [ $failed -eq 0 ] || colour=$red
  printf '%s%s%s\n' "$colour" "$([ $failed -eq 0 ] && echo 'All is well.' || echo 'Something is broken.')" "$plain"
  local line="$passed passed, $failed failed"
  [ $skipped -eq 0 ] || line="$line, $skipped skipped"
  echo "$line"
  [ $failed -eq 0 ] && [ $passed -gt 0 ]
  exit
}

# build PRESET [OPTION...]: configures and builds it.
build() {
  # Said again: the quick start may have configured this folder without tests.
  local options=()
  [ "$1" = fuzz ] || options=(-DMARINER_TESTS=ON)
  must "configure-$1" cmake --preset "$1" "${options[@]}"
  must "build-$1" cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# unit PRESET LABELS [OPTION...]: its tests through ctest.
unit() {
  step -q "ctest-$1" ctest --test-dir "build/$1" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$reports/ctest-$1.xml" -L "$2" "${@:3}"
  count "ctest-$1"
}

end_to_end() {
  step -q pytest env PYTHONDONTWRITEBYTECODE=1 MARINER_BUILD="$PWD/build/release" \
    "$python" -m pytest tests/e2e -p no:cacheprovider -rfEsP --durations=15 \
    -o junit_logging=all --junitxml="$reports/pytest.xml" "${seed[@]}" "$@"
  count pytest
  # What libiscsi and others left out, with the reason.
  grep '^SKIPPED' "$reports/pytest.log" | sed 's/^/  /'
}

# campaign FOLDER NAME SEEDS: the log or the index against faulty disks, the cluster against all that fails; without this, ctest
# runs the first of them.
campaign() {
  local name=campaign-$2
  if step "$name" tests/support/campaign.sh "build/release/tests/$1/mariner_$2_campaign_test" "$3"; then
    passed=$((passed + 1))
    grep '^seeds' "$reports/$name.log" | sed 's/^/  /'
  else
    failed=$((failed + 1))
  fi
}

# fuzz SECONDS SESSION: each fuzzer for so long, that of whole sessions for SESSION seconds, from the seeds of the repository and
# what earlier runs found.
fuzz() {
  build fuzz --target fuzzers
  local program name found seconds length
  for program in build/fuzz/tests/fuzz/*_fuzzer; do
    [ -x "$program" ] || continue
    name=$(basename "$program")
    seconds=$1
    length=()
    if [ "$name" = iscsi_session_fuzzer ]; then
      seconds=$2
      length=(-max_len=2048 -len_control=0)  # 256 steps: left to itself, it stays with short sessions
    fi
    found=build/fuzz/corpus/$name
    mkdir -p "$found"
    local corpora=("$found")
    [ ! -d "tests/fuzz/corpus/$name" ] || corpora+=("tests/fuzz/corpus/$name")
    if step "$name" "$program" "${length[@]}" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="$reports/$name-" "${corpora[@]}"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done
}

must packages deploy/install-packages.sh
build release
case $mode in
  quick)
    unit release 'unit' -E '_campaign_|_model_|_year_|_kernel_|_crash_|^bench_|cluster_node|manager|ifsck_test'
    end_to_end -m 'not slow'
    ;;
  default)
    unit release 'unit|house'
    campaign sim/cluster cluster 3000
    end_to_end
    fuzz 10 10
    ;;
  long)
    unit release 'unit|house'
    campaign logging log 100000
    campaign index index 1500   # 10,500,000 operations
    campaign sim/cluster cluster 100000
    build asan
    unit asan 'unit'
    build tsan
    unit tsan 'unit'
    end_to_end --long
    fuzz 60 3600
    ;;
esac
finish
