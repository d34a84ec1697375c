#include "tests/bench/log_file.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "logging/file_disk.h"
#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::bench {
namespace {

constexpr std::uint64_t kPieceBytes = 1u << 20;

void fill_randomly(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = ::getrandom(to.data(), std::min<std::size_t>(to.size(), 256), 0);
    CHECK(n > 0);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace

Result<void> make_log_file(const std::string& path, std::uint64_t bytes) {
  using logging::FileDisk;
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    if (std::filesystem::file_size(path, error) == bytes) return {};
    std::filesystem::remove(path, error);
  }
  // A file that is not written to its end must not be taken for one that is.
  const std::string fresh = path + ".new";
  std::filesystem::remove(fresh, error);
  if (auto r = FileDisk::create(fresh, FileDisk::Caching::kDirect, bytes); !r) return r;
  {
    auto disk = FileDisk::open(fresh, FileDisk::Caching::kDirect, nullptr);
    if (!disk) return disk.error();
    Payload piece = Payload::allocate(kPieceBytes);
    fill_randomly(piece.bytes());
    for (std::uint64_t at = 0; at < bytes; at += kPieceBytes) {
      const logging::ConstBytes part(piece.data(), std::min(kPieceBytes, bytes - at));
      if (auto r = (*disk)->write(at, {&part, 1}, logging::Durability::kVolatile); !r) return r;
    }
    if (auto r = (*disk)->flush(); !r) return r;
  }
  std::filesystem::rename(fresh, path, error);
  if (error) return errno_error(error.value(), path + ": rename");
  return logging::sync_directory_of(path);
}

logging::LogId random_log_id() {
  logging::LogId id{};
  fill_randomly(id);
  return id;
}

}  // namespace mariner::bench
