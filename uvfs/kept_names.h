// The names of directories that were read, kept up to a bound: those that were asked for last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <unordered_map>
#include <utility>

#include "uvfs/files_moment.h"

namespace mariner::uvfs {

// One thread.
class KeptNames {
 public:
  static constexpr std::size_t kNamesMax = 200'000;  // of all directories

  // Null: not kept.
  [[nodiscard]] FilesMoment::Names find(ObjectNumber directory) {
    const auto place = places_.find(directory);
    if (place == places_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, place->second);
    return kept_.front().second;
  }
  // One that is not kept.
  void keep(ObjectNumber directory, const FilesMoment::Names& names) {
    kept_.emplace_front(directory, names);
    places_[directory] = kept_.begin();
    names_ += names->size() + 1;
    while (names_ > kNamesMax && kept_.size() > 1) {
      names_ -= kept_.back().second->size() + 1;
      places_.erase(kept_.back().first);
      kept_.pop_back();
    }
  }
  // A directory that is kept names it.
  [[nodiscard]] bool has(ObjectNumber number) const {
    return std::ranges::any_of(kept_, [number](const auto& each) {
      return std::ranges::find(*each.second, number, &FilesMoment::Name::number) !=
             each.second->end();
    });
  }
  void clear() {
    kept_.clear();
    places_.clear();
    names_ = 0;
  }

 private:
  // The last one that was asked for is in front.
  std::list<std::pair<ObjectNumber, FilesMoment::Names>> kept_;
  std::unordered_map<ObjectNumber, decltype(kept_)::iterator> places_;
  std::size_t names_ = 0;
};

}  // namespace mariner::uvfs
