#include "index/record_entries.h"

#include <gtest/gtest.h>

#include "index/run_key.h"

namespace mariner::test {
namespace {

using index::add_base;
using index::add_versions;
using index::AlignedRun;
using index::has_base;
using index::has_versions;
using index::IndexKey;
using index::LtIndex;
using index::PlacedRun;
using logging::LogLocation;
using logging::Record;
using logging::RecordType;

constexpr LogLocation kPlace{800, 2, 1, 1, 0};

Record record_of(RecordType type, std::uint64_t first, std::uint64_t count) {
  Record record;
  record.type = type;
  record.extent = {Lbn{first}, BlockCount{count}};
  record.sequence = {5};
  record.ordinal = 77;
  return record;
}

TEST(RecordEntries, AWriteHasOneForEachRun) {
  Record record = record_of(RecordType::kWrite, 7, 9);
  record.payload_blocks = 9;
  LtIndex::Batch batch;
  add_versions(record, kPlace, batch);
  ASSERT_EQ(batch.entries().size(), 2u);
  const auto& [one, eight] = std::pair(batch.entries()[0], batch.entries()[1]);
  EXPECT_EQ(one.key, (IndexKey{AlignedRun{0, 7}.key(), 5}));
  EXPECT_EQ(eight.key, (IndexKey{AlignedRun{1, 1}.key(), 5}));
  EXPECT_EQ(one.number, 77u);
  EXPECT_EQ(eight.level, 1u);
  EXPECT_EQ(index::unpack_placed_run(one.value), (PlacedRun{PlacedRun::Kind::kLog, kPlace, 0}));
  EXPECT_EQ(index::unpack_placed_run(eight.value), (PlacedRun{PlacedRun::Kind::kLog, kPlace, 1}));
}

TEST(RecordEntries, ZerosAndRepeatedBlocksAreSuch) {
  Record record = record_of(RecordType::kZero, 8, 8);
  LtIndex::Batch batch;
  add_versions(record, kPlace, batch);
  ASSERT_EQ(batch.entries().size(), 1u);
  EXPECT_EQ(index::unpack_placed_run(batch.entries()[0].value).kind, PlacedRun::Kind::kZero);
  batch.clear();
  record = record_of(RecordType::kWrite, 8, 8);
  record.flags = logging::kRepeats;
  record.payload_blocks = 1;
  add_versions(record, kPlace, batch);
  ASSERT_EQ(batch.entries().size(), 1u);
  EXPECT_EQ(index::unpack_placed_run(batch.entries()[0].value),
            (PlacedRun{PlacedRun::Kind::kRepeated, kPlace, 0}));
}

TEST(RecordEntries, ARollbackStandsBehindAllRuns) {
  Record record = record_of(RecordType::kRollback, 0, 0);
  record.target_sequence = {3};
  LtIndex::Batch batch;
  add_versions(record, kPlace, batch);
  ASSERT_EQ(batch.entries().size(), 1u);
  EXPECT_EQ(batch.entries()[0].key, (IndexKey{index::kRollbackKey, 5}));
  EXPECT_EQ(batch.entries()[0].value[0], std::byte{3});
}

TEST(RecordEntries, BeforeImagesAndRebasesAreNumberedByTheirOrdinals) {
  Record record = record_of(RecordType::kBeforeImage, 4, 1);
  record.payload_blocks = 1;
  EXPECT_TRUE(has_base(record));
  EXPECT_FALSE(has_versions(record));
  LtIndex::Batch batch;
  add_base(record, kPlace, batch);
  record.flags = logging::kReplaces;
  add_base(record, kPlace, batch);
  record.type = RecordType::kRebase;
  record.payload_blocks = 0;
  add_base(record, kPlace, batch);
  ASSERT_EQ(batch.entries().size(), 3u);
  const PlacedRun::Kind kinds[] = {PlacedRun::Kind::kLog, PlacedRun::Kind::kReplacing,
                                   PlacedRun::Kind::kBase};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.entries()[i].key, (IndexKey{AlignedRun{0, 4}.key(), 77}));
    EXPECT_EQ(index::unpack_placed_run(batch.entries()[i].value).kind, kinds[i]);
  }
}

}  // namespace
}  // namespace mariner::test
