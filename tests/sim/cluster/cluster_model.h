// What the simulated initiators know, and what must hold of it (design.md section 5).
//
// Every attempt to write has a number of its own, which its request carries through the protocol
// (sim_payload.h). The first violation is kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "replication/cluster_messages.h"
#include "tests/sim/cluster/sim_payload.h"

namespace mariner::test {

// A volume's block in the simulation holds the stamp of the write that wrote it.
struct BlockValue {
  SequenceNumber sequence;  // 0: never written
  std::uint64_t attempt = 0;
  friend constexpr auto operator<=>(const BlockValue&, const BlockValue&) = default;
};
using Blocks = std::map<std::uint64_t, BlockValue>;

// A write as the logger has it.
struct LoggedWrite {
  replication::Stamp stamp;
  BlockRange extent;
  std::uint64_t attempt = 0;
  std::optional<SequenceNumber> back_to;  // a rollback, no write
};
using LoggedWrites = std::map<SequenceNumber, LoggedWrite>;

// What the log says of all blocks as of `at`, or of some: from the newest write back, which is
// short where these are new.
[[nodiscard]] Blocks blocks_at(const LoggedWrites& log, SequenceNumber at,
                               const std::optional<std::set<std::uint64_t>>& only = std::nullopt);

class ClusterModel {
 public:
  // An attempt begins; its number.
  std::uint64_t begin(BlockRange extent);
  // Somebody has stamped it. Whether twice, or its number was given before, is checked.
  void stamped(const replication::WriteMessage& message);
  void acknowledged(std::uint64_t attempt, const replication::Stamp& stamp);
  void failed(std::uint64_t attempt);
  // Every write that was acknowledged, above `since`, is there.
  [[nodiscard]] bool all_acknowledged_in(const LoggedWrites& log, SequenceNumber since) const;

  // A read begins: what it must see at least.
  [[nodiscard]] SequenceNumber must_see(std::uint64_t block) const;
  void read(std::uint64_t block, SequenceNumber at_least, const BlockValue& value,
            std::uint32_t node);

  // A coordinator begins, with the logger or without it.
  void began(const std::optional<replication::LogAway>& away);

  // An image has failed, and is done without, or needed all the same.
  void image_failed(bool let_go) { ++(let_go ? images_let_go_ : images_failed_); }

  // A coordinator has told somebody that the images have everything at or below: those that lack
  // some of it count no more.
  void told_frontier(SequenceNumber frontier) { frontier_ = std::max(frontier_, frontier); }
  [[nodiscard]] SequenceNumber frontier() const { return frontier_; }

  // A moment was opened, and resolves to everything at or before `at`.
  void opened(VersionTime time, SequenceNumber at);

  // At the end: what the log has, and the images.
  void check_log(const LoggedWrites& log);
  void check_image(std::uint32_t node, const Blocks& image, const LoggedWrites& log);

  void violation(std::string what) {
    if (!violation_) violation_ = std::move(what);
  }
  [[nodiscard]] const std::optional<std::string>& violation() const { return violation_; }
  [[nodiscard]] std::uint64_t acknowledged_count() const { return acknowledged_; }
  [[nodiscard]] std::uint64_t reads() const { return reads_; }
  // How often the logger was gone without; what was acknowledged meanwhile.
  [[nodiscard]] std::uint64_t times_away() const { return times_away_; }
  [[nodiscard]] std::uint64_t acknowledged_away() const { return acknowledged_away_; }
  [[nodiscard]] std::uint64_t images_let_go() const { return images_let_go_; }
  [[nodiscard]] std::uint64_t images_failed() const { return images_failed_; }
  [[nodiscard]] std::uint64_t moments() const { return moments_.size(); }

 private:
  struct Attempt {
    BlockRange extent;
    std::optional<replication::Stamp> stamp;
    bool acknowledged = false;
    bool failed = false;
  };
  struct Read {
    std::uint64_t block = 0;
    BlockValue value;
    std::uint32_t node = 0;
  };

  std::vector<Attempt> attempts_{1};  // [0] is none
  struct Given {
    Epoch epoch;
    std::uint64_t attempt = 0;
  };
  std::map<SequenceNumber, Given> given_;
  std::map<std::uint64_t, SequenceNumber> newest_acknowledged_;  // of a block
  std::vector<Read> seen_;
  std::vector<std::pair<VersionTime, SequenceNumber>> moments_;
  std::optional<std::string> violation_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t reads_ = 0;
  SequenceNumber frontier_;
  std::optional<replication::LogAway> away_;
  std::uint64_t times_away_ = 0;
  std::uint64_t acknowledged_away_ = 0;
  std::uint64_t images_let_go_ = 0;
  std::uint64_t images_failed_ = 0;
};

}  // namespace mariner::test
