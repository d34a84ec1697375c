// What became of third-party copies, by the list identifiers that their initiators gave them
// (SPC-4 5.17.4.2), and how it is told: the parameter data of the RECEIVE COPY commands.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "server/scsi/rod_token.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

struct CopyReport {
  // COPY OPERATION STATUS, SPC-4 table 249.
  enum class State : std::uint8_t {
    kDone = 0x01,
    kFailed = 0x02,
    kPartly = 0x03,  // without an error, but less than was asked for
    kInForeground = 0x11,
    kInBackground = 0x12,
    kTerminated = 0x60,
  };
  State state = State::kInForeground;
  std::uint8_t service_action = 0;  // of the command that began it
  std::uint16_t operations = 0;     // reads and writes that were done, modulo 65,536
  std::uint16_t segments_done = 0;  // of an EXTENDED COPY
  std::uint64_t transferred = 0;    // bytes
  std::uint32_t block_bytes = 0;    // in which they are told; 0: in bytes
  Response outcome;                 // status and sense data, once it has ended
  bool failure_told = false;        // its details are given once
  std::optional<RodTokenBytes> token;

  [[nodiscard]] bool under_way() const {
    return state == State::kInForeground || state == State::kInBackground;
  }
};

class CopyLedger {
 public:
  // Copies that have ended and are remembered: the oldest goes, of the initiator that has the most
  // or of all.
  static constexpr std::size_t kRememberedMax = 256;
  static constexpr std::size_t kRememberedOfOneMax = 64;

  // The report of a copy that begins, to be kept up to date by whoever carries it out. Null when
  // one of this initiator with this identifier is under way.
  std::shared_ptr<CopyReport> begin(const NexusId& from, std::uint32_t id, CopyReport report);
  // Null when none is known.
  [[nodiscard]] std::shared_ptr<CopyReport> find(const NexusId& from, std::uint32_t id) const;
  // What has ended is forgotten: one copy, or all.
  void forget(const NexusId& from, std::uint32_t id);
  void forget_all();

 private:
  struct Entry {
    NexusId from;
    std::uint32_t id = 0;
    std::shared_ptr<CopyReport> report;
  };
  void make_room(const NexusId& from);

  std::deque<Entry> entries_;
};

// RECEIVE COPY FAILURE DETAILS(LID1), of SPC-4, of a copy that ended so.
[[nodiscard]] std::vector<std::uint8_t> copy_failure(const Response& outcome);
// RECEIVE COPY STATUS(LID4) and, with what follows it there, RECEIVE ROD TOKEN INFORMATION (SPC-4
// 6.24 and 6.26, SBC-4 5.25).
[[nodiscard]] std::vector<std::uint8_t> copy_status_lid4(const CopyReport& report);
[[nodiscard]] std::vector<std::uint8_t> rod_token_information(const CopyReport& report);

}  // namespace mariner::scsi
