// EXTENDED COPY (LID1) and RECEIVE COPY RESULTS on the wire (SPC-4 6.4, 6.18 to 6.22), block device
// to block device.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/sense.h"

namespace mariner::scsi {

inline constexpr std::size_t kCopyTargetsMax = 16;
inline constexpr std::size_t kCopySegmentsMax = 64;
inline constexpr std::uint32_t kCopySegmentBytesMax = 0xFFFF * 4096u;
// Descriptor type codes: an identification descriptor, and block device to block device.
inline constexpr std::uint8_t kCopyTargetCode = 0xE4;
inline constexpr std::uint8_t kCopySegmentCode = 0x02;
inline constexpr std::uint32_t kCopyListBytesMax = kCopyTargetsMax * 32 + kCopySegmentsMax * 28;

// A copy target by a designator of its device identification page (an identification descriptor).
struct CopyTarget {
  std::uint8_t type = 0;  // of the designator: 3 is NAA
  std::vector<std::uint8_t> designator;
  std::uint32_t block_bytes = 0;  // 0: not said
  bool null = false;              // NUL: there is nobody
};

struct CopySegment {
  std::uint16_t source = 0;  // of the targets
  std::uint16_t destination = 0;
  bool destination_counts = false;  // DC: `blocks` are the destination's
  std::uint16_t blocks = 0;
  std::uint64_t source_lba = 0;
  std::uint64_t destination_lba = 0;
};

struct CopyList {
  std::uint8_t id = 0;
  bool keeps_status = true;  // for RECEIVE COPY RESULTS
  std::vector<CopyTarget> targets;
  std::vector<CopySegment> segments;
};

// The parameter list of an EXTENDED COPY that is not empty.
[[nodiscard]] std::variant<Sense, CopyList> parse_copy_list(std::span<const std::byte> list);

// COPY ABORTED with this code.
[[nodiscard]] Sense copy_aborted(AdditionalSense code);

// What became of a copy. SPC-4 6.18.
struct CopyStatus {
  enum class State : std::uint8_t { kUnderWay = 0, kDone = 1, kFailed = 2 };
  State state = State::kUnderWay;
  std::uint16_t segments_done = 0;
  std::uint64_t bytes = 0;
};
[[nodiscard]] std::vector<std::uint8_t> copy_status(const CopyStatus& status);
// What is supported: operating parameters (SPC-4 6.20).
[[nodiscard]] std::vector<std::uint8_t> copy_operating_parameters();

}  // namespace mariner::scsi
