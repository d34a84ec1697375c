#!/bin/bash
# Runs a campaign against faulty disks on all processors, a range of seeds on each.
#
#   campaign.sh PROGRAM SEEDS
#
# PROGRAM is mariner_log_campaign_test or mariner_index_campaign_test. Tells what each range did; fails if one of them does.
set -uo pipefail
program=$1 seeds=$2
jobs=$(nproc)
each=$(((seeds + jobs - 1) / jobs))
pids=()
for ((job = 0; job < jobs; job++)); do
  MARINER_TEST_FIRST_SEED=$((job * each + 1)) MARINER_TEST_SEEDS=$each "$program" &
  pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
exit $failed
