#include "tests/bench/soak_session.h"

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <fmt/format.h>

#include "proto/check.h"

namespace mariner::bench {

// A place for a command. Its bytes are those of the write until that is answered.
struct SoakSession::Slot {
  SoakSession* session = nullptr;
  SessionRegion::Command command;
  Time issued;
  scsi_iovec vector{};
  alignas(8) std::array<std::byte, kBlockBytes> data;
};

SoakSession::SoakSession(Options options, SessionRegion& region, SoakCounts& counts)
    : options_(std::move(options)),
      region_(region),
      counts_(counts),
      progress_(SoakCounts::Clock::now()),
      unit_(std::make_unique<IscsiUnit>()) {
  for (std::size_t i = 0; i < options_.depth; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    slots_.back()->session = this;
    slots_.back()->vector = {slots_.back()->data.data(), kBlockBytes};
    idle_.push_back(slots_.back().get());
  }
}

SoakSession::~SoakSession() { CHECK(outstanding_ == 0); }

Result<void> SoakSession::begin() {
  return unit_->begin_connect(options_.unit, [this](Result<void> done) {
    if (!done) return lose(done.error().message);
    if (options_.first.byte_offset() + options_.blocks.bytes() > unit_->size_bytes()) {
      return lose("the LUN is smaller than the regions");
    }
    state_ = State::kWorking;
    progress_ = SoakCounts::Clock::now();
    counts_.event("login");
  });
}

void SoakSession::work(Work work) {
  work_ = work;
  if (state_ == State::kWorking) send_more();
}

void SoakSession::send_more() {
  const auto now = SoakCounts::Clock::now();
  while (!idle_.empty() && send(*idle_.back(), now)) idle_.pop_back();
}

std::optional<SessionRegion::Command> SoakSession::next(Time now) {
  switch (work_) {
    case Work::kFill: return region_.next_to_fill();
    case Work::kMix: return region_.next(now);
    case Work::kVerify: return region_.next_to_verify(now);
  }
  return std::nullopt;
}

// False: there is nothing to send.
bool SoakSession::send(Slot& slot, Time now) {
  const auto command = next(now);
  if (!command) return false;
  slot.command = *command;
  slot.issued = now;
  const std::uint64_t lba =
      (options_.first + BlockCount{command->block}).byte_offset() / unit_->lba_bytes();
  const auto lba_bytes = static_cast<int>(unit_->lba_bytes());
  if (command->write) region_.fill(slot.data, *command);
  const scsi_task* task =
      command->write
          ? iscsi_write16_iov_task(unit_->context(), unit_->lun(), lba, nullptr, kBlockBytes,
                                   lba_bytes, 0, 0, 0, 0, 0, completed, &slot, &slot.vector, 1)
          : iscsi_read16_iov_task(unit_->context(), unit_->lun(), lba, kBlockBytes, lba_bytes, 0, 0,
                                  0, 0, 0, completed, &slot, &slot.vector, 1);
  CHECK_MSG(task != nullptr, "libiscsi has no memory");
  ++outstanding_;
  return true;
}

void SoakSession::completed(iscsi_context* context, int status, void* command_data, void* slot) {
  if (command_data != nullptr) scsi_free_scsi_task(static_cast<scsi_task*>(command_data));
  auto& of = *static_cast<Slot*>(slot);
  of.session->answered(of, status, iscsi_get_error(context));
}

void SoakSession::answered(Slot& slot, int status, const char* error) {
  const auto now = SoakCounts::Clock::now();
  --outstanding_;
  idle_.push_back(&slot);
  progress_ = now;
  if (status != SCSI_STATUS_GOOD) {
    if (cut_) {
      region_.lost(slot.command, *cut_);
    } else if (expected_) {
      region_.lost(slot.command, {.until = now, .why = *expected_});
    } else {
      region_.lost(slot.command, {.until = now + options_.afterlife, .why = "failed"});
    }
    if (cut_ || expected_) counts_.event(slot.command.write ? "write cut" : "read cut");
    if (cut_) return;
    if (status == SCSI_STATUS_CANCELLED) return lose("the connection is lost");
    counts_.failure(
        fmt::format("{}: a command ended with status {:#x}: {}", name(), status, error));
  } else if (slot.command.write) {
    region_.written(slot.command);
    counts_.completed(options_.steady, true, slot.issued, now);
  } else {
    using Kind = SessionRegion::Finding::Kind;
    const auto found = region_.read(slot.command, slot.data);
    if (found.kind == Kind::kLate) counts_.late(name() + ": late: " + found.text);
    if (found.kind == Kind::kWrong) counts_.mismatch(name() + ": " + found.text);
    counts_.completed(options_.steady, false, slot.issued, now);
  }
  if (state_ == State::kWorking) send_more();
}

void SoakSession::leave() {
  if (state_ == State::kWorking) state_ = State::kLeaving;
  if (state_ != State::kLeaving || outstanding_ > 0) return;
  progress_ = SoakCounts::Clock::now();
  auto begun = unit_->begin_logout([this](Result<void> done) {
    if (!done) return lose(done.error().message);
    state_ = State::kLeft;
    counts_.event("logout");
  });
  if (!begun) lose(begun.error().message);
}

void SoakSession::cut(SessionRegion::Loss loss) {
  cut_ = std::move(loss);
  unit_.reset();
  CHECK(outstanding_ == 0);
}

void SoakSession::lose(const std::string& why) {
  if (state_ == State::kLost) return;
  state_ = State::kLost;
  if (expected_) return;
  counts_.failure(name() + ": " + why);
}

pollfd SoakSession::events() const {
  if (state_ == State::kLeft || state_ == State::kLost) return {-1, 0, 0};
  return unit_->events();
}

void SoakSession::serve(short revents) {
  const bool was_leaving = state_ == State::kLeaving && outstanding_ > 0;
  if (!unit_->serve(revents) || ((revents & (POLLHUP | POLLERR)) != 0 && state_ != State::kLeft)) {
    return lose("the connection is lost");
  }
  if (was_leaving && outstanding_ == 0) leave();
}

}  // namespace mariner::bench
