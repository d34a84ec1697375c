#include "tests/hammer/initiator.h"

#include <poll.h>

extern "C" {
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
}

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "proto/check.h"

namespace mariner::hammer {
namespace {

struct UrlDeleter {
  void operator()(iscsi_url* url) const { iscsi_destroy_url(url); }
};

// libiscsi's synchronous calls fail when a signal interrupts them: one that asks for the end waits.
class SignalsLater {
 public:
  SignalsLater() {
    sigset_t later;
    sigemptyset(&later);
    sigaddset(&later, SIGTERM);
    sigaddset(&later, SIGINT);
    CHECK(pthread_sigmask(SIG_BLOCK, &later, &before_) == 0);
  }
  ~SignalsLater() { CHECK(pthread_sigmask(SIG_SETMASK, &before_, nullptr) == 0); }
  SignalsLater(const SignalsLater&) = delete;
  SignalsLater& operator=(const SignalsLater&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct Initiator::Command {
  Initiator* initiator;
  Done done;
  unmap_list unmap{};  // libiscsi may keep what it is given
  // Gives it to libiscsi, for `completed`; null: that cannot be.
  std::function<scsi_task*(Command*)> ask{};

  static void completed(iscsi_context*, int status, void* command_data, void* private_data) {
    std::unique_ptr<Command> command(static_cast<Command*>(private_data));
    auto* task = static_cast<scsi_task*>(command_data);
    --command->initiator->outstanding_;
    if (command->initiator->repeat_attentions_ && status == SCSI_STATUS_CHECK_CONDITION &&
        task->sense.key == SCSI_SENSE_UNIT_ATTENTION) {
      scsi_free_scsi_task(task);
      Initiator& initiator = *command->initiator;
      if (!initiator.start(std::move(command))) initiator.lost_ = true;
      return;
    }
    // Only the transport's statuses are above 255: cancelled, error, timeout.
    if (status > 255) command->initiator->lost_ = true;
    std::span<const std::byte> data;
    if (task != nullptr && task->datain.data != nullptr) {
      data =
          std::as_bytes(std::span(task->datain.data, static_cast<std::size_t>(task->datain.size)));
    }
    command->done(status, data);
    if (task != nullptr) scsi_free_scsi_task(task);
  }
};

Error Initiator::failure(const std::string& what) const {
  return {ErrorCode::kUnavailable, what + ": " + iscsi_get_error(context_)};
}

Result<std::unique_ptr<Initiator>> Initiator::connect(const InitiatorOptions& options) {
  const SignalsLater later;
  iscsi_context* context = iscsi_create_context(options.name.c_str());
  CHECK(context != nullptr);
  std::unique_ptr<Initiator> initiator(new Initiator(context));
  initiator->repeat_attentions_ = options.repeat_attentions;
  const std::unique_ptr<iscsi_url, UrlDeleter> url(
      iscsi_parse_full_url(context, options.url.c_str()));
  if (url == nullptr) return initiator->failure(options.url);
  initiator->lun_ = url->lun;
  iscsi_set_noautoreconnect(context, 1);
  iscsi_set_targetname(context, url->target);
  iscsi_set_session_type(context, ISCSI_SESSION_NORMAL);
  iscsi_set_header_digest(context, ISCSI_HEADER_DIGEST_NONE_CRC32C);
  if (iscsi_full_connect_sync(context, url->portal, url->lun) != 0) {
    return initiator->failure("login to " + options.url);
  }
  if (auto capacity = initiator->read_capacity(); !capacity) return capacity.error();
  return initiator;
}

Initiator::~Initiator() {
  // Completes what is outstanding with SCSI_STATUS_CANCELLED.
  iscsi_destroy_context(context_);
  CHECK(outstanding_ == 0);
}

Result<void> Initiator::read_capacity() {
  scsi_task* task = iscsi_readcapacity16_sync(context_, lun_);
  if (task == nullptr) return failure("READ CAPACITY(16)");
  const auto* answer = static_cast<scsi_readcapacity16*>(scsi_datain_unmarshall(task));
  if (task->status == SCSI_STATUS_GOOD && answer != nullptr) {
    block_bytes_ = answer->block_length;
    cells_ = (answer->returned_lba + 1) * (block_bytes_ / kCellBytes);
  }
  scsi_free_scsi_task(task);
  if (cells_ == 0) return failure("READ CAPACITY(16)");
  return {};
}

Result<void> Initiator::start(std::unique_ptr<Command> command) {
  if (command->ask(command.get()) == nullptr) return failure("sending a command");
  ++outstanding_;
  static_cast<void>(command.release());  // libiscsi has it
  return {};
}

Result<void> Initiator::send(const Write& write, std::span<std::byte> payload, Done done) {
  auto* data = reinterpret_cast<unsigned char*>(payload.data());
  const auto length = static_cast<std::uint32_t>(payload.size());
  const std::uint32_t cells_per_lba = block_bytes_ / kCellBytes;
  const std::uint64_t lba = write.first_cell / cells_per_lba;
  const std::uint32_t count = write.cells / cells_per_lba;
  auto command = std::make_unique<Command>(this, std::move(done), unmap_list{lba, count});
  command->ask = [=, this, kind = write.kind](Command* self) -> scsi_task* {
    switch (kind) {
      case Kind::kWrite:
        return iscsi_write16_task(context_, lun_, lba, data, length, static_cast<int>(block_bytes_),
                                  0, 0, 0, 0, 0, Command::completed, self);
      case Kind::kUnmap:
        return iscsi_unmap_task(context_, lun_, 0, 0, &self->unmap, 1, Command::completed, self);
      case Kind::kZeroes:
      case Kind::kSame:
        return iscsi_writesame16_task(context_, lun_, lba, data, length, count, 0, 0, 0, 0,
                                      Command::completed, self);
    }
    return nullptr;
  };
  return start(std::move(command));
}

Result<void> Initiator::read(CellRange range, Done done) {
  const std::uint32_t cells_per_lba = block_bytes_ / kCellBytes;
  auto command = std::make_unique<Command>(this, std::move(done));
  command->ask = [=, this](Command* self) {
    return iscsi_read16_task(context_, lun_, range.first / cells_per_lba,
                             static_cast<std::uint32_t>(range.count * kCellBytes),
                             static_cast<int>(block_bytes_), 0, 0, 0, 0, 0, Command::completed,
                             self);
  };
  return start(std::move(command));
}

Result<void> Initiator::poll(int timeout_ms) {
  pollfd events{.fd = iscsi_get_fd(context_),
                .events = static_cast<short>(iscsi_which_events(context_)),
                .revents = 0};
  if (::poll(&events, 1, timeout_ms) < 0 && errno != EINTR) return errno_error(errno, "poll");
  if (iscsi_service(context_, events.revents) < 0 || lost_) {
    lost_ = true;
    return Error{ErrorCode::kUnavailable, "the connection is lost"};
  }
  return {};
}

void Initiator::logout() {
  CHECK(outstanding_ == 0);
  const SignalsLater later;
  iscsi_logout_sync(context_);
}

Result<std::vector<std::byte>> read_range(Initiator& initiator, CellRange range) {
  constexpr std::uint64_t kReadCells = 512;
  constexpr std::size_t kDepth = 16;
  std::vector<std::byte> bytes(range.count * kCellBytes);
  std::uint64_t next = range.first;
  int bad_status = Initiator::kGood;
  while (next < range.end() || initiator.outstanding() > 0) {
    while (next < range.end() && initiator.outstanding() < kDepth) {
      const CellRange part{next, std::min(kReadCells, range.end() - next)};
      auto sent = initiator.read(part, [&, part](int status, std::span<const std::byte> data) {
        if (status != Initiator::kGood || data.size() != part.count * kCellBytes) {
          bad_status = status == Initiator::kGood ? -1 : status;
          return;
        }
        std::memcpy(bytes.data() + (part.first - range.first) * kCellBytes, data.data(),
                    data.size());
      });
      if (!sent) return sent.error();
      next = part.end();
    }
    if (auto polled = initiator.poll(1000); !polled) return polled.error();
    if (bad_status != Initiator::kGood) {
      return Error{ErrorCode::kIo, "READ(16) ended with status " + std::to_string(bad_status)};
    }
  }
  return bytes;
}

}  // namespace mariner::hammer
