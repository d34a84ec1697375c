// A file that somebody reads piece by piece: where the pieces follow each other, more than that is
// read at a time, and what comes behind is asked for while this is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "uvfs/file_contents.h"

namespace mariner::uvfs {

// One thread.
class SequentialFile {
 public:
  static constexpr std::uint64_t kWindowBytes = 1u << 20;

  // What `contents` needs outlives it.
  explicit SequentialFile(FileContents contents) : contents_(std::move(contents)) {}

  // As FileContents::read().
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> to);

 private:
  [[nodiscard]] bool is_in_window(std::uint64_t offset, std::uint64_t bytes) const {
    return offset >= window_at_ && offset + bytes <= window_at_ + window_.size();
  }
  Result<void> fill_window(std::uint64_t offset);

  FileContents contents_;
  std::uint64_t next_ = 0;  // where reading would go on
  std::uint64_t window_at_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace mariner::uvfs
