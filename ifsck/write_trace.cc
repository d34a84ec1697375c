#include "ifsck/write_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ifsck/file_reads.h"
#include "ifsck/volume_ranges.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::ifsck {
namespace {

constexpr std::array<char, 8> kMagic{'M', 'R', 'N', 'T', 'R', 'A', 'C', 'E'};
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kRecordMagic = 0x57525452;  // "RTRW"
constexpr std::uint32_t kData = 1;
constexpr std::uint32_t kZeros = 2;
constexpr std::size_t kCrcAt = kTraceRecordBytes - 4;

void seal(TraceBytes& bytes) {
  store_le(bytes.data() + kCrcAt, crc32c(std::span(bytes).first(kCrcAt)));
}

Error corrupt(std::string what) { return {ErrorCode::kCorrupt, std::move(what)}; }

Result<void> check_crc(std::span<const std::byte> bytes) {
  const std::uint32_t expected = crc32c(bytes.first(kCrcAt));
  const auto found = load_le<std::uint32_t>(bytes.data() + kCrcAt);
  if (expected == found) return {};
  return corrupt(fmt::format("its CRC is {:08x}, and {:08x} is expected", found, expected));
}

Result<TraceFile> open_file(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd >= 0) return TraceFile(fd);
  Error error = errno_error(errno, path);
  if (errno == ENOENT) error.code = ErrorCode::kNotFound;
  return error;
}

}  // namespace

// ---- bytes

TraceBytes pack_trace_head(std::uint64_t volume_bytes) {
  TraceBytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store_le(bytes.data() + 8, kVersion);
  store_le(bytes.data() + 16, volume_bytes);
  seal(bytes);
  return bytes;
}

Result<std::uint64_t> parse_trace_head(std::span<const std::byte> bytes) {
  if (bytes.size() < kTraceRecordBytes ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt("it does not begin as a trace of writes does");
  }
  bytes = bytes.first(kTraceRecordBytes);
  if (const Result<void> good = check_crc(bytes); !good) return good.error();
  const auto version = load_le<std::uint32_t>(bytes.data() + 8);
  if (version != kVersion) {
    return corrupt(fmt::format("it has version {}, and {} is expected", version, kVersion));
  }
  const auto volume_bytes = load_le<std::uint64_t>(bytes.data() + 16);
  if (volume_bytes == 0 || volume_bytes % kBlockBytes != 0 || volume_bytes > kTraceVolumeBytesMax) {
    return corrupt(fmt::format("it is of a volume of {} bytes, which is not a number of blocks",
                               volume_bytes));
  }
  return volume_bytes;
}

TraceBytes pack_trace_record(const TraceRecord& record) {
  TraceBytes bytes{};
  store_le(bytes.data(), kRecordMagic);
  store_le(bytes.data() + 4, record.zeros ? kZeros : kData);
  store_le(bytes.data() + 8, record.sequence.value);
  store_le(bytes.data() + 16, record.time.ns);
  store_le(bytes.data() + 24, record.range.first.value);
  store_le(bytes.data() + 32, record.range.count.value);
  store_le(bytes.data() + 40, record.payload_crc);
  seal(bytes);
  return bytes;
}

Result<TraceRecord> parse_trace_record(std::span<const std::byte> bytes,
                                       std::uint64_t volume_bytes) {
  CHECK(bytes.size() == kTraceRecordBytes);
  if (load_le<std::uint32_t>(bytes.data()) != kRecordMagic) return corrupt("no record begins here");
  if (const Result<void> good = check_crc(bytes); !good) return good.error();
  const auto kind = load_le<std::uint32_t>(bytes.data() + 4);
  if (kind != kData && kind != kZeros) return corrupt(fmt::format("a record is of kind {}", kind));
  const TraceRecord record{.zeros = kind == kZeros,
                           .sequence = {load_le<std::uint64_t>(bytes.data() + 8)},
                           .time = {load_le<std::uint64_t>(bytes.data() + 16)},
                           .range = {{load_le<std::uint64_t>(bytes.data() + 24)},
                                     {load_le<std::uint64_t>(bytes.data() + 32)}},
                           .payload_crc = load_le<std::uint32_t>(bytes.data() + 40)};
  const std::uint64_t blocks = volume_bytes >> kBlockShift;
  const std::uint64_t count = record.range.count.value;
  if (count == 0 || count > blocks || record.range.first.value > blocks - count ||
      (!record.zeros && count > kTraceBlocksMax)) {
    return corrupt(fmt::format("a record is of {} blocks from {} on, in a volume of {}", count,
                               record.range.first.value, blocks));
  }
  return record;
}

// ---- file

TraceFile::~TraceFile() {
  if (fd_ >= 0) ::close(fd_);
}

