// What is on its way to a log disk: records that were appended, and the batch that carries them.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "logging/batch.h"
#include "logging/disk.h"
#include "logging/geometry.h"
#include "logging/log_location.h"
#include "proto/payload.h"
#include "proto/unique_function.h"

namespace mariner::logging {

enum class Urgency {
  kOrdinary,
  // May use the log's reserve but for its last track: what is taken out of an image's way.
  kBeforeImage,
  // May use all of it: what tracks are given back with (rebases, what is logged again), voids,
  // rollbacks, withdrawals.
  kEssential,
};

// Where a record stands: on the disk, and in the order of the whole log.
struct LoggedAt {
  LogLocation location;
  std::uint64_t ordinal = 0;
};

struct PendingRecord {
  using Appended = UniqueFunction<void(Result<LoggedAt>)>;

  Record record;  // its ordinal is 0 until it has been given to a disk for the first time
  PayloadSlice payload;
  std::vector<std::uint32_t> block_crcs;  // of the payload
  Urgency urgency = Urgency::kOrdinary;
  Appended done;
  LogLocation location;
  std::chrono::nanoseconds arrived{0};
  bool dispatched = false;  // a disk was told to write it: it may stand there, whatever was said
  std::uint64_t sets_aside = 0;  // bytes of the log: LogWriter::append()

  // What it takes of a batch, its share of the header area included.
  [[nodiscard]] std::uint32_t batch_bytes() const {
    return record.packed_bytes() + record.payload_blocks * kBlockBytes;
  }
};

struct LogBatch {
  std::vector<PendingRecord> records;
  BatchHeader header;
  SectorRange sectors;         // where it goes, without a track header
  std::uint64_t first_sector;  // where its write begins: with the track's header, if it has one
  // What is written, in order. Headers and small payloads lie together in `gathered`, so that the
  // device sees few segments; large payloads stay where they are.
  std::vector<ConstBytes> parts;
  Payload gathered;
  std::chrono::nanoseconds dispatched{0};
  // Took too long and goes elsewhere: what becomes of this write concerns its disk alone.
  bool abandoned = false;
};

}  // namespace mariner::logging
