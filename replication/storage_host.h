// Carries a StorageRole's actions out: the storage, the promises, and answers to whoever is
// connected.
//
// The daemon and the simulator use it alike; what a connection is, they know. Owner's thread only;
// nothing may be under way when it is destroyed, or its executor drops what is.
#pragma once

#include <map>

#include "proto/executor.h"
#include "replication/action_queue.h"
#include "replication/participant.h"
#include "replication/storage_role.h"

namespace mariner::replication {

class StorageHost {
 public:
  using Answer = UniqueFunction<void(const FromStorage&)>;

  // All outlive it.
  StorageHost(const StorageRole::Start& start, Executor& executor,
              ClusterStorageParticipant& storage, PromiseStore& promises);

  // As LoggerHost.
  ConnectionId accept(Answer answer);
  void received(ConnectionId from, ToStorage message);
  void closed(ConnectionId connection);

  // What the storage tells: everything at or below is in the image on stable storage; how much may
  // be prepared, by lag_bytes() of all that ever was.
  void durable(SequenceNumber sequence);
  void granted(std::uint64_t bytes);
  // How far it is with what it missed.
  void fetched(const CatchUpProgress& progress);
  // What a catch_up() asked for is no longer in the history.
  void outlived();

  [[nodiscard]] const StorageRole& role() const { return role_; }

 private:
  void run(StorageRole::Actions& actions);
  void carry_out(StorageRole::Action& action);
  void flush_later();
  void tell_counted_on();

  const VolumeId volume_;
  Executor& executor_;
  ClusterStorageParticipant& storage_;
  PromiseStore& promises_;
  StorageRole role_;
  std::map<ConnectionId, Answer> peers_;
  std::uint64_t last_connection_ = 0;
  ActionQueue<StorageRole::Action> queue_;
  bool flushing_ = false;
  bool counted_on_ = false;  // as the participant knows it
};

}  // namespace mariner::replication
