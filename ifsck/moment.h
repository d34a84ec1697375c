// A file system at one moment, opened: what a check compares with another one.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ifsck/ext_context.h"
#include "ifsck/overlay.h"
#include "ifsck/view.h"
#include "proto/error.h"

namespace mariner::ifsck {

class Moment {
 public:
  // `past` and `overlay`, which is what the moment was mended with so far, outlive it.
  Moment(Past& past, SequenceNumber at, Overlay& overlay, const View::Options& options = {})
      : view_(past, at, overlay, options) {}
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  // (Again, after superblock or descriptors were written to.) `like`: another moment's. Errors as
  // of ExtVolume::open() and ExtLayout::of().
  [[nodiscard]] Result<void> open(const ExtLayout* like = nullptr) {
    const std::optional<ExtLayout> before = std::move(layout_);
    if (before) like = &*before;
    context_.reset();
    layout_.reset();
    volume_.reset();
    auto volume = ExtVolume::open(view_, {.writable = true});
    if (!volume) return volume.error();
    volume_.emplace(std::move(*volume));
    auto layout = ExtLayout::of(*volume_, like);
    if (!layout) return layout.error();
    layout_.emplace(std::move(*layout));
    context_.emplace(*volume_, *layout_);
    return {};
  }

  [[nodiscard]] View& view() { return view_; }
  // Of one that is open.
  [[nodiscard]] const ExtContext& context() const { return *context_; }

 private:
  View view_;
  std::optional<ExtVolume> volume_;
  std::optional<ExtLayout> layout_;
  std::optional<ExtContext> context_;
};

}  // namespace mariner::ifsck
