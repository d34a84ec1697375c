#include "ifsck/mend_directory.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ifsck/ext_inode.h"
#include "ifsck/map_writer.h"
#include "ifsck/mend_inode.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::size_t kHeadBytes = 8;
constexpr std::size_t kTailBytes = 12;
constexpr std::size_t kTypeAt = 7;
constexpr std::size_t kFlagsAt = 32;
constexpr std::size_t kDotBytes = 12;
constexpr std::size_t kInlineBytes = 60;

std::size_t need_of(std::string_view name) { return (kHeadBytes + name.size() + 3) / 4 * 4; }

bool is_dot(std::string_view name) { return name == "." || name == ".."; }

// What a block has room for, before its checksum.
std::size_t usable(const MendWork& work) {
  return work.layout().block_bytes() - (work.context().checksums ? kTailBytes : 0);
}

void put_head(const MendWork& work, std::span<std::byte> at, std::size_t length, InodeNumber inode,
              std::uint8_t name_bytes, std::uint8_t type) {
  store_le(at.data(), inode);
  (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(length),
                           reinterpret_cast<ext2_dir_entry*>(at.data()));
  store_le(at.data() + 6, name_bytes);
  store_le(at.data() + kTypeAt, type);
}

std::uint8_t type_if_any(const MendWork& work, std::uint8_t type) {
  return ext2fs_has_feature_filetype(work.context().fs->super) ? type : std::uint8_t{0};
}

// The place of the checksum, if there are any.
void put_tail(const MendWork& work, std::span<std::byte> bytes) {
  if (!work.context().checksums) return;
  ext2fs_initialize_dirent_tail(
      work.context().fs, reinterpret_cast<ext2_dir_entry_tail*>(bytes.data() + usable(work)));
}

// Entries one behind the other.
class BlockMaker {
 public:
  explicit BlockMaker(const MendWork& work)
      : work_(work), bytes_(work.layout().block_bytes()), end_(usable(work)) {}

  // False: it does not fit.
  bool add(std::string_view name, const EntryChange& entry) {
    const std::size_t need = need_of(name);
    if (next_ + need > end_) return false;
    last_ = next_;
    const auto at = std::span(bytes_).subspan(next_);
    put_head(work_, at, need, entry.inode, static_cast<std::uint8_t>(name.size()), entry.type);
    std::ranges::copy(std::as_bytes(std::span(name)), at.data() + kHeadBytes);
    next_ += need;
    return true;
  }
  std::vector<std::byte> finish() {
    if (next_ == 0) {
      put_head(work_, bytes_, end_, 0, 0, 0);
    } else {
      (void)ext2fs_set_rec_len(work_.context().fs, static_cast<unsigned>(end_ - last_),
                               reinterpret_cast<ext2_dir_entry*>(bytes_.data() + last_));
    }
    put_tail(work_, bytes_);
    return bytes_;
  }

 private:
  const MendWork& work_;
  std::vector<std::byte> bytes_;
  const std::size_t end_;
  std::size_t next_ = 0;
  std::size_t last_ = 0;
};

// Up to the last good entry as it is; what follows is free. With a place for a checksum, if there
// are any.
void normalize(const MendWork& work, std::span<std::byte> bytes) {
  const std::size_t end = usable(work);
  std::size_t last = end;
  bool whole = false;
  for_each_entry(bytes, [&](const DirectoryEntry& entry) {
    if (entry.offset + need_of(entry.name) > end || whole) return;
    last = entry.offset;
    whole = entry.offset + entry.length >= end;
  });
  if (last == end) {
    std::ranges::fill(bytes, std::byte{});
    put_head(work, bytes, end, 0, 0, 0);
    last = 0;
  }
  put_tail(work, bytes);
  (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(end - last),
                           reinterpret_cast<ext2_dir_entry*>(bytes.data() + last));
}

using Visit = std::function<std::optional<EntryChange>(const PlacedEntry&)>;

// What libext2fs tells of a directory within its inode.
struct Telling {
  const Visit* visit = nullptr;
  int index = 0;
  bool changed = false;
};

