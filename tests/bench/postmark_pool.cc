#include "tests/bench/postmark_pool.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::bench {

PostmarkPool::PostmarkPool(const PostmarkOptions& options)
    : options_(options), chance_(options.seed) {
  CHECK(options.size_min >= 1 && options.size_min <= options.size_max);
  CHECK(options.read_bias <= kBiasMax && options.create_bias <= kBiasMax);
}

std::uint32_t PostmarkPool::below(std::uint32_t end) { return between(0, end - 1); }

std::uint32_t PostmarkPool::between(std::uint32_t least, std::uint32_t most) {
  return std::uniform_int_distribution<std::uint32_t>(least, most)(chance_);
}

PostmarkStep PostmarkPool::create() {
  PostmarkFile file{next_++, below(std::max(options_.folders, 1u)), 0};
  const PostmarkStep step{PostmarkAction::kCreate, file,
                          between(options_.size_min, options_.size_max)};
  file.bytes = step.bytes;
  files_.push_back(file);
  return step;
}

PostmarkStep PostmarkPool::remove() {
  PostmarkFile& chosen = files_[below(static_cast<std::uint32_t>(files_.size()))];
  const PostmarkStep step{PostmarkAction::kRemove, chosen, 0};
  chosen = files_.back();
  files_.pop_back();
  return step;
}

PostmarkStep PostmarkPool::fill() { return create(); }

std::vector<PostmarkStep> PostmarkPool::transaction() {
  std::vector<PostmarkStep> steps;
  if (below(kBiasMax) < options_.create_bias) {
    steps.push_back(create());
  } else if (!files_.empty()) {
    steps.push_back(remove());
  }
  const bool reads = below(kBiasMax) < options_.read_bias;
  if (files_.empty()) return steps;
  PostmarkFile& file = files_[below(static_cast<std::uint32_t>(files_.size()))];
  if (reads) {
    steps.push_back({PostmarkAction::kRead, file, file.bytes});
  } else if (file.bytes < options_.size_max) {
    steps.push_back({PostmarkAction::kAppend, file, between(1, options_.size_max - file.bytes)});
    file.bytes += steps.back().bytes;
  }
  return steps;
}

std::optional<PostmarkStep> PostmarkPool::empty() {
  if (files_.empty()) return std::nullopt;
  return remove();
}

}  // namespace mariner::bench
