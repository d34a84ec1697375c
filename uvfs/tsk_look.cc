#include "uvfs/tsk_look.h"

#include <fmt/format.h>
#include <tsk/libtsk.h>
// (Needs that one before it.)
#include <tsk/fs/tsk_ntfs.h>
#include <xxhash.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "uvfs/fat_names.h"
#include "uvfs/fat_time.h"
#include "uvfs/ntfs_index.h"
#include "uvfs/ntfs_record.h"
#include "uvfs/tsk_handles.h"

namespace mariner::uvfs::tsk {
namespace {

using Contents = TskObject::Contents;
using Digest = TskObject::Digest;

constexpr ObjectNumber kFatFirstEntry = 3;  // 2 is the root
constexpr ObjectNumber kHfsFirstUser = 16;
constexpr std::size_t kPieceBytes = 1u << 20;
constexpr std::uint64_t kRecordBytesMax = 64 * 1024;
constexpr std::string_view kNtfsIndex = "$I30";
constexpr std::uint32_t kSecond_ns = 1'000'000'000;

FileTime file_time(std::int64_t seconds, std::uint64_t ns) {
  return {seconds, static_cast<std::uint32_t>(ns % kSecond_ns)};
}

class Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
  void add(const void* bytes, std::size_t count) {
    if (count > 0) XXH3_128bits_update(state_.get(), bytes, count);
  }
  void add(std::span<const std::byte> bytes) { add(bytes.data(), bytes.size()); }
  [[nodiscard]] Digest digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.low64, hash.high64};
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

class Looking {
 public:
  Looking(const Opened& all, ObjectNumber number)
      : all_(all), number_(number), file_(open_file(all.fs, number)) {}

  Result<TskFileSystem::Look> look() {
    if (!is_there(file_.get(), number_, all_.kind)) {
      if (file_ == nullptr && all_.kind == Kind::kNtfs) take_refused();
      return std::move(look_);
    }
    take_state();
    if (is_beyond_reason()) {
      look_.object.whole = false;
      return std::move(look_);
    }
    const std::uint16_t kind = look_.object.state.mode & S_IFMT;
    if (kind == S_IFDIR) {
      if (const auto taken = take_names(); !taken) return taken.error();
    } else if (kind == S_IFREG || kind == S_IFLNK) {
      take_contents();
    }
    take_streams();
    return std::move(look_);
  }

 private:
  [[nodiscard]] const TSK_FS_META& meta() const { return *file_->meta; }
  [[nodiscard]] TSK_FS_INFO* fs() const { return all_.fs; }

  // What libtsk takes for no file.
  void take_refused() {
    const auto& ntfs = *reinterpret_cast<const NTFS_INFO*>(fs());
    const std::uint64_t bytes = ntfs.mft_rsize_b;
    const ObjectNumber record = shown_number(number_);
    if (ntfs.mft_data == nullptr || bytes > kRecordBytesMax || record > fs()->last_inum) return;
    std::vector<std::byte> read_bytes(bytes);
    if (!read(*ntfs.mft_data, record * bytes, read_bytes)) return;
    const auto found = parse_ntfs_record(read_bytes);
    const ObjectNumber sequence = number_ >> kSequenceShift;
    if (!found || (sequence != 0 && sequence != found->sequence)) return;
    look_.object.state = found->state;
    look_.object.whole = false;
    if (S_ISREG(found->state.mode)) look_.object.contents = Contents::kRuns;
  }

  // libtsk would make runs of all that these say they have, block by block. (With holes there may
  // be more of a file than of the volume; it is not read then.)
  [[nodiscard]] bool is_beyond_reason() const {
    return (all_.kind == Kind::kHfs || all_.kind == Kind::kUfs) &&
           look_.object.state.size > all_.size_bytes;
  }

  void take_state() {
    ObjectState& state = look_.object.state;
    state.exists = true;
    state.mode = static_cast<std::uint16_t>(kind_bits(meta().type) | (meta().mode & 07777));
    // (The root of FAT stands nowhere.)
    if (all_.kind == Kind::kFat && number_ == fs()->root_inum) state.mode = S_IFDIR | 0777;
    // (Of NTFS and FAT they are nobody's that a host would know.)
    if (all_.kind == Kind::kHfs || all_.kind == Kind::kUfs) {
      state.user = meta().uid;
      state.group = meta().gid;
    }
    state.size = static_cast<std::uint64_t>(std::max<TSK_OFF_T>(meta().size, 0));
    state.links = static_cast<std::uint32_t>(std::max(meta().nlink, 0));
    state.generation = all_.kind == Kind::kNtfs ? meta().seq : 0;
    state.modified = file_time(meta().mtime, meta().mtime_nano);
    state.changed = file_time(meta().ctime, meta().ctime_nano);
    if (meta().crtime != 0) state.made = file_time(meta().crtime, meta().crtime_nano);
    if (all_.kind == Kind::kFat && all_.is_exfat() && number_ >= kFatFirstEntry) take_exfat();
    if (all_.kind == Kind::kFat) state.changed = state.modified;
  }

