#!/bin/bash
# Builds Mariner and runs its tests.
#
#   tests/run.sh           what every change must pass: about an hour on two processors, with the build
#   tests/run.sh --quick   under five minutes in all once the compiler's cache is warm: unit tests
#                          without campaigns, models and clusters of daemons, and beside them the
#                          end-to-end tests that take seconds
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
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
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
  local name=$1 began=$SECONDS code=0
  shift
  printf '%s%-34s%s' "$bold" "$name" "$plain"
  "$@" > "$reports/$name.log" 2>&1 || code=$?
  outcome "$name" $((SECONDS - began)) $code $lines
}

# outcome NAME SECONDS CODE LINES: the rest of a step's line, and the end of its output if it failed.
outcome() {
  if [ "$3" = 0 ]; then
    printf '%sok%s (%s s)\n' "$green" "$plain" "$2"
    return 0
  fi
  printf '%sFAILED%s (%s s), %s:\n' "$red" "$plain" "$2" "build/reports/$1.log"
  tail -n "$4" "$reports/$1.log"
  return 1
}

# beside NAME COMMAND...: begins a step that goes on beside what follows.
declare -A beside_process beside_began
beside() {
  local name=$1
  shift
  beside_began[$name]=$SECONDS
  "$@" > "$reports/$name.log" 2>&1 &
  beside_process[$name]=$!
}

# joined NAME: waits for its end; `count` tells of its results.
joined() {
  local code=0
  printf '%s%-34s%s' "$bold" "$1" "$plain"
  wait "${beside_process[$1]}" || code=$?
  outcome "$1" $((SECONDS - beside_began[$1])) $code 0
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

# run_ctest PRESET JOBS LABELS [OPTION...]
run_ctest() {
  ctest --test-dir "build/$1" -j "$2" --output-on-failure --no-tests=error \
    --output-junit "$reports/ctest-$1.xml" -L "$3" "${@:4}"
}

# run_pytest NAME [OPTION...]: the end-to-end tests. What runs beside others would ignore SIGINT.
run_pytest() {
  env --default-signal=INT PYTHONDONTWRITEBYTECODE=1 MARINER_BUILD="$PWD/build/release" \
    "$python" -m pytest tests/e2e -p no:cacheprovider -rfEsP --durations=15 \
    -o junit_logging=all --junitxml="$reports/$1.xml" "${seed[@]}" "${@:2}"
}

# unit PRESET LABELS: its tests through ctest.
unit() {
  export TSAN_OPTIONS="suppressions=$PWD/tests/support/thread_sanitizer.supp"  # where it is built in
  step -q "ctest-$1" run_ctest "$1" "$jobs" "$2"
  count "ctest-$1"
}

# count_pytest NAME: also what libiscsi and others left out, with the reason.
count_pytest() {
  count "$1"
  grep '^SKIPPED' "$reports/$1.log" | sed 's/^/  /'
}

end_to_end() {
  step -q pytest run_pytest pytest "$@"
  count_pytest pytest
}

# quick: in two lanes, as both wait for disks and timers: unit tests and then end-to-end tests in the one, end-to-end tests in
# the other, which take turns with the files.
quick() {
  local turns=$reports/turns
  mkdir "$turns"
  beside pytest-1 run_pytest pytest-1 -m 'not slow' --share "1/2:$turns"
  step -q ctest-release run_ctest release "$jobs" unit \
    -E '_campaign_|_model_|_year_|_kernel_|_crash_|^bench_|cluster_node|manager|ifsck_test'
  count ctest-release
  step -q pytest-2 run_pytest pytest-2 -m 'not slow' --share "2/2:$turns"
  count_pytest pytest-2
  joined pytest-1
  count_pytest pytest-1
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

# fuzzers_beside: begins to build them beside what follows, with what that leaves of the processors; `fuzz` builds the rest.
fuzzers_beside() {
  beside build-fuzz-beside env --default-signal=INT chrt --idle 0 bash -c \
    'cmake --preset fuzz && cmake --build --preset fuzz -j "$0" --target fuzzers' "$jobs"
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
    # Those that do few runs a second would stay with inputs of a few bytes, if left to themselves.
    length=()
    case $name in
      iscsi_session_fuzzer)
        seconds=$2
        length=(-max_len=2048 -len_control=0) ;;  # 256 steps
      ifsck_mend_fuzzer | uvfs_fuzzer)
        length=(-max_len=128 -len_control=0) ;;  # 32 changes
    esac
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
    quick
    ;;
  default)
    unit release 'unit|house'
    campaign sim/cluster cluster 3000
    fuzzers_beside
    end_to_end
    joined build-fuzz-beside
    fuzz 10 10
    ;;
  long)
    unit release 'unit|house|long'
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
