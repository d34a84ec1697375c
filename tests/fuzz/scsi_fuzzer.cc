// Feeds commands to a SCSI device: each input is a sequence of commands, executed in order.
//
// One command: a byte of flags (bits 0-1 the LUN, bit 2 the initiator, bit 3 task management
// before it, bit 4 hold completions, bit 5 a failing layer), 16 bytes of CDB, 2 bytes of the
// data's length, the data. WRITE USING TOKEN gets the last token that was received, which nobody
// could guess. What must hold: every command is answered exactly once (self-tests too,
// which end when the layers go on), data-in is no longer than the CDB asked for, and a CHECK
// CONDITION has sense data.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "server/scsi/device.h"
#include "tests/support/ram_layer.h"

namespace mariner::scsi {
namespace {

constexpr std::uint64_t kSizeBytes = 1 << 20;
constexpr std::size_t kCommandsMax = 64;

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  std::span<const std::uint8_t> take(std::size_t count) {
    const auto taken = bytes_.first(std::min(count, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }
  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? std::uint8_t{0} : taken[0];
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// Permits SANITIZE, and has no past.
class Forgetful final : public Sanitizer {
 public:
  [[nodiscard]] bool permitted() const override { return true; }
  [[nodiscard]] Refusal refusal() const override { return Refusal::kNone; }
  [[nodiscard]] Left left() const override { return left_; }
  [[nodiscard]] Result<void> set_left(Left left) override {
    left_ = left;
    return {};
  }
  void forget_past(volume::Done done) override { done({}); }

 private:
  Left left_ = Left::kNothing;
};

constexpr std::size_t kTokenAt = 16;      // in the parameter list of WRITE USING TOKEN
constexpr std::size_t kTokenBytes = 512;  // at the end of RECEIVE ROD TOKEN INFORMATION
constexpr std::size_t kInformationBytes = 32 + 6 + kTokenBytes;

bool is_write_using_token(const Command& command) {
  return command.cdb[0] == 0x83 && command.cdb[1] == 0x11 &&
         command.data_out.size() >= kTokenAt + kTokenBytes;
}

std::shared_ptr<Device> make_device(const std::vector<std::shared_ptr<test::RamLayer>>& layers) {
  std::vector<LogicalUnitOptions> units;
  for (const auto& layer : layers) {
    const Lun lun{static_cast<std::uint8_t>(units.size())};
    units.push_back({lun,
                     {.identity = {.target_name = "iqn.2026-11.org.mariner:fuzz",
                                   .volume_name = "fuzz",
                                   .serial = "1",
                                   .naa = {0x30, 0, 0, 0, 0, 0, 0, lun.value}},
                      .block_bytes = lun.value == 0 ? 512u : 4096u,
                      .transfer_bytes_max = 64 << 10,
                      .clock = [] { return std::chrono::nanoseconds{0}; },
                      .sanitizer = std::make_shared<Forgetful>(),
                      .removable = true},
                     layer});
  }
  return std::make_shared<Device>(std::move(units));
}

void check_answer(const Response& response, const Transfer& transfer) {
  std::uint64_t bytes = 0;
  for (const PayloadSlice& slice : response.data_in) bytes += slice.bytes().size();
  CHECK(bytes == 0 ||
        (transfer.direction == Transfer::Direction::kToInitiator && bytes <= transfer.bytes));
  CHECK((response.status == Status::kCheckCondition) == !response.sense.empty());
  CHECK(response.status == Status::kGood || response.data_in.empty());
}

void run(std::span<const std::uint8_t> bytes) {
  const std::vector<std::shared_ptr<test::RamLayer>> layers = {
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = kSizeBytes}),
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = kSizeBytes}),
      std::make_shared<test::RamLayer>(
          test::RamLayer::Options{.size_bytes = kSizeBytes, .read_only = true})};
  const auto device = make_device(layers);
  const std::shared_ptr<Nexus> nexuses[] = {device->attach({{"iqn.2026-11.org.example:a", {}}}),
                                            device->attach({{"iqn.2026-11.org.example:b", {}}})};
  std::size_t answers = 0;
  std::size_t commands = 0;
  std::vector<std::byte> token;
  Input input(bytes);
  while (!input.empty() && commands < kCommandsMax) {
    const std::uint8_t flags = input.byte();
    const auto& nexus = nexuses[(flags >> 2) & 1];
    Command command;
    command.lun = std::uint64_t{flags & 3u} << 48;  // LUN 3 does not exist
    std::ranges::copy(input.take(16), command.cdb.begin());
    std::uint8_t length[2] = {input.byte(), input.byte()};
    command.data_out_announced = load_be<std::uint16_t>(length);
    command.nexus = nexus;

    const Transfer transfer = device->transfer_of(command.lun, command.cdb);
    command.unit_blocks = transfer.unit_blocks;
    CHECK(transfer.bytes == 0 || transfer.direction != Transfer::Direction::kNone);
    if (transfer.direction == Transfer::Direction::kToTarget) {
      CHECK(transfer.bytes <= (64 << 10));
      const auto data = input.take(std::min(transfer.bytes, command.data_out_announced));
      command.data_out = Payload::copy_of(std::as_bytes(data));
    }
    if ((flags & 0x08) != 0) {
      const auto function = static_cast<TaskManagementFunction>(flags >> 5 & 3);
      device->manage(function, command.lun, nexus, [] {});
    }
    const std::size_t unit = flags & 3;
    if (unit < layers.size()) {
      if ((flags & 0x10) != 0) layers[unit]->hold();
      if ((flags & 0x20) != 0) {
        layers[unit]->fail_next({static_cast<ErrorCode>(flags >> 6), "fuzz"});
      }
    }
    ++commands;
    if (!token.empty() && is_write_using_token(command)) {
      std::ranges::copy(token, command.data_out.data() + kTokenAt);
    }
    const bool informs = command.cdb[0] == 0x84 && command.cdb[1] == 0x07;
    device->execute(std::move(command), [&answers, &token, transfer, informs,
                                         answered = false](const Response& response) mutable {
      CHECK(!std::exchange(answered, true));
      ++answers;
      check_answer(response, transfer);
      if (!informs || response.data_in.empty()) return;
      const auto data = response.data_in[0].bytes();
      if (data.size() < kInformationBytes) return;
      token.assign(data.end() - kTokenBytes, data.end());
    });
  }
  for (const auto& layer : layers) layer->release();
  CHECK(answers == commands);
}

}  // namespace
}  // namespace mariner::scsi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mariner::scsi::run({data, size});
  return 0;
}