  // What libtsk leaves out: where clocks are, and how much of a file was written to.
  void take_exfat() {
    std::array<std::byte, 2 * kFatEntryBytes> set{};
    const std::uint64_t place = all_.data + (number_ - kFatFirstEntry) * kFatEntryBytes;
    // (Its second entry may be in another cluster, wherever that is.)
    const bool both = (place - all_.data) % all_.cluster_bytes + set.size() <= all_.cluster_bytes;
    const std::size_t bytes = both ? set.size() : kFatEntryBytes;
    if (tsk_fs_read(fs(), static_cast<TSK_OFF_T>(place), reinterpret_cast<char*>(set.data()),
                    bytes) != static_cast<ssize_t>(bytes)) {
      return;
    }
    const auto time = [&](std::size_t stamp, std::size_t hundredths, std::size_t offset) {
      return time_of({.stamp = load_le<std::uint32_t>(set.data() + stamp),
                      .hundredths = std::to_integer<std::uint8_t>(set[hundredths]),
                      .offset = std::to_integer<std::uint8_t>(set[offset])});
    };
    ObjectState& state = look_.object.state;
    if (const auto made = time(8, 20, 22)) state.made = made;
    state.modified = time(12, 21, 23).value_or(state.modified);
    if (both) written_ = load_le<std::uint64_t>(set.data() + kFatEntryBytes + 8);
  }

  void take_contents() {
    TskObject& object = look_.object;
    object.contents = Contents::kRuns;
    if (meta().type == TSK_FS_META_TYPE_LNK && meta().link != nullptr) {
      const std::string_view target(meta().link);
      object.state.size = target.size();
      return take_bytes(std::as_bytes(std::span(target)));
    }
    const TSK_FS_ATTR* const attribute = contents_of(file_.get(), all_.kind);
    if (attribute == nullptr) {
      object.whole = object.state.size == 0;
      return;
    }
    if (all_.kind == Kind::kNtfs) object.state.size = size_of(*attribute);
    if (has(*attribute, TSK_FS_ATTR_RES)) {
      const std::uint64_t there =
          attribute->rd.buf == nullptr ? 0 : std::uint64_t{attribute->rd.buf_size};
      return take_bytes(std::as_bytes(
          std::span(attribute->rd.buf, std::min<std::uint64_t>(object.state.size, there))));
    }
    if (has(*attribute, TSK_FS_ATTR_ENC)) object.contents = Contents::kEncrypted;
    if (has(*attribute, TSK_FS_ATTR_COMP)) object.contents = Contents::kMade;
    take_runs(*attribute);
    // (Its holes are no zeros then. One of a cloud may be there as a whole, and has none.)
    if (object.contents == Contents::kRuns && has_holes_ &&
        has_reparse_point(file_.get(), all_.kind)) {
      object.contents = Contents::kElsewhere;
    }
    if (object.contents == Contents::kMade && object.state.size <= TskFileSystem::kDigestBytesMax) {
      take_digest(*attribute);
    }
  }

  void take_bytes(std::span<const std::byte> bytes) {
    look_.object.contents = Contents::kInline;
    look_.bytes.assign(bytes.begin(), bytes.end());
    Hash hash;
    hash.add(bytes);
    look_.object.digest = hash.digest();
  }

  void take_digest(const TSK_FS_ATTR& attribute) {
    Hash hash;
    std::vector<std::byte> piece;
    const std::uint64_t size = look_.object.state.size;
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      piece.resize(std::min<std::uint64_t>(size - at, kPieceBytes));
      if (!read(attribute, at, piece)) {
        look_.object.whole = false;
        break;
      }
      hash.add(piece);
    }
    look_.object.digest = hash.digest();
  }

