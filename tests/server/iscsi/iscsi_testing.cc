#include "tests/server/iscsi/iscsi_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "proto/crc32c.h"

namespace mariner::iscsi {
namespace {

InitiatorPdu start(Opcode opcode, bool immediate, std::uint8_t flags, std::uint32_t itt) {
  InitiatorPdu pdu;
  pdu.bhs[0] = static_cast<std::byte>(static_cast<unsigned>(opcode) | (immediate ? 0x40u : 0u));
  pdu.bhs[1] = std::byte{flags};
  store_be(&pdu.bhs[16], itt);
  return pdu;
}

void append(Bytes& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_digest(Bytes& to, std::span<const std::byte> covered) {
  std::byte digest[kDigestBytes];
  store_le(digest, crc32c(covered));
  append(to, digest);
}

std::array<std::uint8_t, 16> cdb10(std::uint8_t opcode, std::uint32_t lba, std::uint16_t blocks) {
  std::array<std::uint8_t, 16> cdb{opcode};
  store_be(&cdb[2], lba);
  store_be(&cdb[7], blocks);
  return cdb;
}

}  // namespace

Bytes bytes_of(std::string_view text) {
  const auto bytes = as_byte_span(text);
  return {bytes.begin(), bytes.end()};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes pattern(std::size_t count, unsigned seed) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>((i * 7 + i / 251 + seed) & 0xff);
  }
  return bytes;
}

std::string keys(std::initializer_list<std::string_view> pairs) {
  std::string text;
  for (const auto pair : pairs) text.append(pair).append(1, '\0');
  return text;
}

Bytes InitiatorPdu::wire(bool header_digest, bool data_digest) const {
  Bytes out;
  Bhs header = bhs;
  header[4] = static_cast<std::byte>(ahs.size() / 4);
  store_be24(&header[5], static_cast<std::uint32_t>(data.size()));
  append(out, header);
  append(out, ahs);
  if (header_digest) append_digest(out, Bytes(out));
  Bytes padded = data;
  padded.resize((data.size() + 3) / 4 * 4);
  append(out, padded);
  if (data_digest && !data.empty()) append_digest(out, padded);
  return out;
}

InitiatorPdu login_pdu(std::string_view text, std::uint8_t flags, std::uint32_t cmd_sn,
                       std::uint16_t tsih) {
  InitiatorPdu pdu = start(Opcode::kLoginRequest, true, flags, 0x1111);
  pdu.bhs[8] = std::byte{0x80};
  pdu.bhs[13] = std::byte{1};  // ISID
  store_be(&pdu.bhs[14], tsih);
  store_be(&pdu.bhs[24], cmd_sn);
  pdu.data = bytes_of(text);
  return pdu;
}

InitiatorPdu command_pdu(const CommandFields& fields) {
  InitiatorPdu pdu = start(Opcode::kScsiCommand, fields.immediate, fields.flags, fields.itt);
  store_be(&pdu.bhs[8], fields.lun);
  store_be(&pdu.bhs[20], fields.expected_bytes);
  store_be(&pdu.bhs[24], fields.cmd_sn);
  std::memcpy(&pdu.bhs[32], fields.cdb.data(), fields.cdb.size());
  pdu.data = fields.data;
  return pdu;
}

std::array<std::uint8_t, 16> read10(std::uint32_t lba, std::uint16_t blocks) {
  return cdb10(0x28, lba, blocks);
}

std::array<std::uint8_t, 16> write10(std::uint32_t lba, std::uint16_t blocks) {
  return cdb10(0x2a, lba, blocks);
}

InitiatorPdu data_out_pdu(const DataOutFields& fields) {
  InitiatorPdu pdu = start(Opcode::kDataOut, false, fields.final ? kFinal : 0, fields.itt);
  store_be(&pdu.bhs[20], fields.ttt);
  store_be(&pdu.bhs[36], fields.data_sn);
  store_be(&pdu.bhs[40], fields.offset);
  pdu.data = fields.data;
  return pdu;
}

InitiatorPdu management_pdu(const ManagementFields& fields) {
  const auto flags = static_cast<std::uint8_t>(kFinal | static_cast<unsigned>(fields.function));
  InitiatorPdu pdu = start(Opcode::kTaskManagementRequest, true, flags, fields.itt);
  store_be(&pdu.bhs[8], fields.lun);
  store_be(&pdu.bhs[20], fields.referenced_itt);
  store_be(&pdu.bhs[24], fields.cmd_sn);
  store_be(&pdu.bhs[32], fields.ref_cmd_sn);
  return pdu;
}

InitiatorPdu nop_out_pdu(std::uint32_t itt, std::uint32_t ttt, Bytes data) {
  InitiatorPdu pdu = start(Opcode::kNopOut, true, kFinal, itt);
  store_be(&pdu.bhs[20], ttt);
  pdu.data = std::move(data);
  return pdu;
}

InitiatorPdu text_pdu(std::string_view text, std::uint32_t ttt, std::uint8_t flags) {
  InitiatorPdu pdu = start(Opcode::kTextRequest, true, flags, 0x2222);
  store_be(&pdu.bhs[20], ttt);
  pdu.data = bytes_of(text);
  return pdu;
}

InitiatorPdu logout_pdu(LogoutReason reason, std::uint16_t cid) {
  const auto flags = static_cast<std::uint8_t>(kFinal | static_cast<unsigned>(reason));
  InitiatorPdu pdu = start(Opcode::kLogoutRequest, true, flags, 0x3333);
  store_be(&pdu.bhs[20], cid);
  return pdu;
}

Opcode TargetPdu::opcode() const { return static_cast<Opcode>(u8(0) & 0x3f); }
std::uint8_t TargetPdu::u8(std::size_t at) const { return std::to_integer<std::uint8_t>(bhs[at]); }
std::uint16_t TargetPdu::u16(std::size_t at) const { return load_be<std::uint16_t>(&bhs[at]); }
std::uint32_t TargetPdu::u32(std::size_t at) const { return load_be<std::uint32_t>(&bhs[at]); }

std::vector<TargetPdu> parse_target_stream(std::span<const std::byte> stream, bool header_digest,
                                           bool data_digest) {
  const auto take = [&](std::size_t count) {
    if (stream.size() < count) throw std::runtime_error("the target's stream ends within a PDU");
    const auto head = stream.first(count);
    stream = stream.subspan(count);
    return head;
  };
  const auto check_digest = [&](std::span<const std::byte> covered) {
    if (load_le<std::uint32_t>(take(kDigestBytes).data()) != crc32c(covered)) {
      throw std::runtime_error("wrong digest");
    }
  };
  std::vector<TargetPdu> pdus;
  while (!stream.empty()) {
    TargetPdu pdu;
    const auto header = take(kBhsBytes);
    std::copy(header.begin(), header.end(), pdu.bhs.begin());
    if (header_digest) check_digest(header);
    const std::size_t bytes = load_be24(&pdu.bhs[5]);
    const auto padded = take((bytes + 3) / 4 * 4);
    pdu.data.assign(padded.begin(), padded.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (data_digest && bytes > 0) check_digest(padded);
    pdus.push_back(std::move(pdu));
  }
  return pdus;
}

std::shared_ptr<scsi::Nexus> TestDevice::attach(const scsi::NexusId& id) {
  const scsi::InitiatorPort& port = id.initiator;
  attached = id;
  const std::string key = port.name + "," + std::string(port.isid.begin(), port.isid.end()) + "," +
                          std::to_string(id.target_port);
  auto held = ports[key].lock();
  if (!held) held = std::make_shared<TestNexus>();
  ports[key] = held;
  nexus = held;
  return held;
}

scsi::Transfer TestDevice::transfer_of(std::uint64_t, std::span<const std::uint8_t, 16> cdb) const {
  const std::uint64_t bytes = std::uint64_t{load_be<std::uint16_t>(&cdb[7])} * 512;
  scsi::Transfer transfer{.unit_blocks = unit_blocks, .is_use = cdb[0] != 0};
  switch (cdb[0]) {
    case 0x28: transfer.direction = scsi::Transfer::Direction::kToInitiator; break;
    case 0x2a: transfer.direction = scsi::Transfer::Direction::kToTarget; break;
    default: return transfer;
  }
  transfer.bytes = bytes;
  return transfer;
}

scsi::Response TestDevice::response_to(const scsi::Command& command) const {
  scsi::Response response;
  if (command.cdb[0] == 0x28) {
    const std::size_t bytes = std::size_t{load_be<std::uint16_t>(&command.cdb[7])} * 512;
    // In two pieces, as a device may well return it.
    const auto data = Payload::copy_of(pattern(bytes));
    const std::size_t half = bytes / 2;
    response.data_in.push_back({.payload = data, .offset = 0, .length = half});
    response.data_in.push_back({.payload = data, .offset = half, .length = bytes - half});
  }
  return response;
}

void TestDevice::execute(scsi::Command command, scsi::CommandDone done) {
  ++executed;
  if (command.cdb[0] == 0x2a) written.push_back(command.data_out);
  if (hold) {
    pending.push_back({std::move(command), std::move(done)});
    return;
  }
  done(response_to(command));
}

void TestDevice::answer_oldest() {
  Pending oldest = std::move(pending.front());
  pending.pop_front();
  oldest.done(response_to(oldest.command));
}

void TestDevice::manage(scsi::TaskManagementFunction function, std::uint64_t lun,
                        const std::shared_ptr<scsi::Nexus>&, UniqueFunction<void()> done) {
  functions.push_back(function);
  if (hold_manage) {
    managed.push_back({function, lun, std::move(done)});
    return;
  }
  done();
}

Result<std::shared_ptr<scsi::TargetDevice>> TestDirectory::open(std::string_view target,
                                                                std::string_view initiator) {
  if (target == "iqn.2026-11.org.mariner:importing") {
    return Error{ErrorCode::kUnavailable, "the volume is being imported"};
  }
  if (std::find(names.begin(), names.end(), target) == names.end()) {
    return Error{ErrorCode::kNotFound, "there is no such target"};
  }
  if (initiator == "iqn.2026-11.test:stranger") {
    return Error{ErrorCode::kInvalidArgument, "not on the access list"};
  }
  return std::shared_ptr<scsi::TargetDevice>(device);
}

TestClient::TestClient(TestServer& server, std::uint16_t portal_group)
    : connection({.options = server.options,
                  .directory = server.directory,
                  .registry = *server.registry,
                  .observer = server.observer,
                  .host = this,
                  .executor = server.executor,
                  .endpoints = {.address = "192.0.2.7:50000", .portal = "192.0.2.1:3260"},
                  .portal_group = portal_group,
                  .portal_addresses = {{"192.0.2.1:3260", portal_group}}}) {}

TestClient::~TestClient() { connection.end(EndReason::kPeerClosed, {}); }

std::vector<TargetPdu> TestClient::send(const InitiatorPdu& pdu) {
  return send_bytes(pdu.wire(header_digest, data_digest));
}

std::vector<TargetPdu> TestClient::send_bytes(std::span<const std::byte> bytes) {
  feed(bytes);
  return take();
}

void TestClient::feed(std::span<const std::byte> bytes) {
  while (!bytes.empty() && connection.wants_input()) {
    std::array<iovec, 2> places{};
    const std::size_t count = connection.prepare(places);
    std::size_t given = 0;
    for (std::size_t i = 0; i < count && !bytes.empty() && given < chunk_bytes_max; ++i) {
      const std::size_t n = std::min({places[i].iov_len, bytes.size(), chunk_bytes_max - given});
      std::memcpy(places[i].iov_base, bytes.data(), n);
      bytes = bytes.subspan(n);
      given += n;
    }
    connection.received(given);
  }
}

Bytes TestClient::take_bytes() {
  Bytes stream;
  while (connection.has_output()) {
    std::array<iovec, 7> places{};
    const std::size_t count = connection.pending(places);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      append(stream, {static_cast<const std::byte*>(places[i].iov_base), places[i].iov_len});
      bytes += places[i].iov_len;
    }
    connection.sent(bytes);
  }
  return stream;
}

std::vector<TargetPdu> TestClient::take() {
  return parse_target_stream(take_bytes(), header_digest, data_digest);
}

void TestClient::login(std::string_view more_keys, std::uint8_t isid) {
  InitiatorPdu pdu =
      login_pdu(keys({"InitiatorName=iqn.2026-11.test:host",
                      "TargetName=iqn.2026-11.org.mariner:disk", "SessionType=Normal"}) +
                    std::string(more_keys),
                kOperationalToFull);
  pdu.bhs[13] = std::byte{isid};
  const auto replies = send(pdu);
  ASSERT_EQ(replies.size(), 1u);
  ASSERT_EQ(replies[0].opcode(), Opcode::kLoginResponse);
  ASSERT_EQ(replies[0].u16(36), 0) << text_of(replies[0].data);
  const std::string answer = text_of(replies[0].data);
  header_digest = answer.find("HeaderDigest=CRC32C") != std::string::npos;
  data_digest = answer.find("DataDigest=CRC32C") != std::string::npos;
}

void TestClient::login_discovery() {
  const auto replies = send(login_pdu(
      keys({"InitiatorName=iqn.2026-11.test:host", "SessionType=Discovery"}), kOperationalToFull));
  ASSERT_EQ(replies.size(), 1u);
  ASSERT_EQ(replies[0].u16(36), 0);
}

}  // namespace mariner::iscsi
