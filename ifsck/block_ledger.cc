#include "ifsck/block_ledger.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ifsck/each_once.h"
#include "ifsck/ext_inode.h"
#include "ifsck/group_bitmaps.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class Ledger {
 public:
  Ledger(const MomentChange& change, BaselineChange& next,
         const std::function<void(const Finding&)>& found, std::size_t claims_max)
      : change_(change), next_(next), found_(found), claims_max_(claims_max) {}

  Result<void> run() {
    if (const Result<void> done = take_all(); !done) return done;
    using Step = Result<void> (Ledger::*)();
    for (const Step step : {&Ledger::check_attributes, &Ledger::find_touched, &Ledger::check_claims,
                            &Ledger::check_inodes, &Ledger::check_groups}) {
      if (const Result<void> done = (this->*step)(); !done) return done;
    }
    check_totals();
    return {};
  }

  Result<void> run(const BlockRanges& blocks) {
    if (const Result<void> done = take_all(); !done) return done;
    (void)count_attributes();
    for (const auto& [block, times] : claims_) {
      if (blocks.contains(block)) blocks_.push_back(block);
    }
    sort_each_once(blocks_);
    std::set<GroupNumber> groups;
    for (const FsBlock block : blocks_) groups.insert(group_of(block));
    if (const Result<void> done = prefetch(groups); !done) return done;
    return check_claims();
  }

 private:
  [[nodiscard]] const ExtLayout& layout() const { return change_.now.layout; }
  [[nodiscard]] bool is_structure(FsBlock block) const {
    return layout().place_of(block).kind != ExtLayout::Kind::kData;
  }
  [[nodiscard]] GroupNumber group_of(FsBlock block) const {
    return static_cast<GroupNumber>(ext2fs_group_of_blk2(change_.now.fs, block));
  }

  // ---- claims

  Result<void> take_all() {
    for (const auto& [number, inode] : change_.inodes) {
      take(number, *inode);
      if (!too_many_) continue;
      return Error{
          ErrorCode::kInvalidArgument,
          "ext2/3/4: more blocks are in use by others than before than a check of what has "
          "changed is for; check it in full"};
    }
    return {};
  }

  void take(InodeNumber number, const MomentChange::Inode& inode) {
    for_each_owned(inode.then, [&](FsBlock block) { next_.disowned.insert(block); });
    for_each_owned(inode.now, [&](FsBlock block) { next_.owned[block] = number; });
    if (inode.then.attributes != inode.now.attributes) {
      if (inode.then.attributes != 0) --attributes_[inode.then.attributes];
      if (inode.now.attributes != 0) ++attributes_[inode.now.attributes];
    }
    compare(number, inode.then.map, inode.now.map);
  }

  // The stretches that are claimed more or less often than before: large files are alike for the
  // most part.
  void compare(InodeNumber number, const BlockMap& then, const BlockMap& now) {
    struct Edge {
      FsBlock at;
      int then;
      int now;
    };
    std::vector<Edge> edges;
    const auto add = [&](const BlockMap& map, int then_step, int now_step) {
      for (const BlockMap::Run& run : map.runs) {
        edges.push_back({run.physical, then_step, now_step});
        edges.push_back({run.physical + run.count, -then_step, -now_step});
      }
      for (const BlockMap::Node& node : map.nodes) {
        edges.push_back({node.block, then_step, now_step});
        edges.push_back({node.block + 1, -then_step, -now_step});
      }
    };
    add(then, 1, 0);
    add(now, 0, 1);
    std::ranges::sort(edges, {}, &Edge::at);
    int before = 0;
    int after = 0;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      before += edges[i].then;
      after += edges[i].now;
      if (i + 1 == edges.size() || edges[i + 1].at == edges[i].at) continue;
      if (before == after && after < 2) continue;
      too_many_ = too_many_ || edges[i + 1].at - edges[i].at > claims_max_ - claims_.size();
      if (too_many_) return;
      for (FsBlock block = edges[i].at; block < edges[i + 1].at; ++block) {
        claim(number, block, after - before);
      }
    }
  }

  void claim(InodeNumber number, FsBlock block, int times) {
    // What is reserved for group descriptors is a file, too.
    if (number == EXT2_RESIZE_INO && is_structure(block)) return;
    claims_[block] += times;
    if (times >= 0) claimers_[block] = number;
  }

  // Those that are to be looked at: how many have each.
  std::set<FsBlock> count_attributes() {
    std::set<FsBlock> blocks;
    for (const auto& [block, times] : attributes_) blocks.insert(block);
    for (const BlockRanges::Range& range : change_.dirty) {
      for (const auto& [block, count] : change_.known.attributes.within(range.first, range.end)) {
        blocks.insert(block);
      }
    }
    const auto& doubtful = change_.known.doubtful_attributes;
    blocks.insert(doubtful.begin(), doubtful.end());
    for (const FsBlock block : blocks) {
      const std::uint32_t* const known = change_.known.attributes.find(block);
      const std::int64_t before = known == nullptr ? 0 : *known;
      const auto changed = attributes_.find(block);
      const std::int64_t after =
          std::max<std::int64_t>(before + (changed == attributes_.end() ? 0 : changed->second), 0);
      next_.attributes[block] = static_cast<std::uint32_t>(after);
      claim(0, block, (after > 0 ? 1 : 0) - (before > 0 ? 1 : 0));
    }
    return blocks;
  }

  Result<void> check_attributes() {
    for (const FsBlock block : count_attributes()) {
      const std::uint32_t after = next_.attributes[block];
      if (after == 0) continue;
      const auto checked = ifsck::check_attributes(change_.now, 0, block);
      if (!checked) return checked.error();
      if (!checked->good) {
        found_({.code = Code::kAttributes, .block = block});
      } else if (checked->inodes != after) {
        derived({.code = Code::kAttributeCount,
                 .block = block,
                 .expected = after,
                 .found = checked->inodes});
      }
    }
    return {};
  }

  // ---- bitmaps

  struct Bitmaps {
    GroupBitmaps then;
    GroupBitmaps now;
  };

  Result<Bitmaps*> bitmaps(GroupNumber group) {
    if (last_ != nullptr && last_->first == group) return &last_->second;
    if (const auto found = bitmaps_.find(group); found != bitmaps_.end()) {
      last_ = &*found;
      return &found->second;
    }
    auto then = GroupBitmaps::read(change_.then, group);
    if (!then) return then.error();
    auto now = GroupBitmaps::read(change_.now, group);
    if (!now) return now.error();
    return &bitmaps_.emplace(group, Bitmaps{std::move(*then), std::move(*now)}).first->second;
  }

  // All that will be looked at, as far as that is known.
  Result<void> prefetch_bitmaps() {
    std::set<GroupNumber> groups = change_.groups;
    for (const auto& [block, times] : claims_) groups.insert(group_of(block));
    for (const auto& [number, inode] : change_.inodes) groups.insert(layout().group_of(number));
    return prefetch(groups);
  }

  Result<void> prefetch(const std::set<GroupNumber>& groups) {
    std::vector<Lbn> blocks;
    for (const GroupNumber group : groups) {
      for (const FsBlock block : {ext2fs_block_bitmap_loc(change_.now.fs, group),
                                  ext2fs_inode_bitmap_loc(change_.now.fs, group)}) {
        blocks.push_back(layout().bytes_of(block).covering_blocks().first);
      }
    }
    const View::Wish wishes[] = {{&change_.then.volume.view(), blocks},
                                 {&change_.now.volume.view(), blocks}};
    return View::prefetch_all(wishes);
  }

  // What the bitmaps say otherwise than before is to be looked at, and what is claimed otherwise.
  Result<void> find_touched() {
    if (const Result<void> done = prefetch_bitmaps(); !done) return done;
    for (const GroupNumber group : change_.groups) {
      const auto both = bitmaps(group);
      if (!both) return both.error();
      (*both)->now.compare((*both)->then, [this](FsBlock block) { blocks_.push_back(block); },
                           [this](InodeNumber number) { inodes_.push_back(number); });
    }
    for (const auto& [block, times] : claims_) blocks_.push_back(block);
    for (const FsBlock block : change_.known.mismarked) blocks_.push_back(block);
    for (const auto& [number, inode] : change_.inodes) inodes_.push_back(number);
    for (const InodeNumber number : change_.known.mismarked_inodes) inodes_.push_back(number);
    sort_each_once(blocks_);
    sort_each_once(inodes_);
    return {};
  }

  Result<void> check_claims() {
    next_.blocks.reserve(blocks_.size());
    for (const FsBlock block : blocks_) {
      const GroupNumber group = group_of(block);
      const auto both = bitmaps(group);
      if (!both) return both.error();
      const bool marked = (*both)->now.is_marked(block);
      const bool structure = is_structure(block);
      const bool before =
          structure || ((*both)->then.is_marked(block) != change_.known.mismarked.contains(block));
      const auto changed = claims_.find(block);
      const int claims = (before ? 1 : 0) + (changed == claims_.end() ? 0 : changed->second);
      if (claims > 1) {
        found_({.code = structure ? Code::kClaimsStructure : Code::kClaimedTwice,
                .inode = claimers_[block],
                .block = block,
                .found = 1});
      }
      next_.blocks.insert(block);
      next_.groups[group].free_blocks += (before ? 1 : 0) - (claims > 0 ? 1 : 0);
      if (marked != (claims > 0)) {
        derived({.code = Code::kBlockMarked,
                 .block = block,
                 .group = group,
                 .expected = claims > 0 ? 1u : 0u,
                 .found = marked});
      }
    }
    return {};
  }

  Result<void> check_inodes() {
    for (const InodeNumber number : inodes_) {
      const GroupNumber group = layout().group_of(number);
      const auto both = bitmaps(group);
      if (!both) return both.error();
      const auto kinds = kinds_of(number);
      if (!kinds) return kinds.error();
      const auto [then, now] = *kinds;
      const bool reserved = change_.now.is_reserved(number);
      const bool used = now != 0 || reserved;
      Baseline::Group& counts = next_.groups[group];
      counts.free_inodes += (then != 0 || reserved ? 1 : 0) - (used ? 1 : 0);
      counts.directories +=
          (now == EXT2_FT_DIR && !reserved ? 1 : 0) - (then == EXT2_FT_DIR && !reserved ? 1 : 0);
      next_.inodes.insert(number);
      const bool marked = (*both)->now.is_marked_inode(number);
      if (marked == used) continue;
      derived({.code = Code::kInodeMarked,
               .inode = number,
               .group = group,
               .expected = used,
               .found = marked});
    }
    return {};
  }

  Result<std::pair<std::uint8_t, std::uint8_t>> kinds_of(InodeNumber number) {
    const auto changed = change_.inodes.find(number);
    if (changed != change_.inodes.end()) {
      return std::pair{changed->second->then.kind, changed->second->now.kind};
    }
    const auto bytes = read_inode(change_.now, number);
    if (!bytes) return bytes.error();
    if (bytes->empty() || ExtInode(*bytes).links() == 0)
      return std::pair<std::uint8_t, std::uint8_t>{};
    const std::uint8_t kind = ExtInode(*bytes).type();
    return std::pair{kind, kind};
  }

  // ---- counts

  void derived(const Finding& finding) {
    next_.wrong.push_back(finding);
    found_(finding);
  }

  void compare(Code code, GroupNumber group, std::int64_t expected, std::uint64_t found) {
    if (expected == static_cast<std::int64_t>(found)) return;
    derived({.code = code,
             .group = group,
             .expected = static_cast<std::uint64_t>(expected),
             .found = found});
  }

  Result<void> check_groups() {
    std::set<GroupNumber> groups = change_.groups;
    for (const auto& [group, delta] : next_.groups) groups.insert(group);
    groups.insert(change_.known.doubtful.begin(), change_.known.doubtful.end());
    for (const GroupNumber group : groups) {
      const auto both = bitmaps(group);
      if (!both) return both.error();
      (*both)->now.check([this](const Finding& finding) { derived(finding); });
      Baseline::Group counts = change_.known.groups[group];
      const Baseline::Group& delta = next_.groups[group];
      const ext2_filsys fs = change_.now.fs;
      compare(Code::kFreeBlocks, group, counts.free_blocks + delta.free_blocks,
              ext2fs_bg_free_blocks_count(fs, group));
      compare(Code::kFreeInodes, group, counts.free_inodes + delta.free_inodes,
              ext2fs_bg_free_inodes_count(fs, group));
      compare(Code::kDirectories, group, counts.directories + delta.directories,
              ext2fs_bg_used_dirs_count(fs, group));
    }
    return {};
  }

  void check_totals() {
    std::int64_t blocks = 0;
    std::int64_t inodes = 0;
    for (const Baseline::Group& each : change_.known.groups) {
      blocks += each.free_blocks;
      inodes += each.free_inodes;
    }
    for (const auto& [group, delta] : next_.groups) {
      blocks += delta.free_blocks;
      inodes += delta.free_inodes;
    }
    compare(Code::kFreeBlocks, Finding::kAll, blocks,
            ext2fs_free_blocks_count(change_.now.fs->super));
    compare(Code::kFreeInodes, Finding::kAll, inodes, change_.now.super.s_free_inodes_count);
  }

  const MomentChange& change_;
  BaselineChange& next_;
  const std::function<void(const Finding&)>& found_;
  const std::size_t claims_max_;
  bool too_many_ = false;
  std::unordered_map<FsBlock, int> claims_;  // more or less than before
  std::unordered_map<FsBlock, InodeNumber> claimers_;
  std::unordered_map<FsBlock, std::int64_t> attributes_;  // the same of those that share them
  std::map<GroupNumber, Bitmaps> bitmaps_;
  std::pair<const GroupNumber, Bitmaps>* last_ = nullptr;  // of these, that was asked for
  std::vector<FsBlock> blocks_;                            // to be looked at
  std::vector<InodeNumber> inodes_;
};

}  // namespace

Result<void> check_blocks(const MomentChange& change, BaselineChange& next,
                          const std::function<void(const Finding&)>& found,
                          std::size_t claims_max) {
  return Ledger(change, next, found, claims_max).run();
}

Result<void> check_claims(const MomentChange& change, const BlockRanges& blocks,
                          const std::function<void(const Finding&)>& found,
                          std::size_t claims_max) {
  BaselineChange ignored;
  return Ledger(change, ignored, found, claims_max).run(blocks);
}

}  // namespace mariner::ifsck
