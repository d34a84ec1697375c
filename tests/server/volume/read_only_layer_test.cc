#include "server/volume/read_only_layer.h"

#include <gtest/gtest.h>

#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

TEST(ReadOnlyLayer, ReadsAndLetsNobodyWrite) {
  test::VolumeRig rig{{}};
  rig.start();
  Layer& live = rig.volume().live();
  Payload data = Payload::allocate(kBlockBytes);
  std::fill_n(data.data(), kBlockBytes, std::byte{'a'});
  const PayloadSlice bytes{data, 0, kBlockBytes};
  const ByteRange first{0, kBlockBytes};
  live.write(first, bytes, [](const Result<void>& r) { EXPECT_TRUE(r); });
  rig.manual().run_ready();

  ReadOnlyLayer layer(std::shared_ptr<Layer>(std::shared_ptr<void>(), &live));
  EXPECT_TRUE(layer.read_only());
  EXPECT_EQ(layer.size_bytes(), live.size_bytes());
  int refused = 0;
  const auto refuse = [&](const Result<void>& r) {
    EXPECT_EQ(r.error().code, ErrorCode::kReadOnly);
    ++refused;
  };
  layer.write(first, bytes, refuse);
  layer.write_same(first, bytes, refuse);
  layer.trim(first, TrimMode::kZero, refuse);
  layer.update(
      first, [](const PayloadSlice& current) { return std::optional(current); }, refuse);
  EXPECT_EQ(refused, 4);

  int answered = 0;
  layer.read(first, [&](const Result<PayloadSlice>& r) {
    ASSERT_TRUE(r);
    EXPECT_EQ(r->bytes()[0], std::byte{'a'});
    ++answered;
  });
  layer.allocation(first, [&](const Result<std::vector<Allocation>>& r) {
    ASSERT_TRUE(r);
    EXPECT_TRUE(r->front().mapped);
    ++answered;
  });
  layer.snapshot([&](const Result<std::shared_ptr<Layer>>& r) {
    ASSERT_TRUE(r);
    ++answered;
  });
  layer.flush([&](const Result<void>& r) { answered += r.has_value(); });
  layer.settle([&](const Result<void>& r) { answered += r.has_value(); });
  rig.manual().run_ready();
  EXPECT_EQ(answered, 5);
}

}  // namespace
}  // namespace mariner::volume
