// The rules of Postmark (Katcher, "PostMark: A New File System Benchmark", NetApp TR-3022, 1997):
// a pool of small files that comes and goes as a mail server's does.
//
// The pool is filled; then come transactions, each of which makes or removes a file and then reads
// a whole one or appends to one; then all that is left is removed. Which file, which of the two
// and how many bytes are chance, each equally likely. This says what is to be done; it does no
// I/O. The same seed says the same. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace mariner::bench {

struct PostmarkOptions {
  std::uint32_t files = 500;  // when the transactions begin
  std::uint32_t folders = 0;  // that the files are spread over; 0: all are in one
  std::uint32_t size_min = 500;
  std::uint32_t size_max = 10000;  // bytes of a file, inclusive, also of one that was appended to
  // Of ten transactions so many read, and do not append; and so many make, and do not remove.
  std::uint32_t read_bias = 5;
  std::uint32_t create_bias = 5;
  std::uint64_t seed = 42;
};

struct PostmarkFile {
  std::uint32_t number;  // never used for another file
  std::uint32_t folder;  // < max(1, folders)
  std::uint32_t bytes;   // that it has before the step; 0 before it is made
};

enum class PostmarkAction { kCreate, kRemove, kRead, kAppend };

struct PostmarkStep {
  PostmarkAction action;
  PostmarkFile file;
  std::uint32_t bytes;  // that are written, or read; 0 of a file that is removed
};

class PostmarkPool {
 public:
  static constexpr std::uint32_t kBiasMax = 10;

  // Requires 1 <= size_min <= size_max and both biases at most kBiasMax.
  explicit PostmarkPool(const PostmarkOptions& options);

  // One of the files of the beginning, `options.files` times.
  PostmarkStep fill();
  // Two steps; fewer when there is no file to remove or read, or none with room to append to.
  std::vector<PostmarkStep> transaction();
  // One of those left; none: the pool is empty.
  std::optional<PostmarkStep> empty();

  [[nodiscard]] std::size_t size() const { return files_.size(); }

 private:
  // From 0 on, below `end`.
  std::uint32_t below(std::uint32_t end);
  std::uint32_t between(std::uint32_t least, std::uint32_t most);
  PostmarkStep create();
  PostmarkStep remove();

  PostmarkOptions options_;
  std::mt19937_64 chance_;
  std::vector<PostmarkFile> files_;
  std::uint32_t next_ = 0;
};

}  // namespace mariner::bench
