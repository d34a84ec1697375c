#include "tests/bench/counting_file_system.h"

#include <utility>

namespace mariner::bench {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<rocksdb::FSSequentialFile>&& file, FileCounts& counts)
      : FSSequentialFileOwnerWrapper(std::move(file)), counts_(counts) {}

  IOStatus Read(std::size_t bytes, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    const IOStatus status = target()->Read(bytes, options, result, scratch, debug);
    counts_.read(result->size());
    return status;
  }
  IOStatus PositionedRead(std::uint64_t offset, std::size_t bytes, const IOOptions& options,
                          Slice* result, char* scratch, IODebugContext* debug) override {
    const IOStatus status =
        target()->PositionedRead(offset, bytes, options, result, scratch, debug);
    counts_.read(result->size());
    return status;
  }

 private:
  FileCounts& counts_;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile>&& file, FileCounts& counts)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), counts_(counts) {}

  IOStatus Read(std::uint64_t offset, std::size_t bytes, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    const IOStatus status = target()->Read(offset, bytes, options, result, scratch, debug);
    counts_.read(result->size());
    return status;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    const IOStatus status = target()->MultiRead(requests, count, options, debug);
    for (std::size_t i = 0; i < count; ++i) counts_.read(requests[i].result.size());
    return status;
  }

 private:
  FileCounts& counts_;
};

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, FileCounts& counts)
      : FSWritableFileOwnerWrapper(std::move(file)), counts_(counts) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    counts_.written(data.size());
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  IODebugContext* debug) override {
    counts_.written(data.size());
    return target()->Append(data, options, verification, debug);
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            IODebugContext* debug) override {
    counts_.written(data.size());
    return target()->PositionedAppend(data, offset, options, debug);
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& verification,
                            IODebugContext* debug) override {
    counts_.written(data.size());
    return target()->PositionedAppend(data, offset, options, verification, debug);
  }

 private:
  FileCounts& counts_;
};

template <typename Counted, typename File>
IOStatus counted(const IOStatus& status, std::unique_ptr<File>* file, FileCounts& counts) {
  if (status.ok()) *file = std::make_unique<Counted>(std::move(*file), counts);
  return status;
}

}  // namespace

IOStatus CountingFileSystem::NewSequentialFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                               IODebugContext* debug) {
  return counted<SequentialFile>(target()->NewSequentialFile(path, options, file, debug), file,
                                 counts_);
}

IOStatus CountingFileSystem::NewRandomAccessFile(const std::string& path,
                                                 const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                 IODebugContext* debug) {
  return counted<RandomAccessFile>(target()->NewRandomAccessFile(path, options, file, debug), file,
                                   counts_);
}

IOStatus CountingFileSystem::NewWritableFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             IODebugContext* debug) {
  return counted<WritableFile>(target()->NewWritableFile(path, options, file, debug), file,
                               counts_);
}

}  // namespace mariner::bench
