#include "tests/powerdisk/overlay.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace mariner::powerdisk {
namespace {

using Bytes = std::vector<std::byte>;

Bytes filled(std::size_t sectors, unsigned value) {
  return Bytes(sectors * kSectorBytes, static_cast<std::byte>(value));
}

// The medium: sectors by offset; 0 where nothing was persisted.
class Medium {
 public:
  SectorSink sink() {
    return [this](std::uint64_t offset, std::span<const std::byte> data) {
      sectors_[offset] = std::to_integer<unsigned>(data[0]);
    };
  }
  unsigned at(std::uint64_t sector) const {
    const auto it = sectors_.find(sector * kSectorBytes);
    return it == sectors_.end() ? 0 : it->second;
  }
  std::size_t size() const { return sectors_.size(); }

 private:
  std::map<std::uint64_t, unsigned> sectors_;
};

unsigned read_sector(const Overlay& overlay, std::uint64_t sector) {
  Bytes bytes(kSectorBytes);
  overlay.read_over(sector * kSectorBytes, bytes);
  return std::to_integer<unsigned>(bytes[0]);
}

TEST(Overlay, reads_see_the_newest_version) {
  Overlay overlay;
  overlay.write(0, filled(16, 1), WriteId{1});
  overlay.write(4 * kSectorBytes, filled(8, 2), WriteId{2});
  overlay.write_zeros({5 * kSectorBytes, kSectorBytes}, WriteId{3});
  EXPECT_EQ(read_sector(overlay, 3), 1u);
  EXPECT_EQ(read_sector(overlay, 4), 2u);
  EXPECT_EQ(read_sector(overlay, 5), 0u);
  EXPECT_EQ(read_sector(overlay, 11), 2u);
  EXPECT_EQ(read_sector(overlay, 12), 1u);
}

TEST(Overlay, an_unaligned_read_gets_the_right_bytes) {
  Overlay overlay;
  Bytes data(2 * kSectorBytes);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i % 251);
  overlay.write(7 * kSectorBytes, data, WriteId{1});  // crosses a page
  Bytes out(600, std::byte{0xff});
  overlay.read_over(7 * kSectorBytes - 50, out);
  EXPECT_EQ(out[49], std::byte{0xff});
  EXPECT_EQ(std::memcmp(out.data() + 50, data.data(), 550), 0);
}

TEST(Overlay, a_flush_persists_the_newest_and_forgets) {
  Overlay overlay;
  Medium medium;
  overlay.write(0, filled(2, 1), WriteId{1});
  overlay.write(0, filled(1, 2), WriteId{2});
  overlay.flush(medium.sink());
  EXPECT_EQ(medium.at(0), 2u);
  EXPECT_EQ(medium.at(1), 1u);
  EXPECT_TRUE(overlay.empty());
  EXPECT_EQ(overlay.page_versions(), 0u);
}

TEST(Overlay, a_synchronous_write_persists_itself_only) {
  Overlay overlay;
  Medium medium;
  overlay.write(0, filled(4, 1), WriteId{1});
  overlay.write(kSectorBytes, filled(2, 2), WriteId{2});
  overlay.write(2 * kSectorBytes, filled(1, 3), WriteId{3});
  overlay.flush_write({kSectorBytes, 2 * kSectorBytes}, WriteId{2}, medium.sink());
  EXPECT_EQ(medium.size(), 2u);
  EXPECT_EQ(medium.at(1), 2u);
  EXPECT_EQ(medium.at(2), 2u);
  EXPECT_EQ(read_sector(overlay, 0), 1u) << "an earlier write is still there, unflushed";
  EXPECT_EQ(read_sector(overlay, 1), 0u) << "flushed: read from the medium";
  EXPECT_EQ(read_sector(overlay, 2), 3u) << "a later write stays on top";
}

