// What the SCSI tests share: bytes written as hexadecimal, and a device over memory.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/scsi/device.h"
#include "tests/support/ram_layer.h"

namespace mariner::scsi::testing {

// "0a FF" -> {0x0A, 0xFF}. Spaces do not matter.
std::vector<std::uint8_t> bytes(std::string_view hex);
// {0x0A, 0xFF} -> "0a ff".
std::string hex(std::span<const std::uint8_t> bytes);
// A CDB, padded with zeros.
std::array<std::uint8_t, 16> cdb(std::string_view hex);

Identity example_identity();

// What is left of a Response to compare with.
struct Outcome {
  Status status = Status::kGood;
  std::string sense;               // hexadecimal
  std::vector<std::uint8_t> data;  // data-in, joined

  [[nodiscard]] std::string hex_data() const { return hex(data); }
  [[nodiscard]] std::string text() const { return {data.begin(), data.end()}; }
  // "5/24/00@2.3": sense key, code, qualifier, and where a field pointer points ("p" before the
  // byte: into the parameter list; no bit: the whole byte); "i123" after it for an information.
  // "good" or the status otherwise.
  [[nodiscard]] std::string verdict() const;
};
Outcome outcome_of(const Response& response);

// Permits SANITIZE, and forgets when it is told to.
class FakeSanitizer final : public Sanitizer {
 public:
  [[nodiscard]] bool permitted() const override { return permits; }
  [[nodiscard]] Refusal refusal() const override { return refuses; }
  [[nodiscard]] Left left() const override { return state; }
  [[nodiscard]] Result<void> set_left(Left left) override {
    state = left;
    return {};
  }
  void forget_past(volume::Done done) override { forgetting = std::move(done); }

  bool permits = true;
  Refusal refuses = Refusal::kNone;
  Left state = Left::kNothing;
  volume::Done forgetting;  // under way
};

// Two groups of one port each, as of two nodes: port 1 in group 0x101, port 2 in 0x102.
class FakePortGroups final : public PortGroups {
 public:
  [[nodiscard]] std::vector<PortGroup> groups() const override {
    return {{.id = 0x101, .state = first, .preferred = true, .ports = {1}},
            {.id = 0x102, .state = second, .preferred = false, .ports = {2}}};
  }
  [[nodiscard]] AccessState state_of(std::uint16_t target_port) const override {
    CHECK(target_port == 1 || target_port == 2);
    ++asked;
    return target_port == 1 ? first : second;
  }
  [[nodiscard]] std::uint8_t transition_s() const override { return 30; }

  AccessState first = AccessState::kActiveOptimized;
  AccessState second = AccessState::kStandby;
  mutable int asked = 0;  // for the state of a port
};

// A device with one disk as LUN 0 and one initiator without unit attentions.
class Rig {
 public:
  static constexpr std::uint64_t kSize = 1 << 20;

  struct Options {
    std::uint64_t size_bytes = kSize;
    std::uint32_t block_bytes = 512;
    std::uint32_t transfer_bytes_max = 128 << 10;
    bool read_only = false;
    std::shared_ptr<FakeSanitizer> sanitizer = std::make_shared<FakeSanitizer>();
    bool removable = false;
    std::shared_ptr<FakePortGroups> port_groups{};  // with it the unit has ports 1 and 2
    ReservationOptions reservations{};
  };
  Rig() : Rig(Options{}) {}
  explicit Rig(const Options& options);

  // Sends a CDB (hexadecimal) with this data and expects the answer at once.
  Outcome send(std::string_view cdb_hex, std::string_view data = {});
  Outcome send_from(const std::shared_ptr<Nexus>& nexus, std::string_view cdb_hex,
                    std::string_view data = {});
  // Sends; the answer may come later.
  std::shared_ptr<std::optional<Outcome>> start(std::string_view cdb_hex,
                                                std::string_view data = {});
  Transfer transfer_of(std::string_view cdb_hex) const;
  // Another initiator; `quiet`: its power-on attention is taken already.
  std::shared_ptr<Nexus> attach(const std::string& name, bool quiet = true,
                                std::uint16_t target_port = 1);

  Command command(std::string_view cdb_hex, std::string_view data = {}) const;

  // What the disk takes for the time.
  std::shared_ptr<std::chrono::nanoseconds> now = std::make_shared<std::chrono::nanoseconds>(0);
  std::shared_ptr<test::RamLayer> layer;
  std::shared_ptr<Device> device;
  std::shared_ptr<Nexus> nexus;
  std::uint64_t lun = 0;                            // where send() sends
  std::optional<std::uint64_t> data_out_announced;  // otherwise what is sent
  std::optional<TaskTag> tag;                       // of what is sent
};

}  // namespace mariner::scsi::testing
