// What the tests of the log share: payloads that can be recognised, records, and a log on a faulty
// disk with its writer and reader.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logging/log_reader.h"
#include "logging/log_writer.h"
#include "logging/recovery.h"
#include "proto/payload.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::logging::test {

using mariner::test::FaultyDisk;
using mariner::test::ManualExecutor;

inline constexpr std::uint64_t kTrackBytes = kTrackBytesMin;
inline constexpr std::uint32_t kTrackBlocks = kTrackBytes / kBlockBytes;

// A log identity whose bytes are `first`, `first` + 1, ...
LogId log_id(std::uint8_t first = 0x10);

// Blocks whose every word depends on `seed` and its position.
Payload payload_of(std::uint64_t seed, std::uint32_t blocks);
PayloadSlice whole(Payload payload);
inline Result<LogLocation> location_of(const Result<LoggedAt>& at) {
  return at ? Result<LogLocation>(at->location) : Result<LogLocation>(at.error());
}

// A write of `blocks` blocks at LBN 100 x `sequence`; of `type` kZero one without payload.
Record record_of(std::uint32_t volume, std::uint64_t sequence, std::uint32_t blocks = 1,
                 RecordType type = RecordType::kWrite);

// Whether it is the record that was appended: all but what the writer fills in.
bool is_same(Record found, const Record& appended);
// For messages.
std::string name_of(const Record& record);

// Its bytes in hexadecimal, 16 a line, in groups of four: what golden tests compare.
std::string hex(std::span<const std::byte> bytes);

// The whole area of a batch of `records`, all of them without payload or with payload_of(sequence);
// offsets are filled in.
Payload area_of(BatchHeader header, std::vector<Record> records, const LogId& log);

struct Visited {
  Record record;
  LogLocation location;
};

// A formatted log on a faulty disk. Members are public: a test turns and breaks each part.
class LogRig {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t tracks = 6;
    std::chrono::nanoseconds delay_max{0};
    LogWriter::Options writer{};
  };

  LogRig() : LogRig(Options{}) {}
  explicit LogRig(const Options& options);
  ~LogRig();

  // Recovers and begins a writer and a reader at the tail found; `visited` and `recovered` tell
  // what was there. False, with a test failure, when recovery fails.
  bool open(unsigned threads = 0);
  // Drains and ends them.
  void close();

  // Appends record_of() with payload_of(sequence). The outcome shows in `outcomes` when it is
  // known.
  void append(const Record& record, LogWriter::Urgency urgency = LogWriter::Urgency::kOrdinary);
  // The same and waits for it.
  Result<LogLocation> append_now(const Record& record,
                                 LogWriter::Urgency urgency = LogWriter::Urgency::kOrdinary);
  // Appends records of `blocks` blocks of volume 1, one batch each, from `sequence` on.
  std::vector<LogLocation> append_batches(std::uint64_t sequence, std::size_t count,
                                          std::uint32_t blocks = 1);

  // Reads the record's whole payload back; kCorrupt also when its bytes are not
  // payload_of(sequence).
  Result<void> verify(const Record& record, const LogLocation& location);

  struct Outcome {
    Record record;
    Result<LogLocation> result;
  };

  const Options options;
  ManualExecutor executor;
  FaultyDisk disk;
  Disk* through = nullptr;  // to the disk, for what is written from the next open() on
  Superblock superblock;
  LogDisks disks;
  Recovered recovered;
  std::vector<Visited> visited;
  std::optional<TrackList> tracks;
  std::unique_ptr<LogDisk> log_disk;
  std::unique_ptr<LogWriter> writer;
  std::unique_ptr<LogReader> reader;
  std::vector<Outcome> outcomes;
};

// "track 0: 3..5" for each damaged range.
std::string damage_text(const Recovered& recovered);
// "7 8 9": the sequence numbers.
std::string sequences_text(const std::vector<Visited>& visited);

}  // namespace mariner::logging::test
