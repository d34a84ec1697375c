// Dispatch, and the commands that are answered at once. Those that wait for the layer are in
// disk_io.cc.
#include "server/scsi/disk.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "server/scsi/inquiry.h"
#include "server/scsi/report_opcodes.h"
#include "server/scsi/report_port_groups.h"

namespace mariner::scsi {
namespace {

// Of one PRE-FETCH, which may ask for all there is: the memory is others', too.
constexpr std::uint64_t kPrefetchBytesMax = 64u << 20;

Response good() { return {}; }

}  // namespace

Disk::Disk(DiskOptions options, std::shared_ptr<volume::Layer> layer)
    : options_(std::move(options)),
      layer_(std::move(layer)),
      access_(options_.port_groups, options_.identity.target_ports),
      statistics_(options_.clock),
      self_test_(std::make_shared<SelfTest>(SelfTest::Options{.layer = layer_,
                                                              .block_bytes = options_.block_bytes,
                                                              .clock = options_.clock,
                                                              .shared = access_.changes()})),
      medium_(options_.removable) {
  check_identity(options_.identity);
  CHECK(options_.block_bytes == 512 || options_.block_bytes == 4096);
  CHECK(options_.transfer_bytes_max >= kBlockBytes &&
        options_.transfer_bytes_max % kBlockBytes == 0);
  CHECK(layer_ != nullptr && layer_->size_bytes() >= options_.block_bytes);
}

Geometry Disk::geometry() const {
  return {.block_bytes = options_.block_bytes,
          .block_count = layer_->size_bytes() / options_.block_bytes,
          .transfer_blocks_max = options_.transfer_bytes_max / options_.block_bytes,
          .sanitize = options_.sanitizer != nullptr && options_.sanitizer->permitted(),
          .removable = medium_.removable()};
}

SenseFormat Disk::sense_format() const {
  return mode_.descriptor_sense() ? SenseFormat::kDescriptor : SenseFormat::kFixed;
}

void Disk::execute(const Decoded& decoded, const Command& command, CommandDone done) {
  std::visit(
      [&](const auto& checked) {
        if constexpr (requires { answer(checked, command); }) {
          done(answer(checked, command));
        } else {
          run(checked, command, std::move(done));
        }
      },
      decoded);
}

void Disk::settle(UniqueFunction<void()> done) {
  layer_->settle([self = shared_from_this(),
                  done = std::move(done)](Result<void>) mutable {  // failed writes are settled too
    done();
  });
}

Response Disk::refuse(const Sense& sense) const { return check_condition(sense, sense_format()); }

std::optional<Sense> Disk::write_protection() const {
  if (layer_->read_only()) return Sense{SenseKey::kDataProtect, asc::kWriteProtected};
  if (mode_.software_write_protect()) {
    return Sense{SenseKey::kDataProtect, asc::kSoftwareWriteProtected};
  }
  return std::nullopt;
}

Response Disk::answer(const Sense& sense, const Command&) { return refuse(sense); }

Response Disk::answer(const TestUnitReady&, const Command&) { return good(); }

Response Disk::answer(const RequestSense&, const Command&) {
  CHECK_MSG(false, "REQUEST SENSE is answered by the device");
}

Response Disk::answer(const ReportLuns&, const Command&) {
  CHECK_MSG(false, "REPORT LUNS is answered by the device");
}

// Nobody removes a medium that is fixed, whatever is allowed.
Response Disk::answer(const PreventAllow& command, const Command& request) {
  if (!medium_.removable()) return good();
  if (command.prevent) {
    medium_.prevent(request.nexus);
  } else {
    medium_.allow(static_cast<const InitiatorNexus&>(*request.nexus).id());
  }
  return good();
}

// GOOD, not CONDITION MET (SBC-3 5.9): nothing keeps the blocks in memory until they are read. It
// does not wait for them in either case (IMMED).
Response Disk::answer(const Prefetch& prefetch, const Command&) {
  ByteRange range = bytes_of(prefetch.extent);
  range.length = std::min(range.length, kPrefetchBytesMax);
  if (range.length > 0) layer_->prefetch(range);
  return good();
}

// The peripheral qualifier stays 000b in the unavailable state, where SPC-4 5.15.2.4.5 has 001b:
// Linux looks at it once, when it scans, and a path that was unavailable then has no disk when it
// is not any more.
Response Disk::answer(const Inquiry& inquiry, const Command& command) {
  if (!inquiry.vital_product_data) {
    return parameter_data(standard_inquiry(options_.identity, medium_.removable()),
                          inquiry.allocation_bytes);
  }
  const std::uint16_t port = target_port_of(command);
  const auto page = vital_product_data(inquiry.page, options_.identity, geometry(),
                                       {.port = port, .group = access_.group_of(port)});
  if (!page) return refuse(invalid_field_in_cdb(2));
  return parameter_data(*page, inquiry.allocation_bytes);
}

Response Disk::answer(const ModeSense& sense, const Command&) {
  const ModeState state{mode_, write_protection().has_value()};
  Geometry shown = geometry();
  if (!medium_.present()) shown.block_count = 0;
  const auto result = mode_sense(sense, state, shown);
  if (const auto* wrong = std::get_if<Sense>(&result)) return refuse(*wrong);
  return parameter_data(std::get<std::vector<std::uint8_t>>(result), sense.allocation_bytes);
}

Response Disk::answer(const ModeSelect& select, const Command& command) {
  const auto result = mode_select(select, command.data_out.bytes(), mode_, geometry());
  if (const auto* wrong = std::get_if<Sense>(&result)) return refuse(*wrong);
  const auto& parameters = std::get<ModeParameters>(result);
  if (parameters != mode_) {
    mode_ = parameters;
    ++mode_generation_;
    tell_exception();
  }
  return good();
}

Response Disk::answer(const ReadCapacity& read, const Command&) {
  return parameter_data(read.sixteen ? capacity16(geometry()) : capacity10(geometry()),
                        read.allocation_bytes);
}

Response Disk::answer(const ReportPortGroups& report, const Command&) {
  return parameter_data(report_port_groups(report, access_.report(options_.identity.target_ports)),
                        report.allocation_bytes);
}

Response Disk::answer(const ReportOpcodes& report, const Command&) {
  const auto result = report_opcodes(report, geometry());
  if (const auto* wrong = std::get_if<Sense>(&result)) return refuse(*wrong);
  return parameter_data(std::get<std::vector<std::uint8_t>>(result), report.allocation_bytes);
}

// There are no defects, in whichever format they are asked for.
Response Disk::answer(const ReadDefectData& read, const Command&) {
  std::vector<std::uint8_t> data(read.twelve ? 8 : 4);
  data[1] = read.lists;
  return parameter_data(data, read.allocation_bytes);
}

Response Disk::answer(const ReportTaskManagement& report, const Command&) {
  return parameter_data(report_task_management(report), report.allocation_bytes);
}

}  // namespace mariner::scsi
