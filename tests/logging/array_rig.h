// A log on several faulty disks, for tests of what only an array does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "logging/log_array.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging::test {

// Members are public: a test turns and breaks each part.
class ArrayRig {
 public:
  // The disks that rotate: sectors of 512 bytes, tracks of 256 KiB.
  static constexpr std::uint64_t kRotatingTrackBytes = 256u << 10;
  static constexpr std::chrono::nanoseconds kRotation = std::chrono::milliseconds(8);

  struct Options {
    std::uint64_t seed = 1;
    std::size_t disks = 2;
    std::uint64_t tracks = 6;  // of each
    std::chrono::nanoseconds delay_max{0};
    bool rotating = false;
    LogWriter::Options writer{};
  };

  ArrayRig() : ArrayRig(Options{}) {}
  explicit ArrayRig(const Options& options);
  ~ArrayRig();

  // Recovers the disks and begins an array at the tails found; `visited` and `recovered` tell what
  // was there. False, with a test failure, when recovery fails.
  bool open(unsigned threads = 0);
  // Waits until nothing is left to do, and ends the array.
  void close();
  // The power goes for all disks at once, and the array ends; then it is back.
  void crash();

  // Appends record_of() with payload_of(sequence). The outcome shows in `outcomes` when it is
  // known.
  void append(const Record& record, Urgency urgency = Urgency::kOrdinary);
  // The same, and turns until nothing more happens without the clock.
  void append_now(const Record& record, Urgency urgency = Urgency::kOrdinary);

  // Whether the record's whole payload can be read back and is payload_of(sequence).
  [[nodiscard]] bool readable(const Record& record, const LogLocation& location);
  // The sequence numbers of what the next start finds, each verified; before them, what is damaged.
  std::string reopened(unsigned threads = 0);

  [[nodiscard]] LogWriter& writer() { return array->writer(); }
  [[nodiscard]] LogArray::Member& member(std::uint8_t number) { return *array->find(number); }
  // "1:ok@0 2:io": each outcome in the order in which it was told, and the disk.
  [[nodiscard]] std::string outcomes_text() const;
  // "1:hanging 1:good": what was reported of disks.
  [[nodiscard]] std::string reports_text() const;

  struct Outcome {
    Record record;
    Result<LogLocation> result;
  };

  const Options options;
  ManualExecutor executor;
  std::vector<std::unique_ptr<FaultyDisk>> disks;
  std::vector<Superblock> superblocks;
  std::unique_ptr<LogArray> array;
  Recovered recovered;
  std::vector<Visited> visited;
  std::vector<Outcome> outcomes;
  std::vector<LogWriter::DiskReport> reports;

 private:
  bool powerless_ = false;  // nobody is left to be told
};

// The outcome of remove(): empty while there is none.
class Removal {
 public:
  Removal(ArrayRig& rig, std::uint8_t disk) {
    rig.writer().remove(disk, [this](Result<void> result) {
      text_ = result ? "ok" : std::string(error_code_name(result.error().code));
    });
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace mariner::logging::test
