// The commands with which a host looks after a disk: starting and stopping, self-tests, logs; and
// the conditions of the unit that these make.
#include <utility>
#include <variant>
#include <vector>

#include "server/scsi/disk.h"
#include "server/scsi/nexus.h"

namespace mariner::scsi {
namespace {

Sense not_ready_because(AdditionalSense code) { return {SenseKey::kNotReady, code}; }

}  // namespace

std::optional<Sense> Disk::not_ready(Operation operation) const {
  if (self_test_->in_foreground()) return not_ready_because(asc::kSelfTestInProgress);
  if (needs_medium(operation) && !medium_.present()) return medium_.absence();
  if (stopped_ && accesses_medium(operation)) {
    return not_ready_because(asc::kInitializingCommandRequired);
  }
  return std::nullopt;
}

Sense Disk::pollable_sense() const {
  if (self_test_->running()) {
    Sense sense = not_ready_because(asc::kSelfTestInProgress);
    sense.progress = self_test_->progress();
    return sense;
  }
  if (const auto absent = medium_.absence()) return *absent;
  if (stopped_) return not_ready_because(asc::kInitializingCommandRequired);
  if (mode_.exception_method() == ExceptionMethod::kRequest) {
    return {SenseKey::kNoSense, exception()};
  }
  return {};
}

AdditionalSense Disk::exception() const {
  if (mode_.exception_test()) return asc::kFailurePredictedInTest;
  if (background_test_failed_ && mode_.background_errors()) return asc::kBackgroundSelfTestFailed;
  return asc::kNone;
}

void Disk::tell_exception() {
  const bool tells = mode_.exception_method() == ExceptionMethod::kAttention;
  const AdditionalSense now = tells ? exception() : asc::kNone;
  if (now == std::exchange(told_, now) || now == asc::kNone) return;
  if (tell_) tell_(now);
}

void Disk::reset() {
  mode_ = {};
  told_ = asc::kNone;
  statistics_.reset();
  start();
  medium_.allow_all();
  // Last: whoever waits for the test hears of it now, and may send the next command from within.
  self_test_->abort(SelfTest::Outcome::kAbortedOtherwise);
}

void Disk::start() {
  stopped_ = false;
  ++starts_;
}

void Disk::abort_self_test(const Nexus* of, std::optional<TaskTag> tag) {
  if (!self_test_->in_foreground()) return;
  if (of != nullptr && tester_.lock().get() != of) return;
  if (tag && tester_tag_ && tag != tester_tag_) return;
  self_test_->abort(SelfTest::Outcome::kAbortedOtherwise);
}

Response Disk::answer(const LogSense& sense, const Command&) {
  const auto result = log_sense(sense, {statistics_, *self_test_, exception()});
  if (const auto* wrong = std::get_if<Sense>(&result)) return refuse(*wrong);
  return parameter_data(std::get<std::vector<std::uint8_t>>(result), sense.allocation_bytes);
}

Response Disk::answer(const LogSelect& select, const Command&) {
  const auto result = log_select(select, statistics_);
  if (const auto* wrong = std::get_if<Sense>(&result)) return refuse(*wrong);
  const auto& reset = std::get<LogReset>(result);
  if (reset.counters || reset.reports) ++log_generation_;
  apply(reset, statistics_, *self_test_);
  return {};
}

// Supported diagnostic pages (SPC-4 7.2.13): itself.
Response Disk::answer(const ReceiveDiagnostic& receive, const Command&) {
  const std::vector<std::uint8_t> page = {0x00, 0x00, 0x00, 0x01, 0x00};
  return parameter_data(page, receive.allocation_bytes);
}

void Disk::run(const StartStopUnit& command, const Command& request, CommandDone done) {
  using Action = StartStopUnit::Action;
  // Ejected at once, so that nothing begins behind the flush that comes before the answer. Should
  // that fail the medium is out all the same; should it be loaded meanwhile, it is in.
  const auto prevented = command.action == Action::kEject  ? medium_.eject()
                         : command.action == Action::kLoad ? medium_.load()
                                                           : std::nullopt;
  if (prevented) return done(refuse(*prevented));
  // A test in the background gives way (SPC-4 table 105).
  self_test_->abort(SelfTest::Outcome::kAbortedOtherwise);
  switch (command.action) {
    case Action::kStop:
    case Action::kEject: return stop(command, target_port_of(request), std::move(done));
    case Action::kStart:
    case Action::kLoad:
    case Action::kPower:  // whichever it is: nothing turns, and the unit is ready in each
      start();
      break;
    case Action::kKeep: break;
  }
  done(Response{});
}

void Disk::stop(const StartStopUnit& stop, std::uint16_t target_port, CommandDone done) {
  // Whatever was acknowledged is durable: the flush is for a layer that thinks otherwise.
  const bool at_once = !stop.flush || stop.action == StartStopUnit::Action::kEject;
  if (at_once) stopped_ = true;
  if (!stop.flush) return done(Response{});
  CommandDone answered;
  if (stop.immediate) answered = std::exchange(done, [](const Response&) {});
  flush(target_port, [self = shared_from_this(), at_once, starts = starts_,
                      done = std::move(done)](Response response) mutable {
    const bool started = self->starts_ != starts;  // meanwhile, after an answer at once
    if (response.status == Status::kGood && !at_once && !started) self->stopped_ = true;
    done(std::move(response));
  });
  if (answered) answered(Response{});
}

void Disk::run(const SendDiagnostic& send, const Command& command, CommandDone done) {
  if (send.abort) {
    // SPC-4 6.42: there has to be one.
    if (!self_test_->running()) return done(refuse(invalid_field_in_cdb(1, std::uint8_t{7})));
    self_test_->abort(SelfTest::Outcome::kAbortedByCommand);
    return done(Response{});
  }
  if (send.test) return begin_test(*send.test, command, std::move(done));
  // A page whose answer is fetched by RECEIVE DIAGNOSTIC RESULTS: only page 00h, without contents.
  const auto page = command.data_out.bytes();
  if (send.parameter_bytes != 0) {
    if (page.size() < send.parameter_bytes || page.size() != 4) {
      return done(refuse(illegal_request(asc::kParameterListLengthError)));
    }
    for (std::uint16_t i = 0; i < page.size(); ++i) {
      if (page[i] != std::byte{0}) return done(refuse(invalid_parameter(i)));
    }
  }
  done(Response{});
}

void Disk::begin_test(SelfTest::Kind kind, const Command& command, CommandDone done) {
  if (self_test_->running()) {
    return done(refuse(not_ready_because(asc::kSelfTestInProgress)));
  }
  if (const auto absent = medium_.absence()) return done(refuse(*absent));
  if (stopped_) return done(refuse(not_ready_because(asc::kInitializingCommandRequired)));
  if (kind == SelfTest::Kind::kBackgroundShort || kind == SelfTest::Kind::kBackgroundExtended) {
    background_test_failed_ = false;
    self_test_->begin(kind, [self = shared_from_this()](const SelfTest::Report& report) {
      self->background_test_failed_ = report.outcome == SelfTest::Outcome::kReadingFailed ||
                                      report.outcome == SelfTest::Outcome::kFlushingFailed;
      self->tell_exception();
    });
    // Now that it runs: whoever hears this may send the next test from within.
    return done(Response{});
  }
  tester_ = command.nexus;
  tester_tag_ = command.tag;
  self_test_->begin(kind, [self = shared_from_this(), port = target_port_of(command),
                           done = std::move(done)](const SelfTest::Report& report) mutable {
    switch (report.outcome) {
      case SelfTest::Outcome::kPassed: return done(Response{});
      case SelfTest::Outcome::kReadingFailed:
      case SelfTest::Outcome::kFlushingFailed:
        return done(self->refuse({SenseKey::kHardwareError, asc::kSelfTestFailed}));
      case SelfTest::Outcome::kAbortedByCommand:
      case SelfTest::Outcome::kAbortedOtherwise:
      case SelfTest::Outcome::kNotCompleted:
        if (report.lost) {
          if (const auto lost = self->access_.lost(*report.lost, port)) {
            return done(self->refuse(*lost));
          }
        }
        break;
      case SelfTest::Outcome::kRunning: break;
    }
    done(self->refuse({SenseKey::kAbortedCommand, asc::kNone}));
  });
}

}  // namespace mariner::scsi