  // Up to what was written to: the rest is zeros.
  void take_runs(const TSK_FS_ATTR& attribute) {
    TskObject& object = look_.object;
    const bool as_it_is = object.contents == Contents::kRuns;
    // (Of what is compressed all that there is.)
    std::uint64_t end = object.state.size;
    if (as_it_is) {
      end = std::min({end, written_,
                      static_cast<std::uint64_t>(std::max<TSK_OFF_T>(attribute.nrd.initsize, 0))});
    }
    const std::uint64_t each = fs()->block_size;
    const std::uint64_t blocks = all_.size_bytes / each;
    has_holes_ = attribute.nrd.run == nullptr && object.state.size > 0;
    std::uint64_t covered = 0;
    std::size_t runs = 0;
    for (const TSK_FS_ATTR_RUN* run = attribute.nrd.run; run != nullptr; run = run->next) {
      if (++runs > TskFileSystem::kRunsMax || run->offset > blocks * TskFileSystem::kRunsMax ||
          run->len > blocks * TskFileSystem::kRunsMax || run->offset * each < covered) {
        object.whole = false;
        break;
      }
      const std::uint64_t begin = run->offset * each;
      object.whole = object.whole && (begin == covered || begin >= end);
      covered = begin + run->len * each;
      if ((run->flags & TSK_FS_ATTR_RUN_FLAG_FILLER) != 0) object.whole = false;
      if ((run->flags & (TSK_FS_ATTR_RUN_FLAG_FILLER | TSK_FS_ATTR_RUN_FLAG_SPARSE)) != 0) {
        has_holes_ = has_holes_ || begin < object.state.size;
        continue;
      }
      if (as_it_is && begin >= end) break;
      if (run->addr >= blocks || run->len > blocks - run->addr) {
        object.whole = false;
        continue;
      }
      std::uint64_t bytes = run->len * each;
      if (as_it_is) bytes = std::min(bytes, end - begin);
      if (bytes > 0) object.runs.push_back({begin, run->addr * each, bytes});
    }
    if (covered < end) object.whole = false;
  }

  void take_streams() {
    Hash hash;
    std::vector<std::byte> bytes;
    for_each_stream(file_.get(), all_.kind, [&](const TSK_FS_ATTR& each) {
      const std::uint64_t size = size_of(each);
      hash.add(name_of(each).data(), name_of(each).size() + 1);
      hash.add(&size, sizeof size);
      if (size > TskFileSystem::kAttributeBytesMax) return;
      bytes.resize(size);
      if (read(each, 0, bytes)) hash.add(bytes);
    });
    look_.object.attributes = hash.digest();
  }

  // ---- names

  Result<void> take_names() {
    switch (all_.kind) {
      case Kind::kNtfs: return take_ntfs_names();
      case Kind::kFat: return take_fat_names();
      default: return take_other_names();
    }
  }

  Error too_large(std::uint64_t bytes) const {
    return {ErrorCode::kLimit,
            fmt::format("directory {} has {} bytes, of {} at most", shown_number(number_), bytes,
                        TskFileSystem::kDirectoryBytesMax)};
  }

  const TSK_FS_ATTR* index(TSK_FS_ATTR_TYPE_ENUM type) {
    if (tsk_fs_file_attr_getsize(file_.get()) < 0 || meta().attr == nullptr) return nullptr;
    for (const TSK_FS_ATTR* each = meta().attr->head; each != nullptr; each = each->next) {
      if (has(*each, TSK_FS_ATTR_INUSE) && each->type == type && name_of(*each) == kNtfsIndex) {
        return each;
      }
    }
    return nullptr;
  }
  Result<std::vector<std::byte>> all_of(const TSK_FS_ATTR* attribute) {
    std::vector<std::byte> bytes;
    if (attribute == nullptr) return bytes;
    if (size_of(*attribute) > TskFileSystem::kDirectoryBytesMax)
      return too_large(size_of(*attribute));
    bytes.resize(size_of(*attribute));
    if (!read(*attribute, 0, bytes)) bytes.clear();
    return bytes;
  }

  Result<void> take_ntfs_names() {
    const auto root = all_of(index(TSK_FS_ATTR_TYPE_NTFS_IDXROOT));
    if (!root) return root.error();
    const auto block_bytes = ntfs_index_block_bytes(*root);
    look_.names_whole = block_bytes.has_value();
    if (!block_bytes) return {};
    std::vector<NtfsName> found;
    look_.names_whole = add_names_of_index_root(*root, found);
    const TSK_FS_ATTR* const blocks = index(TSK_FS_ATTR_TYPE_NTFS_IDXALLOC);
    const auto used = all_of(index(TSK_FS_ATTR_TYPE_NTFS_BITMAP));
    if (!used) return used.error();
    if (blocks != nullptr) {
      const std::uint64_t size = size_of(*blocks);
      if (size > TskFileSystem::kDirectoryBytesMax) return too_large(size);
      if (used->empty()) look_.names_whole = false;
      std::vector<std::byte> block(*block_bytes);
      for (std::uint64_t i = 0; i < size / block.size() && i / 8 < used->size(); ++i) {
        if ((std::to_integer<unsigned>((*used)[i / 8]) >> i % 8 & 1) == 0) continue;
        if (!read(*blocks, i * block.size(), block) || !add_names_of_index_block(block, found)) {
          look_.names_whole = false;
        }
        if (found.size() > TskFileSystem::kNamesMax) return too_large(size);
      }
    }
    for (NtfsName& each : found) {
      look_.names.push_back({std::move(each.name), each.reference, each.directory});
    }
    return {};
  }

