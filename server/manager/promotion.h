// Makes a node the coordinator of a volume: writes the wish into the volume's record, and follows
// what becomes of it until that node serves (election.h, serving_sign.h).
//
// It may be asked for at any node. It ends by itself, at the latest after Options::time; a wish
// that nobody has followed by then is taken back, so that nothing happens behind the back of who
// was told that it failed. Owner's thread only.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proto/executor.h"
#include "server/manager/cluster_view.h"
#include "server/manager/volume_record.h"

namespace mariner::manager {

class Promotion {
 public:
  // What is said of a node of which that is so, behind its name.
  static constexpr const char* kCatchingUp =
      "has not caught up with the volume; `mariner replica status` on the coordinator shows how "
      "far it is. Try again when it has all";

  static constexpr const char* kLoggerAway =
      "stores nothing of the volume, whose logger is away: writes are kept by the storage nodes. "
      "Try "
      "again when the logger is back";

  struct Options {
    VolumeId volume;
    replication::NodeId node;                                 // a target of the volume
    std::function<std::string(replication::NodeId)> name_of;  // for messages
    std::chrono::nanoseconds time = std::chrono::seconds(30);
  };
  struct Outcome {
    Epoch epoch;           // in which it coordinates
    bool already = false;  // it did before: nothing was changed
  };
  // Once, never from within the constructor; may destroy the promotion. kNotFound: there is no such
  // volume. kBusy: another node is wanted by somebody else. kUnavailable: it was not done, or not
  // within the time; the message says what is missing.
  using Done = UniqueFunction<void(Result<Outcome>)>;

  // Store, executor and view outlive it.
  Promotion(ClusterStore& store, Executor& executor, const ClusterView& view, Options options,
            Done done);
  ~Promotion() { *alive_ = false; }
  Promotion(const Promotion&) = delete;
  Promotion& operator=(const Promotion&) = delete;

  // Ends it now with `error`. The wish stays.
  void cancel(const Error& error);
  [[nodiscard]] bool ended() const { return !done_; }

 private:
  void look();
  void look_later();
  // What `record` says: whether there is anything to wait for.
  bool wait_for(const VolumeRecord& record, Revision revision);
  bool follow(const VolumeRecord& record);
  void wish(const VolumeRecord& record, Revision revision);
  void take_back();
  void finish(Result<Outcome> outcome);
  [[nodiscard]] bool alive() const { return view_.find(alive_key(options_.node)) != nullptr; }
  [[nodiscard]] Error unavailable(const std::string& why) const;

  ClusterStore& store_;
  Executor& executor_;
  const ClusterView& view_;
  const Options options_;
  Done done_;
  const std::chrono::nanoseconds end_;
  std::string missing_;             // what it waits for
  std::optional<Revision> wished_;  // the record has the wish, or had it, since then
  bool wishing_ = false;
  bool first_ = true;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
