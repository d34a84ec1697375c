// What has been logged and no image holds yet, in bytes: by sequence number, so that it goes when
// an image gets on.
//
// Counted in lumps of about kLumpBytes, each of which goes as a whole: never too little, and too
// much by one lump at most. Owner's thread only.
#pragma once

#include <cstdint>
#include <deque>

#include "proto/units.h"

namespace mariner::volume {

class UnappliedBytes {
 public:
  static constexpr std::uint64_t kLumpBytes = 1 << 20;

  // Numbers ascend.
  void add(SequenceNumber sequence, std::uint64_t bytes) {
    if (bytes == 0) return;
    if (lumps_.empty() || lumps_.back().bytes >= kLumpBytes) lumps_.push_back({});
    lumps_.back().last = sequence;
    lumps_.back().bytes += bytes;
    bytes_ += bytes;
  }

  // An image holds everything at or below. Returns what has gone.
  std::uint64_t applied(SequenceNumber through) {
    const std::uint64_t before = bytes_;
    while (!lumps_.empty() && lumps_.front().last <= through) {
      bytes_ -= lumps_.front().bytes;
      lumps_.pop_front();
    }
    return before - bytes_;
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  // Each lump in order, by its last number.
  template <typename Visit>
  void visit(Visit visit) const {
    for (const Lump& lump : lumps_) visit(lump.last, lump.bytes);
  }

 private:
  struct Lump {
    SequenceNumber last;
    std::uint64_t bytes = 0;
  };
  std::deque<Lump> lumps_;
  std::uint64_t bytes_ = 0;
};

}  // namespace mariner::volume
