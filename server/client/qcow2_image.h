// A QCOW2 image of version 3, as QEMU and most hypervisors read it (the format is specified in
// QEMU's docs/interop/qcow2.txt): clusters of 64 KiB, no backing file, no snapshots, nothing
// compressed.
//
// The file is written in one go: cluster 0 for the header; data and, behind the data of 512 MiB
// each, the L2 table for it; the L1 table; the refcount table and blocks, with 1 for each cluster
// of the file; the header last. A cluster that is all zeros is not in it, and zeros within one are
// holes. Memory: one L2 table, and 8 bytes for each 512 MiB of the volume.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/client/export_sink.h"
#include "server/client/output_file.h"

namespace mariner::client {

class Qcow2Image final : public ExportSink {
 public:
  static constexpr std::uint64_t kClusterBytes = 65536;

  // `file`, which is new, outlives it.
  Qcow2Image(OutputFile& file, std::uint64_t size_bytes);

  [[nodiscard]] Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  [[nodiscard]] Result<void> finish() override;

 private:
  // Of a table in the file: offset and entries.
  struct Table {
    std::uint64_t offset = 0;
    std::uint64_t entries = 0;
  };
  Result<void> write_within_table(std::uint64_t offset, std::span<const std::byte> bytes);
  Result<void> begin_table(std::uint64_t number);
  Result<void> end_table();
  [[nodiscard]] Result<Table> write_numbers(const std::vector<std::uint64_t>& numbers);
  [[nodiscard]] Result<Table> write_refcounts();
  Result<void> write_header(const Table& l1, const Table& refcounts);

  OutputFile& file_;
  const std::uint64_t size_bytes_;
  std::uint64_t clusters_ = 1;                 // of the file, so far
  std::vector<std::uint64_t> l1_;              // entries as they stand there
  std::vector<std::uint64_t> l2_;              // of the table that is being filled
  std::optional<std::uint64_t> table_number_;  // which one
};

}  // namespace mariner::client
