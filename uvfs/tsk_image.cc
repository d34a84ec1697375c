#include "uvfs/tsk_image.h"

#include <tsk/libtsk.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "proto/check.h"

namespace mariner::uvfs {

struct TskImage::Handle {
  TSK_IMG_INFO image;  // the first: libtsk knows nothing of the rest
  TskImage* owner = nullptr;

  static ssize_t read(TSK_IMG_INFO* image, TSK_OFF_T offset, char* to, std::size_t bytes) {
    // Into its own pieces: it is told that this failed, and then asks for what is wanted alone.
    const char* const pieces = &image->cache[0][0];
    if (std::less_equal<>()(pieces, to) && std::less<>()(to, pieces + sizeof image->cache)) {
      return -1;
    }
    if (offset < 0) return -1;
    TskImage* const owner = reinterpret_cast<Handle*>(image)->owner;
    return owner->read(static_cast<std::uint64_t>(offset),
                       {reinterpret_cast<std::byte*>(to), bytes});
  }
  static void close(TSK_IMG_INFO* /*image*/) {}
  static void tell(TSK_IMG_INFO* /*image*/, FILE* /*to*/) {}
};

TskImage::TskImage(std::uint64_t size_bytes, Fetch fetch)
    : size_bytes_(size_bytes),
      fetch_(std::move(fetch)),
      // (Not value-initialized: most of it are the two megabytes that are never touched.)
      handle_(new Handle) {
  TSK_IMG_INFO& image = handle_->image;
  handle_->owner = this;
  image.num_img = 0;
  image.page_size = image.spare_size = 0;
  image.images = nullptr;
  std::memset(image.cache_off, 0, sizeof image.cache_off);
  std::memset(image.cache_age, 0, sizeof image.cache_age);
  std::memset(image.cache_len, 0, sizeof image.cache_len);
  CHECK(tsk_img_open_external(handle_.get(), static_cast<TSK_OFF_T>(size_bytes), 512, Handle::read,
                              Handle::close, Handle::tell) == &image);
}

TskImage::~TskImage() = default;

TSK_IMG_INFO* TskImage::handle() { return &handle_->image; }

Result<void> TskImage::take_error() { return std::exchange(error_, Result<void>{}); }

std::int64_t TskImage::read(std::uint64_t offset, std::span<std::byte> to) {
  if (!error_ || offset >= size_bytes_) return -1;
  to = to.first(std::min<std::uint64_t>(to.size(), size_bytes_ - offset));
  const ByteRange range{offset, to.size()};
  const BlockRange blocks = range.covering_blocks();
  if (reads_ != nullptr) reads_->push_back(range);
  blocks_.resize(blocks.count.bytes());
  if (auto fetched = fetch_(blocks, blocks_); !fetched) {
    error_ = fetched.error();
    return -1;
  }
  std::memcpy(to.data(), blocks_.data() + (offset - blocks.first.byte_offset()), to.size());
  return static_cast<std::int64_t>(to.size());
}

}  // namespace mariner::uvfs
