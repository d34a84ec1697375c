// What a volume holds now, for a coordinator whose node stores nothing of it: asked from the
// storage node that its role names (CoordinatorRole::reads_from()).
//
// A read asks for what was settled when it came, so it sees all that was acknowledged. What a
// storage node cannot answer now is asked again: of another one at once, when the role names one by
// then, otherwise a little later, as long as this node coordinates. Of one coordinator. Owner's
// thread only.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "proto/executor.h"
#include "replication/coordinator_host.h"
#include "server/cluster/remote_history.h"
#include "server/volume/current_reader.h"

namespace mariner::cluster {

class RemoteCurrent final : public volume::CurrentReader {
 public:
  // Questions of one volume that are under way; other reads wait for their turn.
  static constexpr std::size_t kInFlightMax = 64;

  // All outlive it. `node`: the way to a storage node of the volume.
  RemoteCurrent(const replication::CoordinatorHost& coordinator, Executor& executor,
                std::function<RemoteHistory&(replication::NodeId)> node)
      : coordinator_(coordinator), executor_(executor), node_(std::move(node)) {}
  ~RemoteCurrent() override { *alive_ = false; }  // no read may be under way
  RemoteCurrent(const RemoteCurrent&) = delete;
  RemoteCurrent& operator=(const RemoteCurrent&) = delete;

  void read(BlockRange range, volume::ReadDone done) override;

 private:
  struct Read {
    BlockRange range;
    SequenceNumber at;
    Payload to;
    volume::ReadDone done;
  };
  using ReadPtr = std::shared_ptr<Read>;

  void begin_waiting();
  void ask(const ReadPtr& read);
  void ask_later(const ReadPtr& read);
  void answered(const ReadPtr& read, replication::NodeId by, const Result<void>& result);
  void finish(const ReadPtr& read, Result<PayloadSlice> result);

  const replication::CoordinatorHost& coordinator_;
  Executor& executor_;
  const std::function<RemoteHistory&(replication::NodeId)> node_;
  std::deque<ReadPtr> waiting_;
  std::size_t in_flight_ = 0;
  bool beginning_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
