// Carries a StorageRole's actions out: the storage, the promises, and answers to whoever is
// connected.
//
// The daemon and the simulator use it alike; what a connection is, they know. Owner's thread only;
// nothing may be under way when it is destroyed, or its executor drops what is.
#pragma once

#include <map>
#include <memory>

#include "proto/executor.h"
#include "replication/action_queue.h"
#include "replication/image_health.h"
#include "replication/participant.h"
#include "replication/storage_role.h"

namespace mariner::replication {

class StorageHost {
 public:
  using Answer = UniqueFunction<void(const FromStorage&)>;

  // All outlive it.
  StorageHost(const StorageRole::Start& start, Executor& executor,
              ClusterStorageParticipant& storage, PromiseStore& promises,
              const ImageHealth::Options& health = {});
  ~StorageHost() { *alive_ = false; }
  StorageHost(const StorageHost&) = delete;
  StorageHost& operator=(const StorageHost&) = delete;

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
  // An attempt to bring something into the image has failed, because of the image's own disk.
  void image_failed(const Error& why);

  [[nodiscard]] const StorageRole& role() const { return role_; }
  // Why the image cannot be counted on; nothing: it can.
  [[nodiscard]] const std::optional<Error>& image_failure() const { return health_.failure(); }

 private:
  void run(StorageRole::Actions& actions);
  void carry_out(StorageRole::Action& action);
  void flush_later();
  void tell_counted_on();
  void tell_health();
  void try_image_later();

  const VolumeId volume_;
  Executor& executor_;
  ClusterStorageParticipant& storage_;
  PromiseStore& promises_;
  StorageRole role_;
  ImageHealth health_;
  std::uint64_t image_failures_ = 0;
  std::map<ConnectionId, Answer> peers_;
  std::uint64_t last_connection_ = 0;
  ActionQueue<StorageRole::Action> queue_;
  bool flushing_ = false;
  bool counted_on_ = false;  // as the participant knows it
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::replication
