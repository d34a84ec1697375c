#include "server/scsi/unit_sanitize.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/bytes.h"
#include "server/scsi/nexus.h"
#include "server/scsi/reply.h"

namespace mariner::scsi {
namespace {

using Left = Sanitizer::Left;

constexpr std::size_t kListHeaderBytes = 4;
constexpr std::uint64_t kErasePieceBytes = 64ull << 30;  // a record without payload each
constexpr std::uint64_t kOverwritePieceBytes = 16 << 20;
// Of the progress: what erasing counts, and forgetting, and the rest is overwriting.
constexpr std::uint64_t kErased = 16'384;
constexpr std::uint64_t kForgotten = 49'152;

Sense in_progress(std::uint16_t progress) {
  Sense sense{SenseKey::kNotReady, asc::kSanitizeInProgress};
  sense.progress = progress;
  return sense;
}

Sense failed() { return {SenseKey::kMediumError, asc::kSanitizeFailed}; }

bool allowed(Operation operation) {
  switch (operation) {
    case Operation::kInquiry:
    case Operation::kModeSense:
    case Operation::kReadCapacity:
    case Operation::kReportLuns:
    case Operation::kReportOpcodes:
    case Operation::kReportTaskManagement:
    case Operation::kRequestSense: return true;
    default: return false;
  }
}

// One logical block of the pattern of an OVERWRITE (SBC-4 5.30.2.2). However many passes are asked
// for, inverted or not, the last one writes the pattern itself; the ones before it would go to
// other places of the log, and are not made.
std::variant<Sense, PayloadSlice> parse_pattern(const PayloadSlice& list,
                                                std::uint32_t block_bytes) {
  const std::span<const std::byte> bytes = list.bytes();
  if (bytes.size() < kListHeaderBytes) return illegal_request(asc::kParameterListLengthError);
  if ((std::to_integer<unsigned>(bytes[0]) & 0x1F) == 0) return invalid_parameter(0, 4);
  const std::size_t length = load_be<std::uint16_t>(&bytes[2]);
  if (length == 0 || length > block_bytes || length > bytes.size() - kListHeaderBytes) {
    return invalid_parameter(2);
  }
  Payload block = Payload::allocate(block_bytes);
  for (std::size_t at = 0; at < block_bytes; at += length) {
    std::memcpy(block.data() + at, &bytes[kListHeaderBytes], std::min(length, block_bytes - at));
  }
  return PayloadSlice{std::move(block), 0, block_bytes};
}

}  // namespace

struct UnitSanitize::Work {
  std::shared_ptr<Disk> disk;
  std::uint16_t target_port = 1;
  std::optional<PayloadSlice> pattern;  // none: it stays erased
  std::uint64_t at = 0;
  CommandDone done;  // null: it was answered already
};

UnitSanitize::UnitSanitize(std::shared_ptr<Sanitizer> sanitizer)
    : sanitizer_(std::move(sanitizer)) {
  if (sanitizer_ == nullptr || sanitizer_->left() == Left::kNothing) return;
  state_ = State::kFailed;  // the server ended in the middle of it
  unrestricted_ = sanitizer_->left() == Left::kUnrestricted;
}

std::optional<Sense> UnitSanitize::pollable() const {
  switch (state_) {
    case State::kIdle: return std::nullopt;
    case State::kRunning: return in_progress(progress_);
    case State::kFailed: return failed();
  }
  return std::nullopt;
}

std::optional<Sense> UnitSanitize::forbids(Operation operation) const {
  if (allowed(operation)) return std::nullopt;
  if (state_ == State::kFailed && operation == Operation::kSanitize) return std::nullopt;
  return pollable();
}

void UnitSanitize::execute(const Sanitize& command, const Command& request,
                           std::shared_ptr<Disk> disk, CommandDone done) {
  CHECK(permitted() && state_ != State::kRunning);
  const SenseFormat format = disk->sense_format();
  const auto refuse = [&](const Sense& sense) { done(check_condition(sense, format)); };
  if (command.action == Sanitize::Action::kExitFailureMode) {
    return exit_failure_mode(format, std::move(done));
  }
  if (state_ == State::kFailed && !unrestricted_ && command.unrestricted) {
    return refuse(invalid_field_in_cdb(1, 5));
  }
  auto work = std::make_shared<Work>();
  work->disk = std::move(disk);
  work->target_port = target_port_of(request);
  if (command.action == Sanitize::Action::kOverwrite) {
    PayloadSlice list;
    if (request.data_out.size() > 0) list = {request.data_out, 0, request.data_out.size()};
    auto pattern = parse_pattern(list, work->disk->geometry().block_bytes);
    if (const auto* wrong = std::get_if<Sense>(&pattern)) return refuse(*wrong);
    work->pattern = std::get<PayloadSlice>(std::move(pattern));
  }
  switch (sanitizer_->refusal()) {
    case Sanitizer::Refusal::kNone: break;
    case Sanitizer::Refusal::kLockedMark:
      return refuse({SenseKey::kDataProtect, asc::kConditionalWriteProtect});
    case Sanitizer::Refusal::kInUse: return refuse(illegal_request(asc::kCommandSequenceError));
  }
  if (!sanitizer_->set_left(command.unrestricted ? Left::kUnrestricted : Left::kRestricted)) {
    return refuse({SenseKey::kHardwareError, asc::kInternalTargetFailure});
  }
  state_ = State::kRunning;
  unrestricted_ = command.unrestricted;
  progress_ = 0;
  if (!command.immediate) work->done = std::move(done);
  // What was begun before comes first.
  work->disk->layer().settle(
      [self = shared_from_this(), work](const Result<void>&) { self->erase(work); });
  if (command.immediate) done(Response{});
}

void UnitSanitize::exit_failure_mode(SenseFormat format, CommandDone done) {
  if (state_ == State::kFailed) {
    if (!unrestricted_) return done(check_condition(invalid_field_in_cdb(1, 4), format));
    if (!sanitizer_->set_left(Left::kNothing)) {
      return done(check_condition({SenseKey::kHardwareError, asc::kInternalTargetFailure}, format));
    }
    state_ = State::kIdle;
  }
  done(Response{});
}

void UnitSanitize::erase(const std::shared_ptr<Work>& work) {
  const std::uint64_t size = work->disk->layer().size_bytes();
  if (work->at == size) {
    progress_ = kErased;
    work->at = 0;
    return sanitizer_->forget_past(
        [self = shared_from_this(), work](const Result<void>& forgotten) {
          if (!forgotten || !work->pattern) return self->end(work, forgotten);
          self->overwrite(work);
        });
  }
  const ByteRange piece{work->at, std::min(kErasePieceBytes, size - work->at)};
  progress_ = static_cast<std::uint16_t>(static_cast<double>(kErased) *
                                         static_cast<double>(work->at) / static_cast<double>(size));
  work->disk->layer().trim(piece, volume::TrimMode::kZero,
                           [self = shared_from_this(), work, piece](const Result<void>& erased) {
                             if (!erased) return self->end(work, erased);
                             work->at = piece.end();
                             self->erase(work);
                           });
}

void UnitSanitize::overwrite(const std::shared_ptr<Work>& work) {
  const std::uint64_t size = work->disk->layer().size_bytes();
  if (work->at == size) return end(work, {});
  const ByteRange piece{work->at, std::min(kOverwritePieceBytes, size - work->at)};
  const double part = static_cast<double>(work->at) / static_cast<double>(size);
  progress_ =
      static_cast<std::uint16_t>(static_cast<double>(kForgotten) + part * (65'535 - kForgotten));
  work->disk->layer().write_same(
      piece, *work->pattern, [self = shared_from_this(), work, piece](const Result<void>& written) {
        if (!written) return self->end(work, written);
        work->at = piece.end();
        self->overwrite(work);
      });
}

void UnitSanitize::end(const std::shared_ptr<Work>& work, const Result<void>& result) {
  const bool good = result && sanitizer_->set_left(Left::kNothing);
  state_ = good ? State::kIdle : State::kFailed;
  if (!work->done) return;
  if (good) return std::exchange(work->done, nullptr)(Response{});
  const Disk& disk = *work->disk;
  Sense sense = failed();
  if (!result) sense = disk.access().lost(result.error(), work->target_port).value_or(sense);
  std::exchange(work->done, nullptr)(check_condition(sense, disk.sense_format()));
}

}  // namespace mariner::scsi
