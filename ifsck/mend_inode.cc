#include "ifsck/mend_inode.h"

#include <ext2fs/ext3_extents.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ifsck/directory_block.h"
#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_special.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::size_t kDeviceBytes = 16;  // of these: what a device has there
// Blocks claimed twice that are kept in mind at a time; the rest is for another round.
constexpr std::size_t kTwiceMax = 1'000'000;

using Blocks = std::set<FsBlock>;

// With so much that cannot be, it is something else that stands there.
constexpr std::size_t kGarbage = 3;

bool is_garbage(const std::vector<Finding>& findings) {
  std::set<Code> codes;
  for (const Finding& each : findings) {
    switch (each.code) {
      case Code::kInodeMode:
      case Code::kInodeFields:
      case Code::kInodeDeleted:
      case Code::kInodeIndex:
      case Code::kInodeMap:
      case Code::kAttributes: codes.insert(each.code); break;
      default: break;
    }
  }
  return codes.size() >= kGarbage;
}

// The magic number of those within an inode.
void drop_inner_attributes(std::span<std::byte> bytes) {
  const std::size_t at = EXT2_GOOD_OLD_INODE_SIZE + ExtInode(bytes).extra_bytes();
  if (at + 4 <= bytes.size()) put_field<std::uint32_t>(bytes, at, 0);
}

void drop_attributes(std::span<std::byte> bytes) {
  put_field<std::uint32_t>(bytes, InodeAt::kAttributes, 0);
  put_field<std::uint16_t>(bytes, InodeAt::kAttributesHigh, 0);
}

class InodeMender {
 public:
  explicit InodeMender(MendWork& work) : work_(work), context_(work.context()) {}

  Result<void> run() {
    for (const Finding& each : work_.findings()) {
      if (!is_of_inode(each.code)) continue;
      found_[each.inode].push_back(each);
      if (each.code == Code::kAttributes) bad_attributes_.insert(each.block);
      if (each.code == Code::kClaimedTwice) take_twice(each);
    }
    if (twice_unknown_) {
      if (const Result<void> done = find_twice(); !done) return done;
    }
    for (const auto& [number, blocks] : twice_) shared_.insert(blocks.begin(), blocks.end());
    if (const Result<void> done = find_attributes(); !done) return done;
    // What is not as it has to be is at fault if others claim the same.
    const auto resize = found_.find(EXT2_RESIZE_INO);
    if (resize != found_.end() && is_special_inode(context_, EXT2_RESIZE_INO)) {
      return mend(EXT2_RESIZE_INO, resize->second);
    }
    for (const auto& [number, findings] : found_) {
      if (number == 0) continue;
      if (const Result<void> done = mend(number, findings); !done) return done;
    }
    return {};
  }

 private:
  // ---- claims

  void take_twice(const Finding& finding) {
    if (finding.found > 1) {
      twice_unknown_ = true;
    } else if (finding.inode != 0) {
      twice_[finding.inode].insert(finding.block);
    } else {
      // Of attributes and something else: these go.
      bad_attributes_.insert(finding.block);
    }
  }

  // In the order in which a census has found it.
  Result<void> find_twice() {
    std::vector<std::uint64_t> used((work_.layout().blocks() + 63) / 64);
    Blocks attributes;
    std::size_t all = 0;
    std::uint64_t mapped = 0;
    twice_.clear();
    return work_.for_each_inode([&](InodeNumber number, std::span<std::byte> bytes) {
      const auto checked =
          check_inode(context_, number, bytes, mapped <= 2 * work_.layout().blocks());
      if (!checked) return Result<void>(checked.error());
      mapped += checked->map.blocks();
      const auto claim = [&](FsBlock block) {
        std::uint64_t& word = used[block / 64];
        const std::uint64_t bit = std::uint64_t{1} << (block % 64);
        if ((word & bit) != 0 && all < kTwiceMax &&
            work_.layout().place_of(block).kind == ExtLayout::Kind::kData) {
          all += twice_[number].insert(block).second ? 1 : 0;
        }
        word |= bit;
      };
      checked->for_each_claim(claim);
      if (checked->attributes != 0 && attributes.insert(checked->attributes).second) {
        claim(checked->attributes);
      }
      return Result<void>();
    });
  }

