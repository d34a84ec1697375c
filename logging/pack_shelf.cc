#include "logging/pack_shelf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "proto/payload.h"

namespace mariner::logging {
namespace {

// The bytes of a pack, from its extents.
class ExtentBytes final : public PackBytes {
 public:
  ExtentBytes(std::shared_ptr<Disk> disk, std::uint64_t slots_at, std::uint64_t slot_bytes,
              std::vector<PackExtent> extents, PackShelf::Reads reads)
      : disk_(std::move(disk)),
        slots_at_(slots_at),
        slot_bytes_(slot_bytes),
        extents_(std::move(extents)),
        reads_(reads) {}

  Result<void> read(std::uint64_t at, std::span<std::byte> to) override {
    for (const PackExtent& extent : extents_) {
      if (to.empty()) return {};
      if (at >= extent.bytes) {
        at -= extent.bytes;
        continue;
      }
      const std::size_t length = std::min<std::uint64_t>(to.size(), extent.bytes - at);
      const std::uint64_t offset =
          slots_at_ + std::uint64_t{extent.slot} * slot_bytes_ + extent.at + at;
      const std::uint64_t end = offset - at + extent.bytes;
      if (Result<void> r = read_disk(offset, to.first(length), end); !r) return r;
      to = to.subspan(length);
      at = 0;
    }
    if (!to.empty()) return Error{ErrorCode::kCorrupt, "a pack is shorter than its table says"};
    return {};
  }

 private:
  // Some of the disk, whole blocks.
  struct Piece {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Payload bytes;
    [[nodiscard]] bool has(std::uint64_t offset, std::size_t length) const {
      return offset >= begin && offset + length <= end;
    }
  };
  static constexpr std::uint64_t kPieceBytes = 512u << 10;

  // The disk reads whole blocks only, into memory that is aligned. `extent_end`: where the pack's
  // bytes end that stand there.
  Result<void> read_disk(std::uint64_t offset, std::span<std::byte> to, std::uint64_t extent_end) {
    const auto copy = [&](const Piece& from) {
      std::memcpy(to.data(), from.bytes.data() + (offset - from.begin), to.size());
    };
    for (const Piece& each : pieces_) {
      if (!each.has(offset, to.size())) continue;
      copy(each);
      return {};
    }
    const auto in_blocks = [](std::uint64_t end) {
      return (end + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    };
    Piece piece{offset / kBlockBytes * kBlockBytes, in_blocks(offset + to.size()), {}};
    if (reads_ == PackShelf::Reads::kInOrder) {
      piece.end = std::max(piece.end, std::min(piece.begin + kPieceBytes, in_blocks(extent_end)));
    }
    piece.bytes = Payload::allocate(piece.end - piece.begin);
    if (Result<void> r = disk_->read(piece.begin, piece.bytes.bytes()); !r) return r;
    copy(piece);
    if (reads_ == PackShelf::Reads::kInOrder) {
      std::swap(pieces_[0], pieces_[1]);
      pieces_[0] = std::move(piece);
    }
    return {};
  }

  const std::shared_ptr<Disk> disk_;
  const std::uint64_t slots_at_;
  const std::uint64_t slot_bytes_;
  const std::vector<PackExtent> extents_;
  const PackShelf::Reads reads_;
  // In order: the last ones. Header areas stand between the payloads that they are of: two places
  // at a time.
  std::array<Piece, 2> pieces_;
};

}  // namespace

class PackShelf::Opened {
 public:
  Opened(std::uint64_t pack_id, std::unique_ptr<ExtentBytes> bytes,
         std::shared_ptr<const PackTable> table, RegionCache& regions)
      : bytes_(std::move(bytes)), reader_(pack_id, std::move(table), *bytes_, regions) {}

  [[nodiscard]] const PackReader& reader() const { return reader_; }

 private:
  const std::unique_ptr<ExtentBytes> bytes_;
  const PackReader reader_;
};

std::shared_ptr<const PackShelf::Opened> PackShelf::find(std::uint64_t pack_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = by_id_.find(pack_id);
  if (found == by_id_.end()) return nullptr;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->opened;
}

std::optional<Error> PackShelf::known_damage(std::uint64_t pack_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = damaged_.find(pack_id);
  return found == damaged_.end() ? std::nullopt : std::optional(found->second);
}

Error PackShelf::damaged(std::uint64_t pack_id, const Error& error) {
  Error told{error.code, "pack " + std::to_string(pack_id) + ": " + error.message};
  const std::scoped_lock lock(mutex_);
  if (told.code == ErrorCode::kCorrupt) damaged_.emplace(pack_id, told);
  return told;
}

Result<std::shared_ptr<const PackReader>> PackShelf::open(const PackPlace& pack) {
  const auto as_reader = [](const std::shared_ptr<const Opened>& opened) {
    return std::shared_ptr<const PackReader>(opened, &opened->reader());
  };
  if (const auto opened = find(pack.id)) return as_reader(opened);
  if (auto damage = known_damage(pack.id)) return *std::move(damage);
  auto bytes = std::make_unique<ExtentBytes>(disk_, slots_at_, slot_bytes_, pack.extents, reads_);
  std::vector<std::byte> stored(pack.table_bytes);
  if (Result<void> r = bytes->read(pack.table_at, stored); !r) return r.error();
  Result<PackTable> table = PackTable::from_bytes(stored);
  if (!table) return damaged(pack.id, table.error());
  if (table->tracks().size() != pack.tracks.size() || table->pack_bytes() > pack.table_at) {
    return damaged(pack.id, {ErrorCode::kCorrupt, "its table is that of another pack"});
  }
  const std::size_t memory = table->memory_bytes();
  auto opened = std::make_shared<const Opened>(
      pack.id, std::move(bytes), std::make_shared<const PackTable>(*std::move(table)), regions_);
  const std::scoped_lock lock(mutex_);
  if (const auto found = by_id_.find(pack.id); found != by_id_.end()) {
    return as_reader(found->second->opened);  // another thread was faster
  }
  recent_.push_front({pack.id, memory, opened});
  by_id_[pack.id] = recent_.begin();
  kept_bytes_ += memory;
  while (kept_bytes_ > kTableBytesMax && recent_.size() > 1) {
    kept_bytes_ -= recent_.back().bytes;
    by_id_.erase(recent_.back().pack_id);
    recent_.pop_back();
  }
  return as_reader(opened);
}

void PackShelf::forget(std::uint64_t pack_id) {
  regions_.forget(pack_id);
  const std::scoped_lock lock(mutex_);
  damaged_.erase(pack_id);
  const auto found = by_id_.find(pack_id);
  if (found == by_id_.end()) return;
  kept_bytes_ -= found->second->bytes;
  recent_.erase(found->second);
  by_id_.erase(found);
}

}  // namespace mariner::logging
