#include "ifsck/ext_volume.h"

#include <et/com_err.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "proto/check.h"

namespace mariner::ifsck {
namespace {

// Of one channel. The view says why something failed; libext2fs knows numbers alone.
struct Channel {
  struct_io_channel base{};
  View* view = nullptr;
};

// io_manager::open() is given a name and nothing else.
thread_local View* opening = nullptr;

View& view_of(io_channel channel) { return *static_cast<View*>(channel->private_data); }

errcode_t number_of(const Error& error) {
  return error.code == ErrorCode::kInvalidArgument ? EXT2_ET_SHORT_READ : EIO;
}

// A negative count is of bytes.
ByteRange range_of(io_channel channel, unsigned long long block, int count) {
  const auto size = static_cast<std::uint64_t>(channel->block_size);
  const std::uint64_t length = count < 0 ? static_cast<std::uint64_t>(-static_cast<long>(count))
                                         : static_cast<std::uint64_t>(count) * size;
  // Beyond all there is, rather than wrapped around.
  if (block > UINT64_MAX / 2 / size) return {UINT64_MAX / 2, length};
  return {block * size, length};
}

errcode_t open_channel(const char* name, int /*flags*/, io_channel* out);

errcode_t close_channel(io_channel channel) {
  if (--channel->refcount > 0) return 0;
  std::free(channel->name);
  delete reinterpret_cast<Channel*>(channel);
  return 0;
}

errcode_t set_block_size(io_channel channel, int block_size) {
  channel->block_size = block_size;
  return 0;
}

errcode_t read_blocks64(io_channel channel, unsigned long long block, int count, void* data) {
  const ByteRange range = range_of(channel, block, count);
  const auto done = view_of(channel).read(range, {static_cast<std::byte*>(data), range.length});
  return done ? 0 : number_of(done.error());
}
errcode_t read_blocks(io_channel channel, unsigned long block, int count, void* data) {
  return read_blocks64(channel, block, count, data);
}

errcode_t write_blocks64(io_channel channel, unsigned long long block, int count,
                         const void* data) {
  const ByteRange range = range_of(channel, block, count);
  const auto done =
      view_of(channel).write(range, {static_cast<const std::byte*>(data), range.length});
  return done ? 0 : number_of(done.error());
}
errcode_t write_blocks(io_channel channel, unsigned long block, int count, const void* data) {
  return write_blocks64(channel, block, count, data);
}

errcode_t write_bytes(io_channel channel, unsigned long offset, int count, const void* data) {
  const ByteRange range{offset, static_cast<std::uint64_t>(count)};
  const auto done =
      view_of(channel).write(range, {static_cast<const std::byte*>(data), range.length});
  return done ? 0 : number_of(done.error());
}

errcode_t flush_channel(io_channel /*channel*/) { return 0; }

struct_io_manager make_manager() {
  struct_io_manager manager{};
  manager.magic = EXT2_ET_MAGIC_IO_MANAGER;
  manager.name = "a view";
  manager.open = open_channel;
  manager.close = close_channel;
  manager.set_blksize = set_block_size;
  manager.read_blk = read_blocks;
  manager.write_blk = write_blocks;
  manager.flush = flush_channel;
  manager.write_byte = write_bytes;
  manager.read_blk64 = read_blocks64;
  manager.write_blk64 = write_blocks64;
  return manager;
}

struct_io_manager manager = make_manager();

errcode_t open_channel(const char* name, int /*flags*/, io_channel* out) {
  CHECK(opening != nullptr);
  auto channel = std::make_unique<Channel>();
  channel->base.magic = EXT2_ET_MAGIC_IO_CHANNEL;
  channel->base.manager = &manager;
  channel->base.name = strdup(name);
  channel->base.block_size = 1024;
  channel->base.refcount = 1;
  channel->base.private_data = opening;
  *out = &channel.release()->base;
  return 0;
}

ErrorCode code_of(errcode_t error) {
  switch (error) {
    case EXT2_ET_BAD_MAGIC: return ErrorCode::kNotFound;
    case EXT2_ET_UNSUPP_FEATURE:
    case EXT2_ET_RO_UNSUPP_FEATURE:
    case EXT2_ET_REV_TOO_HIGH: return ErrorCode::kInvalidArgument;
    case EIO: return ErrorCode::kIo;
    default: return ErrorCode::kCorrupt;
  }
}

void know_the_words() {
  static std::once_flag once;
  std::call_once(once, [] { initialize_ext2_error_table(); });
}

}  // namespace

std::string ext_error_text(errcode_t error) {
  know_the_words();
  return error_message(error);
}

void ExtVolume::Free::operator()(struct_ext2_filsys* fs) const { ext2fs_free(fs); }

ExtVolume::~ExtVolume() = default;
ExtVolume::ExtVolume(ExtVolume&&) noexcept = default;
ExtVolume& ExtVolume::operator=(ExtVolume&&) noexcept = default;

Result<ExtVolume> ExtVolume::open(View& view, const Options& options) {
  int flags = EXT2_FLAG_64BITS | EXT2_FLAG_SOFTSUPP_FEATURES;
  if (options.writable) flags |= EXT2_FLAG_RW;
  if (options.ignore_checksums) flags |= EXT2_FLAG_IGNORE_CSUM_ERRORS;
  ext2_filsys fs = nullptr;
  opening = &view;
  const errcode_t error = ext2fs_open2("a view", nullptr, flags, 0, 0, &manager, &fs);
  opening = nullptr;
  if (error == 0) return ExtVolume(view, fs);
  if (fs != nullptr) ext2fs_free(fs);
  return Error{code_of(error), "ext2/3/4: " + ext_error_text(error)};
}

}  // namespace mariner::ifsck
