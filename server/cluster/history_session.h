// The side of a connection on which another node asks that has the answers: the logger's, about the
// history; a storage node's, about its image, and what the volume holds now.
//
// Questions are looked into beside each other, within bounds of number and of memory; answers go
// out as they come. When the connection ends, what was not looked into is forgotten, holds end, and
// before-images that are on their way into the log arrive there before any that the same node sends
// on a later connection (Node): a node that was told kUnavailable may decide anew. Executor's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "proto/executor.h"
#include "server/cluster/current_source.h"
#include "server/cluster/history_wire.h"
#include "server/volume/history.h"
#include "server/volume/history_reader.h"

namespace mariner::cluster {

class HistorySession {
 public:
  // What the sessions of one node have in common, one after the other.
  struct Node {
    std::size_t before_images = 0;  // on their way into the log
    std::deque<UniqueFunction<void()>> waiting;
  };
  struct Parts {
    // The history of a volume, null when it is not here. What it returns outlives the questions
    // that are under way.
    UniqueFunction<volume::History*(VolumeId)> find;
    // The image of a volume, likewise.
    UniqueFunction<volume::Base*(VolumeId)> find_image;
    // Takes a frame, or refuses it (false) when too much waits; writable() follows then.
    UniqueFunction<bool(const HistoryFrame&)> send;
    std::shared_ptr<Node> node;
    // The contents of a volume, likewise. None: they are never here.
    UniqueFunction<CurrentSource*(VolumeId)> find_current{};
  };
  static constexpr std::size_t kUnderWayMax = 64;
  static constexpr std::uint64_t kBytesUnderWayMax = 64u << 20;
  static constexpr std::size_t kWaitingMax = 4096;

  explicit HistorySession(Parts parts);
  ~HistorySession();
  HistorySession(const HistorySession&) = delete;
  HistorySession& operator=(const HistorySession&) = delete;

  // kProtocol, or kLimit when more questions wait than a node asks: the connection is to be closed.
  Result<void> received(HistoryQuestion question);
  void writable();

 private:
  void begin_waiting();
  void begin(const HistoryQuestion& question);
  void look(volume::Base& image, const HistoryQuestion& question, const BaseQuestion& what);
  void look(CurrentSource& current, const HistoryQuestion& question, const CurrentQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const LocateQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const ReadQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const ChangedQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const HoldQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question,
            const BeforeImageQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const MomentQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question, const SummaryQuestion& what);
  void look(volume::History& history, const HistoryQuestion& question,
            const VersionsQuestion& what);
  void answer(VolumeId volume, std::uint64_t id, decltype(HistoryAnswer::what) what);
  void ended(std::uint64_t bytes);

  Parts parts_;
  std::deque<HistoryQuestion> waiting_;
  std::deque<HistoryFrame> unsent_;
  using HoldKey = std::pair<VolumeId, std::uint64_t>;  // volume and question
  std::map<HoldKey, volume::History::Hold> holds_;
  std::set<HoldKey> holding_;  // asked for, and neither answered nor let go
  std::size_t under_way_ = 0;
  std::uint64_t bytes_under_way_ = 0;
  std::size_t own_before_images_ = 0;  // of the node's
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