  // Whoever shares attributes that are none has them no more.
  Result<void> find_attributes() {
    std::erase_if(bad_attributes_, [&](FsBlock block) { return !work_.layout().may_claim(block); });
    if (bad_attributes_.empty()) return {};
    return work_.for_each_inode([&](InodeNumber number, std::span<std::byte> bytes) {
      const FsBlock block = ExtInode(bytes).attributes();
      if (bad_attributes_.contains(block)) {
        found_[number].push_back({.code = Code::kAttributes, .inode = number, .block = block});
      }
      return Result<void>();
    });
  }

  // ---- one inode

  Result<void> mend(InodeNumber number, const std::vector<Finding>& findings) {
    auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    if (bytes->empty()) return {};
    const auto has = [&](Code code) {
      return std::ranges::find(findings, code, &Finding::code) != findings.end();
    };
    const ExtInode inode(*bytes);
    if (inode.links() == 0 && !context_.is_reserved(number)) {
      note(findings, Done::kFieldSet);
      return work_.release(number);
    }
    if (is_special_inode(context_, number)) {
      const Blocks& shared = twice_[number];
      return mend_special_inode(work_, number, findings,
                                [&](FsBlock block) { return shared.contains(block); });
    }
    const bool needless = context_.is_reserved(number) && has(Code::kInodeMode);
    if (needless || (number != EXT2_ROOT_INO && is_garbage(findings))) {
      return clear(number, findings);
    }
    Done done =
        has(Code::kInodeFields) || has(Code::kInodeDeleted) ? Done::kFieldSet : Done::kChecksumSet;
    put_field<std::uint32_t>(*bytes, InodeAt::kDeleted, 0);
    if (has(Code::kInodeFields) && !mend_fields(*bytes)) return clear(number, findings);
    if (has(Code::kInodeMode)) {
      const auto guessed = guess_mode(number, *bytes);
      if (!guessed) return guessed.error();
      if (!*guessed) return clear(number, findings);
      done = Done::kFieldSet;
    }
    if (has(Code::kInodeIndex) && !inode.is_directory()) {
      put_field(*bytes, InodeAt::kFlags,
                inode.flags() & ~static_cast<std::uint32_t>(EXT2_INDEX_FL));
      done = Done::kFieldSet;
    }
    if (has(Code::kAttributes)) {
      for (const Finding& each : findings) {
        if (each.code != Code::kAttributes) continue;
        if (each.block == 0) {
          drop_inner_attributes(*bytes);
        } else {
          drop_attributes(*bytes);
        }
      }
      done = Done::kAttributesDropped;
    }
    if (has(Code::kInodeMap) || has(Code::kClaimsStructure) || has(Code::kClaimedTwice)) {
      const auto made = mend_map(number, *bytes);
      if (!made) return made.error();
      if (*made) done = **made;
    }
    note(findings, done);
    return settle_inode(work_, number, *bytes);
  }

  // Nothing of it stays.
  Result<void> clear(InodeNumber number, const std::vector<Finding>& findings) {
    note(findings, Done::kReleased);
    std::vector<std::byte> zeros(work_.layout().inode_bytes());
    return work_.put_inode(number, zeros);
  }

  void note(const std::vector<Finding>& findings, Done done) {
    for (const Finding& each : findings) work_.done(each, done);
  }

