#include "server/node/key_value_store.h"

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/write_batch.h>

#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include "server/client/quantity.h"

namespace mariner::node {
namespace {

Error error_of(const std::string& what, const rocksdb::Status& status) {
  ErrorCode code = ErrorCode::kIo;
  if (status.IsCorruption()) code = ErrorCode::kCorrupt;
  if (status.IsNoSpace()) code = ErrorCode::kNoSpace;
  return Error{code, fmt::format("the node's store: {}: {}", what, status.ToString())};
}

// After an error of a disk the library ends the process by an assertion where it goes on by itself:
// with the file of what it has to say besides its answers, and with the log whose end it could not
// write. So it says nothing, and is opened anew instead.
class Unsaid final : public rocksdb::Logger {
 public:
  Unsaid() : rocksdb::Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  void Logv(const char*, va_list) override {}
};

class NeverByItself final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* by_itself) override {
    *by_itself = false;
  }
};

// Whether kRoom is free in `folder`; a guess, which keeps what can be read until there is.
Result<void> check_room(const std::string& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error || space.available >= KeyValueStore::kRoom) return {};
  return Error{
      ErrorCode::kNoSpace,
      fmt::format(
          "the node's store: no room in {}: expected {} at least, found {}; make room there",
          folder, format_size(KeyValueStore::kRoom), format_size(space.available))};
}

rocksdb::Status not_open() {
  return rocksdb::Status::IOError("it could not be opened again after an error of its disk");
}

}  // namespace

KeyValueStore::KeyValueStore(std::string path) : path_(std::move(path)) {}
KeyValueStore::~KeyValueStore() = default;

Result<std::unique_ptr<KeyValueStore>> KeyValueStore::open(const std::string& path) {
  std::unique_ptr<KeyValueStore> store(new KeyValueStore(path));
  if (Result<void> r = store->open_database(); !r) return r.error();
  return store;
}

Result<void> KeyValueStore::open_database() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.keep_log_file_num = 2;
  options.max_open_files = 64;
  options.write_buffer_size = 1u << 20;
  options.info_log = std::make_shared<Unsaid>();
  options.listeners.push_back(std::make_shared<NeverByItself>());
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, path_, &db);
  if (!status.ok()) return error_of("cannot open " + path_, status);
  db_.reset(db);
  return {};
}

Result<void> KeyValueStore::go_on() {
  const std::unique_lock lock(mutex_);
  if (!failed_) return {};  // another thread was here
  if (db_) {
    if (Result<void> r = check_room(path_); !r) return r;
    db_.reset();
  }
  if (Result<void> r = open_database(); !r) return r;
  failed_ = false;
  return {};
}

Result<void> KeyValueStore::write(rocksdb::WriteBatch& batch, bool durable) {
  if (failed_) {
    if (Result<void> r = go_on(); !r) return r;
  }
  const std::shared_lock lock(mutex_);
  if (!db_) return error_of("write", not_open());
  rocksdb::WriteOptions options;
  options.sync = durable;
  const rocksdb::Status status = db_->Write(options, &batch);
  if (status.ok()) return {};
  failed_ = true;
  return error_of("write", status);
}

Result<void> KeyValueStore::put(std::string_view key, std::string_view value, bool durable) {
  rocksdb::WriteBatch batch;
  batch.Put(rocksdb::Slice(key.data(), key.size()), rocksdb::Slice(value.data(), value.size()));
  return write(batch, durable);
}

Result<void> KeyValueStore::remove(std::string_view key) {
  rocksdb::WriteBatch batch;
  batch.Delete(rocksdb::Slice(key.data(), key.size()));
  return write(batch, true);
}

Result<bool> KeyValueStore::get(const std::string& key, std::string& value) {
  const std::shared_lock lock(mutex_);
  if (!db_) return error_of("read", not_open());
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), key, &value);
  if (status.IsNotFound()) return false;
  if (!status.ok()) return error_of("read", status);
  return true;
}

Result<void> KeyValueStore::each(const std::string& prefix, const Visitor& visitor) {
  const std::shared_lock lock(mutex_);
  if (!db_) return error_of("read", not_open());
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions()));
  for (it->Seek(prefix); it->Valid() && it->key().starts_with(prefix); it->Next()) {
    if (Result<void> r = visitor(it->key().ToStringView(), it->value().ToStringView()); !r)
      return r;
  }
  if (!it->status().ok()) return error_of("read", it->status());
  return {};
}

}  // namespace mariner::node
