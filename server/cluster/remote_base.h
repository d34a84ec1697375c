// The image of a volume on another storage node, for what the history calls base: as long as that
// node is there, and has its image whole.
#pragma once

#include <utility>

#include "server/cluster/remote_history.h"
#include "server/volume/history_reader.h"

namespace mariner::cluster {

class RemoteBase final : public volume::Base {
 public:
  explicit RemoteBase(RemoteHistory& node) : node_(node) {}  // outlives it
  void read(BlockRange range, std::span<std::byte> to, volume::Done done) override {
    node_.read_base(range, to, std::move(done));
  }
  [[nodiscard]] bool may_move() const override { return true; }

 private:
  RemoteHistory& node_;
};

}  // namespace mariner::cluster
