#include "server/node/repair_desk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::node {
namespace {

constexpr auto kSweep = std::chrono::seconds(5);
constexpr std::size_t kRecordBytes = admin::kRepairRecordBytes;

Error none_such(const std::string& id) {
  return {ErrorCode::kNotFound, "there are no repairs " + id + ": they were used, or not for " +
                                    std::to_string(RepairDesk::kIdle.count()) +
                                    " s; hand them over again"};
}

std::string new_id() {
  std::random_device device;
  return std::to_string(std::uint64_t{device()} << 32 | device());
}

Result<void> write_at(int fd, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return errno_error(count == 0 ? ENOSPC : errno, "repaired blocks: write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
  return {};
}

Result<void> read_at(int fd, std::span<std::byte> to, std::uint64_t offset) {
  while (!to.empty()) {
    const ssize_t count = ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return errno_error(count == 0 ? EIO : errno, "repaired blocks: read");
    to = to.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace

// ---- a file

Result<std::shared_ptr<RepairFile>> RepairFile::create(const std::string& folder) {
  std::string name = folder + "/repairs-XXXXXX";
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return errno_error(errno, name + ": create");
  ::unlink(name.c_str());
  return std::shared_ptr<RepairFile>(new RepairFile(fd));
}

RepairFile::~RepairFile() { ::close(fd_); }

// What stands behind the last whole record is written over by the next one.
Result<void> RepairFile::append(const std::vector<admin::RepairedBlock>& blocks) {
  if (blocks.empty()) return {};
  std::vector<std::byte> records(blocks.size() * kRecordBytes);
  std::byte* at = records.data();
  for (const admin::RepairedBlock& each : blocks) {
    store_le(at, each.block.value);
    std::memcpy(at + 8, each.bytes.data(), kBlockBytes);
    at += kRecordBytes;
  }
  if (Result<void> r = write_at(fd_, records, blocks_ * kRecordBytes); !r) return r;
  blocks_ += blocks.size();
  last_ = blocks.back().block;
  return {};
}

class RepairFile::Reader final : public volume::RepairSource {
 public:
  explicit Reader(std::shared_ptr<const RepairFile> file) : file_(std::move(file)) {}

  Result<std::vector<volume::RepairedRun>> next() override {
    const std::uint64_t count = std::min<std::uint64_t>(kBlocksMax, file_->blocks_ - done_);
    std::vector<std::byte> records(count * kRecordBytes);
    if (Result<void> r = read_at(file_->fd_, records, done_ * kRecordBytes); !r) return r.error();
    std::vector<volume::RepairedRun> out;
    for (std::uint64_t i = 0; i < count;) {
      std::uint64_t run = 1;
      while (i + run < count && block(records, i + run) == block(records, i) + run) ++run;
      Payload payload = Payload::allocate(run * kBlockBytes);
      for (std::uint64_t k = 0; k < run; ++k) {
        std::memcpy(payload.data() + k * kBlockBytes, records.data() + (i + k) * kRecordBytes + 8,
                    kBlockBytes);
      }
      out.push_back({{Lbn{block(records, i)}, BlockCount{run}}, {payload, 0, payload.size()}});
      i += run;
    }
    done_ += count;
    return out;
  }

 private:
  static std::uint64_t block(const std::vector<std::byte>& records, std::uint64_t i) {
    return load_le<std::uint64_t>(records.data() + i * kRecordBytes);
  }

  const std::shared_ptr<const RepairFile> file_;
  std::uint64_t done_ = 0;
};

std::shared_ptr<volume::RepairSource> RepairFile::read(std::shared_ptr<const RepairFile> file) {
  return std::make_shared<Reader>(std::move(file));
}

// ---- the desk

api::Repairs RepairDesk::to_api(const Repairs& repairs) {
  api::Repairs out;
  out.set_schema(1);
  out.set_id(repairs.id);
  out.set_volume(repairs.volume_name);
  *out.mutable_at() = node::to_api(repairs.at);
  out.set_blocks(repairs.file->blocks());
  out.set_idle_s(kIdle.count());
  return out;
}

void RepairDesk::open(const api::RepairsRequest& request, admin::Answer<api::Repairs> done) {
  Result<Volume> volume = find_(request.volume());
  if (!volume) return done(volume.error());
  api::MomentSpec at;
  at.set_sequence(request.sequence());
  const MomentsOf moments = volume->moments;
  resolve_moment(
      moments, at, executor_,
      [this, name = request.volume(), volume = *std::move(volume),
       done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
        if (!moment) return done(moment.error());
        if (repairs_.size() >= kRepairsMax) {
          return done(Error{ErrorCode::kLimit, "repairs are handed over for " +
                                                   std::to_string(kRepairsMax) +
                                                   " moments already, which is the limit"});
        }
        Result<std::shared_ptr<RepairFile>> file = RepairFile::create(folder_);
        if (!file) return done(file.error());
        const std::string id = new_id();
        Repairs& repairs = repairs_[id];
        repairs = {
            id, name, volume.id, volume.size_bytes, moment->at, *file, executor_.monotonic_time()};
        sweep_later();
        done(to_api(repairs));
      });
}

Result<RepairDesk::Repairs*> RepairDesk::find(const std::string& id) {
  const auto found = repairs_.find(id);
  if (found == repairs_.end()) return none_such(id);
  found->second.used = executor_.monotonic_time();
  return &found->second;
}

Result<void> RepairDesk::check(const Repairs& to,
                               const std::vector<admin::RepairedBlock>& blocks) const {
  if (blocks.empty()) return {};
  const auto wrong = [](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, "repaired blocks: " + why};
  };
  if (blocks.back().block.value >= to.size_bytes / kBlockBytes) {
    return wrong("expected numbers below " + std::to_string(to.size_bytes / kBlockBytes) +
                 ", the size of " + to.volume_name + ", found " +
                 std::to_string(blocks.back().block.value));
  }
  if (to.file->blocks() != 0 && blocks.front().block <= to.file->last()) {
    return wrong("expected ascending numbers, found " + std::to_string(blocks.front().block.value) +
                 " behind " + std::to_string(to.file->last().value));
  }
  std::uint64_t all = blocks.size();
  for (const auto& [id, each] : repairs_) all += each.file->blocks();
  if (all <= kBlocksMax) return {};
  return Error{ErrorCode::kLimit,
               "repaired blocks: at most " + std::to_string(kBlocksMax) + " are kept"};
}

void RepairDesk::add(const std::string& id, const std::vector<admin::RepairedBlock>& blocks,
                     admin::Answer<api::Repairs> done) {
  const Result<Repairs*> repairs = find(id);
  if (!repairs) return done(repairs.error());
  if (Result<void> r = check(**repairs, blocks); !r) return done(r.error());
  if (Result<void> r = (*repairs)->file->append(blocks); !r) return done(r.error());
  done(to_api(**repairs));
}

void RepairDesk::drop(const std::string& id, admin::Answer<api::Repairs> done) {
  const Result<Repairs*> repairs = find(id);
  if (!repairs) return done(repairs.error());
  api::Repairs was = to_api(**repairs);
  repairs_.erase(id);
  done(std::move(was));
}

Result<std::shared_ptr<const RepairFile>> RepairDesk::take(const std::string& id, VolumeId volume,
                                                           SequenceNumber at, bool only_ask) {
  const Result<Repairs*> repairs = find(id);
  if (!repairs) return repairs.error();
  const Repairs& found = **repairs;
  if (found.volume != volume || found.at.sequence != at) {
    return Error{ErrorCode::kInvalidArgument,
                 "the repairs " + id + " are of " + found.volume_name + " at #" +
                     std::to_string(found.at.sequence.value) + ", and not of #" +
                     std::to_string(at.value) + " of what was asked for"};
  }
  std::shared_ptr<const RepairFile> file = found.file;
  if (!only_ask) repairs_.erase(id);
  return file;
}

void RepairDesk::sweep_later() {
  if (repairs_.empty() || std::exchange(sweeping_, true)) return;
  executor_.after(kSweep, [this, alive = alive_] {
    if (*alive) sweep();
  });
}

void RepairDesk::sweep() {
  sweeping_ = false;
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  std::erase_if(repairs_, [&](const auto& each) { return now - each.second.used >= kIdle; });
  sweep_later();
}

}  // namespace mariner::node
