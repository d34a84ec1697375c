// Which object of a file system: an inode of ext2, ext3 or ext4, or what libtsk numbers objects by.
#pragma once

#include <cstdint>

namespace mariner::uvfs {

// 0: none. Of NTFS the whole file reference: the number of the record, and above it its sequence
// number, so that who gets a record after another is another object; without one (0) it is whoever
// has the record.
using ObjectNumber = std::uint64_t;

inline constexpr unsigned kSequenceShift = 48;
// As tools of the host say it: without the sequence number.
[[nodiscard]] constexpr ObjectNumber shown_number(ObjectNumber number) {
  return number & ((ObjectNumber{1} << kSequenceShift) - 1);
}

}  // namespace mariner::uvfs
