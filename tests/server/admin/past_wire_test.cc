#include "server/admin/past_wire.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace mariner::admin {
namespace {

std::string numbers(std::size_t count, char low = 1) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += std::string(1, low) + std::string(7, '\0');
  return out;
}

TEST(PastWire, NumbersAreLittleEndianAndOfEightBytes) {
  EXPECT_EQ(pack_questions(std::vector<BlockQuestion>{{{0x0102}, {3}}}),
            std::string("\2\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(pack_versions_request({{1}, {{{1}, {1}}}}), numbers(3));
  EXPECT_EQ(pack_changed({{{{1}, {1}}}, {1}}), numbers(3));
  EXPECT_EQ(pack_versions({{{{1}, {1}, {1}}}, true}), numbers(4));
}

TEST(PastWire, WhatIsPackedIsReadAgain) {
  const std::vector<BlockQuestion> questions{{{9}, {8}}, {{7}, {UINT64_MAX}}};
  EXPECT_EQ(parse_questions(pack_questions(questions)).value(), questions);
  const VersionsRequest request{{5}, {{{1}, {2}}, {{3}, {0}}}};
  EXPECT_EQ(parse_versions_request(pack_versions_request(request)).value(), request);
  const ChangedPart changed{{{{1}, {2}}, {{4}, {1}}}, {6}};
  EXPECT_EQ(parse_changed(pack_changed(changed)).value(), changed);
  EXPECT_EQ(parse_changed(pack_changed({})).value(), ChangedPart{});
  const VersionsPart versions{{{{1}, {2}, {3}}, {{1}, {4}, {5}}}, true};
  EXPECT_EQ(parse_versions(pack_versions(versions)).value(), versions);
  EXPECT_EQ(parse_versions(pack_versions({})).value(), VersionsPart{});
}

TEST(PastWire, RequestsWithoutSenseOrBoundAreRefused) {
  const auto code_of = [](const auto& result) { return result.error().code; };
  EXPECT_EQ(code_of(parse_questions("")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(parse_questions(numbers(3))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(parse_questions(numbers(2) + "x")), ErrorCode::kInvalidArgument);
  EXPECT_TRUE(parse_questions(numbers(2 * kBlockQuestionsMax)));
  EXPECT_EQ(code_of(parse_questions(numbers(2 * kBlockQuestionsMax + 2))), ErrorCode::kLimit);
  EXPECT_EQ(code_of(parse_versions_request("")), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(parse_versions_request(numbers(1))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(parse_versions_request(numbers(4))), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(parse_versions_request(numbers(5))), ErrorCode::kInvalidArgument)
      << "one block twice";
  EXPECT_EQ(code_of(parse_versions_request(numbers(2 * kVersionBlocksMax + 3))), ErrorCode::kLimit);
}

TEST(PastWire, AnswersWithoutSenseAreRefused) {
  const auto refused = [](const ChangedPart& part) {
    return !parse_changed(pack_changed(part)).has_value();
  };
  EXPECT_TRUE(refused({{{{1}, {0}}}, {}})) << "nothing changed";
  EXPECT_TRUE(refused({{{{UINT64_MAX}, {2}}}, {}}));
  EXPECT_TRUE(refused({{{{1}, {2}}, {{3}, {1}}}, {}})) << "no gap";
  EXPECT_TRUE(refused({{{{1}, {2}}}, {2}})) << "some of it again";
  EXPECT_FALSE(parse_changed("").has_value());
  EXPECT_FALSE(parse_changed(numbers(2)).has_value());
  EXPECT_FALSE(parse_versions("").has_value());
  EXPECT_FALSE(parse_versions(numbers(2)).has_value());
  EXPECT_FALSE(parse_versions(numbers(1)).has_value()) << "more behind nothing";
  EXPECT_FALSE(parse_versions(numbers(4, 2)).has_value()) << "neither more nor not";
}

TEST(PastWire, AnyBytesAreReadOrRefused) {
  rc::check([](const std::string& bytes) {
    (void)parse_questions(bytes);
    (void)parse_versions_request(bytes);
    (void)parse_changed(bytes);
    (void)parse_versions(bytes);
  });
}

}  // namespace
}  // namespace mariner::admin
