// The blocks of a journal's log, one by one: descriptors, revocations and commits, and their
// checksums.
//
// Pure: bytes in. A block that is given is as large as those of the file system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "ifsck/ext_layout.h"
#include "ifsck/journal_superblock.h"

namespace mariner::ifsck {

// What a block of the log begins with. (Blocks of data begin with anything else.)
struct JournalHead {
  static constexpr std::size_t kBytes = 12;
  static constexpr std::uint32_t kMagic = 0xc03b3998;
  enum class Kind : std::uint32_t {
    kDescriptor = 1,
    kCommit = 2,
    kSuperblockV1 = 3,
    kSuperblockV2 = 4,
    kRevoke = 5,
  };

  std::uint32_t magic = 0;
  Kind kind{};
  std::uint32_t sequence = 0;  // of its transaction

  [[nodiscard]] static JournalHead of(std::span<const std::byte> bytes);
  [[nodiscard]] bool is_one() const { return magic == kMagic; }
};

// One entry of a descriptor: where a block of data belongs, that follows in the log.
struct JournalTag {
  FsBlock block = 0;
  std::uint32_t checksum = 0;  // of the data: 16 bits of it, or 32
  bool escaped = false;        // the data begin with the magic number, and zeros stand for it

  friend bool operator==(const JournalTag&, const JournalTag&) = default;
};

// Calls `visit` for each, in the order of the blocks of data.
void for_each_tag(const JournalSuperblock& super, std::span<const std::byte> descriptor,
                  const std::function<void(const JournalTag&)>& visit);

// Calls `visit` for each block that a block of revocations names. False, and none was visited: it
// says that there are more than it has room for.
[[nodiscard]] bool for_each_revoked(const JournalSuperblock& super,
                                    std::span<const std::byte> block,
                                    const std::function<void(FsBlock)>& visit);

struct JournalCommit {
  std::uint8_t checksum_kind = 0;
  std::uint8_t checksum_bytes = 0;
  std::uint32_t checksum = 0;
  std::uint64_t time_s = 0;  // since the Unix epoch

  [[nodiscard]] static JournalCommit of(std::span<const std::byte> block);
};

// True where there are no such checksums, too.
[[nodiscard]] bool tail_is_right(const JournalSuperblock& super, std::span<const std::byte> block);
[[nodiscard]] bool commit_is_right(const JournalSuperblock& super,
                                   std::span<const std::byte> block);
[[nodiscard]] bool data_is_right(const JournalSuperblock& super, std::uint32_t sequence,
                                 std::uint32_t checksum, std::span<const std::byte> data);

// The checksum of kCompatChecksum: CRC-32, the highest bit first, from ~0 on, of a transaction's
// descriptors and data in the order of the log.
[[nodiscard]] std::uint32_t crc32_be(std::uint32_t crc, std::span<const std::byte> bytes);
// A commit that has none is right as well.
[[nodiscard]] bool transaction_is_right(const JournalCommit& commit, std::uint32_t crc);

}  // namespace mariner::ifsck
