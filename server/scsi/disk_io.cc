// The commands of a disk that wait for its layer.
//
// Short data: a session delivers less than the CDB asks for when the initiator announced less
// (residual overflow, RFC 7143 11.4.5.1). As SAM-5 lets a device server transfer less than the
// CDB's length, the whole blocks that came are written (verified), and the session reports the
// rest as residual; data that ends within a block is refused, and nothing is written.
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "server/scsi/disk.h"
#include "server/scsi/nexus.h"
#include "server/scsi/unmap.h"

namespace mariner::scsi {
namespace {

// GET LBA STATUS looks this far at most; the initiator asks again from where the answer ends.
constexpr std::uint64_t kStatusBytesMax = 256u << 20;
constexpr std::size_t kStatusDescriptorsMax = 1024;

bool all_zero(std::span<const std::byte> bytes) {
  return bytes.empty() || (bytes[0] == std::byte{0} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// A piece of a command that is counted as a whole.
constexpr Statistics::Work kPartOfWrite{.traffic = Traffic::kWrite};

// SPC-4 table 375 counts all forms of READ and WRITE but these.
bool six_bytes(const Command& command) { return command.cdb[0] < 0x20; }

Sense wrong_data_length() { return illegal_request(asc::kInvalidFieldInInformationUnit); }

// The offset of the first byte of `found` that differs from the repeated `expected`.
std::optional<std::size_t> first_difference(std::span<const std::byte> found,
                                            std::span<const std::byte> expected) {
  for (std::size_t at = 0; at < found.size(); at += expected.size()) {
    const auto piece = found.subspan(at, std::min(expected.size(), found.size() - at));
    if (std::memcmp(piece.data(), expected.data(), piece.size()) == 0) continue;
    return at +
           static_cast<std::size_t>(std::ranges::mismatch(piece, expected).in1 - piece.begin());
  }
  return std::nullopt;
}

// The parameter data of GET LBA STATUS (SBC-3): it begins with the block that was asked for, which
// the first piece may begin before.
std::vector<std::uint8_t> lba_status(const std::vector<volume::Allocation>& pieces, ByteRange asked,
                                     std::uint32_t block_bytes) {
  constexpr std::size_t kHeaderBytes = 8;
  constexpr std::size_t kDescriptorBytes = 16;
  std::vector<std::uint8_t> data(kHeaderBytes);
  std::size_t descriptors = 0;
  for (const volume::Allocation& piece : pieces) {
    if (++descriptors > kStatusDescriptorsMax) break;
    const std::size_t at = data.size();
    data.resize(at + kDescriptorBytes);
    const std::uint64_t from = std::max(piece.range.offset, asked.offset);
    store_be(&data[at], from / block_bytes);
    store_be(&data[at + 8], static_cast<std::uint32_t>((piece.range.end() - from) / block_bytes));
    data[at + 12] = piece.mapped ? 0 : 1;
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

}  // namespace

// The descriptors of one UNMAP, each a write of its own, on their way to one answer.
struct Disk::Gather {
  std::size_t pending = 0;
  std::optional<Response> failure;  // the first one
  CommandDone done;
  std::shared_ptr<Disk> disk;
  Statistics::Work work;

  void arrived() {
    if (--pending != 0) return;
    disk->statistics_.end(work, !failure);
    done(failure ? *std::move(failure) : Response{});
  }
};

ByteRange Disk::bytes_of(const Extent& extent) const {
  return {extent.lba * options_.block_bytes, extent.blocks * options_.block_bytes};
}

std::variant<Sense, Extent> Disk::received(const Extent& extent, const Command& command) const {
  const std::uint64_t bytes =
      std::min<std::uint64_t>(command.data_out.size(), extent.blocks * options_.block_bytes);
  if (bytes % options_.block_bytes != 0) return wrong_data_length();
  return Extent{extent.lba, bytes / options_.block_bytes};
}

Statistics::Work Disk::count(Traffic traffic, const Extent& extent, bool performance) {
  return statistics_.begin({.counted = performance,
                            .traffic = traffic,
                            .blocks = extent.blocks,
                            .bytes = bytes_of(extent).length});
}

Response Disk::failure(const Error& error, Access access, std::uint64_t lba,
                       std::uint16_t target_port) const {
  if (const auto lost = access_.lost(error, target_port)) return refuse(*lost);
  return layer_failure(error, access, lba, sense_format());
}

Response Disk::failed(const Error& error, Traffic traffic, const Origin& origin) {
  const bool lost = access_.changes() && is_loss_of_access(error);
  if (!lost) statistics_.failed(traffic, error);
  const Access access =
      traffic == Traffic::kRead || traffic == Traffic::kVerify ? Access::kRead : Access::kWrite;
  return failure(error, access, origin.lba, origin.target_port);
}

volume::Done Disk::when_written(Statistics::Work work, const Origin& origin, CommandDone done) {
  return [self = shared_from_this(), work, origin,
          done = std::move(done)](Result<void> result) mutable {
    self->statistics_.end(work, result.has_value());
    if (!result) {
      done(self->failed(result.error(), work.traffic, origin));
    } else {
      done(Response{});
    }
  };
}

void Disk::run(const Read& read, const Command& command, CommandDone done) {
  if (read.extent.blocks == 0) return done(Response{});
  layer_->read(
      bytes_of(read.extent),
      [self = shared_from_this(), origin = Origin{read.extent.lba, target_port_of(command)},
       work = count(Traffic::kRead, read.extent, !six_bytes(command)),
       done = std::move(done)](Result<PayloadSlice> result) mutable {
        self->statistics_.end(work, result.has_value());
        if (!result) return done(self->failed(result.error(), Traffic::kRead, origin));
        Response response;
        response.data_in.push_back(*std::move(result));
        done(std::move(response));
      });
}

void Disk::run(const Write& write, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  const auto part = received(write.extent, command);
  if (const auto* sense = std::get_if<Sense>(&part)) return done(refuse(*sense));
  const Extent extent = std::get<Extent>(part);
  const ByteRange range = bytes_of(extent);
  if (range.length == 0) return done(Response{});
  layer_->write(range, {command.data_out, 0, range.length},
                when_written(count(Traffic::kWrite, extent, !six_bytes(command)),
                             Origin{extent.lba, target_port_of(command)}, std::move(done)));
}

void Disk::run(const WriteAndVerify& write, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  const auto part = received(write.extent, command);
  if (const auto* sense = std::get_if<Sense>(&part)) return done(refuse(*sense));
  const Extent extent = std::get<Extent>(part);
  const ByteRange range = bytes_of(extent);
  if (range.length == 0) return done(Response{});
  PayloadSlice data{command.data_out, 0, range.length};
  PayloadSlice expected = write.check == ByteCheck::kAll ? data : PayloadSlice{};
  const std::uint16_t port = target_port_of(command);
  CommandDone then = [self = shared_from_this(), extent, port, expected = std::move(expected),
                      done = std::move(done)](Response written) mutable {
    if (written.status != Status::kGood) return done(std::move(written));
    self->compare({extent, std::move(expected), port}, std::move(done));
  };
  layer_->write(
      range, std::move(data),
      when_written(count(Traffic::kWrite, extent, true), {extent.lba, port}, std::move(then)));
}

void Disk::run(const CompareAndWrite& write, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  const ByteRange range = bytes_of(write.extent);
  if (range.length == 0) {
    // Who brings data has mistaken the command: 256 blocks do not fit into its one byte.
    if (command.data_out_announced > 0) return done(refuse(invalid_field_in_cdb(13)));
    return done(Response{});
  }
  // Half of it is to be compared: neither a part nor more of it makes sense.
  if (command.data_out.size() != 2 * range.length ||
      command.data_out_announced > 2 * range.length) {
    return done(refuse(wrong_data_length()));
  }
  const auto difference = std::make_shared<std::optional<std::size_t>>();
  layer_->update(
      range,
      [expected = PayloadSlice{command.data_out, 0, range.length},
       data = PayloadSlice{command.data_out, range.length, range.length},
       difference](const PayloadSlice& current) -> std::optional<PayloadSlice> {
        *difference = first_difference(current.bytes(), expected.bytes());
        if (*difference) return std::nullopt;
        return data;
      },
      when_written(count(Traffic::kWrite, write.extent, false),
                   Origin{write.extent.lba, target_port_of(command)},
                   [self = shared_from_this(), difference,
                    done = std::move(done)](Response response) mutable {
                     if (response.status != Status::kGood || !*difference)
                       return done(std::move(response));
                     // SBC-3 5.2: how far into the data the first difference is.
                     Sense sense{SenseKey::kMiscompare, asc::kMiscompareDuringVerify, **difference,
                                 std::nullopt};
                     done(self->refuse(sense));
                   }));
}

void Disk::run(const OrWrite& write, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  const auto part = received(write.extent, command);
  if (const auto* sense = std::get_if<Sense>(&part)) return done(refuse(*sense));
  const Extent extent = std::get<Extent>(part);
  const ByteRange range = bytes_of(extent);
  if (range.length == 0) return done(Response{});
  layer_->update(
      range,
      [data = PayloadSlice{command.data_out, 0, range.length}](
          const PayloadSlice& current) -> std::optional<PayloadSlice> {
        Payload merged = Payload::copy_of(current.bytes());
        const std::span<const std::byte> bits = data.bytes();
        for (std::size_t i = 0; i < bits.size(); ++i) merged.data()[i] |= bits[i];
        return PayloadSlice{merged, 0, merged.size()};
      },
      when_written(count(Traffic::kWrite, extent, false),
                   Origin{extent.lba, target_port_of(command)}, std::move(done)));
}

void Disk::run(const Verify& verify, const Command& command, CommandDone done) {
  if (verify.extent.blocks == 0) return done(Response{});
  const std::uint16_t port = target_port_of(command);
  switch (verify.check) {
    case ByteCheck::kNone: return compare({verify.extent, {}, port}, std::move(done));
    case ByteCheck::kOneBlock:
      if (command.data_out.size() != options_.block_bytes) {
        return done(refuse(wrong_data_length()));
      }
      return compare({verify.extent, {command.data_out, 0, options_.block_bytes}, port},
                     std::move(done));
    case ByteCheck::kAll: break;
  }
  const auto part = received(verify.extent, command);
  if (const auto* sense = std::get_if<Sense>(&part)) return done(refuse(*sense));
  const Extent extent = std::get<Extent>(part);
  if (extent.blocks == 0) return done(Response{});
  compare({extent, {command.data_out, 0, bytes_of(extent).length}, port}, std::move(done));
}

void Disk::compare(Expected compared, CommandDone done) {
  const Extent extent = compared.extent;
  layer_->read(bytes_of(extent), [self = shared_from_this(), lba = extent.lba,
                                  port = compared.target_port,
                                  work = count(Traffic::kVerify, extent, false),
                                  expected = std::move(compared.data),
                                  done = std::move(done)](Result<PayloadSlice> result) mutable {
    self->statistics_.end(work, result.has_value());
    if (!result) return done(self->failed(result.error(), Traffic::kVerify, {lba, port}));
    std::optional<std::size_t> difference;
    if (expected.length != 0) difference = first_difference(result->bytes(), expected.bytes());
    if (!difference) return done(Response{});
    Sense sense{SenseKey::kMiscompare, asc::kMiscompareDuringVerify, std::nullopt, std::nullopt};
    sense.information = lba + *difference / self->options_.block_bytes;
    done(self->refuse(sense));
  });
}

void Disk::run(const WriteSame& write, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  // One block, neither less nor more: unlike WRITE, this data has no part that makes sense alone,
  // and whoever announces more has mistaken the command.
  const bool one_block = command.data_out.size() == options_.block_bytes &&
                         command.data_out_announced <= options_.block_bytes;
  if (write.has_data && !one_block) return done(refuse(wrong_data_length()));

  const ByteRange range = bytes_of(write.extent);
  Statistics::Work work = count(Traffic::kWrite, {write.extent.lba, 0}, false);
  auto written = when_written(work, {write.extent.lba, target_port_of(command)}, std::move(done));
  // What is unmapped reads as zero (LBPRZ), so only zeros can be written by unmapping (SBC-3
  // 5.41); other data is written although UNMAP allows not to.
  if (write.unmap && (!write.has_data || all_zero(command.data_out.bytes()))) {
    return layer_->trim(range, volume::TrimMode::kZero, std::move(written));
  }
  Payload pattern = write.has_data ? command.data_out : Payload::zeroed(options_.block_bytes);
  layer_->write_same(range, {std::move(pattern), 0, options_.block_bytes}, std::move(written));
}

void Disk::run(const Unmap& unmap, const Command& command, CommandDone done) {
  if (auto sense = write_protection()) return done(refuse(*sense));
  const auto parsed = parse_unmap(unmap, command.data_out.bytes(), geometry());
  if (const auto* sense = std::get_if<Sense>(&parsed)) return done(refuse(*sense));
  const auto& extents = std::get<std::vector<Extent>>(parsed);

  auto gather = std::make_shared<Gather>();
  gather->done = std::move(done);
  gather->pending = extents.size() + 1;  // and one for this function
  gather->disk = shared_from_this();
  gather->work = count(Traffic::kWrite, {}, true);
  for (const Extent& extent : extents) {
    // All of it, parts of blocks included: READ CAPACITY promises that unmapped blocks read as
    // zero.
    layer_->trim(bytes_of(extent), volume::TrimMode::kZero,
                 when_written(kPartOfWrite, {extent.lba, target_port_of(command)},
                              [gather](Response response) {
                                if (response.status != Status::kGood && !gather->failure) {
                                  gather->failure = std::move(response);
                                }
                                gather->arrived();
                              }));
  }
  gather->arrived();
}

void Disk::run(const GetLbaStatus& get, const Command& command, CommandDone done) {
  const std::uint64_t blocks =
      std::min(geometry().block_count - get.lba, kStatusBytesMax / options_.block_bytes);
  const ByteRange range = bytes_of({get.lba, blocks});
  layer_->allocation(range, [self = shared_from_this(), get, range, port = target_port_of(command),
                             work = count(Traffic::kNone, {}, false), done = std::move(done)](
                                Result<std::vector<volume::Allocation>> pieces) mutable {
    self->statistics_.end(work, pieces.has_value());
    if (!pieces) return done(self->failed(pieces.error(), Traffic::kRead, {get.lba, port}));
    done(parameter_data(lba_status(*pieces, range, self->options_.block_bytes),
                        get.allocation_bytes));
  });
}

void Disk::run(const SynchronizeCache&, const Command& command, CommandDone done) {
  flush(target_port_of(command), std::move(done));
}

void Disk::flush(std::uint16_t target_port, CommandDone done) {
  layer_->flush(when_written(count(Traffic::kWrite, {}, false), {0, target_port}, std::move(done)));
}

}  // namespace mariner::scsi
