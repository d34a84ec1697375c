#include "server/node/log_stack.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proto/check.h"

namespace mariner::node {

using logging::FileDisk;

namespace {

constexpr unsigned kRecoveryThreads = 4;

logging::LogId new_log_id() {
  logging::LogId id{};
  CHECK(::getrandom(id.data(), id.size(), 0) == static_cast<ssize_t>(id.size()));
  return id;
}

// A log file appears under its name only when it is formatted: created and formatted beside it,
// then renamed, so that a crash in between leaves nothing half-made.
Result<void> create_log(const LogSettings& settings, std::uint64_t now_ns) {
  const std::string fresh = settings.path + ".new";
  std::error_code ignored;
  std::filesystem::remove(fresh, ignored);
  if (Result<void> r = FileDisk::create(fresh, FileDisk::Caching::kDirect, settings.size_bytes);
      !r) {
    return r;
  }
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(fresh, FileDisk::Caching::kDirect, nullptr);
  if (!disk) return disk.error();
  Result<logging::Superblock> formatted =
      logging::format_log(**disk, new_log_id(), 0, settings.track_bytes, now_ns);
  if (!formatted) return formatted.error();
  if (Result<void> r = (*disk)->flush(); !r) return r;
  std::error_code error;
  std::filesystem::rename(fresh, settings.path, error);
  if (error) return errno_error(error.value(), settings.path + ": rename");
  return logging::sync_directory_of(settings.path);
}

}  // namespace

Result<std::unique_ptr<LogStack>> LogStack::open(const LogSettings& settings, Executor& executor,
                                                 logging::IoRing& ring,
                                                 const logging::RecordVisitor& visit) {
  std::unique_ptr<LogStack> stack(new LogStack());
  stack->path_ = settings.path;
  if (!std::filesystem::exists(settings.path)) {
    if (Result<void> r = create_log(settings, executor.wall_time().ns); !r) return r.error();
  }
  Result<std::unique_ptr<FileDisk>> disk =
      FileDisk::open(settings.path, FileDisk::Caching::kDirect, &ring);
  if (!disk) return disk.error();
  stack->disk_ = std::move(*disk);
  Result<logging::Superblock> superblock = logging::read_superblock(*stack->disk_);
  if (!superblock && superblock.error().code == ErrorCode::kNotFound) {
    // A fresh block device. A file is formatted before it gets its name, so zeros there are damage.
    if (!std::filesystem::is_block_file(settings.path)) {
      return Error{ErrorCode::kCorrupt,
                   settings.path +
                       ": expected a log, found zeros where its superblock stands; "
                       "restore it, or remove the file to begin a new log"};
    }
    superblock = logging::format_log(*stack->disk_, new_log_id(), 0, settings.track_bytes,
                                     executor.wall_time().ns);
  }
  if (!superblock) {
    return Error{superblock.error().code, settings.path + ": " + superblock.error().message};
  }
  stack->superblock_ = *superblock;
  Result<logging::Recovered> recovered =
      logging::recover_log(*stack->disk_, stack->superblock_, kRecoveryThreads, visit);
  if (!recovered) {
    return Error{recovered.error().code, settings.path + ": " + recovered.error().message};
  }
  stack->recovered_.emplace(std::move(*recovered));
  stack->reserve_tracks_ = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      settings.lag_bytes / (std::uint64_t{stack->superblock_.track_blocks} * kBlockBytes) + 2, 2,
      std::max<std::uint64_t>(2, stack->superblock_.track_count / 8)));
  logging::LogWriter::Options options;
  options.reserve_tracks = stack->reserve_tracks_;
  stack->writer_ = std::make_unique<logging::LogWriter>(*stack->disk_, executor, stack->superblock_,
                                                        stack->recovered_->tracks,
                                                        stack->recovered_->tail, options);
  stack->writer_->set_observer([raw = stack.get()](const logging::LogWriter::BatchReport& batch) {
    raw->commit_durations_.observe(static_cast<std::uint64_t>(batch.duration.count()));
    raw->batch_bytes_.observe(batch.bytes);
  });
  stack->reader_ = std::make_unique<logging::LogReader>(*stack->disk_, stack->superblock_.log);
  stack->initialiser_ = std::make_unique<logging::TrackInitialiser>(
      *stack->disk_, executor, stack->superblock_, *stack->writer_);
  stack->recycler_ = std::make_unique<logging::TrackRecycler>(
      *stack->disk_, stack->superblock_, stack->recovered_->tracks, *stack->writer_);
  return stack;
}

LogStack::~LogStack() = default;

void LogStack::start_scrubbing(Executor& executor, std::uint64_t bytes_per_second,
                               ScrubReporter report) {
  scrubber_ = std::make_unique<logging::TrackScrubber>(
      logging::TrackScrubber::Parts{*disk_, executor, superblock_, recovered_->tracks},
      logging::TrackScrubber::Options{bytes_per_second},
      logging::TrackScrubber::Owner{
          [this] { return writer_->current_allocation(); }, [this] { return !writer_->idle(); },
          [this, report = std::move(report)](const logging::TrackDamage& damage) mutable {
            report(path_, damage);
          }});
  scrubber_->start();
}

void LogStack::stop() {
  initialiser_->stop();
  if (scrubber_ != nullptr) scrubber_->stop();
}

bool LogStack::idle() const {
  return writer_->idle() && initialiser_->idle() && recycler_->idle() &&
         (scrubber_ == nullptr || scrubber_->idle());
}

}  // namespace mariner::node
