// What a table of partitions says, MBR or GPT, before anybody has asked whether it makes sense.
//
// The tables are parsed here and not by The Sleuth Kit: its volume systems (4.11) do not verify the
// CRCs of a GPT, so that a damaged table hides a good backup, do not tell the types of its
// partitions, follow extended partitions by recursion, and give up all of a table for one entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mariner::uvfs {

struct TablePartition {
  std::uint32_t number = 0;  // as Linux numbers them
  std::string type;          // "83 Linux", or a GUID that nobody knows
  std::string label;         // UTF-8
  std::uint64_t first = 0;   // sectors: whatever the table says
  std::uint64_t sectors = 0;
};

struct PartitionTable {
  static constexpr std::size_t kPartitionsMax = 256;  // Linux has no more

  std::uint32_t sector_bytes = 0;
  bool from_backup = false;
  std::vector<TablePartition> partitions;
  std::vector<std::string> notes;  // what is wrong with it
};

}  // namespace mariner::uvfs
