// An image of 'i's, without a log or an index: what the storage wants to know of the past, it asks,
// and a test answers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/volume/stored_volume.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/server/volume/kept_headway.h"
#include "tests/server/volume/letter_write.h"
#include "tests/server/volume/telling_disk.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {

// Of the past; with bytes, if there is a letter.
inline PastRun run(BlockRange range, PastRun::Source source, char letter = 0) {
  PastRun out{range, source, false, {}};
  if (letter == 0) return out;
  const Payload payload = Payload::allocate(range.count.bytes());
  std::memset(Payload(payload).data(), letter, payload.size());
  out.bytes = {payload, 0, payload.size()};
  return out;
}

class StoredVolumeTest : public ::testing::Test {
 protected:
  using WriteMessage = replication::WriteMessage;
  using AskedHistory = test::AskedHistory;
  using Source = PastRun::Source;
  static constexpr std::uint64_t kBlocks = 16;

  explicit StoredVolumeTest(std::uint64_t blocks = kBlocks)
      : disk_(executor_, {.size_bytes = blocks * kBlockBytes}) {
    const std::vector<std::byte> bytes(blocks * kBlockBytes, std::byte{'i'});
    disk_.overwrite(0, bytes);
  }
  ~StoredVolumeTest() override {
    if (stored_ != nullptr) stored_->close();
    executor_.run_until_idle();
  }
  void all_in_base() {
    base_.add({{0}, {kBlocks}});
    base_.stored();
  }
  void make(Storage::Found found = {}, Storage::Options options = {}) {
    Storage::Events events;
    events.durable = [this](SequenceNumber sequence) { durable_ = sequence; };
    events.apply_failed = [this](const Error&) { ++failures_; };
    committed_ = found.last;
    events.fetched = [this](const replication::CatchUpProgress& progress) { fetched_ = progress; };
    events.restored = [this](const Storage::RestoreProgress& progress) { restored_ = progress; };
    events.headway = [this](const Headway::Change& change, Done kept) {
      if (headway_kept_) headway_.keep(change);
      ++kept_headways_;
      kept(headway_kept_);
    };
    stored_ = std::make_unique<StoredVolume>(
        std::make_unique<test::TellingDisk>(disk_, [](ByteRange, bool) {}),
        StoredVolume::Parts{history_, &base_, worker_, executor_}, options, std::move(found),
        std::move(events));
  }
  void write(std::uint64_t sequence, BlockRange extent, char letter) {
    stored_->storage().prepare(test::letter_write(sequence, extent, letter));
    stored_->storage().commit(SequenceNumber{sequence});
    committed_ = {sequence};
  }
  // The history says that this changed between what is committed and `to`.
  void missed(std::uint64_t to, BlockRange extent) {
    stored_->storage().catch_up(committed_, {to}, {to}, [] {});
    committed_ = {to};
    AskedHistory::Changed asked = AskedHistory::next(history_.changes);
    asked.portion(std::span(&extent, 1));
    asked.done({});
  }
  void apply() { executor_.advance(std::chrono::seconds(2)); }
  void begin_read(BlockRange range) {
    read_.reset();
    stored_->storage().read(range, [this](const Result<PayloadSlice>& r) {
      read_ = r ? text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    executor_.run_ready();
  }
  static std::string text_of(std::span<const std::byte> bytes) {
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
      out += bytes[at] == std::byte{0} ? '0' : static_cast<char>(bytes[at]);
    }
    return out;
  }
  std::string image() { return text_of(disk_.bytes({0, kBlocks * kBlockBytes})).substr(0, 6); }
  void answer(std::vector<PastRun> runs, std::uint64_t newest = 0) {
    AskedHistory::next(history_.locates)
        .done(History::Located{std::move(runs), SequenceNumber{newest}});
    executor_.run_ready();
  }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_;
  test::InlineWorker worker_{executor_};
  AskedHistory history_;
  BaseMap base_{false};
  std::unique_ptr<StoredVolume> stored_;
  std::optional<std::string> read_;
  SequenceNumber durable_;
  SequenceNumber committed_;
  replication::CatchUpProgress fetched_;
  std::optional<Storage::RestoreProgress> restored_;
  test::KeptHeadway headway_;
  Result<void> headway_kept_;  // whether the next one is
  int kept_headways_ = 0;      // or not
  int failures_ = 0;
};

}  // namespace mariner::volume
