// The commands with which a host looks after a unit: logs, diagnostics and the echo buffer, decoded
// (SPC-4 6.7, 6.8, 6.18, 6.22, 6.42, 6.49).
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "server/scsi/opcodes.h"
#include "server/scsi/self_test.h"
#include "server/scsi/sense.h"

namespace mariner::scsi {

struct LogSense {
  enum class Control : std::uint8_t {
    kThresholds = 0,
    kCumulative = 1,
    kDefaultThresholds = 2,
    kDefaultCumulative = 3,
  };
  Control control = Control::kCumulative;
  std::uint8_t page = 0;
  std::uint8_t subpage = 0;
  std::uint16_t parameter_pointer = 0;  // the first parameter that is wanted
  std::uint32_t allocation_bytes = 0;
};

// Without a parameter list: counters can be set to their defaults, not to other values.
struct LogSelect {
  bool reset = false;  // PCR: all parameters return to their defaults
  LogSense::Control control = LogSense::Control::kCumulative;
  std::uint8_t page = 0;
  std::uint8_t subpage = 0;
};

struct SendDiagnostic {
  std::optional<SelfTest::Kind> test;  // to be begun
  bool abort = false;                  // of the test in the background
  std::uint32_t parameter_bytes = 0;   // of a diagnostic page, without a test
};

// Page 00h, the only one.
struct ReceiveDiagnostic {
  std::uint32_t allocation_bytes = 0;
};

// Of one initiator's echo buffer; what it wrote there stays until it writes again.
inline constexpr std::uint32_t kEchoBytesMax = 4096;

// There is no data buffer, and no descriptor of one: a capacity of 0 is what some tools divide by.
struct ReadBuffer {
  enum class Mode : std::uint8_t { kEcho = 0x0A, kEchoDescriptor = 0x0B };
  Mode mode = Mode::kEcho;
  std::uint32_t allocation_bytes = 0;
};
struct WriteBuffer {
  std::uint32_t parameter_bytes = 0;  // at most kEchoBytesMax
};

using Maintenance = std::variant<Sense, LogSense, LogSelect, SendDiagnostic, ReceiveDiagnostic,
                                 ReadBuffer, WriteBuffer>;
// Decodes the CDB of one of these; its unused bits are known to be zero.
[[nodiscard]] Maintenance decode_maintenance(CdbBytes cdb, Operation operation);

}  // namespace mariner::scsi
