#include "ifsck/moment_change.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ifsck/group_descriptors.h"
#include "ifsck/map_prefetch.h"
#include "ifsck/recheck_memory.h"

namespace mariner::ifsck {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.front() == std::byte{} &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

class Finder {
 public:
  Finder(MomentChange& change, const MomentChange::Options& options)
      : change_(change),
        memory_(options.memory != nullptr && !options.memory->empty() ? options.memory : nullptr),
        claims_only_(options.claims_only),
        also_(options.also) {}

  Result<void> run(std::span<const BlockRange> changed) {
    std::vector<BlockRanges::Range> ranges;
    for (const BlockRange& each : changed) {
      const auto [first, end] = layout().within(each);
      ranges.push_back({first, end});
    }
    change_.dirty = BlockRanges(std::move(ranges));
    for (const BlockRanges::Range& range : change_.dirty) classify(range);
    if (memory_ != nullptr) {
      for (const auto& [number, inode] : memory_->inodes()) numbers_.insert(number);
    }
    for (const InodeNumber number : change_.now.named_otherwise(change_.then)) {
      numbers_.insert(number);
    }
    compare_descriptors();
    if (const Result<void> done = prefetch_known(); !done) return done;
    if (const Result<void> done = find_used_at_ends(); !done) return done;
    if (const Result<void> done = compare_tables(); !done) return done;
    return check_inodes();
  }

 private:
  // Inodes of a group that the table has, by its descriptor, at one of the moments alone.
  struct MovedEnd {
    const ExtContext* at = nullptr;
    InodeNumber first = 0;
    InodeNumber end = 0;
  };

  [[nodiscard]] const ExtLayout& layout() const { return change_.now.layout; }

  void classify(const BlockRanges::Range& range) {
    layout().for_each_structure(range.first, range.end, [this](FsBlock first, FsBlock end) {
      const ExtLayout::Place place = layout().place_of(first);
      if (place.kind == ExtLayout::Kind::kInodeTable) {
        for (FsBlock block = first; block < end; ++block) {
          if (memory_ == nullptr || memory_->written().contains(block)) tables_.push_back(block);
        }
      }
      if (place.kind == ExtLayout::Kind::kBlockBitmap ||
          place.kind == ExtLayout::Kind::kInodeBitmap) {
        for (FsBlock block = first; block < end; ++block) {
          change_.groups.insert(layout().place_of(block).group);
        }
      }
    });
    // (What is reserved for group descriptors has an owner, too.)
    for (const auto& [block, owner] : change_.known.owners.within(range.first, range.end)) {
      numbers_.insert(owner);
      if (memory_ == nullptr || memory_->written().contains(block)) owned_.push_back(block);
    }
  }

  void compare_descriptors() {
    const ext2_filsys fs = change_.now.fs;
    const std::size_t bytes = EXT2_DESC_SIZE(fs->super);
    for_each_other_descriptor(
        descriptors_of(change_.then.fs), descriptors_of(fs), bytes, [this](GroupNumber group) {
          change_.groups.insert(group);
          // Inodes that were not looked at, or are not any more.
          const auto [from, end] =
              std::minmax({change_.then.table_end(group), change_.now.table_end(group)});
          if (from == end) return;
          const InodeNumber first = group * layout().inodes_per_group() + 1;
          ends_.push_back({&(change_.now.table_end(group) == end ? change_.now : change_.then),
                           first + from, first + end});
        });
  }

  template <typename Visit>
  void for_each_end_block(const MovedEnd& moved, Visit visit) const {
    const FsBlock last = place_of(moved.end - 1);
    for (FsBlock block = place_of(moved.first); block <= last; ++block) visit(block);
  }

  // Most of those were never used: what is zeros at the moment that has them is nothing at the
  // other one.
  Result<void> find_used_at_ends() {
    for (const MovedEnd& moved : ends_) {
      std::vector<std::byte> bytes;
      FsBlock read = 0;
      for (InodeNumber number = moved.first; number < moved.end; ++number) {
        const ByteRange place = layout().inode_place(number);
        if (const FsBlock block = place_of(number); block != read) {
          auto fresh = moved.at->read_block(block);
          if (!fresh) return fresh.error();
          bytes = std::move(*fresh);
          read = block;
        }
        const auto inode =
            std::span(bytes).subspan(place.offset % layout().block_bytes(), place.length);
        if (!is_zero(inode)) numbers_.insert(number);
      }
    }
    return {};
  }

  // All that is known to be looked at, in one question: what changed of tables, and of directories
  // and maps that there were; bitmaps; and inodes whose blocks changed.
  Result<void> prefetch_known() {
    std::vector<FsBlock> blocks = tables_;
    blocks.insert(blocks.end(), also_.begin(), also_.end());
    if (!claims_only_) blocks.insert(blocks.end(), owned_.begin(), owned_.end());
    if (memory_ == nullptr && !claims_only_) {
      for (const GroupNumber group : change_.groups) {
        blocks.push_back(ext2fs_block_bitmap_loc(change_.now.fs, group));
        blocks.push_back(ext2fs_inode_bitmap_loc(change_.now.fs, group));
      }
    }
    if (memory_ == nullptr) {
      for (const InodeNumber number : numbers_) blocks.push_back(place_of(number));
    }
    for (const MovedEnd& moved : ends_) {
      for_each_end_block(moved, [&](FsBlock block) { blocks.push_back(block); });
    }
    return prefetch(blocks);
  }

