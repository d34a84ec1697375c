// The records that were withdrawn: given to a disk, and failed. They are not there, wherever they
// stand. FORMAT.md section 5.
//
// A value that shares what it holds: cheap to copy for who reads the log elsewhere. There are few,
// if any: they need a disk that failed or hung while no other one had room.
#pragma once

#include <cstdint>
#include <memory>
#include <set>

#include "logging/record.h"

namespace mariner::logging {

class Withdrawn {
 public:
  [[nodiscard]] bool contains(std::uint64_t ordinal) const {
    return ordinals_ != nullptr && ordinals_->contains(ordinal);
  }
  [[nodiscard]] std::size_t size() const { return ordinals_ == nullptr ? 0 : ordinals_->size(); }

  void add(std::uint64_t ordinal) { own().insert(ordinal); }
  // What a record that recovery found withdraws, if it does.
  void take(const Record& record) {
    if (record.type == RecordType::kWithdrawal) add(record.target_sequence.value);
  }
  // Those below `end` have been given up with the log's oldest records.
  void forget_below(std::uint64_t end) {
    if (ordinals_ == nullptr || ordinals_->empty() || *ordinals_->begin() >= end) return;
    std::set<std::uint64_t>& mine = own();
    mine.erase(mine.begin(), mine.lower_bound(end));
  }

 private:
  // To be changed: nobody else sees it.
  std::set<std::uint64_t>& own() {
    if (ordinals_ == nullptr || ordinals_.use_count() > 1) {
      ordinals_ = ordinals_ == nullptr ? std::make_shared<std::set<std::uint64_t>>()
                                       : std::make_shared<std::set<std::uint64_t>>(*ordinals_);
    }
    return *ordinals_;
  }

  std::shared_ptr<std::set<std::uint64_t>> ordinals_;
};

}  // namespace mariner::logging
