#include "ifsck/mend.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "ifsck/census.h"
#include "ifsck/mend_allocation.h"
#include "ifsck/mend_directory.h"
#include "ifsck/mend_inode.h"
#include "ifsck/mend_quota.h"
#include "ifsck/mend_tree.h"
#include "ifsck/recheck_memory.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Who is lost can be told when inodes and directories are right.
bool is_of_tree(Code code) {
  switch (code) {
    case Code::kDirectoryLinked:
    case Code::kParent:
    case Code::kUnreachable:
    case Code::kUnattached:
    case Code::kLinks: return true;
    default: return false;
  }
}

// What a mended file system says of itself.
void say_clean(MendWork& work) {
  ext2_super_block& super = *work.context().fs->super;
  if (ext2fs_has_feature_journal_needs_recovery(&super)) return;
  const auto state = static_cast<std::uint16_t>((super.s_state | EXT2_VALID_FS) &
                                                ~(EXT2_ERROR_FS | EXT3_ORPHAN_FS));
  if (super.s_state == state && super.s_last_orphan == 0) return;
  super.s_state = state;
  super.s_last_orphan = 0;
  work.touch_superblock();
}

Result<void> mend_round(MendWork& work) {
  const auto said = mend_descriptors(work);
  if (!said) return said.error();
  if (*said) return work.finish();
  bool tree = false;
  bool below = false;
  for (const Finding& each : work.findings()) {
    if (each.code == Code::kSuperblockChecksum) {
      work.touch_superblock();
      work.done(each, Repair::Done::kChecksumSet);
    } else if (!is_derived(each.code)) {
      (is_of_tree(each.code) ? tree : below) = true;
    }
  }
  if (below) {
    for (const auto step : {mend_inodes, mend_directories}) {
      if (const Result<void> done = step(work); !done) return done;
    }
  } else if (tree) {
    if (const Result<void> done = mend_tree(work); !done) return done;
  }
  if (!(below || tree) || !work.may_allocate()) {
    if (const Result<void> done = mend_allocation(work); !done) return done;
    say_clean(work);
  }
  return work.finish();
}

}  // namespace

Result<Mended> mend(View& view, const MendOptions& options) {
  Mended mended;
  for (;;) {
    const auto volume = ExtVolume::open(view, {.writable = true});
    if (!volume) return volume.error();
    const auto layout = ExtLayout::of(*volume, options.like);
    if (!layout) return layout.error();
    const ExtContext context(*volume, *layout);
    auto checked = options.check(context);
    if (!checked) return checked.error();
    ++mended.rounds;
    mended.left = std::move(checked->findings);
    mended.blocks = view.overlay().size();
    const auto is_made = [](const Finding& each) { return is_derived(each.code); };
    if (!options.derived && std::ranges::all_of(mended.left, is_made)) {
      mended.left.clear();
      return mended;
    }
    if (mended.rounds > options.rounds_max) return mended;
    MendWork work(context, {.findings = mended.left,
                            .cut_short = checked->findings_all > mended.left.size(),
                            .directories = options.directories,
                            .directories_in = options.directories_in});
    if (mended.left.empty()) {
      const auto changed = mend_quotas(work);
      if (!changed) return changed.error();
      if (!*changed) return mended;
    } else if (const Result<void> done = mend_round(work); !done) {
      return done.error();
    }
    if (work.repairs().empty()) return mended;
    std::ranges::move(work.repairs(), std::back_inserter(mended.repairs));
  }
}

Result<std::vector<Repair>> mend_said_unused(const ExtContext& now,
                                             std::span<const Finding> findings) {
  MendWork work(now, {.findings = findings, .cut_short = false, .directories = {}});
  const auto said = mend_descriptors(work);
  if (!said) return said.error();
  if (!*said) return std::vector<Repair>();
  if (const Result<void> done = work.finish(); !done) return done.error();
  return std::move(work.repairs());
}

Result<Mended> mend_in_full(View& view, bool derived) {
  return mend(view, {.check = [](const ExtContext& now) -> Result<Checked> {
                       auto census = Census::take(
                           now.volume, now.layout,
                           {.findings_max = kMendFindingsMax, .progress = {}, .keep = nullptr});
                       if (!census) return census.error();
                       return Checked{std::move(census->findings), census->findings_all};
                     },
                     .directories = {},
                     .derived = derived});
}

Result<Mended> mend_by_change(View& view, const ExtContext& then, const Baseline& known,
                              const std::vector<BlockRange>& changed, bool derived,
                              std::optional<Recheck> first, RecheckMemory* memory) {
  RecheckMemory fresh;
  if (memory == nullptr) memory = &fresh;
  std::set<InodeNumber> owners;  // since then
  BaselineChange next;
  const auto check = [&](const ExtContext& now) -> Result<Checked> {
    std::vector<BlockRange> all = changed;
    view.overlay().for_each([&](Lbn lbn, const Overlay::Block&) {
      all.push_back({lbn, BlockCount{1}});
    });
    Result<Recheck> recheck =
        first ? *std::exchange(first, std::nullopt)
              : Recheck::run(then, now, known, all,
                             {.findings_max = kMendFindingsMax, .memory = memory});
    if (!recheck) return recheck.error();
    for (const auto& [block, owner] : recheck->next.owned) owners.insert(owner);
    next = std::move(recheck->next);
    return Checked{std::move(recheck->findings), recheck->findings_all};
  };
  const auto directories = [&] {
    std::vector<InodeNumber> all(owners.begin(), owners.end());
    for (const auto& [block, owner] : known.owners) all.push_back(owner);
    return all;
  };
  const auto directories_in = [&](GroupNumber begin, GroupNumber end) {
    std::vector<InodeNumber> some;
    std::ranges::copy_if(owners, std::back_inserter(some), [&](InodeNumber each) {
      const GroupNumber group = then.layout.group_of(each);
      return group >= begin && group < end;
    });
    const auto [from, to] = then.likely_blocks(begin, end);
    for (const auto& [block, owner] : known.owners.within(from, to)) some.push_back(owner);
    return some;
  };
  auto mended = mend(view, {.check = check,
                            .directories = directories,
                            .directories_in = directories_in,
                            .like = &then.layout,
                            .derived = derived});
  if (mended) mended->next = std::move(next);
  return mended;
}

}  // namespace mariner::ifsck
