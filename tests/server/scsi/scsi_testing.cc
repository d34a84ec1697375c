#include "tests/server/scsi/scsi_testing.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "proto/bytes.h"

namespace mariner::scsi::testing {

std::vector<std::uint8_t> bytes(std::string_view hex) {
  std::string digits;
  std::ranges::copy_if(hex, std::back_inserter(digits), [](char c) { return c != ' '; });
  CHECK(digits.size() % 2 == 0);
  std::vector<std::uint8_t> result;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    std::uint8_t byte = 0;
    const auto parsed = std::from_chars(&digits[i], &digits[i] + 2, byte, 16);
    CHECK(parsed.ec == std::errc());
    result.push_back(byte);
  }
  return result;
}

std::string hex(std::span<const std::uint8_t> bytes) {
  std::string result;
  for (const std::uint8_t byte : bytes) {
    char text[4];
    std::snprintf(text, sizeof text, result.empty() ? "%02x" : " %02x", byte);
    result += text;
  }
  return result;
}

std::array<std::uint8_t, 16> cdb(std::string_view hex) {
  const auto given = bytes(hex);
  CHECK(given.size() <= 16);
  std::array<std::uint8_t, 16> result{};
  std::ranges::copy(given, result.begin());
  return result;
}

Identity example_identity() {
  return {.target_name = "iqn.2026-11.org.mariner:db1",
          .volume_name = "db1",
          .serial = "0123456789abcdef",
          .naa = bytes("30 11 22 33 44 55 66 77")};
}

std::string Outcome::verdict() const {
  if (status == Status::kGood) return "good";
  if (status == Status::kBusy) return "busy";
  if (status == Status::kReservationConflict) return "reservation conflict";
  if (status != Status::kCheckCondition) return "status " + std::to_string(int(status));
  const auto raw = bytes(sense);
  char text[64];
  if (raw[0] & 2) {
    std::snprintf(text, sizeof text, "%X/%02X/%02X", raw[1], raw[2], raw[3]);
    return text;
  }
  std::snprintf(text, sizeof text, "%X/%02X/%02X", raw[2], raw[12], raw[13]);
  std::string result = text;
  if (raw[15] & 0x80) {
    result += (raw[15] & 0x40) ? "@" : "@p";
    result += std::to_string(load_be<std::uint16_t>(&raw[16]));
    if (raw[15] & 0x08) result += "." + std::to_string(raw[15] & 7);
  }
  if (raw[0] & 0x80) result += "i" + std::to_string(load_be<std::uint32_t>(&raw[3]));
  return result;
}

Outcome outcome_of(const Response& response) {
  Outcome outcome{response.status, hex(response.sense), {}};
  for (const PayloadSlice& slice : response.data_in) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(slice.bytes().data());
    outcome.data.insert(outcome.data.end(), p, p + slice.length);
  }
  return outcome;
}

Rig::Rig(const Options& options)
    : layer(std::make_shared<test::RamLayer>(test::RamLayer::Options{
          .size_bytes = options.size_bytes, .read_only = options.read_only})) {
  Identity identity = example_identity();
  if (options.port_groups) identity.target_ports = {1, 2};
  std::vector<LogicalUnitOptions> units;
  units.push_back({Lun{0},
                   DiskOptions{.identity = std::move(identity),
                               .block_bytes = options.block_bytes,
                               .transfer_bytes_max = options.transfer_bytes_max,
                               .clock = [now = now] { return *now; },
                               .sanitizer = options.sanitizer,
                               .removable = options.removable,
                               .port_groups = options.port_groups},
                   layer, options.reservations});
  device = std::make_shared<Device>(std::move(units));
  nexus = attach("iqn.2026-11.org.example:host");
}

std::shared_ptr<Nexus> Rig::attach(const std::string& name, bool quiet, std::uint16_t target_port) {
  auto attached = device->attach({{name, {0x80, 0, 0, 0, 0, 1}}, target_port});
  if (quiet) {
    EXPECT_EQ(send_from(attached, "00").verdict(), "6/29/00");
  }
  return attached;
}

Command Rig::command(std::string_view cdb_hex, std::string_view data) const {
  Command command;
  command.lun = lun;
  command.cdb = cdb(cdb_hex);
  if (!data.empty()) command.data_out = Payload::copy_of(as_byte_span(data));
  command.data_out_announced = data_out_announced.value_or(data.size());
  command.unit_blocks = transfer_of(cdb_hex).unit_blocks;
  command.nexus = nexus;
  command.tag = tag;
  return command;
}

std::shared_ptr<std::optional<Outcome>> Rig::start(std::string_view cdb_hex,
                                                   std::string_view data) {
  auto outcome = std::make_shared<std::optional<Outcome>>();
  device->execute(command(cdb_hex, data), [outcome](const Response& response) {
    EXPECT_FALSE(outcome->has_value()) << "answered twice";
    *outcome = outcome_of(response);
  });
  return outcome;
}

Outcome Rig::send(std::string_view cdb_hex, std::string_view data) {
  const auto outcome = start(cdb_hex, data);
  EXPECT_TRUE(outcome->has_value()) << "no answer to " << cdb_hex;
  return outcome->value_or(Outcome{});
}

Outcome Rig::send_from(const std::shared_ptr<Nexus>& from, std::string_view cdb_hex,
                       std::string_view data) {
  const auto own = std::exchange(nexus, from);
  Outcome outcome = send(cdb_hex, data);
  nexus = own;
  return outcome;
}

Transfer Rig::transfer_of(std::string_view cdb_hex) const {
  return device->transfer_of(lun, cdb(cdb_hex));
}

}  // namespace mariner::scsi::testing