  Result<void> take_fat_names() {
    const TSK_FS_ATTR* const attribute = contents_of(file_.get(), all_.kind);
    if (attribute == nullptr) {
      look_.object.whole = look_.names_whole = false;
      return {};
    }
    if (look_.object.state.size > TskFileSystem::kDirectoryBytesMax)
      return too_large(look_.object.state.size);
    look_.object.contents = Contents::kRuns;  // as if it were a file, for a moment
    take_runs(*attribute);
    look_.object.contents = Contents::kNone;
    const ByteRuns runs = std::exchange(look_.object.runs, {});
    FatNames names(all_.is_exfat());
    std::vector<std::byte> piece;
    bool more = true;
    for (const ByteRun& run : runs) {
      for (std::uint64_t done = 0; done < run.bytes && more; done += piece.size()) {
        const std::uint64_t place = run.place + done;
        piece.resize(std::min<std::uint64_t>(run.bytes - done, kBlockBytes - place % kBlockBytes));
        if (place < all_.data ||
            tsk_fs_read(fs(), static_cast<TSK_OFF_T>(place), reinterpret_cast<char*>(piece.data()),
                        piece.size()) != static_cast<ssize_t>(piece.size())) {
          more = look_.names_whole = false;
          break;
        }
        const ObjectNumber first = (place - all_.data) / kFatEntryBytes + kFatFirstEntry;
        for (std::size_t i = 0; i < piece.size() / kFatEntryBytes && more; ++i) {
          more = names.add(std::span(piece).subspan(i * kFatEntryBytes, kFatEntryBytes), first + i);
        }
      }
    }
    for (FatName& each : names.take()) {
      look_.names.push_back({std::move(each.name), each.entry, each.directory});
    }
    return {};
  }

  Result<void> take_other_names() {
    if (look_.object.state.size > TskFileSystem::kDirectoryBytesMax)
      return too_large(look_.object.state.size);
    const std::unique_ptr<TSK_FS_DIR, void (*)(TSK_FS_DIR*)> directory(
        tsk_fs_dir_open_meta(fs(), shown_number(number_)),
        [](TSK_FS_DIR* one) { tsk_fs_dir_close(one); });
    look_.names_whole = directory != nullptr;
    if (directory == nullptr) return {};
    if (directory->names_used > TskFileSystem::kNamesMax) return too_large(look_.object.state.size);
    for (std::size_t i = 0; i < directory->names_used; ++i) {
      const TSK_FS_NAME* const each = tsk_fs_dir_get_name(directory.get(), i);
      if (each == nullptr || each->name == nullptr) continue;
      const std::string_view name(each->name);
      const bool own = all_.kind == Kind::kHfs && each->meta_addr < kHfsFirstUser;
      if ((each->flags & TSK_FS_NAME_FLAG_ALLOC) == 0 || name == "." || name == ".." || own ||
          each->type == TSK_FS_NAME_TYPE_VIRT || each->type == TSK_FS_NAME_TYPE_VIRT_DIR) {
        continue;
      }
      look_.names.push_back(
          {std::string(name), each->meta_addr, each->type == TSK_FS_NAME_TYPE_DIR});
    }
    return {};
  }

  const Opened& all_;
  const ObjectNumber number_;
  const FilePtr file_;
  std::uint64_t written_ = ~std::uint64_t{0};  // bytes of its contents, if that is known
  bool has_holes_ = false;                     // its contents, as its runs say
  TskFileSystem::Look look_;
};

}  // namespace

bool Opened::is_exfat() const { return fs->ftype == TSK_FS_TYPE_EXFAT; }

Result<TskFileSystem::Look> look(const Opened& opened, ObjectNumber number) {
  return Looking(opened, number).look();
}

}  // namespace mariner::uvfs::tsk
