#include "uvfs/sequential_file.h"

#include <algorithm>

namespace mariner::uvfs {

Result<std::size_t> SequentialFile::read(std::uint64_t offset, std::span<std::byte> to) {
  if (offset >= contents_.size()) return std::size_t{0};
  to = to.first(std::min<std::uint64_t>(to.size(), contents_.size() - offset));
  if (!is_in_window(offset, to.size())) {
    if (offset == 0 || offset != next_ || to.size() >= kWindowBytes) {
      next_ = offset + to.size();
      return contents_.read(offset, to);
    }
    if (const auto filled = fill_window(offset); !filled) return filled.error();
  }
  next_ = offset + to.size();
  std::ranges::copy(std::span(window_).subspan(offset - window_at_, to.size()), to.begin());
  return to.size();
}

Result<void> SequentialFile::fill_window(std::uint64_t offset) {
  window_.resize(std::min(kWindowBytes, contents_.size() - offset));
  window_at_ = offset;
  const auto got = contents_.read(offset, window_);
  if (!got) {
    window_.clear();
    return got.error();
  }
  contents_.expect(offset + window_.size(), kWindowBytes);
  return {};
}

}  // namespace mariner::uvfs
