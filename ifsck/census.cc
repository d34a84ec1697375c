// In the order of e2fsck's passes: inodes and their blocks, directories, how they hang together,
// links, bitmaps and counts.
#include "ifsck/census.h"

#include <fmt/format.h>

#include <utility>

#include "ifsck/allocation_check.h"
#include "ifsck/census_facts.h"
#include "ifsck/directory_scan.h"
#include "ifsck/inode_scan.h"
#include "ifsck/journal_check.h"

namespace mariner::ifsck {
namespace {

// What says that structures are other than those that are looked at here.
struct Unknown {
  std::uint32_t bit;
  const char* name;
};
constexpr Unknown kUnknownIncompatible[] = {
    {EXT2_FEATURE_INCOMPAT_COMPRESSION, "compression"},
    {EXT3_FEATURE_INCOMPAT_JOURNAL_DEV, "a device that is a journal"},
    {EXT4_FEATURE_INCOMPAT_MMP, "mmp"},
    {EXT4_FEATURE_INCOMPAT_EA_INODE, "ea_inode"},
};
constexpr Unknown kUnknownReadOnly[] = {
    {EXT4_FEATURE_RO_COMPAT_BIGALLOC, "bigalloc"},
    {EXT4_FEATURE_RO_COMPAT_VERITY, "verity"},
    {EXT4_FEATURE_RO_COMPAT_ORPHAN_PRESENT, "orphan_present"},
};

Result<void> check_features(const ext2_super_block& super) {
  const auto refuse = [](const char* name) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("ext2/3/4: the feature {} is not understood; e2fsck may help", name)};
  };
  for (const Unknown& each : kUnknownIncompatible) {
    if ((super.s_feature_incompat & each.bit) != 0) return refuse(each.name);
  }
  for (const Unknown& each : kUnknownReadOnly) {
    if ((super.s_feature_ro_compat & each.bit) != 0) return refuse(each.name);
  }
  return {};
}

// What has its place is in use.
void mark_structures(CensusFacts& facts) {
  facts.layout.for_each_structure(facts.super.s_first_data_block, facts.layout.blocks(),
                                  [&](FsBlock begin, FsBlock end) {
                                    for (; begin < end; ++begin) (void)facts.use(begin);
                                  });
}

}  // namespace

Result<Census> Census::take(const ExtVolume& volume, const ExtLayout& layout,
                            const Options& options) {
  if (const Result<void> known = check_features(*volume.fs()->super); !known) return known.error();
  CensusFacts facts(volume, layout, options);
  if (facts.checksums && ext2fs_superblock_csum_verify(facts.fs, facts.fs->super) == 0) {
    facts.add({.code = Finding::Code::kSuperblockChecksum});
  }
  const auto journal = check_journal(facts, [](FsBlock) { return true; });
  if (!journal) return journal.error();
  if (*journal) facts.add(**journal);
  mark_structures(facts);
  for (const auto part : {scan_inodes, scan_directories, check_allocation}) {
    if (const Result<void> done = part(facts); !done) return done.error();
  }
  return std::move(facts.census);
}

}  // namespace mariner::ifsck
