// The hammer's memory of what it asked for and what was acknowledged, one file for each round.
//
// A line is an event:
//   round <number> <base id>
//   I <id> <kind> <first cell> <cells> <ns>     issued: written to the file before the command is
//   sent A <id> <ns>                                 acknowledged with GOOD F <id> <ns> <status>
//   ended otherwise: what became of it is not known
// The folder of a campaign holds round-NNNNNN.journal files and `resolutions`, to which `verify`
// adds, after a crash, what became of each write that was not acknowledged:
//   R <id> present|absent|same                  same: its contents were there already
// Times are nanoseconds of CLOCK_REALTIME, the clock that the daemon stamps versions with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "proto/error.h"

namespace mariner::hammer {

// The unit of the model: a cell of 512 bytes of the volume.
inline constexpr std::uint32_t kCellBytes = 512;
inline constexpr std::uint32_t kCellsPerBlock = 8;

enum class Kind : char {
  kWrite = 'w',   // WRITE(16)
  kUnmap = 'u',   // UNMAP: reads as zeros
  kZeroes = 'z',  // WRITE SAME(16) of zeros
  kSame = 's',    // WRITE SAME(16) of a pattern
};

enum class Outcome : std::uint8_t { kAcknowledged, kPresent, kAbsent, kSame, kUnknown };

struct Write {
  std::uint64_t id = 0;
  Kind kind = Kind::kWrite;
  std::uint64_t first_cell = 0;
  std::uint32_t cells = 0;
  std::uint64_t issued_ns = 0;
  std::uint64_t acknowledged_ns = 0;  // 0: never
  Outcome outcome = Outcome::kUnknown;

  [[nodiscard]] std::uint64_t end_cell() const { return first_cell + cells; }
  [[nodiscard]] std::uint64_t first_block() const { return first_cell / kCellsPerBlock; }
  [[nodiscard]] std::uint64_t end_block() const {
    return (end_cell() + kCellsPerBlock - 1) / kCellsPerBlock;
  }
  // Whether it is part of the volume's contents. kSame is not: nothing differs.
  [[nodiscard]] bool in_effect() const {
    return outcome == Outcome::kAcknowledged || outcome == Outcome::kPresent;
  }
};

// Appends a round's events. An event is with the operating system when the call returns.
class JournalWriter {
 public:
  // Creates the next round's file in `folder`. Its ids start behind every id of earlier rounds.
  static Result<JournalWriter> create(const std::filesystem::path& folder);
  JournalWriter(JournalWriter&& other) noexcept;
  JournalWriter& operator=(JournalWriter&&) = delete;
  ~JournalWriter();

  [[nodiscard]] std::uint64_t next_id() { return ++last_id_; }
  void issued(const Write& write);
  void acknowledged(std::uint64_t id, std::uint64_t ns);
  void failed(std::uint64_t id, std::uint64_t ns, int status);
  // Hands the events so far to the operating system.
  Result<void> flush();

 private:
  JournalWriter(int fd, std::uint64_t last_id) : fd_(fd), last_id_(last_id) {}
  int fd_;
  std::uint64_t last_id_;
  std::string pending_;
};

// Every write of all rounds, in the order of issue, with its outcome. Two of them that overlap
// were never outstanding at once, so this order is the volume's for each cell.
Result<std::vector<Write>> load_campaign(const std::filesystem::path& folder);

// Records what became of writes whose outcome was unknown.
Result<void> record_resolutions(const std::filesystem::path& folder,
                                const std::unordered_map<std::uint64_t, Outcome>& outcomes);

// CLOCK_REALTIME.
std::uint64_t now_ns();

}  // namespace mariner::hammer
