#include "ifsck/recheck.h"

#include <cstdint>
#include <functional>
#include <utility>

#include "ifsck/block_ledger.h"
#include "ifsck/journal_check.h"
#include "ifsck/moment_change.h"
#include "ifsck/name_ledger.h"
#include "ifsck/recheck_memory.h"

namespace mariner::ifsck {

Result<Recheck> Recheck::run(const ExtContext& then, const ExtContext& now, const Baseline& known,
                             const std::vector<BlockRange>& changed, const Options& options) {
  RecheckMemory fresh;
  RecheckMemory& memory = options.memory != nullptr ? *options.memory : fresh;
  memory.begin(now);
  const auto change = MomentChange::find(then, now, known, changed, {.memory = &memory});
  if (!change) return change.error();
  Recheck check;
  check.inodes_changed = change->inodes.size();
  const std::function<void(const Finding&)> found = [&](const Finding& finding) {
    ++check.findings_all;
    check.derived += is_derived(finding.code) ? 1 : 0;
    if (check.findings.size() < options.findings_max) check.findings.push_back(finding);
  };
  if (now.checksums && ext2fs_superblock_csum_verify(now.fs, now.fs->super) == 0) {
    found({.code = Finding::Code::kSuperblockChecksum});
  }
  for (const auto& [number, inode] : change->inodes) {
    for (const Finding& each : inode->now.findings) found(each);
  }
  const auto journal = check_journal(now, [&](FsBlock block) {
    return change->dirty.contains(block) || change->inodes.contains(now.super.s_journal_inum);
  });
  if (!journal) return journal.error();
  if (*journal) found(**journal);
  if (const Result<void> done = check_names(*change, memory, found); !done) return done.error();
  const std::size_t claims_max = memory.empty() ? options.claims_max : SIZE_MAX;
  if (const Result<void> done = check_blocks(*change, check.next, found, claims_max); !done) {
    return done.error();
  }
  memory.keep(*change);
  return check;
}

}  // namespace mariner::ifsck