int tell(ext2_ino_t /*inode*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/, int /*bytes*/,
         char* /*buffer*/, void* to) {
  auto& telling = *static_cast<Telling*>(to);
  const int dot = telling.index < 2 ? telling.index + 1 : 0;
  ++telling.index;
  if (entry->inode == 0) return 0;
  const auto change = (*telling.visit)(
      {.inode = entry->inode,
       .type = static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry)),
       .name = {entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry))},
       .dot = dot});
  if (!change) return 0;
  entry->inode = change->inode;
  ext2fs_dirent_set_file_type(entry, change->type);
  telling.changed = true;
  return DIRENT_CHANGED;
}

class Mender {
 public:
  explicit Mender(MendWork& work) : work_(work), context_(work.context()) {}

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
    const auto all = work_.directories();
    if (!all) return all.error();
    bool changed = false;
    for (const InodeNumber each : *all) {
      const auto checked = work_.checked(each);
      if (!checked) return checked.error();
      if (!checked->directory) continue;
      const auto done = mend_entries(each);
      if (!done) return done.error();
      changed = changed || *done;
    }
    if (changed) {
      for (const Finding& each : findings) work_.done(each, Done::kEntriesMended);
    }
    return {};
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
    store_le(bytes->data() + kFlagsAt, inode.flags() & ~static_cast<std::uint32_t>(EXT2_INDEX_FL));
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
    normalize(work_, *bytes);
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
    BlockMaker maker(work_);
    const std::uint8_t type = type_if_any(work_, EXT2_FT_DIR);
    maker.add(".", {number, type});
    maker.add("..", {parent, type});
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
        change_entries(work_, number, [&](const PlacedEntry& entry) -> std::optional<EntryChange> {
          if (entry.dot != 0 || !good) return std::nullopt;
          if (entry.name.empty() || is_dot(entry.name)) return EntryChange{};
          const auto kind = work_.kind_of(entry.inode);
          if (!kind) {
            good = kind.error();
            return std::nullopt;
          }
          if (*kind == 0) return EntryChange{};
          if (!ext2fs_has_feature_filetype(context.fs->super) || entry.type == *kind) {
            return std::nullopt;
          }
          return EntryChange{entry.inode, *kind};
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
      return change_entries(work_, number,
                            [&](const PlacedEntry& entry) -> std::optional<EntryChange> {
                              if (possible_name(entry.name) == entry.name) return std::nullopt;
                              return EntryChange{};
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
    std::set<std::string> names;
    std::vector<DirectoryEntry> bad;
    for_each_entry(*bytes, [&](const DirectoryEntry& entry) {
      if (entry.inode == 0) return;
      if (possible_name(entry.name) == entry.name) {
        names.emplace(entry.name);
      } else {
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

// Of one block.
Result<bool> change_block(MendWork& work, InodeNumber directory, const BlockMap::Run& block,
                          const Visit& visit) {
  auto bytes = work.context().read_block(block.physical);
  if (!bytes) return bytes.error();
  bool changed = false;
  int index = 0;
  for_each_entry(*bytes, [&](const DirectoryEntry& entry) {
    const int dot = block.logical == 0 && index < 2 ? index + 1 : 0;
    ++index;
    if (entry.inode == 0) return;
    const auto change =
        visit({.inode = entry.inode, .type = entry.type, .name = entry.name, .dot = dot});
    if (!change) return;
    store_le(bytes->data() + entry.offset, change->inode);
    store_le(bytes->data() + entry.offset + kTypeAt, change->type);
    changed = true;
  });
  if (!changed) return false;
  if (const auto put = put_directory_block(work, directory, block.physical, *bytes); !put) {
    return put.error();
  }
  return true;
}

// Behind the name of another one.
bool fit_name(const MendWork& work, std::span<std::byte> bytes, std::string_view name,
              const EntryChange& added) {
  const std::size_t end = usable(work);
  const std::size_t need = need_of(name);
  std::optional<DirectoryEntry> room;
  for_each_entry(bytes, [&](const DirectoryEntry& entry) {
    const std::size_t taken = entry.inode == 0 ? 0 : need_of(entry.name);
    if (!room && entry.offset + entry.length <= end && entry.length >= taken + need) room = entry;
  });
  if (!room) return false;
  const std::size_t taken = room->inode == 0 ? 0 : need_of(room->name);
  const auto at = bytes.subspan(room->offset);
  if (taken > 0) {
    (void)ext2fs_set_rec_len(work.context().fs, static_cast<unsigned>(taken),
                             reinterpret_cast<ext2_dir_entry*>(at.data()));
  }
  const auto to = at.subspan(taken);
  put_head(work, to, room->length - taken, added.inode, static_cast<std::uint8_t>(name.size()),
           added.type);
  std::ranges::copy(std::as_bytes(std::span(name)), to.data() + kHeadBytes);
  return true;
}

// A directory gets one more block, with one name.
Result<bool> extend(MendWork& work, InodeNumber directory, const CheckedInode& checked,
                    std::string_view name, const EntryChange& added) {
  const auto block = work.allocate(FsBlock{1} << 32);
  if (!block) return block.error();
  if (!*block) return false;
  BlockMaker maker(work);
  maker.add(name, added);
  std::vector<std::byte> bytes = maker.finish();
  if (const auto put = put_directory_block(work, directory, **block, bytes); !put) {
    return put.error();
  }
  std::vector<BlockMap::Run> runs = checked.map.runs;
  const std::uint64_t end = runs.empty() ? 0 : runs.back().logical + runs.back().count;
  runs.push_back({end, **block, 1, false});
  auto inode = work.inode(directory);
  if (!inode) return inode.error();
  if (const auto put = write_map(work, directory, *inode, runs, checked.map.nodes); !put) {
    return put.error();
  }
  if (const auto put = settle_inode(work, directory, *inode); !put) return put.error();
  return true;
}

}  // namespace

Result<void> mend_directories(MendWork& work) { return Mender(work).run(); }

Result<bool> change_entries(
    MendWork& work, InodeNumber directory,
    const std::function<std::optional<EntryChange>(const PlacedEntry&)>& visit) {
  const auto checked = work.checked(directory);
  if (!checked) return checked.error();
  if (!checked->directory) return false;
  if (checked->inlined) {
    Telling telling{.visit = &visit};
    const errcode_t error = ext2fs_dir_iterate2(work.context().fs, directory,
                                                DIRENT_FLAG_INCLUDE_EMPTY, nullptr, tell, &telling);
    if (error == EIO) return Error{ErrorCode::kIo, "ext2/3/4: " + ext_error_text(error)};
    return telling.changed;
  }
  bool changed = false;
  for (const BlockMap::Run& run : checked->map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const auto done = change_block(work, directory,
                                     {run.logical + i, run.physical + i, 1, run.unwritten}, visit);
      if (!done) return done;
      changed = changed || *done;
    }
  }
  return changed;
}

Result<bool> add_name(MendWork& work, InodeNumber directory, std::string_view name,
                      const EntryChange& entry) {
  const EntryChange added{entry.inode, type_if_any(work, entry.type)};
  const auto checked = work.checked(directory);
  if (!checked) return checked.error();
  if (checked->inlined || checked->map.runs.empty()) return false;
  for (const BlockMap::Run& run : checked->map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      auto bytes = work.context().read_block(run.physical + i);
      if (!bytes) return bytes.error();
      if (!fit_name(work, *bytes, name, added)) continue;
      const auto put = put_directory_block(work, directory, run.physical + i, *bytes);
      if (!put) return put.error();
      return true;
    }
  }
  return extend(work, directory, *checked, name, added);
}

Result<bool> set_parent(MendWork& work, InodeNumber directory, InodeNumber parent) {
  return change_entries(work, directory,
                        [&](const PlacedEntry& entry) -> std::optional<EntryChange> {
                          if (entry.dot != 2 || entry.inode == parent) return std::nullopt;
                          return EntryChange{parent, entry.type};
                        });
}

std::vector<std::byte> make_first_block(const MendWork& work, InodeNumber directory,
                                        InodeNumber parent) {
  BlockMaker maker(work);
  const std::uint8_t type = type_if_any(work, EXT2_FT_DIR);
  maker.add(".", {directory, type});
  maker.add("..", {parent, type});
  return maker.finish();
}

Result<void> put_directory_block(MendWork& work, InodeNumber directory, FsBlock block,
                                 std::span<std::byte> bytes) {
  if (work.context().checksums) {
    // (Where there is no place for one, that is a finding.)
    (void)ext2fs_dir_block_csum_set(work.context().fs, directory,
                                    reinterpret_cast<ext2_dir_entry*>(bytes.data()));
  }
  return work.put_block(block, bytes);
}

}  // namespace mariner::ifsck
