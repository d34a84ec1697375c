// The names in a directory of FAT12, FAT16, FAT32 or exFAT, entry by entry, as drivers read them.
//
// (libtsk takes what was deleted for names, too, walks the whole tree to know what ".." is, and
// cuts names of exFAT that are not ASCII.) Pure: bytes in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mariner::uvfs {

inline constexpr std::size_t kFatEntryBytes = 32;

struct FatName {
  std::string name;
  std::uint64_t entry = 0;  // the number that was given with the one that says what it is
  bool directory = false;
  friend bool operator==(const FatName&, const FatName&) = default;
};

// Names that follow each other; not "." and "..", nor the volume's.
class FatNames {
 public:
  explicit FatNames(bool exfat) : exfat_(exfat) {}

  // The next entry. False: it was behind the last one.
  bool add(std::span<const std::byte> entry, std::uint64_t number);
  [[nodiscard]] std::vector<FatName> take() { return std::move(names_); }

 private:
  // Of FAT: a long name stands before the entry, in pieces, last piece first.
  struct LongName {
    std::array<std::byte, 2 * 13 * 20> units{};
    unsigned pieces = 0;
    unsigned next = 0;  // the piece that is still to come; 0: none
    std::uint8_t checksum = 0;
  };
  void add_fat(std::span<const std::byte> entry, std::uint64_t number);
  void add_piece(std::span<const std::byte> entry);
  [[nodiscard]] std::string long_name(std::span<const std::byte> entry) const;
  // Of exFAT: a set of entries, with a checksum.
  void add_exfat(std::span<const std::byte> entry, std::uint64_t number);
  void finish_set();

  const bool exfat_;
  std::vector<FatName> names_;
  LongName long_name_;
  std::vector<std::byte> set_;
  std::uint64_t set_number_ = 0;
};

}  // namespace mariner::uvfs
