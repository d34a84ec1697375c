#include "server/node/key_value_store.h"

#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "tests/logging/temporary_directory.h"

namespace mariner::node {
namespace {

// Files cannot become longer than this, as if their disk were full.
class LongestFile {
 public:
  explicit LongestFile(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~LongestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, SIG_DFL);
  }
  LongestFile(const LongestFile&) = delete;
  LongestFile& operator=(const LongestFile&) = delete;

 private:
  rlimit before_{};
};

class KeyValueStoreTest : public ::testing::Test {
 protected:
  KeyValueStoreTest() { reopen(); }
  void reopen() {
    store_.reset();
    Result<std::unique_ptr<KeyValueStore>> store = KeyValueStore::open(path_);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
  }
  std::string value_of(const std::string& key) {
    std::string value;
    const Result<bool> found = store_->get(key, value);
    EXPECT_TRUE(found);
    return found && *found ? value : "none";
  }
  std::vector<std::string> keys_of(const std::string& prefix) {
    std::vector<std::string> keys;
    const auto seen =
        store_->each(prefix, [&](std::string_view key, std::string_view) -> Result<void> {
          keys.emplace_back(key);
          return {};
        });
    EXPECT_TRUE(seen);
    return keys;
  }
  // Up to 200 values of 2,000 bytes, until two were not written; which of them were.
  std::vector<std::string> fill(const std::string& prefix) {
    std::vector<std::string> written;
    int refused = 0;
    for (int i = 0; i < 200 && refused < 2; ++i) {
      const std::string key = prefix + std::to_string(i);
      if (store_->put(key, std::string(2000, 'v'), true)) {
        written.push_back(key);
      } else {
        ++refused;
      }
    }
    return written;
  }

  const logging::test::TemporaryDirectory folder_;
  const std::string path_ = folder_.file("store");
  std::unique_ptr<KeyValueStore> store_;
};

TEST_F(KeyValueStoreTest, WhatIsWrittenIsThereAfterTheNextStart) {
  rocksdb::WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("ab", "2");
  batch.Put("b", "3");
  ASSERT_TRUE(store_->write(batch, true));
  ASSERT_TRUE(store_->remove("b"));
  for (int i = 0; i < 2; ++i) {
    reopen();
    EXPECT_EQ(value_of("a"), "1");
    EXPECT_EQ(value_of("b"), "none");
    EXPECT_EQ(keys_of(""), (std::vector<std::string>{"a", "ab"}));
    EXPECT_EQ(keys_of("ab"), std::vector<std::string>{"ab"});
    EXPECT_EQ(keys_of("b"), std::vector<std::string>{});
  }
  const auto ended = store_->each("a", [](std::string_view, std::string_view) -> Result<void> {
    return Error{ErrorCode::kCorrupt, "enough"};
  });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "enough");
}

TEST_F(KeyValueStoreTest, GoesOnWhenADiskThatWasFullHasRoom) {
  std::vector<std::string> written;
  for (int times = 0; times < 3; ++times) {
    {
      const LongestFile full(64u << 10);
      const auto some = fill("full" + std::to_string(times) + "-");
      EXPECT_LT(some.size(), 200u) << "it was full";
      written.insert(written.end(), some.begin(), some.end());
    }
    const Result<void> room = store_->put("room" + std::to_string(times), "1", true);
    EXPECT_TRUE(room) << room.error().message;
    EXPECT_EQ(fill("more" + std::to_string(times) + "-").size(), 200u);
  }
  EXPECT_GT(written.size(), 10u);
  reopen();
  for (const std::string& key : written) EXPECT_EQ(value_of(key).size(), 2000u) << key;
  EXPECT_EQ(value_of("room2"), "1");
}

TEST_F(KeyValueStoreTest, IsReadByAnotherThreadWhileItIsOpenedAnew) {
  ASSERT_TRUE(store_->put("a", "1", true));
  std::atomic<bool> enough = false;
  std::thread reader([&] {
    std::string value;
    while (!enough) {
      const Result<bool> found = store_->get("a", value);
      EXPECT_TRUE(found && *found && value == "1");
      EXPECT_EQ(keys_of("a"), std::vector<std::string>{"a"});
    }
  });
  for (int times = 0; times < 3; ++times) {
    {
      const LongestFile full(64u << 10);
      EXPECT_LT(fill("full").size(), 200u) << "it was full";
    }
    EXPECT_TRUE(store_->put("room", "1", true));
  }
  enough = true;
  reader.join();
}

TEST_F(KeyValueStoreTest, WhereItCannotBeIsNamed) {
  const auto refused = KeyValueStore::open("/proc/none");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("/proc/none"), std::string::npos);
}

}  // namespace
}  // namespace mariner::node
