#include "server/scsi/token_copies.h"

#include "proto/bytes.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::Rig;

struct Range {
  std::uint64_t lba = 0;
  std::uint32_t blocks = 0;
};
struct Options {
  std::uint32_t id = 1;
  bool immediate = false;
  bool delete_token = false;
  std::uint64_t offset = 0;
};

std::string cdb(std::uint8_t action, std::uint32_t id, std::size_t bytes) {
  std::vector<std::uint8_t> cdb(16);
  cdb[0] = 0x83;
  cdb[1] = action;
  store_be(&cdb[6], id);
  store_be(&cdb[10], static_cast<std::uint32_t>(bytes));
  return testing::hex(cdb);
}
std::string list_of(std::string header, const std::vector<Range>& ranges) {
  const std::size_t header_bytes = header.size();
  for (const Range& range : ranges) {
    header.resize(header.size() + 16);
    store_be(&header[header.size() - 16], range.lba);
    store_be(&header[header.size() - 8], range.blocks);
  }
  store_be(&header[0], static_cast<std::uint16_t>(header.size() - 2));
  store_be(&header[header_bytes - 2], static_cast<std::uint16_t>(header.size() - header_bytes));
  return header;
}
std::string populate_list(const std::vector<Range>& ranges, const Options& options = {}) {
  std::string header(16, '\0');
  header[2] = options.immediate ? 1 : 0;
  return list_of(std::move(header), ranges);
}
std::string write_list(const std::string& token, const std::vector<Range>& ranges,
                       const Options& options = {}) {
  std::string header(536, '\0');
  header[2] = static_cast<char>((options.immediate ? 1 : 0) | (options.delete_token ? 2 : 0));
  store_be(&header[8], options.offset);
  header.replace(16, 512, token);
  return list_of(std::move(header), ranges);
}
std::string zero_token() {
  std::string token(512, '\0');
  store_be(&token[0], std::uint32_t{0xFFFF0001});
  store_be(&token[6], std::uint16_t{0x01F8});
  return token;
}

// What RECEIVE ROD TOKEN INFORMATION says.
struct Information {
  int state = 0;
  std::uint64_t count = 0;
  std::string sense;  // hexadecimal
  std::string token;
};

class TokenCopiesTest : public ::testing::Test {
 protected:
  TokenCopiesTest() {
    for (std::uint8_t i = 0; i < 32; ++i) put(rig_, i, static_cast<char>('a' + i));
  }
  static void put(Rig& rig, std::uint8_t lba, char c) {
    EXPECT_EQ(rig.send("2a 00 00 00 00 " + testing::hex(std::span(&lba, 1)) + " 00 00 01 00",
                       std::string(512, c))
                  .verdict(),
              "good");
  }
  static std::string populate(Rig& rig, const std::vector<Range>& ranges,
                              const Options& options = {}) {
    const std::string list = populate_list(ranges, options);
    return rig.send(cdb(0x10, options.id, list.size()), list).verdict();
  }
  std::string write(Rig& rig, const std::string& token, const std::vector<Range>& ranges,
                    const Options& options = {}) {
    const std::string list = write_list(token, ranges, options);
    return rig.send(cdb(0x11, options.id, list.size()), list).verdict();
  }
  static std::optional<Information> ask(Rig& rig, std::uint32_t id = 1) {
    std::vector<std::uint8_t> cdb =
        testing::bytes("84 07 00 00 00 00 00 00 00 00 00 00 10 00 00 00");
    store_be(&cdb[2], id);
    const auto answer = rig.send(testing::hex(cdb));
    if (answer.verdict() != "good") return std::nullopt;
    Information out;
    out.state = answer.data[5];
    EXPECT_EQ(answer.data[15], 0xF1) << "counted in blocks";
    out.count = load_be<std::uint64_t>(&answer.data[16]);
    out.sense = testing::hex(std::span(answer.data).subspan(32, answer.data[14]));
    const std::size_t at = 32u + answer.data[13];
    const std::size_t bytes = load_be<std::uint32_t>(&answer.data[at]);
    if (bytes > 2) out.token = answer.text().substr(at + 6, bytes - 2);
    return out;
  }
  std::string token_of(Rig& rig, const std::vector<Range>& ranges) {
    EXPECT_EQ(populate(rig, ranges), "good");
    return ask(rig)->token;
  }
  // The letters at the beginnings of these blocks; '.' for zeros.
  static std::string letters(const Rig& rig, std::uint64_t lba, std::uint64_t blocks,
                             std::uint64_t block_bytes = 512) {
    std::string out;
    for (std::uint64_t i = lba; i < lba + blocks; ++i) {
      const std::string text = rig.layer->text({i * block_bytes, block_bytes});
      out += text[0] == '\0' ? '.' : text[0];
      EXPECT_EQ(text.find_first_not_of(text[0]), std::string::npos) << i;
    }
    return out;
  }

