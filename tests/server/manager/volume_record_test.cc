#include "server/manager/volume_record.h"

#include <gtest/gtest.h>

namespace mariner::manager {
namespace {

const VolumeRecord kRecord{{7}, {12}, {1}, {3}, {{1}, {2}}, {2}, Declined::kCatchingUp};

TEST(VolumeRecord, ComesBackAsItWas) {
  const auto decoded = decode_volume_record({7}, encode(kRecord));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, kRecord);
  EXPECT_EQ(volume_key({7}), "/mariner/volumes/7");
  EXPECT_EQ(alive_key({3}), "/mariner/alive/3");
}

TEST(VolumeRecord, ThatTheLoggerIsAwayComesBackAsItWas) {
  VolumeRecord record = kRecord;
  record.away = replication::LogAway{{100}, {104}, {5000}, {99}};
  const auto decoded = decode_volume_record({7}, encode(record));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->away, record.away);
}

TEST(VolumeRecord, WhatMakesNoSenseIsRefused) {
  const auto refused = [](VolumeRecord record) {
    return !decode_volume_record({7}, encode(record)).has_value();
  };
  VolumeRecord record = kRecord;
  record.volume = {8};
  EXPECT_TRUE(refused(record));
  record = kRecord;
  record.logger = {};
  EXPECT_TRUE(refused(record));
  record = kRecord;
  record.wanted = {9};
  EXPECT_FALSE(refused(record)) << "who may serve it need not store it";
  record = kRecord;
  record.declined = Declined::kLoggerAway;
  EXPECT_FALSE(refused(record));
  record.declined = static_cast<Declined>(5);
  EXPECT_TRUE(refused(record));
  record = kRecord;
  record.storages = {};
  EXPECT_TRUE(refused(record));
  record.storages = {{1}, {2}, {1}};
  EXPECT_TRUE(refused(record));
  record.storages = {{0}};
  EXPECT_TRUE(refused(record));
  EXPECT_FALSE(decode_volume_record({7}, "\xff\xff\xff").has_value());
  EXPECT_FALSE(decode_volume_record({7}, "").has_value());
}

}  // namespace
}  // namespace mariner::manager
