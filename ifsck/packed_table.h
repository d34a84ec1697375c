// A table of blocks as it stands in a file (FORMAT.md): only those pieces of it are unpacked that
// somebody looks at, so that what a look takes does not grow with the table.
//
// One thread. What it says never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ifsck/ext_layout.h"

namespace mariner::ifsck {

class PackedTable {
 public:
  struct Entry {
    FsBlock first;
    std::uint32_t second;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };

  // `entries` ascending, each block once.
  [[nodiscard]] static std::vector<std::byte> pack(std::span<const Entry> entries);
  // None: it has not the shape of one. What pieces have is taken as it is: entries that are not
  // ascending are as the one before. Who reads a file has looked at its checksum.
  // The bytes are there as long as `owner` is, and are not copied.
  [[nodiscard]] static std::optional<PackedTable> parse(std::span<const std::byte> bytes,
                                                        std::shared_ptr<const void> owner);
  [[nodiscard]] static std::optional<PackedTable> parse(std::vector<std::byte> bytes);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::uint32_t* find(FsBlock block);
  [[nodiscard]] std::span<const Entry> within(FsBlock first, FsBlock end);
  [[nodiscard]] std::span<const Entry> all();

 private:
  static constexpr std::size_t kPieceEntries = 64;

  PackedTable() = default;
  // The first entry of a piece.
  [[nodiscard]] Entry head_of(std::size_t piece) const;
  // Of the pieces from `first` to before `end`.
  std::span<const Entry> unpack(std::size_t first, std::size_t end);
  void unpack(std::size_t index);
  // The last piece that begins at `block` or before it; 0 if there is none.
  [[nodiscard]] std::size_t piece_of(FsBlock block) const;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  std::vector<std::size_t> offsets_;  // in these, of what stands behind each head; and the end
  std::vector<bool> unpacked_;        // by piece
  std::size_t size_ = 0;
  mutable std::size_t looked_at_ = 0;  // the piece: the next look is often at the same one
  std::unique_ptr<Entry[]> entries_;   // of pieces that are unpacked
};

}  // namespace mariner::ifsck
