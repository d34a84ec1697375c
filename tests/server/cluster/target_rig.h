// A node that is the logger, the storage and a target of one volume: production parts over disks in
// memory, with a store in memory, on an executor that a test turns.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/logger_part.h"
#include "server/cluster/storage_part.h"
#include "server/cluster/target_part.h"
#include "tests/server/cluster/memory_promises.h"
#include "tests/server/manager/memory_store.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/logged_rig.h"
#include "tests/server/volume/telling_disk.h"

namespace mariner::cluster {

// Counts the timers that are set on an executor, and lets them come late.
class WatchedExecutor final : public Executor {
 public:
  explicit WatchedExecutor(Executor& executor) : executor_(executor) {}
  void post(UniqueFunction<void()> work) override { executor_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { executor_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    ++timers;
    executor_.after(delay + late, std::move(work));
  }
  [[nodiscard]] VersionTime wall_time() const override { return executor_.wall_time(); }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return executor_.monotonic_time();
  }

  int timers = 0;
  std::chrono::nanoseconds late{0};

 private:
  Executor& executor_;
};

// A node's way to the store: a client, a lease, a view; and what its target tells.
struct TargetMember {
  TargetMember(test::ManualExecutor& executor, manager::MemoryCluster& cluster,
               replication::NodeId id_in)
      : id(id_in),
        store(executor, cluster, {}),
        lease_executor(executor),
        lease(store, lease_executor,
              {.key = manager::alive_key(id), .value = "", .backoff = {.seed = id.value}},
              {.gained = [this] { look(); }, .lost = [this] { look(); }}),
        view(store, executor, std::string(manager::kClusterPrefix), {.seed = id.value},
             [this] { look(); }) {
    lease.start();
  }
  void look() {
    if (target != nullptr) target->look();
  }
  void begin(TargetPart::Options options, const TargetPart::Parts& parts) {
    options.self = id;
    options.backoff.seed = id.value;
    TargetPart::Events events;
    events.changed = [this](TargetPart::State state) { states.push_back(state); };
    events.elected = [this](const manager::VolumeRecord& record) {
      epochs.push_back(record.epoch.value);
    };
    events.failed = [this](const Error& error) { failures.push_back(error.message); };
    if (prepare) events.prepare = [this](UniqueFunction<void()> done) { prepare(std::move(done)); };
    target = std::make_unique<TargetPart>(options, parts, std::move(events));
  }
  void cut(bool yes) {
    auto faults = store.faults();
    faults.partitioned = yes;
    store.set_faults(faults);
  }
  std::vector<TargetPart::State> told() { return std::exchange(states, {}); }

  const replication::NodeId id;
  manager::MemoryStore store;
  std::unique_ptr<TargetPart> target;
  WatchedExecutor lease_executor;
  manager::NodeLease lease;
  manager::ClusterView view;
  std::function<void(UniqueFunction<void()>)> prepare;  // null: nothing is to be done
  std::vector<TargetPart::State> states;
  std::vector<std::uint64_t> epochs;
  std::vector<std::string> failures;
};

class TargetRig {
 public:
  static constexpr VolumeId kVolume = test::LoggedRig::kVolume;
  static constexpr std::uint64_t kBlocks = 16;
  static constexpr replication::NodeId kOne{1};

  TargetRig() {
    put({kVolume, {}, {}, kOne, {kOne}});
    volume::LoggedVolume::Options logged;
    logged.id = kVolume;
    logged.index = log.index.shared();
    replication::LoggerRole::Start start;
    start.volume = kVolume;
    logger.emplace(std::move(logged), start,
                   LoggerPart::Parts{{log.disks, log.writer, log.log_reader}, executor, promises});
  }
  ~TargetRig() {
    log.disk.release();
    image.release();
    promises.release();
    const Error closing{ErrorCode::kUnavailable, "closing"};
    if (member.target != nullptr) member.target->close();
    if (storage) storage->close();
    logger->close(closing);
    executor.advance(std::chrono::seconds(1));
    EXPECT_TRUE(member.target == nullptr || member.target->idle());
    member.target.reset();
  }
  TargetRig(const TargetRig&) = delete;
  TargetRig& operator=(const TargetRig&) = delete;

  void put(const manager::VolumeRecord& record) {
    EXPECT_TRUE(
        cluster.commit({.puts = {{manager::volume_key(kVolume), manager::encode(record)}}}));
  }
  [[nodiscard]] manager::VolumeRecord record() const {
    return *manager::decode_volume_record(kVolume,
                                          cluster.get(manager::volume_key(kVolume)).entry->value);
  }
  // `history`: what the storage asks; null: that of the logger.
  void begin(volume::History* history = nullptr) {
    if (history == nullptr) history = &logger->logged().history();
    storage.emplace(std::make_unique<test::TellingDisk>(image, [](ByteRange, bool) {}),
                    replication::StorageRole::Start{kVolume, {}, {}}, volume::Storage::Options{},
                    StoragePart::Parts{*history, nullptr, worker, executor, promises},
                    StoragePart::Events{});
    begin_target({.logger = &logger->host(), .storage = &storage->host()});
  }
  // `own_executor`: what the target runs on; null: what everything does.
  void begin_target(const ParticipantService::Parts& own, Executor* own_executor = nullptr) {
    TargetPart::Options options;
    options.volume = kVolume;
    options.size_bytes = kBlocks * kBlockBytes;
    member.begin(options,
                 {own_executor != nullptr ? *own_executor : executor, member.store, member.lease,
                  member.view, caller, &storage->storage(), logger->logged().history(), own});
    layer = member.target->layer();
  }
  void serve() {
    begin();
    executor.advance(std::chrono::seconds(1));
    ASSERT_EQ(member.target->state(), TargetPart::State::kServing);
    member.told();
  }

  // `letter` over the range; what is answered is appended to `answers`: the letter, or its capital
  // when it is kUnavailable, or '!'.
  void write(ByteRange range, char letter) {
    Payload payload = Payload::allocate(range.length);
    std::memset(payload.data(), letter, payload.size());
    layer->write(range, {payload, 0, payload.size()},
                 [this, letter](const Result<void>& r) { answers += answer(letter, r); });
  }
  void write_block(std::uint64_t block, char letter) {
    write({block * kBlockBytes, kBlockBytes}, letter);
  }
  template <typename T>
  static char answer(char letter, const Result<T>& result) {
    if (result) return letter;
    return result.error().code == ErrorCode::kUnavailable ? static_cast<char>(letter - 'a' + 'A')
                                                          : '!';
  }
  // What a read says at once, without a turn; "" while it is under way.
  std::shared_ptr<std::string> begin_read(BlockRange range) {
    auto text = std::make_shared<std::string>();
    layer->read(to_bytes(range), [text](const Result<PayloadSlice>& r) {
      *text =
          r ? test::LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    return text;
  }
  std::string read(BlockRange range) {
    const auto text = begin_read(range);
    executor.run_ready();
    return *text;
  }

  test::LoggedRig log{false};
  test::ManualExecutor& executor = log.executor;
  manager::MemoryCluster cluster{executor};
  test::FaultyDisk image{executor, {.size_bytes = kBlocks * kBlockBytes}};
  test::InlineWorker worker{executor};
  MemoryPromises promises{executor};
  CallerService caller{executor, kOne};
  std::optional<LoggerPart> logger;
  std::optional<StoragePart> storage;
  TargetMember member{executor, cluster, kOne};
  std::shared_ptr<volume::Layer> layer;
  std::string answers;
};

}  // namespace mariner::cluster
