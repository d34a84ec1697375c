// How many questions a node has under way at another one, of all volumes together: on one
// connection no more may wait than that other takes (HistorySession::kWaitingMax), which ends it
// otherwise. Who has to wait comes in turn. Owner's thread only.
#pragma once

#include <cstddef>
#include <deque>

namespace mariner::cluster {

class RemoteHistory;

class QuestionSlots {
 public:
  static constexpr std::size_t kMost = 1024;

  // Whether a question can be sent now. If not, asker.writable() follows, unless it is forgotten.
  [[nodiscard]] bool free(RemoteHistory& asker);
  void take() { ++taken_; }  // one that is free
  void give_back();
  // What the asker has under way is not any more, and it does not wait.
  void forget(RemoteHistory& asker, std::size_t under_way);
  [[nodiscard]] std::size_t taken() const { return taken_; }

 private:
  std::size_t taken_ = 0;
  std::deque<RemoteHistory*> waiting_;  // each once
};

}  // namespace mariner::cluster