TEST(Overlay, a_folded_version_can_still_be_flushed_by_its_id) {
  Overlay overlay;
  Medium medium;
  const auto writes = Overlay::kVersionsMax + 3;
  for (std::size_t i = 1; i <= writes; ++i) {
    overlay.write((i - 1) % 8 * kSectorBytes, filled(1, static_cast<unsigned>(i)), WriteId{i});
  }
  EXPECT_EQ(overlay.page_versions(), Overlay::kVersionsMax);
  overlay.flush_write({0, kSectorBytes}, WriteId{1}, medium.sink());
  EXPECT_EQ(medium.at(0), 1u);
  overlay.flush(medium.sink());
  for (std::size_t i = 1; i <= writes; ++i) EXPECT_EQ(medium.at(i - 1), i);
}

TEST(Overlay, truncation_forgets_what_is_past_the_end) {
  Overlay overlay;
  overlay.write(0, filled(16, 1), WriteId{1});
  overlay.truncate(3 * kSectorBytes + 10);
  Bytes out(16 * kSectorBytes);
  overlay.read_over(0, out);
  EXPECT_EQ(out[3 * kSectorBytes + 9], std::byte{1});
  EXPECT_EQ(out[3 * kSectorBytes + 10], std::byte{0});
  EXPECT_EQ(out[4 * kSectorBytes], std::byte{0});
  EXPECT_EQ(overlay.page_versions(), 1u);
}

TEST(Overlay, cuts_lose_keep_and_tear_by_seed) {
  bool lost_all = false, kept_all = false, torn = false, older_survived = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Overlay overlay;
    Medium medium;
    overlay.write(0, filled(8, 1), WriteId{1});
    overlay.write(0, filled(8, 2), WriteId{2});
    overlay.cut(Fates(seed), medium.sink());
    EXPECT_TRUE(overlay.empty());
    std::map<unsigned, int> count;
    for (std::uint64_t s = 0; s < 8; ++s) ++count[medium.at(s)];
    lost_all |= count[0] == 8;
    kept_all |= count[2] == 8;
    torn |= count[2] > 0 && count[2] < 8;
    older_survived |= count[1] == 8;
  }
  EXPECT_TRUE(lost_all && kept_all && torn && older_survived);
}

TEST(Overlay, a_cut_repeats_by_its_seed) {
  Medium first, second;
  for (Medium* medium : {&first, &second}) {
    Overlay overlay;
    for (std::uint64_t i = 1; i < 100; ++i) {
      overlay.write(i * 7 % 40 * kSectorBytes, filled(2, static_cast<unsigned>(i)), WriteId{i});
    }
    overlay.cut(Fates(42), medium->sink());
  }
  for (std::uint64_t s = 0; s < 42; ++s) EXPECT_EQ(first.at(s), second.at(s));
}

TEST(Overlay, agrees_with_a_plain_array_through_random_operations) {
  constexpr std::uint64_t kSectors = 64;
  std::mt19937_64 random(7);
  Overlay overlay;
  Medium medium;
  std::array<unsigned, kSectors> model{};
  for (std::uint64_t id = 1; id < 5000; ++id) {
    const std::uint64_t at = random() % kSectors;
    const std::uint64_t length = 1 + random() % std::min<std::uint64_t>(kSectors - at, 20);
    const ByteRange range{at * kSectorBytes, length * kSectorBytes};
    const bool zeros = random() % 4 == 0;
    const unsigned value = zeros ? 0 : 1 + static_cast<unsigned>(random() % 200);
    if (zeros) {
      overlay.write_zeros(range, WriteId{id});
    } else {
      overlay.write(range.offset, filled(length, value), WriteId{id});
    }
    std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(at), length, value);
    if (random() % 3 == 0) overlay.flush_write(range, WriteId{id}, medium.sink());
    if (random() % 50 == 0) overlay.flush(medium.sink());
    const std::uint64_t check = random() % kSectors;
    Bytes bytes(kSectorBytes, static_cast<std::byte>(medium.at(check)));
    overlay.read_over(check * kSectorBytes, bytes);
    ASSERT_EQ(std::to_integer<unsigned>(bytes[0]), model[check]) << "after write " << id;
  }
}

}  // namespace
}  // namespace mariner::powerdisk
