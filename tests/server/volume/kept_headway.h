// A headway as a node's store keeps it.
#pragma once

#include <map>

#include "server/volume/headway.h"

namespace mariner::test {

class KeptHeadway {
 public:
  void keep(const volume::Headway::Change& change) {
    if (change.anew) left_.clear();
    statement_ = change.statement;
    for (const volume::Headway::Page& page : change.pages) {
      left_.erase(page.number);
      if (!page.bits.empty()) left_[page.number] = page;
    }
  }
  [[nodiscard]] volume::Headway::Kept kept() const {
    volume::Headway::Kept out{statement_, {}};
    for (const auto& [number, page] : left_) out.left.push_back(page);
    return out;
  }

 private:
  volume::Headway::Statement statement_;
  std::map<std::uint64_t, volume::Headway::Page> left_;
};

}  // namespace mariner::test
