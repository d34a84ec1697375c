#include "ifsck/mend_directory.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ifsck/directory_block.h"
#include "ifsck/directory_entries.h"
#include "ifsck/entry_search.h"
#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

// Inodes that are asked for beforehand: more are looked at one by one.
constexpr std::size_t kNamedMax = 1'000'000;
constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kInlineBytes = 60;

bool is_dot(std::string_view name) { return name == "." || name == ".."; }

class DirectoryMender {
 public:
  explicit DirectoryMender(MendWork& work) : work_(work), context_(work.context()) {}

  Result<void> run() {
    bool anywhere = false;
    std::map<InodeNumber, std::vector<Finding>> found;
    for (const Finding& each : work_.findings()) {
      switch (each.code) {
        case Code::kEntryInode:
        case Code::kEntryType: anywhere = anywhere || each.inode == 0; [[fallthrough]];
        case Code::kEntryName:
        case Code::kDots:
        case Code::kDirectoryHole:
        case Code::kDirectoryBlock:
        case Code::kInodeIndex: found[each.inode].push_back(each); break;
        default: break;
      }
    }
    for (const auto& [number, findings] : found) {
      if (number == 0) continue;
      if (const Result<void> done = mend(number, findings); !done) return done;
    }
    return anywhere ? search(found[0]) : Result<void>{};
  }

 private:
  // Where such entries stand is not known.
  Result<void> search(const std::vector<Finding>& findings) {
    const auto where = find_where(findings);
    if (!where) return where.error();
    bool changed = false;
    for (std::span<const InodeNumber> left(*where); !left.empty();) {
      const auto some = left.first(std::min(left.size(), kDirectoriesAtOnce));
      left = left.subspan(some.size());
      const auto directories = work_.prefetch_directories(some);
      if (!directories) return directories.error();
      std::vector<BlockMap::Run> runs;
      for (const CheckedInode& each : *directories) {
        if (each.directory && runs.size() < kNamedMax) {
          std::ranges::copy(each.map.runs, std::back_inserter(runs));
        }
      }
      if (const auto done = prefetch_named(runs); !done) return done;
      for (const InodeNumber each : some) {
        const auto done = mend_entries(each);
        if (!done) return done.error();
        changed = changed || *done;
      }
    }
    if (changed) {
      for (const Finding& each : findings) work_.done(each, Done::kEntriesMended);
    }
    return {};
  }

  // (Of a wrong kind it is not told whose.)
  Result<std::vector<InodeNumber>> find_where(const std::vector<Finding>& findings) {
    EntrySearch::Wanted wanted;
    for (const Finding& each : findings) {
      if (each.code != Code::kEntryInode) return work_.directories();
      wanted[static_cast<InodeNumber>(each.found)] += each.expected;
    }
    return EntrySearch::run(work_, std::move(wanted));
  }

  Result<void> prefetch_named(std::span<const BlockMap::Run> runs) {
    if (const auto done = work_.prefetch(runs); !done) return done;
    std::vector<InodeNumber> named;
    for (const BlockMap::Run& run : runs) {
      for (std::uint64_t i = 0; i < run.count && named.size() < kNamedMax; ++i) {
        const auto bytes = context_.read_block(run.physical + i);
        if (!bytes) return bytes.error();
        for_each_entry(*bytes, [&](const DirectoryEntry& entry) { named.push_back(entry.inode); });
      }
    }
    return work_.prefetch_inodes(named);
  }

  Result<void> mend(InodeNumber number, const std::vector<Finding>& findings) {
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    if (!checked->directory) return {};
    if (checked->inlined) return mend_inlined(number, findings);
    bool entries = false;
    for (const Finding& each : findings) {
      Result<bool> done = false;
      Done what{};
      switch (each.code) {
        case Code::kInodeIndex:
          done = drop_index(number);
          what = Done::kIndexDropped;
          break;
        case Code::kDirectoryBlock:
          done = mend_block(number, each.block);
          what = Done::kBlockMade;
          break;
        case Code::kDirectoryHole:
          done = compact(number);
          what = Done::kCompacted;
          break;
        case Code::kDots:
          done = make_dots(number);
          what = Done::kDotsMade;
          break;
        default: entries = true; continue;
      }
      if (!done) return done.error();
      if (*done) work_.done(each, what);
    }
    if (!entries) return {};
    const auto now = work_.checked(number);
    if (!now) return now.error();
    if (const auto fetched = prefetch_named(now->map.runs); !fetched) return fetched;
    const auto done = mend_entries(number);
    if (!done) return done.error();
    if (!*done) return {};
    for (const Finding& each : findings) {
      if (each.code == Code::kEntryInode || each.code == Code::kEntryType ||
          each.code == Code::kEntryName) {
        work_.done(each, Done::kEntriesMended);
      }
    }
    return {};
  }

