#include "server/node/import_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace mariner::node {
namespace {

using namespace std::string_view_literals;

// How files begin that hold a disk, but not as its bytes.
struct Format {
  std::string_view magic;
  const char* name;
  const char* advice;
};
constexpr const char* kConvert = "convert it first: qemu-img convert -O raw";
constexpr const char* kUnpack = "unpack it first";
constexpr std::array kFormats{Format{"QFI\xfb"sv, "a qcow2 image", kConvert},
                              Format{"KDMV"sv, "a VMDK image", kConvert},
                              Format{"vhdxfile"sv, "a VHDX image", kConvert},
                              Format{"conectix"sv, "a VHD image", kConvert},
                              Format{"\x1f\x8b\x08"sv, "compressed (gzip)", kUnpack},
                              Format{"\x28\xb5\x2f\xfd"sv, "compressed (zstd)", kUnpack},
                              Format{"\xfd"
                                     "7zXZ\0"sv,
                                     "compressed (xz)", kUnpack}};

Error invalid(const std::string& path, std::string_view what) {
  return {ErrorCode::kInvalidArgument, path + ": " + std::string(what)};
}

Error cannot_open(int error, const std::string& path) {
  if (error != ENOENT) return errno_error(error, path + ": open");
  const bool temporary = path.starts_with("/tmp/") || path.starts_with("/var/tmp/");
  return {ErrorCode::kNotFound,
          path + ": does not exist where marinerd runs" +
              (temporary ? "; as a service it has a /tmp and a /var/tmp of its own: move the file "
                           "elsewhere"
                         : "")};
}

// A device holds what hosts wrote to it, whatever that looks like.
Result<void> check_raw(int file, const std::string& path) {
  std::array<char, 16> begin{};
  const ssize_t n = ::pread(file, begin.data(), begin.size(), 0);
  if (n < 0) return errno_error(errno, path + ": read");
  const std::string_view head(begin.data(), static_cast<std::size_t>(n));
  for (const Format& format : kFormats) {
    if (!head.starts_with(format.magic)) continue;
    return invalid(path, std::string("expected a raw image, found one that is ") + format.name +
                             "; " + format.advice);
  }
  return {};
}

}  // namespace

ImportSource::~ImportSource() {
  if (file_ >= 0) ::close(file_);
}

ImportSource::ImportSource(ImportSource&& other) noexcept
    : file_(std::exchange(other.file_, -1)), bytes_(other.bytes_) {}

ImportSource& ImportSource::operator=(ImportSource&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<ImportSource> ImportSource::open(const std::string& path) {
  for (const std::string_view own : {"/dev/fd/"sv, "/dev/std"sv, "/proc/"sv}) {
    if (path.starts_with(own)) {
      return invalid(path,
                     "a descriptor of this program, which the daemon does not have; name a file "
                     "or a block device");
    }
  }
  ImportSource source;
  // A pipe that nobody writes would be waited for without O_NONBLOCK.
  source.file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (source.file_ < 0) return cannot_open(errno, path);
  struct stat status {};
  if (::fstat(source.file_, &status) != 0) return errno_error(errno, path + ": stat");
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return invalid(path, "neither a file nor a block device; only raw images are imported");
  }
  const off_t length = ::lseek(source.file_, 0, SEEK_END);
  if (length <= 0) return invalid(path, "is empty");
  source.bytes_ = static_cast<std::uint64_t>(length);
  if (S_ISREG(status.st_mode)) {
    if (Result<void> raw = check_raw(source.file_, path); !raw) return raw.error();
  }
  return source;
}

}  // namespace mariner::node