  Rig rig_;
};

TEST_F(TokenCopiesTest, ATokenStandsForTheRangesAsTheyWere) {
  EXPECT_EQ(populate(rig_, {{2, 3}, {10, 2}}), "good");
  const auto made = ask(rig_);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->state, 1);
  EXPECT_EQ(made->count, 5u);
  ASSERT_EQ(made->token.size(), 512u);
  for (std::uint8_t lba = 0; lba < 32; ++lba) put(rig_, lba, 'Z');
  EXPECT_EQ(write(rig_, made->token, {{100, 2}, {200, 3}}), "good");
  EXPECT_EQ(letters(rig_, 100, 3), "cd.");
  EXPECT_EQ(letters(rig_, 200, 4), "ekl.");
  const auto written = ask(rig_);
  EXPECT_EQ(written->state, 1);
  EXPECT_EQ(written->count, 5u);
  EXPECT_TRUE(written->token.empty());
}

TEST_F(TokenCopiesTest, FromAnOffsetOnAndNoFurtherThanTheTokenReaches) {
  const std::string token = token_of(rig_, {{2, 3}, {10, 2}});
  EXPECT_EQ(write(rig_, token, {{100, 1}}, {.offset = 4}), "good");
  EXPECT_EQ(letters(rig_, 100, 1), "l");
  EXPECT_EQ(write(rig_, token, {{100, 2}, {110, 8}}, {.offset = 1}), "good");
  EXPECT_EQ(letters(rig_, 100, 3) + letters(rig_, 110, 3), "de.kl.");
  EXPECT_EQ(ask(rig_)->state, 3) << "not all that was asked for";
  EXPECT_EQ(ask(rig_)->count, 4u);
  EXPECT_EQ(write(rig_, token, {{100, 1}}, {.offset = 5}), "5/26/00@p8");
  EXPECT_EQ(write(rig_, token, {{100, 1}}, {.offset = UINT64_MAX}), "5/26/00@p8");
}

TEST_F(TokenCopiesTest, OverWhatItWasMadeOf) {
  const std::string token = token_of(rig_, {{0, 8}});
  EXPECT_EQ(write(rig_, token, {{4, 8}}), "good");
  EXPECT_EQ(letters(rig_, 0, 13), "abcdabcdefghm") << "as it was, not as it becomes";
}

TEST_F(TokenCopiesTest, WhatIsNotStoredBecomesUnmapped) {
  const std::string token = token_of(rig_, {{24, 24}});  // the last block of data, then nothing
  rig_.layer->record_calls();
  EXPECT_EQ(write(rig_, token, {{1024, 24}}), "good");
  EXPECT_EQ(rig_.layer->calls(),
            (std::vector<std::string>{"write 524288+4096", "zero 528384+8192"}));
}

TEST_F(TokenCopiesTest, TheZeroTokenTrims) {
  rig_.layer->record_calls();
  EXPECT_EQ(write(rig_, zero_token(), {{0, 8}, {16, 2}}, {.offset = 9}), "good");
  EXPECT_EQ(rig_.layer->calls(), (std::vector<std::string>{"zero 0+4096", "zero 8192+1024"}));
  EXPECT_EQ(ask(rig_)->count, 10u);
  std::string wrong = zero_token();
  wrong[7] = 0;
  EXPECT_EQ(write(rig_, wrong, {{0, 8}}), "5/23/0A");
}

