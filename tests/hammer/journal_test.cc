#include "tests/hammer/journal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace mariner::hammer {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = std::filesystem::temp_directory_path() / "journal-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<Write> load() {
    auto writes = load_campaign(folder_);
    EXPECT_TRUE(writes.has_value());
    return writes ? *writes : std::vector<Write>{};
  }

  std::filesystem::path folder_;
};

TEST_F(JournalTest, what_was_written_is_read_back_over_rounds) {
  std::uint64_t first_id = 0;
  {
    auto journal = JournalWriter::create(folder_);
    ASSERT_TRUE(journal.has_value());
    first_id = journal->next_id();
    journal->issued(
        {.id = first_id, .kind = Kind::kUnmap, .first_cell = 8, .cells = 16, .issued_ns = 100});
    journal->acknowledged(first_id, 200);
    const std::uint64_t second = journal->next_id();
    journal->issued({.id = second, .first_cell = 0, .cells = 1, .issued_ns = 150});
    journal->failed(second, 250, 2);
  }
  auto next = JournalWriter::create(folder_);
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(next->next_id(), first_id + 1);
  const auto writes = load();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[0].kind, Kind::kUnmap);
  EXPECT_EQ(writes[0].end_cell(), 24u);
  EXPECT_EQ(writes[0].acknowledged_ns, 200u);
  EXPECT_TRUE(writes[0].in_effect());
  EXPECT_EQ(writes[1].outcome, Outcome::kUnknown);
}

TEST_F(JournalTest, a_resolution_decides_what_was_unknown) {
  std::uint64_t id = 0;
  {
    auto journal = JournalWriter::create(folder_);
    ASSERT_TRUE(journal.has_value());
    id = journal->next_id();
    journal->issued({.id = id, .cells = 1});
  }
  ASSERT_TRUE(record_resolutions(folder_, {{id, Outcome::kPresent}}).has_value());
  EXPECT_TRUE(load().at(0).in_effect());
}

TEST_F(JournalTest, half_a_line_at_the_end_is_forgiven_and_no_other) {
  std::ofstream(folder_ / "round-000001.journal") << "round 1 0\nI 1 w 0 8 100\nA 1";
  EXPECT_EQ(load().size(), 1u);
  std::ofstream(folder_ / "round-000002.journal") << "round 2 0\nnonsense\nI 2 w 0 8 100\n";
  EXPECT_FALSE(load_campaign(folder_).has_value());
}

}  // namespace
}  // namespace mariner::hammer
