// A history on another node: a RemoteHistory and the session that answers it, with bytes between
// them, on a connection that is slow and breaks. Everything random comes from its seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

#include "proto/executor.h"
#include "server/cluster/history_session.h"
#include "server/cluster/remote_history.h"

namespace mariner::test {

class WiredHistory final : public volume::History {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::chrono::nanoseconds delay_max{0};  // of each way
    std::uint64_t breaks_in = 0;  // after about so many frames the connection breaks; 0: never
  };

  // All outlive it.
  WiredHistory(Executor& executor, volume::History& far, const Options& options);
  ~WiredHistory() override;  // nothing may be in flight

  void locate(std::vector<Lookup> lookups, LocateDone done) override {
    near_.locate(std::move(lookups), std::move(done));
  }
  void read(BlockRange range, SequenceNumber at, std::span<std::byte> to, ReadDone done) override {
    near_.read(range, at, to, std::move(done));
  }
  void changed(SequenceNumber from, SequenceNumber to, Portion portion,
               volume::Done done) override {
    near_.changed(from, to, std::move(portion), std::move(done));
  }
  void versions(std::vector<Since> blocks, SequenceNumber to, VersionsDone done) override {
    near_.versions(std::move(blocks), to, std::move(done));
  }
  void hold(SequenceNumber at, HoldDone done) override { near_.hold(at, std::move(done)); }
  void log_before_image(BlockRange range, PayloadSlice bytes, volume::Done done) override {
    near_.log_before_image(range, std::move(bytes), std::move(done));
  }
  void moment(std::variant<VersionTime, SequenceNumber> asked, MomentDone done) override {
    near_.moment(asked, std::move(done));
  }
  void summarize(const volume::HistorySummary::Question& question, SummaryDone done) override {
    near_.summarize(question, std::move(done));
  }

 private:
  enum Way { kThere, kBack };
  void connect();
  void disconnect();
  // Runs `arrives` after a while, behind what was sent the same way before.
  void deliver(Way way, UniqueFunction<void()> arrives);
  void maybe_break();
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

  Executor& executor_;
  volume::History& far_;
  const Options options_;
  std::mt19937_64 random_;
  cluster::RemoteHistory near_;
  const std::shared_ptr<cluster::HistorySession::Node> node_ =
      std::make_shared<cluster::HistorySession::Node>();
  std::unique_ptr<cluster::HistorySession> session_;
  std::uint64_t connection_ = 0;
  std::chrono::nanoseconds last_[2]{};
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::test
