#include "server/client/consistent.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "proto/fsck.pb.h"
#include "server/admin/json.h"
#include "server/admin/repair_wire.h"
#include "server/client/helper_program.h"

namespace mariner::client {
namespace {

namespace fs = std::filesystem;

constexpr int kSound = static_cast<int>(ExitCode::kDone);
constexpr int kErrorsFound = static_cast<int>(ExitCode::kErrorsFound);

std::string moment_text(const ConsistentMoment::Options& options) {
  return fmt::format("{}@#{}", options.volume, options.sequence);
}

// What ifsck says when it ends with another code than these.
Error why_not(const ConsistentMoment::Options& options, const Ended& ended) {
  Error error = admin::error_from_json(ended.out);
  if (error.code == ErrorCode::kProtocol) {
    error = {ErrorCode::kIo, fmt::format("ifsck ended with {}", ended.exit_code)};
  }
  // (There is no such file system, and not: the command's words are wrong.)
  if (error.code == ErrorCode::kInvalidArgument) error.code = ErrorCode::kNotFound;
  error.message = fmt::format(
      "{} cannot be made consistent: {}. Nothing was changed; without --consistent the moment is "
      "used as it is",
      moment_text(options), error.message);
  return error;
}

Error not_mended(const ConsistentMoment::Options& options, const Ended& ended) {
  api::FsckReport report;
  std::string left = "something";
  if (admin::from_answer_json(ended.out, report) && report.left_size() > 0) {
    left =
        fmt::format("{} {}", report.left_size(), report.left_size() == 1 ? "finding" : "findings");
  }
  return {ErrorCode::kCorrupt,
          fmt::format("{} cannot be made consistent: {} cannot be mended; `mariner fsck {}` lists "
                      "what. Nothing was changed; without --consistent the moment is used as it is",
                      moment_text(options), left, moment_text(options))};
}

}  // namespace

ConsistentMoment::ConsistentMoment(ConsistentMoment&& other) noexcept
    : options_(std::move(other.options_)),
      folder_(std::exchange(other.folder_, {})),
      blocks_(other.blocks_) {}

ConsistentMoment::~ConsistentMoment() {
  std::error_code ignored;
  if (!folder_.empty()) fs::remove_all(folder_, ignored);
}

Result<ConsistentMoment> ConsistentMoment::find(const Context& context, const Options& options) {
  std::error_code ignored;
  std::string folder = (fs::temp_directory_path(ignored) / "mariner-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return errno_error(errno, folder + ": create");
  ConsistentMoment out(options, std::move(folder));
  if (const Result<void> r = out.look(context); !r) return r.error();
  return out;
}

Result<void> ConsistentMoment::look(const Context& context) {
  const auto program = find_program(kFsckProgram);
  if (!program) return program.error();
  const auto ended = run_program(*program, {"repairs", moment_text(options_), "--output", file(),
                                            "--json", "--socket", context.flags.socket});
  if (!ended) return ended.error();
  if (ended->exit_code == kErrorsFound) return not_mended(options_, *ended);
  if (ended->exit_code != kSound) return why_not(options_, *ended);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file(), error);
  if (error || bytes % admin::kRepairRecordBytes != 0) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("{}: expected records of {} bytes from ifsck, found {}", file(),
                             admin::kRepairRecordBytes,
                             error ? error.message() : fmt::format("{} bytes", bytes))};
  }
  blocks_ = bytes / admin::kRepairRecordBytes;
  return {};
}

std::string ConsistentMoment::text() const {
  if (blocks_ == 0) return "nothing: its file system is sound as it is";
  return fmt::format("{} {}, so that its file system is sound", blocks_,
                     blocks_ == 1 ? "block" : "blocks");
}

Result<std::string> ConsistentMoment::hand_over(AdminClient& client) const {
  if (blocks_ == 0) return std::string();
  api::RepairsRequest request;
  request.set_volume(options_.volume);
  request.set_sequence(options_.sequence);
  const auto opened = client.repairs_open(request);
  if (!opened) return opened.error();
  std::ifstream in(file(), std::ios::binary);
  std::string part;
  for (std::uint64_t left = blocks_; left > 0;) {
    const auto count = std::min<std::uint64_t>(left, admin::kRepairRecordsMax);
    part.resize(count * admin::kRepairRecordBytes);
    if (!in.read(part.data(), static_cast<std::streamsize>(part.size()))) {
      return Error{ErrorCode::kIo, file() + ": cannot be read"};
    }
    if (const auto added = client.repairs_add(opened->id(), part); !added) return added.error();
    left -= count;
  }
  return opened->id();
}

}  // namespace mariner::client