  [[nodiscard]] FsBlock place_of(InodeNumber number) const {
    return layout().inode_place(number).offset / layout().block_bytes();
  }

  Result<void> compare_tables() {
    const std::size_t inode_bytes = layout().inode_bytes();
    for (const FsBlock block : tables_) {
      const auto then = change_.then.read_block(block);
      if (!then) return then.error();
      const auto now = change_.now.read_block(block);
      if (!now) return now.error();
      const InodeNumber first = layout().place_of(block).first_inode;
      const std::uint32_t left =
          layout().inodes_per_group() - (first - 1) % layout().inodes_per_group();
      for (std::uint32_t i = 0; i < layout().block_bytes() / inode_bytes && i < left; ++i) {
        if (std::memcmp(then->data() + i * inode_bytes, now->data() + i * inode_bytes,
                        inode_bytes) != 0) {
          numbers_.insert(first + i);
        }
      }
    }
    return {};
  }

  Result<void> prefetch(const std::vector<FsBlock>& blocks) {
    std::vector<Lbn> wanted;
    for (const FsBlock block : blocks) {
      const BlockRange range = layout().bytes_of(block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        wanted.push_back(lbn);
      }
    }
    const View::Wish wishes[] = {{&change_.then.volume.view(), wanted},
                                 {&change_.now.volume.view(), wanted}};
    return View::prefetch_all(wishes);
  }

  Result<void> check_inodes() {
    std::vector<InodeNumber> numbers;
    for (const InodeNumber number : numbers_) {
      auto before = memory_ == nullptr ? nullptr : memory_->find(change_.now, number);
      if (before == nullptr) numbers.push_back(number);
      change_.inodes.emplace(number, std::move(before));
    }
    std::vector<FsBlock> places;
    for (const InodeNumber number : numbers) {
      places.push_back(place_of(number));
    }
    if (const Result<void> done = prefetch(places); !done) return done;
    MapPrefetch maps[] = {{&change_.then, {}}, {&change_.now, {}}};
    for (MapPrefetch& each : maps) {
      for (const InodeNumber number : numbers) {
        auto bytes = read_inode(*each.context, number);
        if (!bytes) return bytes.error();
        each.inodes.push_back(std::move(*bytes));
      }
    }
    if (const Result<void> done = prefetch_maps(maps); !done) return done;
    for (std::size_t i = 0; auto& [number, inode] : change_.inodes) {
      if (inode == nullptr) {
        auto then = check(change_.then, number, maps[0].inodes[i], true);
        if (!then) return then.error();
        auto now = check(change_.now, number, maps[1].inodes[i], mapped_ <= 2 * layout().blocks());
        if (!now) return now.error();
        inode = std::make_shared<MomentChange::Inode>(std::move(*then), std::move(*now));
        ++i;
      }
      mapped_ += inode->now.map.blocks();
    }
    return {};
  }

  static Result<CheckedInode> check(const ExtContext& context, InodeNumber number,
                                    std::span<std::byte> bytes, bool follow) {
    if (bytes.empty()) return CheckedInode{};
    return check_inode(context, number, bytes, follow);
  }

  MomentChange& change_;
  const RecheckMemory* const memory_;  // null: nothing is known
  const bool claims_only_;
  const std::span<const FsBlock> also_;
  std::vector<FsBlock> tables_;
  std::vector<FsBlock> owned_;  // that changed
  std::vector<MovedEnd> ends_;
  std::set<InodeNumber> numbers_;
  std::uint64_t mapped_ = 0;  // blocks, however often each
};

}  // namespace

Result<MomentChange> MomentChange::find(const ExtContext& then, const ExtContext& now,
                                        const Baseline& known, std::span<const BlockRange> changed,
                                        const Options& options) {
  if (!now.is_comparable_with(then) || known.groups.size() != now.layout.groups()) {
    return Error{
        ErrorCode::kInvalidArgument,
        "ext2/3/4: the file system has another size, other features or other places than the one "
        "that it is compared with; check it in full"};
  }
  MomentChange change{
      .then = then, .now = now, .known = known, .dirty = {}, .groups = {}, .inodes = {}};
  if (const Result<void> done = Finder(change, options).run(changed); !done) return done.error();
  return change;
}

Result<std::vector<std::byte>> read_inode(const ExtContext& context, InodeNumber number) {
  std::vector<std::byte> bytes;
  const GroupNumber group = context.layout.group_of(number);
  if ((number - 1) % context.layout.inodes_per_group() >= context.table_end(group)) return bytes;
  bytes.resize(context.layout.inode_bytes());
  const auto read = context.volume.view().read(context.layout.inode_place(number), bytes);
  if (!read) return read.error();
  return bytes;
}

}  // namespace mariner::ifsck
