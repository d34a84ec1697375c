#include "uvfs/tsk_file_system.h"

#include <fmt/format.h>
#include <tsk/libtsk.h>
// (They need that one before them.)
#include <tsk/fs/tsk_fatfs.h>
#include <tsk/fs/tsk_ntfs.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "uvfs/tsk_handles.h"
#include "uvfs/tsk_look.h"

namespace mariner::uvfs {
namespace {

using Kind = TskFileSystem::Kind;

constexpr std::size_t kBootBytes = 512;

TSK_FS_TYPE_ENUM type_of(Kind kind) {
  switch (kind) {
    case Kind::kNtfs: return TSK_FS_TYPE_NTFS_DETECT;
    case Kind::kFat: return TSK_FS_TYPE_FAT_DETECT;
    case Kind::kHfs: return TSK_FS_TYPE_HFS_DETECT;
    case Kind::kUfs: return TSK_FS_TYPE_FFS_DETECT;
  }
  return TSK_FS_TYPE_UNSUPP;
}

}  // namespace

std::vector<ByteRange> merged_ranges(std::vector<ByteRange> reads) {
  std::ranges::sort(reads);
  std::vector<ByteRange> merged;
  for (const ByteRange& each : reads) {
    if (!merged.empty() && each.offset <= merged.back().end()) {
      merged.back().length = std::max(merged.back().end(), each.end()) - merged.back().offset;
    } else {
      merged.push_back(each);
    }
  }
  return merged;
}

// ---- opening

void TskFileSystem::Close::operator()(TSK_FS_INFO* fs) const { tsk_fs_close(fs); }
TskFileSystem::~TskFileSystem() = default;

Result<std::unique_ptr<TskFileSystem>> TskFileSystem::open(TskImage& image,
                                                           std::optional<Kind> kind,
                                                           std::vector<ByteRange>* read_by) {
  std::vector<ByteRange> reads;
  for (const Kind each : {Kind::kNtfs, Kind::kFat, Kind::kHfs, Kind::kUfs}) {
    if (kind && each != *kind) continue;
    std::unique_ptr<TskFileSystem> made(new TskFileSystem(image, each));
    const auto opened = made->open(reads);
    if (!opened) return opened.error();
    if (read_by != nullptr) *read_by = merged_ranges(std::move(reads));
    if (*opened) return made;
  }
  return Error{ErrorCode::kNotFound, "neither NTFS, exFAT, FAT, HFS+ nor UFS"};
}

Result<bool> TskFileSystem::open(std::vector<ByteRange>& reads) {
  image_.record(&reads);
  tsk_error_reset();
  fs_.reset(tsk_fs_open_img(image_.handle(), 0, type_of(kind_)));
  const bool opened = fs_ != nullptr && (kind_ != Kind::kFat || find_places());
  image_.record(nullptr);
  if (auto error = image_.take_error(); !error) return error.error();
  if (!opened) {
    fs_.reset();
    return false;
  }
  if (kind_ == Kind::kNtfs) {
    forget_bitmap();
    // (What is in there is read again by whoever looks at it.)
    std::erase_if(reads, [this](const ByteRange& each) { return is_bitmap(each); });
  }
  identity_ =
      fmt::format("{} {} {}:", static_cast<unsigned>(fs_->ftype), fs_->block_size, places_.data);
  const std::size_t id_bytes = std::min(fs_->fs_id_used, sizeof fs_->fs_id);
  for (std::size_t i = 0; i < id_bytes; ++i) identity_ += fmt::format("{:02x}", fs_->fs_id[i]);
  return true;
}

void TskFileSystem::forget_bitmap() {
  reinterpret_cast<NTFS_INFO*>(fs_.get())->bmap_buf_off = ~TSK_DADDR_T{0};
}

bool TskFileSystem::is_bitmap(const ByteRange& range) const {
  const TSK_FS_ATTR_RUN* run = reinterpret_cast<const NTFS_INFO*>(fs_.get())->bmap;
  for (; run != nullptr; run = run->next) {
    const bool stored =
        (run->flags & (TSK_FS_ATTR_RUN_FLAG_SPARSE | TSK_FS_ATTR_RUN_FLAG_FILLER)) == 0;
    const ByteRange bytes{run->addr * fs_->block_size, run->len * fs_->block_size};
    if (stored && range.offset >= bytes.offset && range.end() <= bytes.end()) return true;
  }
  return false;
}

void TskFileSystem::forget_table() {
  for (std::uint8_t& each : reinterpret_cast<FATFS_INFO*>(fs_.get())->fatc_ttl) each = 0;
}

// All that there is in FATFS_INFO, without what it keeps of the table and of directories.
std::string TskFileSystem::learned() const {
  if (kind_ != Kind::kFat) return {};
  const auto& fat = *reinterpret_cast<const FATFS_INFO*>(fs_.get());
  const TSK_FS_INFO& fs = fat.fs_info;
  std::string all = identity_;
  for (const std::uint64_t each : {std::uint64_t{fs.inum_count},
                                   std::uint64_t{fs.root_inum},
                                   std::uint64_t{fs.first_inum},
                                   std::uint64_t{fs.last_inum},
                                   std::uint64_t{fs.block_count},
                                   std::uint64_t{fs.first_block},
                                   std::uint64_t{fs.last_block},
                                   std::uint64_t{fs.last_block_act},
                                   std::uint64_t{fs.dev_bsize},
                                   std::uint64_t{fs.flags},
                                   std::uint64_t{fs.endian},
                                   std::uint64_t{fat.firstfatsect},
                                   std::uint64_t{fat.firstdatasect},
                                   std::uint64_t{fat.firstclustsect},
                                   std::uint64_t{fat.clustcnt},
                                   std::uint64_t{fat.lastclust},
                                   std::uint64_t{fat.rootsect},
                                   std::uint64_t{fat.dentry_cnt_se},
                                   std::uint64_t{fat.dentry_cnt_cl},
                                   std::uint64_t{fat.ssize},
                                   std::uint64_t{fat.ssize_sh},
                                   std::uint64_t{fat.csize},
                                   std::uint64_t{fat.numfat},
                                   std::uint64_t{fat.sectperfat},
                                   std::uint64_t{fat.numroot},
                                   std::uint64_t{fat.mask},
                                   std::uint64_t{fat.mbr_virt_inum},
                                   std::uint64_t{fat.fat1_virt_inum},
                                   std::uint64_t{fat.fat2_virt_inum},
                                   static_cast<std::uint64_t>(fat.using_backup_boot_sector),
                                   std::uint64_t{fat.subtype},
                                   fat.EXFATFS_INFO.first_sector_of_alloc_bitmap,
                                   fat.EXFATFS_INFO.length_of_alloc_bitmap_in_bytes}) {
    all += fmt::format(" {}", each);
  }
  return all.append(fat.boot_sector_buffer, sizeof fat.boot_sector_buffer);
}

bool TskFileSystem::is_exfat() const { return fs_->ftype == TSK_FS_TYPE_EXFAT; }

bool TskFileSystem::find_places() {
  std::array<std::byte, kBootBytes> boot{};
  if (tsk_fs_read(fs_.get(), 0, reinterpret_cast<char*>(boot.data()), boot.size()) !=
      static_cast<ssize_t>(boot.size())) {
    return false;
  }
  const auto byte = [&](std::size_t at) { return std::to_integer<std::uint64_t>(boot[at]); };
  const auto half = [&](std::size_t at) {
    return std::uint64_t{load_le<std::uint16_t>(boot.data() + at)};
  };
  const auto word = [&](std::size_t at) {
    return std::uint64_t{load_le<std::uint32_t>(boot.data() + at)};
  };
  const std::uint64_t sector = fs_->block_size;
  if (is_exfat()) {
    if (byte(108) > 12 || byte(109) > 25 - byte(108)) return false;
    places_ = {.data = word(88) * sector, .cluster_bytes = sector << byte(109)};
    return sector == std::uint64_t{1} << byte(108);
  }
  const std::uint64_t table = half(22) != 0 ? half(22) : word(36);
  places_ = {.data = (half(14) + byte(16) * table) * sector, .cluster_bytes = byte(13) * sector};
  return sector == half(11) && places_.cluster_bytes != 0;
}

Result<void> TskFileSystem::forget() {
  if (kind_ == Kind::kNtfs) {
    forget_bitmap();
    return {};
  }
  if (kind_ == Kind::kFat) {
    forget_table();
    return {};
  }
  fs_.reset();
  fs_.reset(tsk_fs_open_img(image_.handle(), 0, type_of(kind_)));
  if (auto error = image_.take_error(); !error) return error;
  if (fs_ != nullptr) return {};
  return Error{ErrorCode::kCorrupt, "a file system is none any more, and nobody has written to it"};
}

std::string TskFileSystem::name() const {
  switch (kind_) {
    case Kind::kNtfs: return "NTFS";
    case Kind::kFat: return is_exfat() ? "exFAT" : "FAT";
    case Kind::kHfs: return "HFS+";
    case Kind::kUfs: return "UFS";
  }
  return {};
}

ObjectHistory::Stamp TskFileSystem::stamp() const {
  switch (kind_) {
    case Kind::kNtfs: return ObjectHistory::Stamp::kLast;
    case Kind::kFat: return ObjectHistory::Stamp::kNone;
    default: return ObjectHistory::Stamp::kFirst;
  }
}

ObjectNumber TskFileSystem::root() const { return fs_->root_inum; }

// ---- looking

Result<TskFileSystem::Look> TskFileSystem::look(ObjectNumber number) {
  auto look = tsk::look({.fs = fs_.get(),
                         .kind = kind_,
                         .size_bytes = image_.size_bytes(),
                         .data = places_.data,
                         .cluster_bytes = places_.cluster_bytes},
                        number);
  if (auto error = image_.take_error(); !error) return error.error();
  return look;
}

// ---- contents

Result<FileContents::Read> TskFileSystem::reader(ObjectNumber number) {
  const tsk::FilePtr file = tsk::open_file(fs_.get(), number);
  const bool there = tsk::is_there(file.get(), number, kind_);
  const TSK_FS_ATTR* const attribute = there ? tsk::contents_of(file.get(), kind_) : nullptr;
  if (auto error = image_.take_error(); !error) return error.error();
  if (attribute == nullptr) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("object {} is not in use", shown_number(number))};
  }
  return FileContents::Read([this, file, attribute, number](
                                std::uint64_t offset, std::span<std::byte> to) -> Result<void> {
    const bool done = tsk::read(*attribute, offset, to);
    if (auto error = image_.take_error(); !error) return error;
    if (done) return {};
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the contents of object {} are damaged at byte {}",
                             shown_number(number), offset)};
  });
}

Result<ObjectAttributes> TskFileSystem::attributes(ObjectNumber number) {
  ObjectAttributes all;
  const tsk::FilePtr file = tsk::open_file(fs_.get(), number);
  if (tsk::is_there(file.get(), number, kind_)) {
    tsk::for_each_stream(file.get(), kind_, [&](const TSK_FS_ATTR& each) {
      // As ntfs-3g gives them to programs.
      std::string name = "user." + std::string(tsk::name_of(each));
      std::vector<std::byte> value;
      const bool small = tsk::size_of(each) <= kAttributeBytesMax;
      if (small) value.resize(tsk::size_of(each));
      if (small && tsk::read(each, 0, value)) {
        all.all.push_back({std::move(name), std::move(value)});
      } else {
        all.skipped.push_back(std::move(name));
      }
    });
  }
  if (auto error = image_.take_error(); !error) return error.error();
  return all;
}

}  // namespace mariner::uvfs