TEST_F(TokenCopiesTest, BetweenUnitsOfOtherBlockLengths) {
  auto tokens = std::make_shared<RodTokens>([] { return std::chrono::nanoseconds(0); });
  LogicalUnitOptions small;
  small.layer = rig_.layer;
  small.disk.identity = testing::example_identity();
  LogicalUnitOptions large = small;
  large.lun = Lun{1};
  const auto there =
      std::make_shared<test::RamLayer>(test::RamLayer::Options{.size_bytes = 1 << 20});
  large.layer = there;
  large.disk.block_bytes = 4096;
  large.disk.identity.naa = {0x30, 1, 1, 1, 1, 1, 1, 1};
  rig_.device = std::make_shared<Device>(std::vector{small, large}, nullptr, tokens);
  rig_.nexus = rig_.attach("iqn.2026-11.org.example:two");
  rig_.lun = std::uint64_t{1} << 48;
  rig_.send("00");
  rig_.lun = 0;
  const std::string token = token_of(rig_, {{0, 9}, {16, 3}});
  rig_.lun = std::uint64_t{1} << 48;
  EXPECT_EQ(write(rig_, token, {{5, 1}}), "good");
  EXPECT_EQ(there->text({5 * 4096, 4096}), rig_.layer->text({0, 4096}));
  EXPECT_EQ(write(rig_, token, {{6, 4}}, {.offset = 1}), "good");
  EXPECT_EQ(ask(rig_)->count, 1u) << "of the destination's blocks";
  EXPECT_EQ(ask(rig_)->state, 3);
  EXPECT_EQ(there->text({6 * 4096, 4 * 512}),
            rig_.layer->text({8 * 512, 512}) + rig_.layer->text({16 * 512, 3 * 512}));
  EXPECT_EQ(there->text({6 * 4096 + 4 * 512, 8192}), std::string(8192, '\0'))
      << "the rest of the block is zeros";
}

TEST_F(TokenCopiesTest, AUnitThatIsLostToAnotherNodeSaysSo) {
  const auto groups = std::make_shared<testing::FakePortGroups>();
  Rig shared({.port_groups = groups});
  const Error elsewhere{ErrorCode::kUnavailable, "elsewhere"};
  shared.layer->fail_next(elsewhere);
  EXPECT_EQ(populate(shared, {{0, 1}}), "2/04/0A");
  shared.layer->hold();
  const std::string list = write_list(zero_token(), {{100, 1}}, {.id = 6});
  shared.layer->fail_next(elsewhere);
  const auto copy = shared.start(cdb(0x11, 6, list.size()), list);
  groups->first = AccessState::kStandby;
  shared.layer->release();
  ASSERT_TRUE(copy->has_value());
  EXPECT_EQ((*copy)->verdict(), "2/04/0B");
}

TEST_F(TokenCopiesTest, ImmediateOnesAreAskedFor) {
  rig_.layer->hold();
  const std::string list = populate_list({{2, 3}}, {.immediate = true});
  const auto answer = rig_.start(cdb(0x10, 9, list.size()), list);
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->verdict(), "good");
  EXPECT_EQ(ask(rig_, 9)->state, 0x12);
  rig_.layer->release();
  EXPECT_EQ(ask(rig_, 9)->state, 1);
  const std::string token = ask(rig_, 9)->token;
  ASSERT_EQ(token.size(), 512u);

  rig_.layer->hold();
  EXPECT_EQ(write(rig_, token, {{100, 3}}, {.id = 10, .immediate = true}), "good");
  EXPECT_EQ(ask(rig_, 10)->state, 0x12);
  EXPECT_EQ(write(rig_, token, {{100, 3}}, {.id = 10}), "5/00/16") << "the identifier is in use";
  rig_.layer->release();
  EXPECT_EQ(ask(rig_, 10)->state, 1);
  EXPECT_EQ(letters(rig_, 100, 3), "cde");
}

