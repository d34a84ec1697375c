// A log and an index with what one volume has of them, on an executor that a test turns.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "logging/recovery.h"
#include "server/volume/local_history.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/index_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class LoggedRig {
 public:
  static constexpr VolumeId kVolume{7};

  // `based_everywhere`: what was never written is stored in the base.
  explicit LoggedRig(bool based_everywhere) : base(based_everywhere) { writer.add(log_disk); }

  static PayloadSlice blocks_of(char byte, std::uint64_t blocks) {
    Payload payload = Payload::allocate(blocks * kBlockBytes);
    std::memset(payload.data(), byte, payload.size());
    return {payload, 0, payload.size()};
  }
  // One character for each block; '?' for one that is not all of one.
  static std::string text_of(std::span<const std::byte> bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      const auto block = bytes.subspan(at, kBlockBytes);
      const bool same =
          std::all_of(block.begin(), block.end(), [&](std::byte b) { return b == block[0]; });
      const char c = static_cast<char>(block[0]);
      out += !same ? '?' : c == 0 ? '0' : c;
    }
    return out;
  }

  void write(std::uint64_t sequence, BlockRange extent, char byte,
             replication::WriteKind kind = replication::WriteKind::kData) {
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {Epoch{1}, SequenceNumber{sequence}, VersionTime{sequence}};
    message.write.kind = kind;
    message.write.extent = extent;
    const bool data = kind == replication::WriteKind::kData;
    if (kind != replication::WriteKind::kZero) {
      message.write.payload = blocks_of(byte, data ? extent.count.value : 1);
    }
    log.log(message, [](const Result<void>& r) { EXPECT_TRUE(r); });
    executor.run_ready();
  }
  void capture(BlockRange range, char byte, bool replaces = false) {
    log.log_before_image(range, blocks_of(byte, range.count.value), replaces,
                         [](const Result<void>& r) { EXPECT_TRUE(r); });
    executor.run_ready();
  }

  ManualExecutor executor;
  FaultyDisk disk{
      executor,
      {.size_bytes = logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin}}};
  logging::Superblock superblock =
      *logging::format_log(disk, logging::LogId{}, 0, logging::kTrackBytesMin, 1);
  logging::TrackList tracks{superblock};
  logging::LogDisk log_disk{{disk, superblock, tracks}, {}};
  logging::LogWriter writer{executor, 1, {}};
  logging::LogDisks disks{disk, superblock.batch_format()};
  logging::LogReader log_reader{disks};
  IndexRig index{executor};
  volume::BaseMap base;
  volume::VolumeLog log{kVolume, Epoch{1}, {writer, index.index(), base}};
  volume::LocalHistory history{{kVolume, index.index(), disks, log_reader, log, base}};
};

}  // namespace mariner::test
