// The database (RocksDB) under the node's store. After a write that failed, a disk that was full or
// had an error, it is opened anew by the next one. Thread-safe; calls block.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace mariner::node {

class KeyValueStore {
 public:
  // Bytes that have to be free before it is opened anew: what was in memory (1 MiB) as a file, and
  // a new log.
  static constexpr std::uint64_t kRoom = 4u << 20;

  // Opens or creates the one in directory `path`. kNoSpace, kCorrupt, kIo.
  static Result<std::unique_ptr<KeyValueStore>> open(const std::string& path);
  ~KeyValueStore();
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;

  // All of it or nothing; durable on return, if asked for. kNoSpace, kIo, kCorrupt: whether it is
  // there afterwards is not known.
  Result<void> write(rocksdb::WriteBatch& batch, bool durable);
  Result<void> put(std::string_view key, std::string_view value, bool durable);
  Result<void> remove(std::string_view key);

  // Sets `value`; false: there is no such key.
  Result<bool> get(const std::string& key, std::string& value);
  // Told a key and its value, which are valid only meanwhile; ends it by an error. It does not
  // write.
  using Visitor = std::function<Result<void>(std::string_view, std::string_view)>;
  // All keys that begin so, in their order.
  Result<void> each(const std::string& prefix, const Visitor& visitor);

 private:
  explicit KeyValueStore(std::string path);
  Result<void> open_database();
  Result<void> go_on();

  const std::string path_;
  std::shared_mutex mutex_;           // alone: to open it anew
  std::unique_ptr<rocksdb::DB> db_;   // null: it could not be opened anew
  std::atomic<bool> failed_ = false;  // a write did, since it was opened
};

}  // namespace mariner::node
