// Well-formed PDUs in any order to two sessions of one device: each 8 bytes of input are one step
// of one of the two initiators, or of the device. The first has up to two connections, the second
// recovers from damaged PDUs. Reaches what random bytes do not: tasks that wait for their turn, for
// data or memory, in any order of their attributes, task management across sessions, what is asked
// for again, logouts and resets amid all that.
#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "proto/check.h"
#include "tests/server/iscsi/iscsi_testing.h"

using namespace mariner;
using namespace mariner::iscsi;

namespace {

struct Initiator {
  std::uint8_t isid = 0;
  bool recovers = false;
  std::array<std::unique_ptr<TestClient>, 2> clients;
  std::array<Bytes, 2> rests;  // of PDUs that have come in part
  std::uint16_t tsih = 0;
  std::uint32_t cmd_sn = 1;
  std::uint32_t last_ttt = kReservedTag;
  std::uint32_t last_stat_sn = 0;

  void log_in(TestServer& server, std::size_t which) {
    const bool joins = tsih != 0 && server.registry->exists(tsih);
    clients[which] = std::make_unique<TestClient>(server);
    rests[which].clear();
    TestClient& client = *clients[which];
    std::string text =
        keys({"InitiatorName=iqn.2026-11.test:host", "TargetName=iqn.2026-11.org.mariner:disk"});
    if (recovers) text += keys({"DataDigest=CRC32C"});
    if (!joins) {
      text += keys({"InitialR2T=No", "MaxBurstLength=1024", "FirstBurstLength=1024"});
      text += recovers ? keys({"ErrorRecoveryLevel=1"})
                       : keys({"MaxOutstandingR2T=2", "MaxConnections=2"});
      cmd_sn = 1;
    }
    InitiatorPdu pdu = login_pdu(text, kOperationalToFull, 1, joins ? tsih : 0);
    pdu.bhs[13] = std::byte{isid};
    store_be(&pdu.bhs[20], static_cast<std::uint16_t>(which));
    client.feed(pdu.wire());
    for (const TargetPdu& reply : parse_target_stream(client.take_bytes(), false, false)) {
      if (reply.u16(36) == 0 && !joins) tsih = reply.u16(14);
    }
    client.data_digest = recovers;
  }