  // False: there is nothing left that could be one.
  bool mend_fields(std::span<std::byte> bytes) {
    ext2_super_block* const super = context_.fs->super;
    put_field<std::uint32_t>(bytes, InodeAt::kFragment, 0);
    const ExtInode inode(bytes);
    const std::uint16_t extra = inode.extra_bytes();
    if (extra != 0 && (extra < 4 || extra % 4 != 0 || extra > bytes.size() - 128)) {
      put_field(bytes, InodeAt::kExtra, InodeAt::kExtraUsual);
    }
    std::uint32_t flags = inode.flags();
    const auto drop = [&](std::uint32_t flag) { flags &= ~flag; };
    if (!ext2fs_has_feature_inline_data(super) || !inode.has_inline_attribute()) {
      drop(EXT4_INLINE_DATA_FL);
    }
    if (!ext2fs_has_feature_extents(super)) drop(EXT4_EXTENTS_FL);
    if (!ext2fs_has_feature_imagic_inodes(super)) drop(EXT2_IMAGIC_FL);
    if (!ext2fs_has_feature_encrypt(super)) drop(EXT4_ENCRYPT_FL);
    if (!ext2fs_has_feature_casefold(super) || !inode.is_directory()) drop(EXT4_CASEFOLD_FL);
    const std::uint8_t type = inode.type();
    const bool plain = type == EXT2_FT_REG_FILE || type == EXT2_FT_DIR || type == EXT2_FT_UNKNOWN;
    if (!plain) drop(EXT2_IMMUTABLE_FL | EXT2_APPEND_FL | EXT2_INDEX_FL);
    if (type == EXT2_FT_SYMLINK && !mend_link(bytes)) return false;
    if (!plain && type != EXT2_FT_SYMLINK) {
      drop(EXT4_EXTENTS_FL | EXT4_INLINE_DATA_FL);
      put_size(bytes, 0);
      std::ranges::fill(
          bytes.subspan(InodeAt::kMap + kDeviceBytes, InodeAt::kMapBytes - kDeviceBytes),
          std::byte{});
    }
    put_field(bytes, InodeAt::kFlags, flags);
    return true;
  }

  // As long as what it has within itself.
  bool mend_link(std::span<std::byte> bytes) {
    const ExtInode inode(bytes);
    if (has_link_target(bytes, work_.layout().block_bytes())) return true;
    if (inode.blocks() != 0 || inode.has_extents() || inode.has_inline_data()) return false;
    const auto target = bytes.subspan(InodeAt::kMap, InodeAt::kMapBytes);
    const auto end = std::ranges::find(target, std::byte{});
    if (end == target.begin() || end == target.end()) return false;
    put_size(bytes, static_cast<std::uint64_t>(end - target.begin()));
    return true;
  }

  // A directory if it begins as one, else a file; nothing if it has no such blocks.
  Result<bool> guess_mode(InodeNumber number, std::span<std::byte> bytes) {
    const auto access = static_cast<std::uint16_t>(ExtInode(bytes).mode() & 07777);
    put_field<std::uint16_t>(bytes, InodeAt::kMode, LINUX_S_IFREG | access);
    const auto map = map_blocks(context_.volume, work_.layout(), number, bytes);
    if (!map) return map.error();
    if (!map->faults.empty()) return false;
    if (map->runs.empty() || map->runs.front().logical != 0) return true;
    const auto block = context_.read_block(map->runs.front().physical);
    if (!block) return block.error();
    bool first = true;
    for_each_entry(*block, [&](const DirectoryEntry& entry) {
      if (first && entry.inode == number && entry.name == ".") {
        put_field<std::uint16_t>(bytes, InodeAt::kMode, LINUX_S_IFDIR | access);
      }
      first = false;
    });
    return true;
  }

  // ---- its map

  struct NewMap {
    std::vector<BlockMap::Run> runs;
    std::vector<BlockMap::Node> nodes;
    bool cloned = false;
    bool dropped = false;
    bool postponed = false;
  };

  // What was done; nothing: it is as it was.
  Result<std::optional<Done>> mend_map(InodeNumber number, std::span<std::byte> bytes) {
    if (!has_block_map(bytes) && number != EXT2_BAD_INO) return std::optional<Done>{};
    const auto map = map_blocks(context_.volume, work_.layout(), number, bytes);
    if (!map) return map.error();
    NewMap made;
    for (const BlockMap::Node& each : map->nodes) {
      if (is_own(each.block, made)) made.nodes.push_back(each);
    }
    for (const BlockMap::Run& each : map->runs) {
      if (const auto done = take(number, each, !ExtInode(bytes).has_extents(), made); !done)
        return done.error();
    }
    if (map->faults.empty() && !made.cloned && !made.dropped) return std::optional<Done>{};
    if (made.postponed) return std::optional<Done>{};
    const auto written = write_map(work_, number, bytes, made.runs, made.nodes);
    if (!written) return written.error();
    return std::optional<Done>(
        made.cloned && !made.dropped && map->faults.empty() ? Done::kCloned : Done::kMapMade);
  }