// Whoever hears the answer may send the next command from within.
TEST_F(TokenCopiesTest, AnImmediateOneIsUnderWayWhenItIsAnswered) {
  const std::string token = token_of(rig_, {{0, 16}});
  const std::string list = write_list(token, {{100, 8}, {200, 8}}, {.id = 6, .immediate = true});
  std::shared_ptr<std::optional<testing::Outcome>> abort;
  rig_.layer->hold();
  rig_.device->execute(rig_.command(cdb(0x11, 6, list.size()), list),
                       [&](const Response&) { abort = rig_.start("83 1c 00 00 00 06"); });
  ASSERT_NE(abort, nullptr);
  EXPECT_FALSE(abort->has_value()) << "there is one to be ended";
  rig_.layer->release();
  ASSERT_TRUE(abort->has_value());
  EXPECT_EQ((*abort)->verdict(), "good");
  EXPECT_EQ(ask(rig_, 6)->state, 0x60);
  EXPECT_EQ(letters(rig_, 200, 1), ".");
}
TEST_F(TokenCopiesTest, AnImmediateTokenIsOfWhatWasBeforeItsAnswer) {
  const std::string list = populate_list({{0, 1}}, {.immediate = true});
  rig_.device->execute(rig_.command(cdb(0x10, 9, list.size()), list),
                       [&](const Response&) { put(rig_, 0, 'Z'); });
  EXPECT_EQ(letters(rig_, 0, 1), "Z");
  EXPECT_EQ(write(rig_, ask(rig_, 9)->token, {{100, 1}}), "good");
  EXPECT_EQ(letters(rig_, 100, 1), "a");
}
TEST_F(TokenCopiesTest, ADeviceMayGoWithTheAnswerOfAnImmediateOne) {
  const std::string list = write_list(zero_token(), {{0, 1}}, {.id = 6, .immediate = true});
  rig_.device->execute(rig_.command(cdb(0x11, 6, list.size()), list),
                       [&](const Response&) { rig_.device.reset(); });
  EXPECT_EQ(rig_.device, nullptr);
  EXPECT_EQ(letters(rig_, 0, 1), ".");
}

TEST_F(TokenCopiesTest, InTheBackgroundThereAreSoMany) {
  const std::string token = token_of(rig_, {{0, 1}});
  rig_.layer->hold();
  for (std::uint32_t id = 0; id < kBackgroundCopiesMax; ++id) {
    EXPECT_EQ(write(rig_, token, {{100 + id, 1}}, {.id = 100 + id, .immediate = true}), "good");
  }
  EXPECT_EQ(write(rig_, token, {{300, 1}}, {.id = 300, .immediate = true}), "busy");
  rig_.layer->release();
  EXPECT_EQ(write(rig_, token, {{300, 1}}, {.id = 300, .immediate = true}), "good");
}

TEST_F(TokenCopiesTest, AnAbortEndsIt) {
  const std::string token = token_of(rig_, {{0, 1}});
  rig_.layer->hold();
  const std::string list = write_list(token, {{100, 1}}, {.id = 6});
  const auto copy = rig_.start(cdb(0x11, 6, list.size()), list);
  EXPECT_EQ(rig_.send("83 1c 00 00 00 07").verdict(), "5/24/00@2") << "no such copy";
  const auto abort = rig_.start("83 1c 00 00 00 06");
  rig_.layer->release();
  EXPECT_EQ((*copy)->verdict(), "good") << "what was given to the layer has come to its end";
  EXPECT_EQ((*abort)->verdict(), "good");

  Rig other;
  const std::string elsewhere = token_of(other, {{0, 16}});
  other.layer->hold();
  const std::string zeros = write_list(elsewhere, {{100, 8}, {200, 8}}, {.id = 6});
  const auto second = other.start(cdb(0x11, 6, zeros.size()), zeros);
  other.start("83 1c 00 00 00 06");
  other.layer->release();
  EXPECT_EQ((*second)->verdict(), "A/2F/02");
  EXPECT_EQ(ask(other, 6)->state, 0x60);
}

