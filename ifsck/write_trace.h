// A trace of writes (FORMAT.md): its writer, and the past that a base image and a trace make.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ifsck/file_reads.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

inline constexpr std::size_t kTraceRecordBytes = 64;  // of a record, and of the file's beginning
inline constexpr std::uint64_t kTraceBlocksMax = 4096;
inline constexpr std::uint64_t kTraceVolumeBytesMax = 1ULL << 56;
using TraceBytes = std::array<std::byte, kTraceRecordBytes>;

struct TraceRecord {
  bool zeros = false;
  SequenceNumber sequence;
  VersionTime time;
  BlockRange range;
  std::uint32_t payload_crc = 0;
  [[nodiscard]] std::uint64_t payload_bytes() const { return zeros ? 0 : range.count.bytes(); }
  friend bool operator==(const TraceRecord&, const TraceRecord&) = default;
};

[[nodiscard]] TraceBytes pack_trace_head(std::uint64_t volume_bytes);
[[nodiscard]] TraceBytes pack_trace_record(const TraceRecord& record);
// The size of the volume. kCorrupt, naming what is wrong.
[[nodiscard]] Result<std::uint64_t> parse_trace_head(std::span<const std::byte> bytes);
// By itself, and within a volume of that size. kCorrupt.
[[nodiscard]] Result<TraceRecord> parse_trace_record(std::span<const std::byte> bytes,
                                                     std::uint64_t volume_bytes);

// An open file, and its end.
class TraceFile {
 public:
  explicit TraceFile(int fd = -1) : fd_(fd) {}
  ~TraceFile();
  TraceFile(TraceFile&& other) noexcept;
  TraceFile& operator=(TraceFile&& other) noexcept;
  [[nodiscard]] int fd() const { return fd_; }
  // Fills `to`, or as much of it as there is, and says how much. kIo.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> to) const;
  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> from) const;

 private:
  int fd_;
};

class TraceWriter {
 public:
  // Makes the file anew. kInvalidArgument, kIo.
  [[nodiscard]] static Result<TraceWriter> create(const std::string& path,
                                                  std::uint64_t volume_bytes);

  // The next write; `bytes` are whole blocks. kInvalidArgument: it does not fit behind the others,
  // or into the volume. After kIo the file ends somewhere within it.
  [[nodiscard]] Result<SequenceNumber> write(VersionTime time, Lbn first,
                                             std::span<const std::byte> bytes);
  [[nodiscard]] Result<SequenceNumber> zero(VersionTime time, BlockRange range);

 private:
  TraceWriter(TraceFile file, std::string path, std::uint64_t volume_bytes)
      : file_(std::move(file)), path_(std::move(path)), volume_bytes_(volume_bytes) {}
  Result<SequenceNumber> append(TraceRecord record, std::span<const std::byte> bytes);

  TraceFile file_;
  std::string path_;
  std::uint64_t volume_bytes_;
  std::uint64_t end_ = kTraceRecordBytes;
  SequenceNumber last_;
  VersionTime last_time_;
};

// Keeps an index of the trace in memory: about 24 bytes for each block of data, and for each
// record.
class TracePast final : public Past {
 public:
  // What was found wrong in the trace, and does not keep what stands before it from being used.
  struct Damage {
    std::uint64_t offset = 0;
    std::string what;
  };

  // Reads the trace through once. The image may be shorter than the volume: zeros follow. Without a
  // trace (empty) it is the image, or a device, as it is, in whole blocks.
  // kIo, kCorrupt: the trace's beginning; kNotFound.
  [[nodiscard]] static Result<TracePast> open(const std::string& image, const std::string& trace);

  [[nodiscard]] std::uint64_t size_bytes() const override { return volume_bytes_; }
  [[nodiscard]] Result<Reach> reach() override;
  [[nodiscard]] Result<SequenceNumber> moment_of(VersionTime time) override;
  [[nodiscard]] Result<VersionTime> time_of(SequenceNumber sequence) override;
  [[nodiscard]] Result<void> read(std::span<const Question> questions,
                                  std::span<std::byte> to) override;
  [[nodiscard]] Result<std::vector<BlockRange>> changed(SequenceNumber from,
                                                        SequenceNumber to) override;
  [[nodiscard]] Result<std::vector<Version>> versions(std::span<const Lbn> blocks,
                                                      SequenceNumber from,
                                                      SequenceNumber to) override;

  [[nodiscard]] const std::vector<Damage>& damage() const { return damage_; }

 private:
  // Data of a block.
  struct Stored {
    SequenceNumber sequence;
    std::uint64_t offset = 0;  // in the trace
  };
  struct Write {
    SequenceNumber sequence;
    VersionTime time;
    BlockRange range;
  };

  TracePast() = default;
  Result<void> load();
  Result<void> take_size();
  Result<bool> load_record(std::uint64_t& offset);
  void note(std::uint64_t offset, std::string what);
  [[nodiscard]] std::span<const Write> between(SequenceNumber from, SequenceNumber to) const;
  [[nodiscard]] Result<void> check(SequenceNumber at) const;
  // Nothing: none up to then.
  [[nodiscard]] const Stored* newest_data(Lbn block, SequenceNumber at) const;
  [[nodiscard]] SequenceNumber newest_zeros(Lbn block, SequenceNumber at) const;
  // Where it stands; what is zeros is filled with them, and not to be read.
  [[nodiscard]] Result<FileRead> find(const Question& question, std::span<std::byte> to) const;

  TraceFile image_;
  TraceFile trace_;
  std::string image_path_;
  std::string trace_path_;
  std::uint64_t volume_bytes_ = 0;
  std::vector<Write> writes_;                // ascending
  std::vector<Write> zeros_;                 // those of them that are of zeros: any length
  std::map<Lbn, std::vector<Stored>> data_;  // each ascending
  std::vector<Damage> damage_;
};

}  // namespace mariner::ifsck