TraceFile::TraceFile(TraceFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

TraceFile& TraceFile::operator=(TraceFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<std::size_t> TraceFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(fd_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "a read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<void> TraceFile::write(std::uint64_t offset, std::span<const std::byte> from) const {
  while (!from.empty()) {
    const ssize_t put = ::pwrite(fd_, from.data(), from.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error(errno, "a write");
    from = from.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

// ---- writer

Result<TraceWriter> TraceWriter::create(const std::string& path, std::uint64_t volume_bytes) {
  if (volume_bytes == 0 || volume_bytes % kBlockBytes != 0 || volume_bytes > kTraceVolumeBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a trace is of a number of blocks of 4096 bytes, not of {} bytes",
                             volume_bytes)};
  }
  auto file = open_file(path, O_RDWR | O_CREAT | O_TRUNC);
  if (!file) return file.error();
  if (const Result<void> put = file->write(0, pack_trace_head(volume_bytes)); !put) {
    return put.error();
  }
  return TraceWriter(std::move(*file), path, volume_bytes);
}

Result<SequenceNumber> TraceWriter::write(VersionTime time, Lbn first,
                                          std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() % kBlockBytes != 0 ||
      bytes.size() > kTraceBlocksMax * kBlockBytes) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: a write of {} bytes is not one of 1 to {} blocks", path_,
                             bytes.size(), kTraceBlocksMax)};
  }
  return append(
      {.time = time, .range = {first, {bytes.size() >> kBlockShift}}, .payload_crc = crc32c(bytes)},
      bytes);
}

Result<SequenceNumber> TraceWriter::zero(VersionTime time, BlockRange range) {
  return append({.zeros = true, .time = time, .range = range}, {});
}

Result<SequenceNumber> TraceWriter::append(TraceRecord record, std::span<const std::byte> bytes) {
  record.sequence = last_.next();
  const TraceBytes packed = pack_trace_record(record);
  const auto good = parse_trace_record(packed, volume_bytes_);
  if (!good || record.time <= last_time_) {
    return Error{ErrorCode::kInvalidArgument,
                 path_ + ": " +
                     (good ? "the time of a write is not above that of the one before"
                           : good.error().message)};
  }
  for (const std::span<const std::byte> part : {std::span<const std::byte>(packed), bytes}) {
    if (const Result<void> put = file_.write(end_, part); !put) return put.error();
    end_ += part.size();
  }
  last_ = record.sequence;
  last_time_ = record.time;
  return last_;
}

// ---- past

Result<TracePast> TracePast::open(const std::string& image, const std::string& trace) {
  TracePast past;
  past.image_path_ = image;
  past.trace_path_ = trace;
  for (const auto& [path, file] : {std::pair{&image, &past.image_}, {&trace, &past.trace_}}) {
    if (path->empty()) continue;
    auto opened = open_file(*path, O_RDONLY);
    if (!opened) return opened.error();
    *file = std::move(*opened);
  }
  // Blocks of a file system's metadata: what stands next to one is not asked for.
  if (past.image_.fd() >= 0) (void)posix_fadvise(past.image_.fd(), 0, 0, POSIX_FADV_RANDOM);
  const Result<void> loaded = trace.empty() ? past.take_size() : past.load();
  if (!loaded) return loaded.error();
  return past;
}

Result<void> TracePast::take_size() {
  const off_t end = lseek(image_.fd(), 0, SEEK_END);
  if (end < 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: its size cannot be told: {}", image_path_,
                                             std::generic_category().message(errno))};
  }
  volume_bytes_ = static_cast<std::uint64_t>(end) / kBlockBytes * kBlockBytes;
  return {};
}

Result<void> TracePast::load() {
  TraceBytes head;
  const auto got = trace_.read(0, head);
  if (!got) return got.error();
  const auto volume_bytes = parse_trace_head(std::span(head).first(*got));
  if (!volume_bytes) return corrupt(trace_path_ + ": " + volume_bytes.error().message);
  volume_bytes_ = *volume_bytes;
  for (std::uint64_t offset = kTraceRecordBytes;;) {
    const auto more = load_record(offset);
    if (!more) return more.error();
    if (!*more) return {};
  }
}

void TracePast::note(std::uint64_t offset, std::string what) {
  damage_.push_back({offset, std::move(what)});
}

// False: none that is whole begins at `offset`.
Result<bool> TracePast::load_record(std::uint64_t& offset) {
  TraceBytes bytes;
  const auto got = trace_.read(offset, bytes);
  if (!got) return got.error();
  if (*got < bytes.size()) return false;
  const auto record = parse_trace_record(bytes, volume_bytes_);
  const Write last = writes_.empty() ? Write{} : writes_.back();
  if (!record || record->sequence <= last.sequence || record->time <= last.time) {
    note(offset, record ? "a record is not behind the one before" : record.error().message);
    return false;
  }
  const std::uint64_t payload_at = offset + kTraceRecordBytes;
  std::vector<std::byte> payload(record->payload_bytes());
  const auto came = trace_.read(payload_at, payload);
  if (!came) return came.error();
  if (*came < payload.size()) return false;
  if (crc32c(payload) != record->payload_crc && !record->zeros) {
    note(offset, "a record's payload has another CRC than the record says");
    return false;
  }
  writes_.push_back({record->sequence, record->time, record->range});
  if (record->zeros) zeros_.push_back(writes_.back());
  for (std::uint64_t i = 0; i < payload.size() >> kBlockShift; ++i) {
    data_[record->range.first + BlockCount{i}].push_back(
        {record->sequence, payload_at + i * kBlockBytes});
  }
  offset = payload_at + payload.size();
  return true;
}

