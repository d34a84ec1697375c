#include "server/admin/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "proto/admin.pb.h"

namespace mariner::admin {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Json, EveryAnswerBeginsWithItsSchema) {
  EXPECT_THAT(to_json(api::VolumeList{}), StartsWith("{\"schema\":1,\"volumes\":[]"));
  EXPECT_THAT(to_json(api::Volume{}), StartsWith("{\"schema\":1,\"name\":\"\""));
  EXPECT_EQ(to_json(api::MomentSpec{}), "{\"schema\":1}");
}

TEST(Json, NamesAreInSnakeCaseAndZerosPresent) {
  api::Volume volume;
  volume.set_size_bytes(1ull << 40);
  const auto text = to_json(volume);
  EXPECT_THAT(text, HasSubstr("\"size_bytes\":\"1099511627776\""));
  EXPECT_THAT(text, HasSubstr("\"sessions\":0"));
  EXPECT_THAT(text, HasSubstr("\"restoring\":false"));
}

TEST(Json, RequestsAreReadStrictlyAndAnswersLeniently) {
  api::VolumeRequest request;
  EXPECT_TRUE(from_json("", request));
  EXPECT_TRUE(from_json("{\"name\":\"a\",\"dry_run\":true}", request));
  EXPECT_TRUE(request.dry_run());
  const auto unknown = from_json("{\"dryrun\":true}", request);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(unknown.error().message, HasSubstr("dryrun"));
  EXPECT_TRUE(from_answer_json("{\"later\":{\"x\":[1]},\"name\":\"b\"}", request));
  EXPECT_EQ(request.name(), "b");
}

TEST(Json, WrongTextIsAnError) {
  api::CreateVolumeRequest request;
  for (const auto* text :
       {"{", "[]", "1", "null x", "{\"size_bytes\":-1}", "{\"size_bytes\":\"x\"}", "{\"name\":1.5}",
        "{\"name\":\"\xff\"}", "{\"size_bytes\":18446744073709551616}"}) {
    EXPECT_FALSE(from_json(text, request)) << text;
  }
  EXPECT_FALSE(from_json(std::string(100000, '['), request));
}

TEST(Json, ErrorsGoThereAndBack) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kMiscompare); ++i) {
    const Error error{static_cast<ErrorCode>(i), "what \"went\" wrong\n"};
    const auto back = error_from_json(to_json(error));
    EXPECT_EQ(back.code, error.code);
    EXPECT_EQ(back.message, error.message);
  }
  EXPECT_THAT(to_json(Error{ErrorCode::kIo, "bytes \xff\x01"}),
              HasSubstr("\"message\":\"bytes \xEF\xBF\xBD\\u0001\""));
}

TEST(Json, ForeignBytesInAnAnswerDoNotHurt) {
  api::SessionList list;
  list.add_sessions()->set_initiator("iqn.\xff\x80");
  api::StatusAnswer status;
  status.add_portals("\xc3");
  EXPECT_THAT(to_json(list), HasSubstr("\"initiator\":\"iqn.\xEF\xBF\xBD\xEF\xBF\xBD\""));
  EXPECT_THAT(to_json(status), HasSubstr("\"portals\":[\"\xEF\xBF\xBD\"]"));
}

TEST(Json, WhatIsNoErrorIsAProtocolError) {
  for (const auto* text : {"", "{}", "<html>", "{\"error\":1}", "{\"error\":{}}"}) {
    EXPECT_EQ(error_from_json(text).code, ErrorCode::kProtocol) << text;
  }
  EXPECT_EQ(error_from_json("{\"error\":{\"code\":\"of-the-future\",\"message\":\"m\"}}").code,
            ErrorCode::kIo);
}

TEST(Json, NoTextBreaksTheParsers) {
  EXPECT_TRUE(rc::check([](const std::string& text) {
    api::HistoryRequest request;
    (void)from_json(text, request);
    (void)from_json("{\"from\":" + text + "}", request);
    (void)error_from_json(text);
  }));
}

}  // namespace
}  // namespace mariner::admin
