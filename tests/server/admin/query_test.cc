#include "server/admin/query.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "proto/admin.pb.h"
#include "proto/utf8.h"

namespace mariner::admin {
namespace {

TEST(Query, FieldsOfEveryKind) {
  api::HistoryRequest request;
  ASSERT_TRUE(from_query("from.time_ns=5&to.mark=a%26b&buckets=60&", request));
  EXPECT_EQ(request.from().time_ns(), 5u);
  EXPECT_EQ(request.to().mark(), "a&b");
  EXPECT_EQ(request.buckets(), 60u);
  api::VolumeRequest volume;
  ASSERT_TRUE(from_query("dry_run=true&force=false", volume));
  EXPECT_TRUE(volume.dry_run());
  EXPECT_TRUE(from_query("", volume));
}

TEST(Query, WrongOnesAreRefused) {
  for (const auto* query :
       {"x=1", "buckets=x", "buckets=4294967296", "buckets=-1", "from=1", "from.x=1", "name.x=1",
        "to.now=yes", "name=%", "name=%4", "name=%zz", "name=%00", "name=%ff", "buckets"}) {
    api::HistoryRequest request;
    const auto read = from_query(query, request);
    ASSERT_FALSE(read) << query;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument);
  }
  api::VolumeList list;
  EXPECT_FALSE(from_query("volumes=1", list));
}

TEST(Query, IsReadAsItIsWritten) {
  EXPECT_TRUE(
      rc::check([](const std::string& bytes, std::uint64_t sequence, std::uint32_t buckets) {
        const auto name = to_utf8(bytes.substr(0, bytes.find('\0')));
        api::HistoryRequest request;
        request.set_name(name);
        request.mutable_from()->set_sequence(sequence);
        request.set_buckets(buckets);
        api::HistoryRequest back;
        RC_ASSERT(from_query(to_query(request), back).has_value());
        RC_ASSERT(back.SerializeAsString() == request.SerializeAsString());
      }));
}

TEST(Query, PercentEncodingGoesThereAndBack) {
  EXPECT_EQ(percent_encoded("a b/ä"), "a%20b%2F%C3%A4");
  EXPECT_EQ(*percent_decoded("a%20b%2f%C3%A4+"), "a b/ä+");
}

}  // namespace
}  // namespace mariner::admin