Result<Past::Reach> TracePast::reach() {
  return Reach{{0}, writes_.empty() ? SequenceNumber{} : writes_.back().sequence};
}

Result<SequenceNumber> TracePast::moment_of(VersionTime time) {
  const auto after = std::ranges::upper_bound(writes_, time, {}, &Write::time);
  return after == writes_.begin() ? SequenceNumber{} : std::prev(after)->sequence;
}

Result<VersionTime> TracePast::time_of(SequenceNumber sequence) {
  const auto after = std::ranges::upper_bound(writes_, sequence, {}, &Write::sequence);
  return after == writes_.begin() ? VersionTime{} : std::prev(after)->time;
}

Result<void> TracePast::check(SequenceNumber at) const {
  const SequenceNumber newest = writes_.empty() ? SequenceNumber{} : writes_.back().sequence;
  if (at <= newest) return {};
  return Error{ErrorCode::kOutsideWindow,
               fmt::format("{} has writes up to {}, not {}", trace_path_, newest.value, at.value)};
}

Result<void> TracePast::read(std::span<const Question> questions, std::span<std::byte> to) {
  CHECK(to.size() == questions.size() * kBlockBytes);
  std::vector<FileRead> reads;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto found = find(questions[i], to.subspan(i * kBlockBytes, kBlockBytes));
    if (!found) return found.error();
    const FileRead& read = *found;
    if (read.to.empty()) continue;
    // What follows the one before is read with it.
    FileRead* const last = reads.empty() ? nullptr : &reads.back();
    if (last != nullptr && last->fd == read.fd && last->offset + last->to.size() == read.offset &&
        last->to.data() + last->to.size() == read.to.data()) {
      last->to = {last->to.data(), last->to.size() + read.to.size()};
    } else {
      reads.push_back(read);
    }
  }
  return read_files(reads);
}

const TracePast::Stored* TracePast::newest_data(Lbn block, SequenceNumber at) const {
  const auto found = data_.find(block);
  if (found == data_.end()) return nullptr;
  const auto after = std::ranges::upper_bound(found->second, at, {}, &Stored::sequence);
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

SequenceNumber TracePast::newest_zeros(Lbn block, SequenceNumber at) const {
  for (auto each = std::ranges::upper_bound(zeros_, at, {}, &Write::sequence);
       each != zeros_.begin();) {
    if ((--each)->range.contains(block)) return each->sequence;
  }
  return {};
}

Result<FileRead> TracePast::find(const Question& question, std::span<std::byte> to) const {
  if (const Result<void> good = check(question.at); !good) return good.error();
  if (question.block.value >= volume_bytes_ >> kBlockShift) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: block {} is behind the volume's end",
                                                          trace_path_, question.block.value)};
  }
  const Stored* const stored = newest_data(question.block, question.at);
  const SequenceNumber zeros = newest_zeros(question.block, question.at);
  if (zeros.value > 0 && (stored == nullptr || stored->sequence < zeros)) {
    std::ranges::fill(to, std::byte{0});
    return FileRead{};
  }
  if (stored == nullptr)
    return FileRead{image_.fd(), question.block.byte_offset(), to, &image_path_};
  return FileRead{trace_.fd(), stored->offset, to, &trace_path_};
}

std::span<const TracePast::Write> TracePast::between(SequenceNumber from, SequenceNumber to) const {
  const auto first = std::ranges::upper_bound(writes_, from, {}, &Write::sequence);
  const auto end = std::ranges::upper_bound(writes_, to, {}, &Write::sequence);
  if (end <= first) return {};
  return {first, end};
}

Result<std::vector<BlockRange>> TracePast::changed(SequenceNumber from, SequenceNumber to) {
  std::vector<BlockRange> ranges;
  for (const Write& write : between(from, to)) ranges.push_back(write.range);
  normalize(ranges);
  return ranges;
}

Result<std::vector<Past::Version>> TracePast::versions(std::span<const Lbn> blocks,
                                                       SequenceNumber from, SequenceNumber to) {
  std::vector<Version> versions;
  for (const Lbn block : blocks) {
    const std::size_t begin = versions.size();
    if (const auto found = data_.find(block); found != data_.end()) {
      for (const Stored& each : found->second) versions.push_back({block, each.sequence, {}});
    }
    for (const Write& each : zeros_) {
      if (each.range.contains(block)) versions.push_back({block, each.sequence, {}});
    }
    std::erase_if(versions, [&](const Version& each) {
      return each.block == block && (each.sequence <= from || each.sequence > to);
    });
    std::ranges::sort(std::span(versions).subspan(begin), {}, &Version::sequence);
  }
  for (Version& each : versions) {
    const auto time = time_of(each.sequence);
    if (!time) return time.error();
    each.time = *time;
  }
  return versions;
}

}  // namespace mariner::ifsck