TEST_F(TokenCopiesTest, AnAbortOfATaskEndsThatOfItsTaskOnly) {
  const std::string token = token_of(rig_, {{0, 16}});
  const std::string list = write_list(token, {{100, 8}, {200, 8}}, {.id = 6});
  for (const TaskTag aborted : {TaskTag{8}, TaskTag{7}}) {
    rig_.layer->hold();
    rig_.tag = TaskTag{7};
    const auto copy = rig_.start(cdb(0x11, 6, list.size()), list);
    rig_.device->abort_task(0, aborted, rig_.nexus, [] {});
    rig_.layer->release();
    ASSERT_TRUE(copy->has_value());
    EXPECT_EQ((*copy)->verdict(), aborted == rig_.tag ? "A/2F/02" : "good");
  }
}

TEST_F(TokenCopiesTest, AResetEndsWhatNobodyWaitsFor) {
  const std::string token = token_of(rig_, {{0, 16}});
  rig_.layer->hold();
  EXPECT_EQ(write(rig_, token, {{100, 8}, {200, 8}}, {.id = 6, .immediate = true}), "good");
  bool answered = false;
  rig_.device->manage(TaskManagementFunction::kAbortTask, 0, rig_.nexus, [] {});
  EXPECT_EQ(ask(rig_, 6)->state, 0x12) << "no task of it is left";
  rig_.device->manage(TaskManagementFunction::kLogicalUnitReset, 0, rig_.nexus,
                      [&] { answered = true; });
  EXPECT_FALSE(answered);
  rig_.layer->release();
  EXPECT_TRUE(answered);
  rig_.send("00");  // the reset's unit attention
  EXPECT_EQ(ask(rig_, 6)->state, 0x60);
  EXPECT_EQ(letters(rig_, 200, 1), ".");
}

TEST_F(TokenCopiesTest, DeletesItsTokenWhenItIsToldTo) {
  const std::string token = token_of(rig_, {{0, 1}});
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "good");
  EXPECT_EQ(write(rig_, token, {{101, 1}}, {.delete_token = true}), "good");
  EXPECT_EQ(write(rig_, token, {{102, 1}}), "5/23/09");
  EXPECT_EQ(write(rig_, std::string(512, '\0'), {{102, 1}}), "5/23/0A");
}

TEST_F(TokenCopiesTest, FailuresAreToldTwice) {
  const std::string token = token_of(rig_, {{0, 1}});
  rig_.layer->fail_next({ErrorCode::kNoSpace, "full"});
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "7/27/07");
  EXPECT_EQ(ask(rig_)->state, 2);
  EXPECT_EQ(ask(rig_)->sense.substr(0, 8), "70 00 07");
  rig_.layer->fail_next({ErrorCode::kIo, "gone"});
  EXPECT_EQ(populate(rig_, {{0, 1}}), "3/11/00i0");
  EXPECT_TRUE(ask(rig_)->token.empty());
  rig_.layer->set_read_only(true);
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "7/27/00");
}

TEST_F(TokenCopiesTest, ATokenWhoseMomentIsGoneIsCancelled) {
  const std::string token = token_of(rig_, {{0, 1}});
  rig_.layer->last_snapshot()->fail_next({ErrorCode::kOutsideWindow, "dropped"});
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "5/23/08");
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "5/23/08") << "for good";
}

TEST_F(TokenCopiesTest, ListsThatAreWrongMakeNothing) {
  EXPECT_EQ(populate(rig_, {{0, 1}, {0, 1}}), "5/26/00@p16");
  EXPECT_EQ(ask(rig_), std::nullopt) << "there was no copy";
  EXPECT_EQ(rig_.send(cdb(0x10, 1, 0)).verdict(), "good") << "nothing was asked for";
  EXPECT_EQ(rig_.send(cdb(0x11, 1, 0)).verdict(), "good");
  EXPECT_EQ(rig_.send(cdb(0x10, 1, 65537)).verdict(), "5/1A/00");
}

