// A RepairSink that notes what it is given.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/admin/repair_sink.h"

namespace mariner::admin {

class FakeRepairs final : public RepairSink {
 public:
  std::vector<std::string> asked;     // "open volume: \"db1\"", "add 7 2 blocks", "drop 7"
  std::vector<std::uint64_t> blocks;  // that came, in all
  std::optional<Error> error;         // of add()

  void open(const api::RepairsRequest& request, Answer<api::Repairs> done) override {
    asked.push_back("open " + request.ShortDebugString());
    done(answer());
  }
  void add(const std::string& id, const std::vector<RepairedBlock>& more,
           Answer<api::Repairs> done) override {
    asked.push_back("add " + id + " " + std::to_string(more.size()) + " blocks");
    if (error) return done(*error);
    for (const RepairedBlock& each : more) blocks.push_back(each.block.value);
    done(answer());
  }
  void drop(const std::string& id, Answer<api::Repairs> done) override {
    asked.push_back("drop " + id);
    done(answer());
  }

 private:
  [[nodiscard]] api::Repairs answer() const {
    api::Repairs out;
    out.set_id("7");
    out.set_blocks(blocks.size());
    return out;
  }
};

}  // namespace mariner::admin
