// What is written to a view while there is a draft of it is kept all at once, or not at all.
//
// Drafts may stand within each other.
#pragma once

#include <utility>

#include "ifsck/view.h"

namespace mariner::ifsck {

class Draft {
 public:
  // `view` outlives it. (What was opened of the view before, or meanwhile, may not be as it is
  // afterwards.)
  explicit Draft(View& view) : overlay_(view.overlay()), outer_(overlay_.save_to(&saved_)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (kept_) return;
    overlay_.put_back(saved_);
    overlay_.save_to(outer_);
  }

  // Nothing was written so far.
  [[nodiscard]] bool empty() const { return saved_.empty(); }
  // What is written from now on is not the draft's.
  void keep() {
    overlay_.save_to(outer_);
    kept_ = true;
    if (outer_ == nullptr) return;
    for (auto& [lbn, block] : saved_) outer_->try_emplace(lbn, std::move(block));
  }

 private:
  Overlay& overlay_;
  Overlay::Saved saved_;
  Overlay::Saved* const outer_;
  bool kept_ = false;
};

}  // namespace mariner::ifsck
