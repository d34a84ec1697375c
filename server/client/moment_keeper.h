// Keeps a moment of a volume for as long as it exists: longer than one reading of the past lasts,
// and also while nobody asks for anything, because somebody else does not take what was read.
//
// It has a reading of its own, which it looks after on a thread of its own, and replaces before its
// life ends. What goes wrong with that, who reads the moment will notice.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "server/client/past_client.h"

namespace mariner::client {

struct KeeperPace {
  std::chrono::milliseconds look = std::chrono::seconds(15);     // a reading ends unused after 60 s
  std::chrono::milliseconds replace = std::chrono::minutes(20);  // and in any case after an hour
};

class MomentKeeper {
 public:
  // The first moment that a reading with these options has. Errors as PastClient::open().
  [[nodiscard]] static Result<std::unique_ptr<MomentKeeper>> keep(PastClient::Options options,
                                                                  KeeperPace pace = {});
  ~MomentKeeper();
  MomentKeeper(const MomentKeeper&) = delete;
  MomentKeeper& operator=(const MomentKeeper&) = delete;

 private:
  MomentKeeper(PastClient::Options options, PastClient past, KeeperPace pace);
  void look_after();

  PastClient::Options options_;
  const KeeperPace pace_;
  std::unique_ptr<PastClient> past_;  // the thread's
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mariner::client
