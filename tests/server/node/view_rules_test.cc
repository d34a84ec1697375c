#include "server/node/view_rules.h"

#include <gtest/gtest.h>

#include "server/node/names.h"

namespace mariner::node {
namespace {

TEST(ViewRules, ANameThatIsFree) {
  const auto none = [](const std::string&) { return false; };
  EXPECT_EQ(free_view_name("db1", SequenceNumber{7}, none), "db1-7");
  const auto some = [](const std::string& name) { return name == "db1-7" || name == "db1-7-2"; };
  EXPECT_EQ(free_view_name("db1", SequenceNumber{7}, some), "db1-7-3");
  const std::string cut =
      free_view_name(std::string(kVolumeNameBytesMax, 'x'), SequenceNumber{UINT64_MAX}, none);
  EXPECT_TRUE(check_volume_name(cut)) << cut;
}

TEST(ViewRules, TheEndOfItsTime) {
  EXPECT_EQ(view_expires(0, VersionTime{5}), VersionTime{});
  EXPECT_EQ(view_expires(2, VersionTime{5}), VersionTime{2'000'000'005});
  EXPECT_EQ(view_expires(UINT64_MAX, VersionTime{5}), VersionTime{}) << "never";
}

TEST(ViewRules, AnOverlayIsBounded) {
  EXPECT_EQ(overlay_default(ByteSize{5u << 20}, 1ull << 40), 5u << 20);
  EXPECT_EQ(overlay_default(std::nullopt, 8ull << 30), 2ull << 30);
  EXPECT_EQ(overlay_default(std::nullopt, 1u << 20), 1u << 20) << "not less than a bound may be";
  api::ExposeRequest request;
  EXPECT_TRUE(check_overlay(request));
  request.set_overlay_bytes_max(1u << 20);
  EXPECT_EQ(check_overlay(request).error().code, ErrorCode::kInvalidArgument) << "read-only";
  request.set_writable(true);
  EXPECT_TRUE(check_overlay(request));
  request.set_overlay_bytes_max((1u << 20) - 1);
  EXPECT_EQ(check_overlay(request).error().code, ErrorCode::kInvalidArgument);
}

TEST(ViewRules, OneThatHostsUseGoesByForce) {
  api::View view;
  view.set_name("v");
  EXPECT_TRUE(check_unexpose(view, false));
  view.set_sessions(2);
  EXPECT_EQ(check_unexpose(view, false).error().code, ErrorCode::kBusy);
  EXPECT_TRUE(check_unexpose(view, true));
  EXPECT_EQ(no_view("w").code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::node
