#include "server/scsi/device.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "proto/bytes.h"
#include "server/scsi/inquiry.h"
#include "server/scsi/persistent_reserve.h"
#include "server/scsi/reply.h"

namespace mariner::scsi {
namespace {

// Commands that a waiting unit attention does not hold up (SAM-5 5.14.1). REQUEST SENSE reports
// it as its data.
bool exempt_from_attentions(CdbBytes cdb) {
  const OpcodeInfo* info = find_opcode(cdb);
  return info != nullptr &&
         (info->operation == Operation::kInquiry || info->operation == Operation::kReportLuns ||
          info->operation == Operation::kRequestSense);
}

// What a LUN without a logical unit still answers (SPC-4 6.6.1, 6.39, SAM-5 5.11).
bool answered_by_absent_unit(const Decoded& decoded) {
  return std::holds_alternative<Inquiry>(decoded) ||
         std::holds_alternative<RequestSense>(decoded) ||
         std::holds_alternative<ReportLuns>(decoded);
}

// The echo buffer of one initiator. EBOS: what one has written, no other overwrites.
Response read_buffer(const ReadBuffer& read, const std::optional<Payload>& echo,
                     SenseFormat format) {
  constexpr std::uint8_t kOwnBuffers = 0x01;
  switch (read.mode) {
    case ReadBuffer::Mode::kEchoDescriptor: {
      std::vector<std::uint8_t> descriptor(4);
      descriptor[0] = kOwnBuffers;
      store_be(&descriptor[2], static_cast<std::uint16_t>(kEchoBytesMax));
      return parameter_data(descriptor, read.allocation_bytes);
    }
    case ReadBuffer::Mode::kEcho: break;
  }
  if (!echo) return check_condition(illegal_request(asc::kCommandSequenceError), format);
  Response response;
  const std::size_t bytes = std::min<std::size_t>(echo->size(), read.allocation_bytes);
  if (bytes != 0) response.data_in.push_back({*echo, 0, bytes});
  return response;
}

bool is_third_party_copy(const Decoded& decoded) {
  return std::visit([]<typename T>(const T&) { return ThirdPartyCopy<T>; }, decoded);
}

// Whether the other initiators are told of what the command changes.
bool concerns_others(const Decoded& decoded) {
  const auto* start_stop = std::get_if<StartStopUnit>(&decoded);
  return std::holds_alternative<ModeSelect>(decoded) ||
         std::holds_alternative<LogSelect>(decoded) ||
         (start_stop != nullptr && start_stop->action == StartStopUnit::Action::kLoad);
}

Response report_sense(const RequestSense& request, const Sense& sense) {
  return parameter_data(encode(sense, request.format), request.allocation_bytes);
}

}  // namespace

Device::Device(std::vector<LogicalUnitOptions> units, FindCopyUnit elsewhere,
               std::shared_ptr<RodTokens> tokens)
    : nexuses_(units.size()) {
  for (LogicalUnitOptions& unit : units) {
    auto sanitize = std::make_shared<UnitSanitize>(unit.disk.sanitizer);
    units_.push_back({unit.lun, std::make_shared<Disk>(std::move(unit.disk), std::move(unit.layer)),
                      std::make_shared<UnitReservations>(std::move(unit.reservations)),
                      std::move(sanitize), std::make_shared<UnitFormat>()});
  }
  std::ranges::sort(units_, {}, &Unit::lun);
  for (std::size_t i = 0; i < units_.size(); ++i) {
    units_[i].disk->when_exception([this, alive = alive_, i](AdditionalSense code) {
      if (!*alive) return;
      nexuses_.establish(i, code == asc::kBackgroundSelfTestFailed
                                ? Attention::kSelfTestFailed
                                : Attention::kFailurePredictedInTest);
    });
  }
  CHECK(!units_.empty() && units_.front().lun == Lun{0});
  CHECK(std::ranges::adjacent_find(units_, {}, &Unit::lun) == units_.end());
  if (tokens == nullptr) {
    tokens = std::make_shared<RodTokens>(
        [] { return std::chrono::steady_clock::now().time_since_epoch(); });
  }
  copies_ = std::make_shared<CopyManager>(
      [this, alive = alive_, elsewhere = std::move(elsewhere)](
          const CopyTarget& target, const InitiatorPort& initiator) -> std::shared_ptr<CopyUnit> {
        if (!*alive) return nullptr;
        if (auto own = find_copy_unit(target)) return own;
        return elsewhere ? elsewhere(target, initiator) : nullptr;
      },
      std::move(tokens));
}

std::shared_ptr<CopyUnit> Device::find_copy_unit(const CopyTarget& target) const {
  constexpr std::uint8_t kNaa = 3;
  const auto unit = std::ranges::find_if(units_, [&](const Unit& candidate) {
    return target.type == kNaa && candidate.disk->identity().naa == target.designator;
  });
  if (unit == units_.end() || unit->sanitize->blocks() || unit->format->running()) return nullptr;
  return std::make_shared<CopyUnit>(CopyUnit{unit->disk, unit->reservations, unit->sanitize});
}

Device::~Device() { *alive_ = false; }

std::shared_ptr<Nexus> Device::attach(const NexusId& id) {
  // Reinstated, the nexus goes on, but for its initiator it was lost (RFC 7143 6.3.5.1).
  for (const Unit& unit : units_) unit.disk->medium().allow(id);
  return nexuses_.attach(id);
}

const Device::Unit* Device::find(std::uint64_t lun_field) const {
  const auto lun = parse_lun(lun_field);
  if (!lun) return nullptr;
  const auto unit = std::ranges::find(units_, *lun, &Unit::lun);
  return unit == units_.end() ? nullptr : &*unit;
}

std::size_t Device::index_of(const Unit& unit) const {
  return static_cast<std::size_t>(&unit - units_.data());
}

const Device::Unit& Device::unit_of(Lun lun) const {
  const Unit* unit = find(lun_field(lun));
  CHECK_MSG(unit != nullptr, "an announcement about a LUN that the node did not make");
  return *unit;
}

std::size_t Device::index_of(Lun lun) const { return index_of(unit_of(lun)); }

bool Device::has_lun(std::uint64_t lun) const { return find(lun) != nullptr; }

Transfer Device::transfer_of(std::uint64_t lun, CdbBytes cdb) const {
  if (const Unit* unit = find(lun)) {
    const Geometry geometry = unit->disk->geometry();
    Transfer transfer = scsi::transfer_of(decode(cdb, geometry), geometry);
    const OpcodeInfo* const known = find_opcode(cdb);
    transfer.is_use = known != nullptr && is_use(known->operation);
    return transfer;
  }
  const Decoded decoded = decode(cdb, Geometry{});
  return answered_by_absent_unit(decoded) ? scsi::transfer_of(decoded, Geometry{}) : Transfer{};
}

Response Device::report_luns(const ReportLuns& report) const {
  std::vector<Lun> luns;
  // No well-known logical units are listed: there are none but that of this command itself.
  if (report.select != ReportLuns::Select::kWellKnown) {
    for (const Unit& unit : units_) luns.push_back(unit.lun);
  }
  return parameter_data(encode_lun_list(luns), report.allocation_bytes);
}

Response Device::answer_absent(const Command& command) const {
  const Decoded decoded = decode(command.cdb, Geometry{});
  const Sense no_such_unit = illegal_request(asc::kLogicalUnitNotSupported);
  if (const auto* report = std::get_if<ReportLuns>(&decoded)) return report_luns(*report);
  if (const auto* request = std::get_if<RequestSense>(&decoded)) {
    return report_sense(*request, no_such_unit);
  }
  const auto* inquiry = std::get_if<Inquiry>(&decoded);
  if (inquiry == nullptr) return check_condition(no_such_unit, SenseFormat::kFixed);
  if (inquiry->vital_product_data) {
    return check_condition(invalid_field_in_cdb(1, std::uint8_t{0}), SenseFormat::kFixed);
  }
  return parameter_data(absent_unit_inquiry(), inquiry->allocation_bytes);
}

void Device::execute(Command command, CommandDone done) {
  CHECK_MSG(command.nexus != nullptr, "a command belongs to a nexus of attach()");
  const Unit* unit = find(command.lun);
  if (unit == nullptr) return done(answer_absent(command));

  Disk& disk = *unit->disk;
  auto& nexus = static_cast<InitiatorNexus&>(*command.nexus);
  AttentionSet& attentions = nexus.attentions(index_of(*unit));
  if (!attentions.empty() && !exempt_from_attentions(command.cdb)) {
    return done(check_condition(sense_of(*attentions.take()), disk.sense_format()));
  }

  // Where the unit is not active, its contents, its size and its reservations may be what they
  // were: that comes before all that depends on them.
  const OpcodeInfo* const info = find_opcode(command.cdb);
  const AccessState access = disk.access().state(nexus.id().target_port);
  if (info != nullptr && !allows(access, info->operation)) {
    return done(check_condition(not_accessible(access), disk.sense_format()));
  }

  // What lay beyond the end when the command was received has brought no data, and is not answered
  // as if it had, wherever the end is now.
  Geometry geometry = disk.geometry();
  geometry.block_count = std::min(geometry.block_count, command.unit_blocks);
  const Decoded decoded = decode(command.cdb, geometry);
  UnitReservations& reservations = *unit->reservations;
  if (info != nullptr && is_active(access) &&
      reservations.conflicts(info->operation, decoded, nexus)) {
    return done(Response{.status = Status::kReservationConflict, .sense = {}, .data_in = {}});
  }
  if (info != nullptr) {
    if (const auto sense = unit->sanitize->forbids(info->operation)) {
      return done(check_condition(*sense, disk.sense_format()));
    }
    if (const auto sense = unit->format->forbids(info->operation, nexus)) {
      return done(check_condition(*sense, disk.sense_format()));
    }
  }
  if (info != nullptr && !std::holds_alternative<Sense>(decoded) &&
      !exempt_from_attentions(command.cdb)) {
    if (const auto sense = disk.not_ready(info->operation)) {
      return done(check_condition(*sense, disk.sense_format()));
    }
  }
  if (const auto* report = std::get_if<ReportLuns>(&decoded)) return done(report_luns(*report));
  if (const auto* wanted = std::get_if<Sanitize>(&decoded)) {
    return sanitize(*unit, *wanted, command, std::move(done));
  }
  if (const auto* wanted = std::get_if<FormatUnit>(&decoded)) {
    return format(*unit, *wanted, command, std::move(done));
  }
  if (std::holds_alternative<Reserve6>(decoded)) {
    reservations.reserve(std::static_pointer_cast<InitiatorNexus>(command.nexus));
    return done(Response{});
  }
  if (std::holds_alternative<Release6>(decoded)) {
    reservations.release(nexus);
    return done(Response{});
  }
  if (const auto* reserve = std::get_if<PersistentReserveIn>(&decoded)) {
    return done(parameter_data(reserve_in(reserve->action, reservations.state()),
                               reserve->allocation_bytes));
  }
  if (is_third_party_copy(decoded)) {
    return copies_->execute({unit->disk, unit->reservations, unit->sanitize}, decoded, command,
                            std::move(done));
  }
  if (const auto* reserve = std::get_if<PersistentReserveOut>(&decoded)) {
    return reserve_out(*unit, *reserve, command, std::move(done));
  }
  if (const auto* request = std::get_if<RequestSense>(&decoded)) {
    const auto attention = attentions.take();
    if (attention) return done(report_sense(*request, sense_of(*attention)));
    if (!is_active(access)) return done(report_sense(*request, not_accessible(access)));
    auto busy = unit->sanitize->pollable();
    if (!busy) busy = unit->format->take_pollable(nexus);
    return done(report_sense(*request, busy.value_or(disk.pollable_sense())));
  }

  if (const auto* read = std::get_if<ReadBuffer>(&decoded)) {
    return done(read_buffer(*read, nexus.echo(index_of(*unit)), disk.sense_format()));
  }
  if (std::holds_alternative<WriteBuffer>(decoded)) {
    nexus.echo(index_of(*unit)) = std::move(command.data_out);
    return done(Response{});
  }
  if (concerns_others(decoded)) {
    return done(execute_and_tell(disk, index_of(*unit), decoded, command));
  }
  disk.execute(decoded, command, std::move(done));
}

void Device::reserve_out(const Unit& unit, const PersistentReserveOut& reserve,
                         const Command& command, CommandDone done) {
  auto parsed = parse_reserve_out(reserve, command.data_out.bytes());
  if (const auto* wrong = std::get_if<Sense>(&parsed)) {
    return done(check_condition(*wrong, unit.disk->sense_format()));
  }
  ReserveOut out = std::get<ReserveOut>(std::move(parsed));
  const std::vector<std::uint16_t>& ports = unit.disk->identity().target_ports;
  if (out.all_target_ports) out.target_ports = ports;
  if (out.action == PersistentReserveOut::Action::kRegisterAndMove &&
      std::ranges::find(ports, out.target_port) == ports.end()) {
    return done(check_condition(invalid_parameter(18), unit.disk->sense_format()));
  }
  const NexusId& from = static_cast<const InitiatorNexus&>(*command.nexus).id();
  const bool aborts = reserve.action == PersistentReserveOut::Action::kPreemptAndAbort;
  unit.reservations->apply(
      std::move(out), from,
      [this, alive = alive_, index = index_of(unit), disk = unit.disk, aborts,
       port = from.target_port,
       done = std::move(done)](Result<Reservations::Outcome> applied) mutable {
        if (!applied) {
          const auto lost = disk->access().lost(applied.error(), port);
          const Sense failed{SenseKey::kHardwareError, asc::kInternalTargetFailure};
          return done(check_condition(lost.value_or(failed), disk->sense_format()));
        }
        if (std::holds_alternative<Reservations::Conflict>(*applied)) {
          return done(Response{.status = Status::kReservationConflict, .sense = {}, .data_in = {}});
        }
        if (const auto* wrong = std::get_if<Sense>(&*applied)) {
          return done(check_condition(*wrong, disk->sense_format()));
        }
        if (*alive) {
          for (const auto& [id, attention] : std::get<Reservations::Effects>(*applied).attentions) {
            nexuses_.establish_for(index, attention, id);
          }
        }
        if (!aborts) return done(Response{});
        // SBC-3 5.10: as if each of them had allowed the removal of the medium.
        for (const auto& [id, attention] : std::get<Reservations::Effects>(*applied).attentions) {
          if (attention == Attention::kRegistrationsPreempted) disk->medium().allow(id);
        }
        // From here on the preempted ones' commands conflict; what they had begun is over.
        disk->settle([done = std::move(done)]() mutable { done(Response{}); });
      });
}

void Device::sanitize(const Unit& unit, const Sanitize& command, const Command& request,
                      CommandDone done) {
  Disk& disk = *unit.disk;
  if (auto sense = disk.write_protection()) {
    return done(check_condition(*sense, disk.sense_format()));
  }
  unit.sanitize->execute(command, request, unit.disk, std::move(done));
}

void Device::format(const Unit& unit, const FormatUnit& command, const Command& request,
                    CommandDone done) {
  Disk& disk = *unit.disk;
  if (auto sense = disk.write_protection()) {
    return done(check_condition(*sense, disk.sense_format()));
  }
  unit.format->execute(command, request, unit.disk, std::move(done));
}

Response Device::execute_and_tell(Disk& disk, std::size_t index, const Decoded& decoded,
                                  const Command& command) {
  const std::uint64_t mode = disk.mode_generation();
  const std::uint64_t log = disk.log_generation();
  const std::uint64_t loads = disk.medium().load_generation();
  Response response;  // none of these commands waits for the layer
  disk.execute(decoded, command, [&response](Response answer) { response = std::move(answer); });
  if (disk.mode_generation() != mode) {
    nexuses_.establish(index, Attention::kParametersChanged, command.nexus.get());
  }
  if (disk.log_generation() != log) {
    nexuses_.establish(index, Attention::kLogParametersChanged, command.nexus.get());
  }
  if (disk.medium().load_generation() != loads) {
    nexuses_.establish(index, Attention::kMediumChanged, command.nexus.get());
  }
  return response;
}

void Device::manage(TaskManagementFunction function, std::uint64_t lun,
                    const std::shared_ptr<Nexus>& nexus, UniqueFunction<void()> done) {
  carry_out({.function = function, .lun = lun, .nexus = nexus}, std::move(done));
}

void Device::abort_task(std::uint64_t lun, TaskTag tag, const std::shared_ptr<Nexus>& nexus,
                        UniqueFunction<void()> done) {
  carry_out(
      {.function = TaskManagementFunction::kAbortTask, .lun = lun, .nexus = nexus, .tag = tag},
      std::move(done));
}

std::vector<Device::Unit> Device::affected_by(const Management& management) const {
  using enum TaskManagementFunction;
  if (management.function == kTargetReset || management.function == kNexusReset) return units_;
  const Unit* unit = find(management.lun);
  return unit == nullptr ? std::vector<Unit>{} : std::vector{*unit};
}

void Device::establish(const Management& management, const std::vector<Unit>& affected) {
  using enum TaskManagementFunction;
  for (const Unit& unit : affected) {
    const std::size_t index = index_of(unit.lun);
    switch (management.function) {
      case kAbortTask:
      case kNexusReset:
      case kAbortTaskSet: break;
      case kClearTaskSet:
        // Also for those that had no command here: who had is known to the sessions only, and an
        // attention too many costs its initiator one repetition.
        nexuses_.establish(index, Attention::kCommandsCleared, management.nexus.get());
        break;
      case kLogicalUnitReset:
        unit.reservations->reset();
        nexuses_.establish(index, Attention::kLogicalUnitReset);
        break;
      case kTargetReset:
        unit.reservations->reset();
        nexuses_.establish(index, Attention::kTargetReset);
        break;
    }
  }
}

void Device::carry_out(const Management& management, UniqueFunction<void()> done) {
  using enum TaskManagementFunction;
  const TaskManagementFunction function = management.function;
  const std::vector<Unit> affected = affected_by(management);
  establish(management, affected);

  struct Gather {
    std::size_t pending = 0;
    UniqueFunction<void()> done;
    void arrived() {
      if (--pending == 0) done();
    }
  };
  auto gather = std::make_shared<Gather>();
  gather->pending = affected.size() + 2;  // and one for the copies, and for this function
  gather->done = std::move(done);
  // Copies may write elsewhere: they are waited for by themselves.
  const auto copies_ended = [gather] { gather->arrived(); };
  const bool resets = function == kLogicalUnitReset || function == kTargetReset;
  const bool of_all = resets || function == kClearTaskSet;
  CHECK(of_all || management.nexus != nullptr);
  const auto* const of =
      of_all ? nullptr : static_cast<const InitiatorNexus*>(management.nexus.get());
  const bool copying = resets ? copies_->reset(copies_ended)
                              : copies_->abort_commands(of == nullptr ? nullptr : &of->id(),
                                                        management.tag, copies_ended);
  if (!copying) gather->arrived();
  // From here on not this device, but its units: whoever hears that his self-test has ended may
  // send the next command from within, which finds all of the above done, or drop the device.
  for (const Unit& unit : affected) {
    if (resets) {
      unit.disk->reset();
    } else {
      unit.disk->abort_self_test(of, management.tag);
    }
  }
  for (const Unit& unit : affected) {
    unit.disk->settle([gather] { gather->arrived(); });
  }
  gather->arrived();
}

void Device::capacity_changed(Lun lun) {
  nexuses_.establish(index_of(lun), Attention::kCapacityChanged);
}

void Device::parameters_changed(Lun lun) {
  nexuses_.establish(index_of(lun), Attention::kParametersChanged);
}

void Device::contents_replaced(Lun lun) {
  nexuses_.establish(index_of(lun), Attention::kParametersChanged);
  nexuses_.establish(index_of(lun), Attention::kMediumChanged);
}

void Device::access_state_changed(Lun lun) {
  nexuses_.establish(index_of(lun), Attention::kAccessStateChanged);
}

void Device::replace_reservations(Lun lun, Reservations kept) {
  unit_of(lun).reservations->replace(std::move(kept));
}

}  // namespace mariner::scsi