  // ---- blocks

  // Blocks of an index become empty ones of a directory.
  Result<bool> drop_index(InodeNumber number) {
    auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    const ExtInode inode(*bytes);
    if (!inode.has_index()) return false;
    store_le(bytes->data() + InodeAt::kFlags,
             inode.flags() & ~static_cast<std::uint32_t>(EXT2_INDEX_FL));
    if (const auto put = work_.put_inode(number, *bytes); !put) return put.error();
    if (!context_.checksums) return true;
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    for (const BlockMap::Run& run : checked->map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        if (const auto done = normalize_block(number, run.physical + i); !done) return done;
      }
    }
    return true;
  }

  Result<bool> normalize_block(InodeNumber number, FsBlock block) {
    auto bytes = context_.read_block(block);
    if (!bytes) return bytes.error();
    cut_directory_block(work_, *bytes);
    const auto put = put_directory_block(work_, number, block, *bytes);
    if (!put) return put.error();
    return true;
  }

  Result<bool> mend_block(InodeNumber number, FsBlock block) {
    const auto dropped = drop_index(number);
    if (!dropped) return dropped.error();
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    for (const BlockMap::Run& run : checked->map.runs) {
      if (block >= run.physical && block < run.physical + run.count) {
        return normalize_block(number, block);
      }
    }
    return false;
  }

  Result<bool> compact(InodeNumber number) {
    const auto dropped = drop_index(number);
    if (!dropped) return dropped.error();
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    std::vector<BlockMap::Run> runs;
    std::uint64_t next = 0;
    bool changed = false;
    for (BlockMap::Run run : checked->map.runs) {
      changed = changed || run.logical != next;
      run.logical = next;
      next += run.count;
      runs.push_back(run);
    }
    if (!changed) return false;
    return put_map(number, runs, checked->map.nodes);
  }

  Result<bool> put_map(InodeNumber number, std::span<const BlockMap::Run> runs,
                       std::span<const BlockMap::Node> nodes) {
    auto bytes = work_.inode(number);
    if (!bytes) return bytes.error();
    if (const auto put = write_map(work_, number, *bytes, runs, nodes); !put) return put.error();
    if (const auto put = settle_inode(work_, number, *bytes); !put) return put.error();
    return true;
  }

  // Before all other entries of the first block, as far as there is room for them.
  Result<bool> make_dots(InodeNumber number) {
    const auto dropped = drop_index(number);
    if (!dropped) return dropped.error();
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    if (checked->map.runs.empty()) return make_first(number, checked->map);
    const FsBlock block = checked->map.runs.front().physical;
    const auto before = context_.read_block(block);
    if (!before) return before.error();
    InodeNumber parent = EXT2_ROOT_INO;
    for_each_entry(*before, [&](const DirectoryEntry& entry) {
      if (entry.name == ".." && entry.inode != 0 && entry.inode <= work_.layout().inodes()) {
        parent = entry.inode;
      }
    });
    DirectoryMaker maker(work_);
    maker.add(".", {number, EXT2_FT_DIR});
    maker.add("..", {parent, EXT2_FT_DIR});
    for_each_entry(*before, [&](const DirectoryEntry& entry) {
      if (entry.inode == 0 || entry.name.empty() || is_dot(entry.name)) return;
      maker.add(entry.name, {entry.inode, entry.type});
    });
    std::vector<std::byte> bytes = maker.finish();
    const auto put = put_directory_block(work_, number, block, bytes);
    if (!put) return put.error();
    return true;
  }

  // It has none any more: one of its own, or it goes.
  Result<bool> make_first(InodeNumber number, const BlockMap& map) {
    if (!work_.may_allocate()) return false;
    const auto block = work_.allocate(FsBlock{1} << 32);
    if (!block) return block.error();
    if (!*block) {
      const auto released = work_.release(number);
      if (!released) return released.error();
      return true;
    }
    std::vector<std::byte> bytes = make_first_block(work_, number, EXT2_ROOT_INO);
    const auto put = put_directory_block(work_, number, **block, bytes);
    if (!put) return put.error();
    const BlockMap::Run run{0, **block, 1, false};
    return put_map(number, std::span(&run, 1), map.nodes);
  }

  // ---- entries

  // As long as it was.
  static std::string possible_name(std::string_view name) {
    std::string mended(name);
    for (char& each : mended) {
      if (each == '/' || each == '\0') each = '.';
    }
    return mended;
  }

  Result<bool> mend_entries(InodeNumber number) {
    const ExtContext& context = context_;
    Result<void> good;
    const auto done =
        change_entries(work_, number, [&](const PlacedEntry& entry) -> std::optional<Named> {
          if (entry.dot != 0 || !good) return std::nullopt;
          if (entry.name.empty() || is_dot(entry.name)) return Named{};
          const auto kind = work_.kind_of(entry.inode);
          if (!kind) {
            good = kind.error();
            return std::nullopt;
          }
          if (*kind == 0) return Named{};
          if (!ext2fs_has_feature_filetype(context.fs->super) || entry.type == *kind) {
            return std::nullopt;
          }
          return Named{entry.inode, *kind};
        });
    if (!good) return good.error();
    if (!done) return done;
    const auto renamed = mend_names(number);
    if (!renamed) return renamed;
    return *done || *renamed;
  }

  // Characters that cannot be become others.
  Result<bool> mend_names(InodeNumber number) {
    const auto checked = work_.checked(number);
    if (!checked) return checked.error();
    if (checked->inlined) {
      return change_entries(work_, number, [&](const PlacedEntry& entry) -> std::optional<Named> {
        if (possible_name(entry.name) == entry.name) return std::nullopt;
        return Named{};
      });
    }
    bool changed = false;
    for (const BlockMap::Run& run : checked->map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) {
        const auto done = mend_names_in(number, run.physical + i);
        if (!done) return done;
        changed = changed || *done;
      }
    }
    if (changed) {
      const auto dropped = drop_index(number);
      if (!dropped) return dropped;
    }
    return changed;
  }

  Result<bool> mend_names_in(InodeNumber number, FsBlock block) {
    auto bytes = context_.read_block(block);
    if (!bytes) return bytes.error();
    std::set<std::string, std::less<>> names;
    std::vector<DirectoryEntry> bad;
    for_each_entry(*bytes, [&](const DirectoryEntry& entry) {
      if (entry.inode == 0) return;
      if (possible_name(entry.name) != entry.name || !names.emplace(entry.name).second) {
        bad.push_back(entry);
      }
    });
    for (const DirectoryEntry& entry : bad) {
      const std::string name = possible_name(entry.name);
      if (is_dot(name) || !names.insert(name).second) {
        store_le<std::uint32_t>(bytes->data() + entry.offset, 0);
      } else {
        std::ranges::copy(std::as_bytes(std::span(name)),
                          bytes->data() + entry.offset + kHeadBytes);
      }
    }
    if (bad.empty()) return false;
    const auto put = put_directory_block(work_, number, block, *bytes);
    if (!put) return put.error();
    return true;
  }

  // ---- within the inode

  // Entries that cannot be read are gone.
  Result<void> mend_inlined(InodeNumber number, const std::vector<Finding>& findings) {
    bool anew = false;
    bool entries = false;
    for (const Finding& each : findings) {
      if (each.code == Code::kDirectoryBlock || each.code == Code::kDots) anew = true;
      if (each.code == Code::kEntryInode || each.code == Code::kEntryType ||
          each.code == Code::kEntryName) {
        entries = true;
      }
    }
    if (anew) {
      std::array<std::byte, kInlineBytes> bytes{};
      store_le<std::uint32_t>(bytes.data(), EXT2_ROOT_INO);
      store_le<std::uint16_t>(bytes.data() + 8, kInlineBytes - 4);
      const errcode_t error =
          ext2fs_inline_data_set(context_.fs, number, nullptr, bytes.data(), bytes.size());
      if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
      if (error != 0) {
        if (const Result<void> done = work_.release(number); !done) return done;
      }
      for (const Finding& each : findings) {
        work_.done(each, error != 0 ? Done::kReleased : Done::kBlockMade);
      }
      return {};
    }
    if (!entries) return {};
    const auto done = mend_entries(number);
    if (!done) return done.error();
    if (*done) {
      for (const Finding& each : findings) work_.done(each, Done::kEntriesMended);
    }
    return {};
  }

  MendWork& work_;
  const ExtContext& context_;
};

}  // namespace

Result<void> mend_directories(MendWork& work) { return DirectoryMender(work).run(); }

}  // namespace mariner::ifsck