  // Of a node; where not, another one takes its place.
  bool is_own(FsBlock block, NewMap& made) {
    if (work_.layout().place_of(block).kind != ExtLayout::Kind::kData) {
      made.dropped = true;
      return false;
    }
    // (Another one may have it for its contents, and is still to copy them.)
    if (!shared_.contains(block)) return true;
    made.cloned = true;
    made.postponed = made.postponed || !work_.may_allocate();
    return false;
  }

  // Claimed by another one, or before by itself.
  [[nodiscard]] bool is_twice(InodeNumber number, FsBlock block) const {
    const auto twice = twice_.find(number);
    return twice != twice_.end() && twice->second.contains(block);
  }

  // Without what is behind the one before, or the file system's; copies of what others have.
  Result<void> take(InodeNumber number, const BlockMap::Run& run, bool numbers, NewMap& made) {
    const bool resize = number == EXT2_RESIZE_INO;
    std::uint64_t next = made.runs.empty() ? 0 : made.runs.back().logical + made.runs.back().count;
    for (std::uint64_t i = 0; i < run.count; ++i) {
      BlockMap::Run one{run.logical + i, run.physical + i, 1, run.unwritten};
      if (one.logical < next) {
        made.dropped = true;
        continue;
      }
      if (!resize && work_.layout().place_of(one.physical).kind != ExtLayout::Kind::kData) {
        made.dropped = true;
        continue;
      }
      if (is_twice(number, one.physical)) {
        const auto copy = clone(one.physical, numbers, made);
        if (!copy) return copy.error();
        if (*copy == 0) continue;
        one.physical = *copy;
      }
      next = one.logical + 1;
      add(made.runs, one);
    }
    return {};
  }

  static void add(std::vector<BlockMap::Run>& runs, const BlockMap::Run& one) {
    if (!runs.empty()) {
      BlockMap::Run& last = runs.back();
      if (last.logical + last.count == one.logical && last.physical + last.count == one.physical &&
          last.unwritten == one.unwritten) {
        ++last.count;
        return;
      }
    }
    runs.push_back(one);
  }

  // 0: there is no room.
  Result<FsBlock> clone(FsBlock block, bool numbers, NewMap& made) {
    if (!work_.may_allocate()) {
      made.postponed = true;
      return FsBlock{0};
    }
    const auto copy = work_.allocate(numbers ? kNumbersEnd : ~FsBlock{0});
    if (!copy) return copy.error();
    if (!*copy) {
      made.dropped = true;
      return FsBlock{0};
    }
    const auto bytes = context_.read_block(block);
    if (!bytes) return bytes.error();
    if (const auto put = work_.put_block(**copy, *bytes); !put) return put.error();
    made.cloned = true;
    return **copy;
  }

  MendWork& work_;
  const ExtContext& context_;
  std::map<InodeNumber, std::vector<Finding>> found_;
  std::unordered_map<InodeNumber, Blocks> twice_;
  std::unordered_set<FsBlock> shared_;  // all of them
  Blocks bad_attributes_;
  bool twice_unknown_ = false;
};

}  // namespace

Result<void> mend_inodes(MendWork& work) { return InodeMender(work).run(); }

Result<void> settle_inode(MendWork& work, InodeNumber number, std::span<std::byte> bytes) {
  const auto checked = check_inode(work.context(), number, bytes, true);
  if (!checked) return checked.error();
  for (const Finding& each : checked->findings) {
    if (each.code == Code::kInodeBlocks) {
      put_field(bytes, InodeAt::kSectors, static_cast<std::uint32_t>(each.expected));
      put_field(bytes, InodeAt::kSectorsHigh, static_cast<std::uint16_t>(each.expected >> 32));
    }
    if (each.code != Code::kInodeSize) continue;
    std::uint64_t end = 0;
    for (const BlockMap::Run& run : checked->map.runs) {
      if (!run.unwritten) end = std::max(end, run.logical + run.count);
    }
    put_size(bytes, end * work.layout().block_bytes());
  }
  return work.put_inode(number, bytes);
}

}  // namespace mariner::ifsck
