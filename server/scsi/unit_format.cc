#include "server/scsi/unit_format.h"

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "proto/bytes.h"
#include "proto/check.h"
#include "server/scsi/nexus.h"
#include "server/scsi/reply.h"

namespace mariner::scsi {
namespace {

constexpr std::size_t kShortHeaderBytes = 4;
constexpr std::size_t kLongHeaderBytes = 8;
constexpr std::size_t kPatternHeaderBytes = 4;

// The header's byte 1.
constexpr unsigned kOptionsValid = 0x80;  // FOV
constexpr unsigned kPattern = 0x08;       // IP
constexpr unsigned kOptions = 0x78;       // DPRY, DCRT, STPF, IP
constexpr unsigned kImmediateFormat = 0x02;
constexpr unsigned kVendorSpecific = 0x01;

constexpr std::uint8_t kDefaultPattern = 0x00;
constexpr std::uint8_t kRepeatPattern = 0x01;

Sense in_progress() {
  Sense sense{SenseKey::kNotReady, asc::kFormatInProgress};
  sense.progress = 0;  // one record: it has come or it has not
  return sense;
}

Sense failure_of(const Error& error, const Disk& disk, std::uint16_t target_port) {
  if (const auto lost = disk.access().lost(error, target_port)) return *lost;
  if (error.code == ErrorCode::kNoSpace)
    return {SenseKey::kDataProtect, asc::kSpaceAllocationFailed};
  return {SenseKey::kMediumError, asc::kFormatFailed};
}

// Why the initialization pattern descriptor that begins at `at` is not to be had (SBC-3 5.3.2.3):
// zeros are.
std::optional<Sense> check_pattern(std::span<const std::byte> list, std::uint16_t at,
                                   std::uint32_t block_bytes) {
  if (list.size() < at + kPatternHeaderBytes)
    return illegal_request(asc::kParameterListLengthError);
  // SI would have to reach what the past holds.
  if (list[at] != std::byte{0}) return invalid_parameter(at);
  const auto field = [at](unsigned byte) { return static_cast<std::uint16_t>(at + byte); };
  const auto type = std::to_integer<std::uint8_t>(list[field(1)]);
  const std::size_t length = load_be<std::uint16_t>(&list[field(2)]);
  const auto pattern = list.subspan(at + kPatternHeaderBytes);
  switch (type) {
    case kDefaultPattern:
      if (length != 0) return invalid_parameter(field(2));
      return std::nullopt;
    case kRepeatPattern:
      if (length == 0 || length > block_bytes) return invalid_parameter(field(2));
      if (length > pattern.size()) return illegal_request(asc::kParameterListLengthError);
      if (std::ranges::any_of(pattern.first(length),
                              [](std::byte b) { return b != std::byte{0}; })) {
        return invalid_parameter(field(kPatternHeaderBytes));
      }
      return std::nullopt;
    default: return invalid_parameter(field(1));
  }
}

// The parameter list (SBC-3 5.3.2): whether it asks for an answer at once, or what is wrong.
std::variant<Sense, bool> parse(std::span<const std::byte> list, bool long_header,
                                std::uint32_t block_bytes) {
  const std::size_t header = long_header ? kLongHeaderBytes : kShortHeaderBytes;
  if (list.size() < header) return illegal_request(asc::kParameterListLengthError);
  // Of DPRY, DCRT and STPF each value is as good: there are no defects.
  const auto options = std::to_integer<unsigned>(list[1]);
  if ((std::to_integer<unsigned>(list[0]) & 0x07) != 0) return invalid_parameter(0, 2);
  if ((options & kOptionsValid) == 0 && (options & kOptions) != 0) return invalid_parameter(1);
  if ((options & kVendorSpecific) != 0) return invalid_parameter(1, 0);
  if (long_header && list[3] != std::byte{0}) return invalid_parameter(3);
  const std::uint64_t defects = long_header ? std::uint64_t{load_be<std::uint32_t>(&list[4])}
                                            : std::uint64_t{load_be<std::uint16_t>(&list[2])};
  if (defects != 0) return invalid_parameter(long_header ? 4 : 2);
  if ((options & kPattern) != 0) {
    if (auto wrong = check_pattern(list, static_cast<std::uint16_t>(header), block_bytes)) {
      return *std::move(wrong);
    }
  }
  return (options & kImmediateFormat) != 0;
}

}  // namespace

std::optional<Sense> UnitFormat::look(Operation operation, const Nexus& nexus) {
  if (operation == Operation::kInquiry || operation == Operation::kReportLuns ||
      operation == Operation::kRequestSense) {
    return std::nullopt;
  }
  return take_pollable(nexus);
}

std::optional<Sense> UnitFormat::take_pollable(const Nexus& nexus) {
  if (running_) return in_progress();
  if (!failure_ || asker_.lock().get() != &nexus) return std::nullopt;
  return std::exchange(failure_, std::nullopt);
}

void UnitFormat::execute(const FormatUnit& command, const Command& request,
                         std::shared_ptr<Disk> disk, CommandDone done) {
  CHECK(!running_);
  bool immediate = false;
  if (command.has_list) {
    const auto parsed =
        parse(request.data_out.bytes(), command.long_header, disk->geometry().block_bytes);
    if (const auto* wrong = std::get_if<Sense>(&parsed)) {
      return done(check_condition(*wrong, disk->sense_format()));
    }
    immediate = std::get<bool>(parsed);
  }
  running_ = true;
  failure_.reset();
  asker_ = request.nexus;
  CommandDone at_once = immediate ? std::exchange(done, nullptr) : nullptr;
  volume::Layer& formatted = disk->layer();
  formatted.trim({0, formatted.size_bytes()}, volume::TrimMode::kZero,
                 [self = shared_from_this(), disk = std::move(disk), port = target_port_of(request),
                  done = std::move(done)](const Result<void>& result) mutable {
                   self->running_ = false;
                   if (result) {
                     if (done) done(Response{});
                     return;
                   }
                   const Sense failure = failure_of(result.error(), *disk, port);
                   if (done) return done(check_condition(failure, disk->sense_format()));
                   self->failure_ = failure;
                   self->failure_->deferred = true;
                 });
  // Now that the record is with the layer: whoever hears this may send the next command from
  // within.
  if (at_once) at_once(Response{});
}

}  // namespace mariner::scsi
