#include "server/scsi/persistent_reserve.h"

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::bytes;
using testing::hex;
using InAction = PersistentReserveIn::Action;
using Action = PersistentReserveOut::Action;

const InitiatorPort kPort{"iqn.a:b", {0x80, 0x12, 0x34, 0, 0x56, 0x78}};
constexpr std::string_view kPortHex =
    "45 00 00 1c 69 71 6e 2e 61 3a 62 2c 69 2c 30 78 38 30 31 32 33 34 30 30 35 36 37 38 00 00 00 "
    "00";

std::string hex_of(const std::vector<std::uint8_t>& data) { return hex(data); }

std::variant<Sense, ReserveOut> parse(Action action, const std::vector<std::uint8_t>& list,
                                      std::optional<std::uint32_t> announced = std::nullopt) {
  const PersistentReserveOut command{
      .action = action,
      .scope = 0,
      .type = 3,
      .parameter_bytes = announced.value_or(static_cast<std::uint32_t>(list.size()))};
  return parse_reserve_out(command, std::as_bytes(std::span(list)));
}
std::vector<std::uint8_t> list(std::string_view flags, std::string_view rest = "") {
  return bytes("00 00 00 00 00 00 00 0A  00 00 00 00 00 00 00 0B  00 00 00 00 " +
               std::string(flags) + " 00 00 00" + std::string(rest));
}
AdditionalSense code_of(const std::variant<Sense, ReserveOut>& parsed) {
  return std::holds_alternative<Sense>(parsed) ? std::get<Sense>(parsed).code : asc::kNone;
}

TEST(TransportId, ThereAndBack) {
  EXPECT_EQ(hex_of(transport_id(kPort)), kPortHex);
  std::vector<std::uint8_t> data = bytes(kPortHex);
  data.push_back(0x45);  // what follows is not its
  const auto parsed = parse_transport_id(data);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->port, kPort);
  EXPECT_EQ(parsed->bytes, data.size() - 1);
}

TEST(TransportId, IsPaddedToItsLeastLength) {
  EXPECT_EQ(transport_id({"a", {}}).size(), 24u);
  EXPECT_TRUE(parse_transport_id(transport_id({"a", {}})));
}

TEST(TransportId, WhatIsNone) {
  const auto none = [](std::size_t at, std::uint8_t byte) {
    std::vector<std::uint8_t> data = bytes(kPortHex);
    data[at] = byte;
    return !parse_transport_id(data);
  };
  EXPECT_TRUE(none(0, 0x05)) << "a name without an ISID";
  EXPECT_TRUE(none(0, 0x46)) << "SAS";
  EXPECT_TRUE(none(3, 0x17)) << "no multiple of four";
  EXPECT_TRUE(none(3, 0x10)) << "too short";
  EXPECT_TRUE(none(3, 0x20)) << "longer than there is";
  EXPECT_TRUE(none(12, 'j')) << "no separator";
  EXPECT_TRUE(none(20, 'g')) << "no hexadecimal digit";
  EXPECT_FALSE(parse_transport_id({}));
}

TEST(TransportId, ItsNameIsOneThatALoginCouldBring) {
  const auto name_of = [](const std::string& name) -> std::optional<std::string> {
    const auto parsed = parse_transport_id(transport_id({name, kPort.isid}));
    if (!parsed) return std::nullopt;
    EXPECT_EQ(parsed->port.isid, kPort.isid);
    return parsed->port.name;
  };
  EXPECT_EQ(name_of("IQN.a:B"), "iqn.a:b") << "as its session has it";
  EXPECT_EQ(name_of("iqn.b\xC3\xBC"
                    "cher"),
            "iqn.b\xC3\xBC"
            "cher");
  EXPECT_EQ(name_of(std::string(223, 'a')), std::string(223, 'a'));
  EXPECT_EQ(name_of(std::string(224, 'a')), std::nullopt);
  EXPECT_EQ(name_of("iqn.x\xFF"), std::nullopt) << "no UTF-8";
  EXPECT_EQ(name_of("iqn.\xC3"), std::nullopt);
  EXPECT_EQ(name_of("iqn.x\nroot"), std::nullopt);
  EXPECT_EQ(name_of("iqn.x y"), std::nullopt);
  EXPECT_EQ(name_of(""), std::nullopt);
}

TEST(ReserveOutList, Flags) {
  const auto parsed = parse(Action::kRegister, list("05"));
  const auto& out = std::get<ReserveOut>(parsed);
  EXPECT_EQ(out.key, 0xAu);
  EXPECT_EQ(out.action_key, 0xBu);
  EXPECT_TRUE(out.persists);
  EXPECT_TRUE(out.all_target_ports);
  EXPECT_EQ(out.type, 3);
  // They mean nothing with a service action that does not register.
  const auto reserving = parse(Action::kReserve, list("05"));
  EXPECT_FALSE(std::get<ReserveOut>(reserving).persists);
}

TEST(ReserveOutList, ItsLengthIsWhatItSays) {
  EXPECT_EQ(code_of(parse(Action::kRegister, bytes("00 00 00 00"))),
            asc::kParameterListLengthError);
  EXPECT_EQ(code_of(parse(Action::kRegister, list("00", "00 00 00 00"))),
            asc::kParameterListLengthError);
  EXPECT_EQ(code_of(parse(Action::kRegister, list("00"), 28)), asc::kParameterListLengthError);
}

