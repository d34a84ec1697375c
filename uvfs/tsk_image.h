// A volume at a moment as libtsk reads a disk image, and what it has read.
//
// libtsk keeps pieces of 64 KiB of what it reads, which would hide who has read what: it is made to
// ask for each read. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

struct TSK_IMG_INFO;

namespace mariner::uvfs {

class TskImage {
 public:
  // Fills `to` with these blocks, which are within the volume.
  using Fetch = std::function<Result<void>(BlockRange blocks, std::span<std::byte> to)>;

  TskImage(std::uint64_t size_bytes, Fetch fetch);
  ~TskImage();
  TskImage(const TskImage&) = delete;
  TskImage& operator=(const TskImage&) = delete;

  // For libtsk, as long as this lives.
  [[nodiscard]] TSK_IMG_INFO* handle();
  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  // What is read from now on is added there; null: nowhere.
  void record(std::vector<ByteRange>* reads) { reads_ = reads; }
  // The first error since the last time, if there was one: what libtsk has said since is worth
  // nothing.
  [[nodiscard]] Result<void> take_error();

 private:
  struct Handle;
  // -1: failed.
  [[nodiscard]] std::int64_t read(std::uint64_t offset, std::span<std::byte> to);

  const std::uint64_t size_bytes_;
  const Fetch fetch_;
  std::unique_ptr<Handle> handle_;
  std::vector<ByteRange>* reads_ = nullptr;
  std::vector<std::byte> blocks_;
  Result<void> error_;
};

}  // namespace mariner::uvfs
