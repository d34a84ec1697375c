#include "server/node/new_view.h"

#include <gtest/gtest.h>

#include "server/node/names.h"

namespace mariner::node {
namespace {

TEST(NewView, ANameThatIsFree) {
  const auto none = [](const std::string&) { return false; };
  EXPECT_EQ(free_view_name("db1", SequenceNumber{7}, none), "db1-7");
  const auto some = [](const std::string& name) { return name == "db1-7" || name == "db1-7-2"; };
  EXPECT_EQ(free_view_name("db1", SequenceNumber{7}, some), "db1-7-3");
  const std::string cut =
      free_view_name(std::string(kVolumeNameBytesMax, 'x'), SequenceNumber{UINT64_MAX}, none);
  EXPECT_TRUE(check_volume_name(cut)) << cut;
}

TEST(NewView, TheEndOfItsTime) {
  EXPECT_EQ(view_expires(0, VersionTime{5}), VersionTime{});
  EXPECT_EQ(view_expires(2, VersionTime{5}), VersionTime{2'000'000'005});
  EXPECT_EQ(view_expires(UINT64_MAX, VersionTime{5}), VersionTime{}) << "never";
}

}  // namespace
}  // namespace mariner::node
