#include "server/scsi/opcodes.h"

#include <bit>
#include <set>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

TEST(Opcodes, EveryEntryIsFoundByItsOpcodeAndServiceAction) {
  for (const OpcodeInfo& info : opcode_table()) {
    EXPECT_EQ(find_opcode(info.opcode, info.service_action.value_or(0)), &info) << info.name;
  }
}

TEST(Opcodes, NoTwoEntriesAreTheSame) {
  std::set<std::pair<int, int>> seen;
  for (const OpcodeInfo& info : opcode_table()) {
    EXPECT_TRUE(seen.insert({info.opcode, info.service_action.value_or(0)}).second) << info.name;
  }
}

TEST(Opcodes, OpcodesThatNobodyImplementsAreNotFound) {
  EXPECT_EQ(find_opcode(0x7F, 0), nullptr);
  EXPECT_EQ(find_opcode(0xFF, 0), nullptr);
  EXPECT_TRUE(entries_of(0xFF).empty());
}

TEST(Opcodes, AnUnknownServiceActionIsNotFoundButItsOpcodeHasEntries) {
  EXPECT_EQ(find_opcode(0x9E, 0x1F), nullptr);
  EXPECT_EQ(entries_of(0x9E).size(), 2u);
}

TEST(Opcodes, TheGroupCodeSaysHowLongTheCdbIs) {
  for (const OpcodeInfo& info : opcode_table()) {
    constexpr int kLengths[] = {6, 10, 10, 0, 16, 12, 0, 0};  // SPC-4 4.2.5.1
    EXPECT_EQ(info.cdb_bytes, kLengths[info.opcode >> 5]) << info.name;
  }
}

TEST(Opcodes, UsageDataStartsWithTheOpcodeAndHoldsTheServiceAction) {
  for (const OpcodeInfo& info : opcode_table()) {
    EXPECT_EQ(info.usage[0], info.opcode) << info.name;
    if (info.service_action) {
      EXPECT_EQ(info.usage[1] & 0x1F, *info.service_action) << info.name;
    }
  }
}

TEST(Opcodes, NothingIsUsedInTheControlByteOrBeyondTheCdb) {
  for (const OpcodeInfo& info : opcode_table()) {
    for (std::size_t i = info.cdb_bytes - 1u; i < 16; ++i) EXPECT_EQ(info.usage[i], 0) << info.name;
  }
}

// Each bit that is not in the usage data is refused alone, with a pointer right at it.
TEST(Opcodes, EveryBitOutsideTheUsageDataIsRefused) {
  testing::Rig rig;
  for (const OpcodeInfo& info : opcode_table()) {
    for (std::size_t byte = 1; byte < info.cdb_bytes; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        const auto mask = static_cast<std::uint8_t>(1 << bit);
        if ((info.usage[byte] & mask) != 0) continue;
        if (info.service_action && byte == 1 && bit < 5) continue;  // another command
        std::vector<std::uint8_t> cdb(info.cdb_bytes);
        cdb[0] = info.opcode;
        cdb[1] = info.service_action.value_or(0);
        cdb[byte] |= mask;
        EXPECT_EQ(rig.send(testing::hex(cdb)).verdict(),
                  "5/24/00@" + std::to_string(byte) + "." + std::to_string(bit))
            << info.name;
        EXPECT_EQ(rig.transfer_of(testing::hex(cdb)).bytes, 0u) << info.name;
      }
    }
  }
}

// And with all of them set, the most significant bit of the first byte is named.
TEST(Opcodes, AllBitsOutsideTheUsageDataAreRefused) {
  testing::Rig rig;
  for (const OpcodeInfo& info : opcode_table()) {
    std::vector<std::uint8_t> cdb(info.cdb_bytes);
    cdb[0] = info.opcode;
    std::string expected;
    for (std::size_t byte = 1; byte < info.cdb_bytes; ++byte) {
      cdb[byte] = static_cast<std::uint8_t>(~info.usage[byte]);
      if (byte == 1 && info.service_action) {
        cdb[1] = static_cast<std::uint8_t>((cdb[1] & 0xE0) | *info.service_action);
      }
      const int excess = cdb[byte] & ~info.usage[byte];
      if (expected.empty() && excess != 0) {
        expected = "5/24/00@" + std::to_string(byte) + "." +
                   std::to_string(std::bit_width(static_cast<unsigned>(excess)) - 1);
      }
    }
    EXPECT_EQ(rig.send(testing::hex(cdb)).verdict(), expected) << info.name;
  }
}

// A CDB of the entry with every field zero but those that must not be.
std::vector<std::uint8_t> simplest(const OpcodeInfo& info) {
  std::vector<std::uint8_t> cdb(info.cdb_bytes);
  cdb[0] = info.opcode;
  cdb[1] = info.service_action.value_or(0);
  switch (info.opcode) {
    case 0x15:
    case 0x55: cdb[1] = 0x10; break;  // page format
    case 0x3B:
    case 0x3C: cdb[1] = 0x0A; break;  // the echo buffer
    case 0x41: cdb[8] = 1; break;     // WRITE SAME of one block
    case 0x93: cdb[13] = 1; break;
    case 0x48: cdb[8] = info.service_action == 0x01 ? 5 : 0; break;  // SANITIZE, with a pattern
    default: break;
  }
  return cdb;
}

TEST(Opcodes, EachOneThatIsListedIsDecoded) {
  constexpr Geometry kRigidGeometry{
      .block_count = 2048, .transfer_blocks_max = 256, .sanitize = true};
  for (const OpcodeInfo& info : opcode_table()) {
    const auto decoded = decode(testing::cdb(testing::hex(simplest(info))), kRigidGeometry);
    EXPECT_FALSE(std::holds_alternative<Sense>(decoded)) << info.name;
  }
}
TEST(Opcodes, EveryOtherOneIsRefusedAsSuch) {
  testing::Rig rig;
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const auto entries = entries_of(static_cast<std::uint8_t>(opcode));
    for (unsigned action = 0; action < 32; ++action) {
      if (find_opcode(static_cast<std::uint8_t>(opcode), static_cast<std::uint16_t>(action))) {
        continue;
      }
      const std::vector<std::uint8_t> cdb = {static_cast<std::uint8_t>(opcode),
                                             static_cast<std::uint8_t>(action)};
      EXPECT_EQ(rig.send(testing::hex(cdb)).verdict(), entries.empty() ? "5/20/00" : "5/24/00@1.4")
          << testing::hex(cdb);
    }
  }
}

}  // namespace
}  // namespace mariner::scsi
