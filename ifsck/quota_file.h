// A file of quotas (format vfsv1): how much each user, group or project has in use, and may have.
//
// Blocks of 1 KiB: a head, a tree of four levels by the bytes of the number, and blocks of entries.
// Pure: bytes in, bytes out. All numbers are little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace mariner::ifsck {

struct QuotaFile {
  enum class Of : std::uint8_t { kUser, kGroup, kProject };
  struct Use {
    std::uint64_t inodes = 0;
    std::uint64_t bytes = 0;
    friend bool operator==(const Use&, const Use&) = default;
  };
  struct Entry {
    Use use;
    std::uint64_t inodes_hard = 0;
    std::uint64_t inodes_soft = 0;
    std::uint64_t blocks_hard = 0;
    std::uint64_t blocks_soft = 0;
    std::uint64_t blocks_until = 0;  // times of grace
    std::uint64_t inodes_until = 0;
    [[nodiscard]] bool has_limits() const {
      return (inodes_hard | inodes_soft | blocks_hard | blocks_soft) != 0;
    }
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  std::uint32_t blocks_grace_s = 604'800;
  std::uint32_t inodes_grace_s = 604'800;
  std::uint32_t flags = 0;
  std::map<std::uint32_t, Entry> entries;  // by number
  bool good = true;                        // as read: nothing of the file was wrong

  // Whatever the bytes are: what can be read of them.
  [[nodiscard]] static QuotaFile read(Of of, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> write(Of of) const;

  // Whether it says so; who is not in `use` has nothing.
  [[nodiscard]] bool fits(const std::map<std::uint32_t, Use>& use) const;
  // It says so from now on. Who has neither use nor limits is not in it any more.
  void set(const std::map<std::uint32_t, Use>& use);
};

}  // namespace mariner::ifsck