TEST_F(TokenCopiesTest, OthersDoNotSeeWhatBecameOfIt) {
  const std::string token = token_of(rig_, {{0, 1}});
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  EXPECT_EQ(rig_.send_from(other, "84 07 00 00 00 01 00 00 00 00 00 00 10 00").verdict(),
            "5/24/00@2");
  EXPECT_EQ(rig_.send_from(other, "84 05 00 00 00 01 00 00 00 00 00 00 10 00").verdict(),
            "5/24/00@2");
  const std::string list = write_list(token, {{100, 1}});
  EXPECT_EQ(rig_.send_from(other, cdb(0x11, 1, list.size()), list).verdict(), "good")
      << "but whoever has the token may use it";
  EXPECT_EQ(letters(rig_, 100, 1), "a");
}

TEST_F(TokenCopiesTest, AskedForNothingItForgets) {
  token_of(rig_, {{0, 1}});
  EXPECT_EQ(rig_.send("84 05 00 00 00 01 00 00 00 00 00 00 10 00").data.size(), 32u);
  EXPECT_EQ(rig_.send("84 07 00 00 00 01").verdict(), "good");
  EXPECT_EQ(ask(rig_), std::nullopt);
}

TEST_F(TokenCopiesTest, TokensAreReported) {
  EXPECT_EQ(rig_.send("84 08 00 00 00 00 00 00 00 00 00 00 10 00").hex_data(),
            "00 00 00 04 00 00 00 00");
  const std::string token = token_of(rig_, {{0, 1}});
  const auto report = rig_.send("84 08 00 00 00 00 00 00 00 00 00 00 10 00").text();
  EXPECT_EQ(report.substr(8), token.substr(0, 96));
}

TEST_F(TokenCopiesTest, WhatIsUnderWayEndsWithTheMedium) {
  Rig rig({.removable = true});
  put(rig, 0, 'a');
  put(rig, 1, 'b');
  const std::string token = token_of(rig, {{0, 2}});
  rig.layer->hold();
  EXPECT_EQ(write(rig, token, {{100, 1}, {200, 1}}, {.id = 5, .immediate = true}), "good");
  EXPECT_EQ(rig.send("1b 01 00 00 02 00").verdict(), "good");
  rig.layer->release();
  const auto information = ask(rig, 5);
  ASSERT_TRUE(information);
  EXPECT_EQ(information->count, 1u) << "what was begun";
  EXPECT_EQ(information->sense.substr(0, 8), "70 00 02") << information->sense;
  EXPECT_EQ(rig.layer->text({200 * 512, 512}), std::string(512, '\0'));
  EXPECT_EQ(write(rig, token, {{100, 1}}), "2/3A/02");
}

TEST_F(TokenCopiesTest, WhoIsFencedOffWritesNothing) {
  const std::string token = token_of(rig_, {{0, 1}});
  const auto other = rig_.attach("iqn.2026-11.org.example:other");
  std::string keys(24, '\0');
  keys[15] = 'B';
  EXPECT_EQ(rig_.send_from(other, "5f 00 00 00 00 00 00 00 18 00", keys).verdict(), "good");
  std::swap(keys[7], keys[15]);
  rig_.layer->hold();
  EXPECT_EQ(write(rig_, token, {{100, 1}}, {.id = 5, .immediate = true}), "good");
  rig_.layer->release();
  EXPECT_EQ(rig_.send_from(other, "5f 01 03 00 00 00 00 00 18 00", keys).verdict(), "good");
  EXPECT_EQ(write(rig_, token, {{100, 1}}), "reservation conflict");
  EXPECT_EQ(populate(rig_, {{0, 1}}), "reservation conflict") << "exclusive access";
  EXPECT_EQ(ask(rig_, 5)->state, 1) << "but it may ask";
}

}  // namespace
}  // namespace mariner::scsi
