#include "tests/server/node/block_client.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "proto/check.h"
#include "server/scsi/sense.h"
#include "tests/server/node/initiator_session.h"

namespace mariner::node::testing {
namespace {

constexpr std::uint64_t kLunBlockBytes = 512;
constexpr std::uint8_t kParts = kBlockBytes / kLunBlockBytes;
using Cdb = std::array<std::uint8_t, 16>;

// READ (16) or WRITE (16).
Cdb cdb_of(std::uint8_t opcode, std::uint64_t lba, std::uint8_t blocks) {
  Cdb cdb{opcode};
  for (unsigned i = 0; i < 8; ++i) cdb[2 + i] = static_cast<std::uint8_t>(lba >> (56 - 8 * i));
  cdb[13] = blocks;
  return cdb;
}

Payload filled(std::size_t bytes, char byte) {
  Payload data = Payload::allocate(bytes);
  std::memset(data.data(), byte, bytes);
  return data;
}

// What a test knows of a target, while it uses it. Loop's thread.
struct Use {
  std::shared_ptr<scsi::TargetDevice> device;
  std::shared_ptr<scsi::Nexus> nexus;

  void execute(const Cdb& cdb, const Payload& data, scsi::CommandDone done) const {
    scsi::Command command;
    command.cdb = cdb;
    command.data_out = data;
    command.data_out_announced = data.size();
    command.unit_blocks = device->transfer_of(0, cdb).unit_blocks;
    command.nexus = nexus;
    device->execute(std::move(command), std::move(done));
  }
};

}  // namespace

// In descriptor format or in fixed one (SPC-4 4.5).
std::optional<scsi::SenseKey> BlockClient::sense_key_of(const scsi::Response& response) {
  if (response.sense.size() < 3) return std::nullopt;
  const bool descriptors = (response.sense[0] & 0x7F) >= 0x72;
  return static_cast<scsi::SenseKey>(response.sense[descriptors ? 1 : 2] & 0x0F);
}

std::vector<scsi::Response> BlockClient::execute(const std::string& iqn,
                                                 const std::vector<Request>& requests) {
  constexpr int kAttempts = 3;
  Use use;
  // As an initiator logs in again: on a machine that is held up a lease may run out.
  const bool open = LoopThread::eventually([&] {
    return loop_.run([&] {
      const auto device = targets_.open(iqn, InitiatorSession::kName);
      if (!device) return false;
      use = Use{*device, (*device)->attach({{InitiatorSession::kName, {}}, target_port_})};
      return true;
    });
  });
  CHECK_MSG(open, iqn.c_str());
  // A new nexus is told of the power on before anything else: TEST UNIT READY hears of that.
  for (int i = 0; i < kAttempts; ++i) {
    const auto heard =
        loop_.answer<scsi::Response>([&](auto done) { use.execute({}, {}, std::move(done)); });
    if (heard.status == scsi::Status::kGood) break;
  }
  std::vector<scsi::Response> responses(requests.size());
  std::vector<std::size_t> asked(requests.size());
  std::iota(asked.begin(), asked.end(), 0);
  // As an initiator does, what was met by a unit attention is asked again: states of port groups
  // change at any time.
  for (int i = 0; i < kAttempts && !asked.empty(); ++i) {
    std::size_t waiting = asked.size();
    loop_.answer<bool>([&](auto done) {
      for (const std::size_t at : asked) {
        use.execute(requests[at].cdb, requests[at].data, [&, at, done](scsi::Response response) {
          responses[at] = std::move(response);
          if (--waiting == 0) done(true);
        });
      }
    });
    std::erase_if(asked, [&](std::size_t at) {
      return sense_key_of(responses[at]) != scsi::SenseKey::kUnitAttention;
    });
  }
  loop_.run([&] { use = {}; });  // they belong to the loop's thread
  return responses;
}

scsi::Response BlockClient::write(const std::string& iqn, std::uint64_t block, char byte) {
  return execute(iqn, {{cdb_of(0x8a, block * kParts, kParts), filled(kBlockBytes, byte)}}).front();
}

std::size_t BlockClient::write_parts(const std::string& iqn, std::uint64_t block, char byte) {
  std::vector<Request> requests;
  for (std::uint64_t part = 0; part < kParts; ++part) {
    requests.push_back({cdb_of(0x8a, block * kParts + part, 1), filled(kLunBlockBytes, byte)});
  }
  const auto responses = execute(iqn, requests);
  return static_cast<std::size_t>(
      std::ranges::count(responses, scsi::Status::kGood, &scsi::Response::status));
}

scsi::Response BlockClient::read(const std::string& iqn, std::uint64_t block) {
  return execute(iqn, {{cdb_of(0x88, block * kParts, kParts), {}}}).front();
}

std::optional<char> BlockClient::byte_of(const scsi::Response& response) {
  std::optional<char> byte;
  if (response.status != scsi::Status::kGood) return byte;
  for (const PayloadSlice& slice : response.data_in) {
    for (const std::byte each : slice.bytes()) {
      if (byte && *byte != static_cast<char>(each)) return std::nullopt;
      byte = static_cast<char>(each);
    }
  }
  return byte;
}

}  // namespace mariner::node::testing
