// What a logical unit has done since it was made, reset, or told to forget it: the counters that
// LOG SENSE tells. Owner's thread only: plain numbers, two looks at the clock for each command.
#pragma once

#include <chrono>
#include <cstdint>

#include "proto/error.h"
#include "server/scsi/self_test.h"

namespace mariner::scsi {

// What a command does to the medium, as far as it is counted.
enum class Traffic : std::uint8_t {
  kNone,    // the rest
  kRead,    // bytes to the initiator
  kWrite,   // bytes from the initiator, and UNMAP
  kVerify,  // bytes that are looked at
};

class Statistics {
 public:
  // Bytes that went through, and failures of the medium (SPC-4 7.3.14, 7.3.22, 7.3.23).
  struct Medium {
    std::uint64_t bytes = 0;
    std::uint64_t uncorrected_errors = 0;
    friend bool operator==(const Medium&, const Medium&) = default;
  };
  // SPC-4 7.3.6.2, of the commands that it counts.
  struct Commands {
    std::uint64_t count = 0;
    std::uint64_t blocks = 0;
    std::chrono::nanoseconds time{0};
    friend bool operator==(const Commands&, const Commands&) = default;
  };
  // A command that waits for the layer. One that is default-constructed is not counted.
  struct Work {
    bool begun = false;
    bool counted = false;  // among the commands of SPC-4 table 375
    Traffic traffic = Traffic::kNone;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::chrono::nanoseconds at{0};
  };

  // Without a clock no times are known.
  explicit Statistics(MonotonicClock clock);

  // Fills in when it began. Each begin() is followed by one end().
  [[nodiscard]] Work begin(Work work);
  // Bytes of one that failed are not counted.
  void end(const Work& work, bool succeeded);
  void failed(Traffic traffic, const Error& error);

  [[nodiscard]] const Medium& reads() const { return reads_; }
  [[nodiscard]] const Medium& writes() const { return writes_; }
  [[nodiscard]] const Medium& verifications() const { return verifications_; }
  // Failures that the medium is not to blame for.
  [[nodiscard]] std::uint64_t other_errors() const { return other_errors_; }
  [[nodiscard]] bool knows_times() const { return clock_ != nullptr; }
  [[nodiscard]] const Commands& read_commands() const { return read_commands_; }
  [[nodiscard]] const Commands& write_commands() const { return write_commands_; }
  // While no command waited for the layer, now included.
  [[nodiscard]] std::chrono::nanoseconds idle_time() const;

  void reset_reads() { reads_ = {}; }
  void reset_writes() { writes_ = {}; }
  void reset_verifications() { verifications_ = {}; }
  void reset_other_errors() { other_errors_ = 0; }
  void reset_commands();
  void reset();

 private:
  [[nodiscard]] std::chrono::nanoseconds now() const;
  [[nodiscard]] Medium* medium(Traffic traffic);

  const MonotonicClock clock_;
  Medium reads_;
  Medium writes_;
  Medium verifications_;
  std::uint64_t other_errors_ = 0;
  Commands read_commands_;
  Commands write_commands_;
  std::uint64_t under_way_ = 0;
  std::chrono::nanoseconds idle_since_;
  std::chrono::nanoseconds idle_time_{0};
};

}  // namespace mariner::scsi
