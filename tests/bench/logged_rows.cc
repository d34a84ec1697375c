#include "tests/bench/logged_rows.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "tests/bench/index_workload.h"
#include "tests/bench/redo_record.h"

namespace mariner::bench {

LoggedRows::LoggedRows(const Parts& parts, const Options& options)
    : rows_(parts.rows), log_(parts.log), loop_(parts.loop), options_(options) {
  CHECK(options.outstanding_max > 0 && options.outstanding_max < UINT16_MAX);
}

std::uint16_t& LoggedRows::under_way(std::uint32_t table, IndexKey key) {
  return under_way_[mixed(mixed(key.high + table) ^ key.low) % under_way_.size()];
}

void LoggedRows::add(const RowUpdate& update) {
  CHECK(update.value.size() <= options_.value_bytes_max);
  if (!gathering_.record) {
    const std::size_t bytes = options_.outstanding_max * redo_bytes(options_.value_bytes_max);
    gathering_.record = Payload::allocate((bytes / kBlockBytes + 1) * kBlockBytes);
  }
  std::byte* const to = gathering_.record.data() + gathering_.bytes;
  gathering_.updates.push_back(put_redo(update, to));
  gathering_.came.push_back(Clock::now());
  ++under_way(update.table, update.key);
  gathering_.bytes += redo_bytes(update.value.size());
}

// What has gathered goes to the log, where nothing is under way.
void LoggedRows::begin_record() {
  if (!in_log_.updates.empty() || gathering_.updates.empty()) return;
  in_log_ = std::exchange(gathering_, {});
  durable_ = false;
  // Zeros to the end of the last block: kEnd.
  const std::size_t bytes = (in_log_.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  std::fill(in_log_.record.data() + in_log_.bytes, in_log_.record.data() + bytes, std::byte{0});
  log_.append({in_log_.record, 0, bytes}, [this](const Result<void>& r) {
    CHECK_MSG(r.has_value(), r.has_error() ? r.error().message.c_str() : "");
    durable_ = true;
  });
}

void LoggedRows::turn() {
  loop_.poll();
  Batch batch;
  if (durable_) {
    batch = std::exchange(in_log_, {});
    durable_ = false;
  }
  begin_record();
  if (batch.updates.empty()) return;
  loop_.poll();  // the next one leaves for the disk
  rows_.apply(batch.updates);
  const Clock::time_point now = Clock::now();
  for (const Clock::time_point came : batch.came) {
    latency_.record(static_cast<std::uint64_t>((now - came).count()));
  }
  for (const RowUpdate& update : batch.updates) --under_way(update.table, update.key);
  applied_ += batch.updates.size();
}

void LoggedRows::wait() {
  turn();
  if (!in_log_.updates.empty()) loop_.run_until([this] { return durable_; });
  turn();
}

void LoggedRows::apply(std::span<const RowUpdate> updates) {
  for (const RowUpdate& update : updates) {
    while (outstanding() >= options_.outstanding_max) wait();
    add(update);
  }
  turn();  // so that they leave as soon as the log is free
}

void LoggedRows::settle() {
  while (outstanding() > 0) wait();
}

void LoggedRows::begin_find(std::uint32_t table, KeyRange range, Found done) {
  if (range.low == range.high && under_way(table, range.low) == 0) {
    return rows_.begin_find(table, range, std::move(done));
  }
  const RowUpdate* newest = nullptr;
  for (const Batch* batch : {&in_log_, &gathering_}) {
    for (const RowUpdate& update : batch->updates) {
      if (update.table != table || update.key < range.low || update.key > range.high) continue;
      if (update.value.empty()) {  // what is left then, only the engine knows
        settle();
        return rows_.begin_find(table, range, std::move(done));
      }
      if (newest == nullptr || update.key >= newest->key) newest = &update;
    }
  }
  if (newest == nullptr) return rows_.begin_find(table, range, std::move(done));
  index::IndexRecord under_way{newest->key, {newest->value.begin(), newest->value.end()}};
  if (range.low == range.high) return done(std::move(under_way));
  rows_.begin_find(table, range,
                   [done = std::move(done),
                    under_way = std::move(under_way)](std::optional<index::IndexRecord> found) {
                     done(found && found->key > under_way.key ? std::move(found) : under_way);
                   });
}

std::uint64_t LoggedRows::count(std::uint32_t table, KeyRange range) {
  settle();
  return rows_.count(table, range);
}

void LoggedRows::poll() {
  turn();
  rows_.poll();
}

void LoggedRows::commit() {
  settle();
  rows_.commit();
}

}  // namespace mariner::bench