  void listen() {
    for (const auto& client : clients) {
      if (!client) continue;
      for (const TargetPdu& pdu : client->take()) {
        if (pdu.opcode() == Opcode::kR2t) last_ttt = pdu.ttt();
        last_stat_sn = pdu.stat_sn();
      }
    }
  }
};

using Step = std::span<const std::uint8_t, 8>;

InitiatorPdu command(Initiator& self, Step step) {
  const bool immediate = (step[1] & 1) != 0;
  const auto blocks = static_cast<std::uint16_t>(step[4] % 8);
  const bool write = (step[1] & 2) != 0;
  const std::uint32_t itt = step[2] % 8;
  // Now and then another one first.
  const std::uint32_t ahead = (step[7] & 0x30) == 0 ? 1 : 0;
  return command_pdu({.itt = itt,
                      .cmd_sn = (immediate ? self.cmd_sn : self.cmd_sn++) + ahead,
                      .lun = (step[1] & 4) != 0 ? TestDevice::kLun1 : 0,
                      .expected_bytes = step[5] * 16u,
                      .flags = static_cast<std::uint8_t>(step[3] & 0xe7),
                      .immediate = immediate,
                      .cdb = write ? write10(0, blocks) : read10(0, blocks),
                      .data = pattern(step[6] * 4u)});
}

InitiatorPdu snack(Step step) {
  InitiatorPdu pdu = nop_out_pdu(step[2] % 8u, kReservedTag);
  pdu.bhs[0] = std::byte{0x10};
  pdu.bhs[1] = static_cast<std::byte>(0x80 | step[1] % 5);
  store_be(&pdu.bhs[40], std::uint32_t{step[3]} % 8);
  store_be(&pdu.bhs[44], std::uint32_t{step[4]} % 8);
  return pdu;
}

InitiatorPdu pdu_of(Initiator& self, Step step) {
  switch (step[0] / 4 % 9) {
    case 0:
    case 1: return command(self, step);
    case 2:
    case 3:
      return data_out_pdu({.itt = step[2] % 8u,
                           .ttt = (step[1] & 1) != 0 ? self.last_ttt : kReservedTag,
                           .data_sn = step[3] % 4u,
                           .offset = step[4] * 64u,
                           .final = (step[1] & 2) != 0,
                           .data = pattern(step[5] * 64u % 1100)});
    case 4:
      return management_pdu({.function = static_cast<TaskManagement>(step[1] % 10),
                             .itt = 1000,
                             .referenced_itt = step[2] % 8u,
                             .cmd_sn = self.cmd_sn,
                             .ref_cmd_sn = self.cmd_sn - step[3] % 4u,
                             .lun = (step[4] & 1) != 0 ? TestDevice::kLun1 : 0});
    case 5: return nop_out_pdu(step[1], step[2], pattern(step[3]));
    case 6: return text_pdu(keys({"SendTargets="}));
    case 7: return snack(step);
    default: return logout_pdu(static_cast<LogoutReason>(step[1] % 3), step[2] % 2);
  }
}

void device_step(TestServer& server, Step step) {
  TestDevice& device = server.device();
  switch (step[1] % 6) {
    case 0:
      if (!device.pending.empty()) device.answer_oldest();
      return;
    case 1:
      // A device may also forget a command that task management has ended.
      if (!device.managed.empty()) {
        auto oldest = std::move(device.managed.front());
        device.managed.pop_front();
        oldest.done();
      }
      return;
    case 2: device.hold = !device.hold; return;
    case 3: device.hold_manage = !device.hold_manage; return;
    case 4: server.registry->drain(1); return;
    default: static_cast<void>(server.registry->kick(step[2] % 8, step[2] >= 128)); return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::uint64_t held = Payload::total_bytes();
  {
    Options options;
    options.payload_bytes_max = 4096;
    options.transfer_bytes_max = 3000;
    options.initiator_payload_bytes_max = 6000;  // of both sessions
    options.command_window = 6;
    options.immediate_commands_max = 2;
    TestServer server(options);
    server.device().hold = true;
    std::array<Initiator, 2> initiators;
    std::size_t connections = 0;
    std::uint64_t written = 0;
    initiators[1].recovers = true;
    for (std::uint8_t i = 0; i < initiators.size(); ++i) {
      initiators[i].isid = static_cast<std::uint8_t>(i + 1);
      initiators[i].log_in(server, 0);
      ++connections;
    }
    for (std::span<const std::uint8_t> rest(data, size); rest.size() >= 8; rest = rest.subspan(8)) {
      const Step step = rest.first<8>();
      if (step[0] >= 0xe0) {
        device_step(server, step);
      } else {
        Initiator& self = initiators[step[0] % 2];
        const std::size_t which = step[0] / 2 % 2;
        if (!self.clients[which] || self.clients[which]->connection.closing()) {
          self.log_in(server, which);
          ++connections;
        }
        InitiatorPdu pdu = pdu_of(self, step);
        if ((step[7] & 1) != 0) store_be(&pdu.bhs[28], self.last_stat_sn + 1);
        TestClient& client = *self.clients[which];
        Bytes wire = pdu.wire(false, client.data_digest);
        if (client.data_digest && (step[7] & 6) == 0) wire.back() ^= std::byte{1};
        // Of some a part comes before what the others do, and the rest with the next one.
        Bytes& late = self.rests[which];
        client.feed(late);
        const std::size_t now = (step[7] & 8) != 0 ? wire.size() * step[3] / 256 : wire.size();
        client.feed(std::span(wire).first(now));
        late.assign(wire.begin() + static_cast<std::ptrdiff_t>(now), wire.end());
      }
      for (Initiator& one : initiators) one.listen();
      // What reaches the device has its bytes, or the expected length fell short.
      for (; written < server.device().written.size(); ++written) {
        CHECK(server.device().written[written].size() <= options.transfer_bytes_max);
      }
    }
    for (Initiator& one : initiators) one.clients = {};
    while (!server.device().pending.empty()) server.device().answer_oldest();
    CHECK(server.observer.ended.size() == connections);
    CHECK(server.registry->size() == 0);
    server.device().written.clear();
  }
  CHECK(Payload::total_bytes() == held);
  return 0;
}