TEST(ReserveOutList, OtherPorts) {
  const std::string ids = " 00 00 00 20" + std::string(kPortHex);
  const auto parsed = parse(Action::kRegister, list("08", ids));
  ASSERT_TRUE(std::holds_alternative<ReserveOut>(parsed));
  EXPECT_EQ(std::get<ReserveOut>(parsed).ports, std::vector{kPort});
  EXPECT_EQ(code_of(parse(Action::kReserve, list("08", ids))), asc::kInvalidFieldInParameterList);
  EXPECT_EQ(code_of(parse(Action::kRegister, list("08"))), asc::kParameterListLengthError);
  EXPECT_EQ(code_of(parse(Action::kRegister, list("08", " 00 00 00 21" + std::string(kPortHex)))),
            asc::kParameterListLengthError);
  EXPECT_EQ(code_of(parse(Action::kRegister, list("08", ids.substr(0, ids.size() - 12)))),
            asc::kParameterListLengthError);
}

TEST(ReserveOutList, OfAMove) {
  std::vector<std::uint8_t> move =
      bytes("00 00 00 00 00 00 00 0A  00 00 00 00 00 00 00 0B  00 03 00 02  00 00 00 20" +
            std::string(kPortHex));
  const auto parsed = parse(Action::kRegisterAndMove, move);
  ASSERT_TRUE(std::holds_alternative<ReserveOut>(parsed));
  const auto& out = std::get<ReserveOut>(parsed);
  EXPECT_TRUE(out.unregister);
  EXPECT_TRUE(out.persists);
  EXPECT_EQ(out.target_port, 2);
  EXPECT_EQ(out.ports, std::vector{kPort});
  move[24] = 0x05;
  EXPECT_EQ(code_of(parse(Action::kRegisterAndMove, move)), asc::kInvalidFieldInParameterList);
  EXPECT_EQ(code_of(parse(Action::kRegisterAndMove, list("00"))),
            asc::kInvalidFieldInParameterList);
}

TEST(ReserveOutList, PortsWhoseNamesAreNone) {
  const std::string id = hex_of(transport_id({"iqn.x\xFF", kPort.isid}));
  const std::string ids = " 00 00 00 " + hex_of({static_cast<std::uint8_t>((id.size() + 1) / 3)});
  EXPECT_EQ(code_of(parse(Action::kRegister, list("08", ids + id))),
            asc::kInvalidFieldInParameterList);
  EXPECT_EQ(code_of(parse(
                Action::kRegisterAndMove,
                bytes("00 00 00 00 00 00 00 0A  00 00 00 00 00 00 00 0B  00 01 00 02" + ids + id))),
            asc::kInvalidFieldInParameterList);
}

class ReserveInTest : public ::testing::Test {
 protected:
  ReserveInTest() {
    (void)state_.apply({.action = Action::kRegister, .action_key = 0xA, .persists = true}, a_);
    (void)state_.apply({.action = Action::kRegister,
                        .action_key = 0xB,
                        .persists = true,
                        .all_target_ports = true,
                        .target_ports = {1}},
                       b_);
  }
  const NexusId a_{kPort, 1};
  const NexusId b_{{"iqn.b:c", {}}, 1};
  Reservations state_;
};

TEST_F(ReserveInTest, Keys) {
  EXPECT_EQ(hex_of(reserve_in(InAction::kReadKeys, state_)),
            "00 00 00 02 00 00 00 10 00 00 00 00 00 00 00 0a 00 00 00 00 00 00 00 0b");
}

TEST_F(ReserveInTest, Reservation) {
  EXPECT_EQ(hex_of(reserve_in(InAction::kReadReservation, state_)), "00 00 00 02 00 00 00 00");
  (void)state_.apply({.action = Action::kReserve, .type = 5, .key = 0xA}, a_);
  EXPECT_EQ(hex_of(reserve_in(InAction::kReadReservation, state_)),
            "00 00 00 02 00 00 00 10 00 00 00 00 00 00 00 0a 00 00 00 00 00 05 00 00");
  (void)state_.apply({.action = Action::kRelease, .type = 5, .key = 0xA}, a_);
  (void)state_.apply({.action = Action::kReserve, .type = 7, .key = 0xA}, a_);
  EXPECT_EQ(hex_of(reserve_in(InAction::kReadReservation, state_)),
            "00 00 00 02 00 00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 07 00 00")
      << "all hold it: no key";
}

TEST_F(ReserveInTest, Capabilities) {
  EXPECT_EQ(hex_of(reserve_in(InAction::kReportCapabilities, state_)), "00 08 0d 81 ea 01 00 00");
}

TEST_F(ReserveInTest, FullStatus) {
  (void)state_.apply({.action = Action::kReserve, .type = 3, .key = 0xA}, a_);
  EXPECT_EQ(hex_of(reserve_in(InAction::kReadFullStatus, state_)),
            "00 00 00 02 00 00 00 70 "
            "00 00 00 00 00 00 00 0a 00 00 00 00 01 03 00 00 00 00 00 01 00 00 00 20 " +
                std::string(kPortHex) +
                " 00 00 00 00 00 00 00 0b 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 20 " +
                hex_of(transport_id(b_.initiator)));
}

}  // namespace
}  // namespace mariner::scsi
