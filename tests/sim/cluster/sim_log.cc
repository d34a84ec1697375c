#include "tests/sim/cluster/sim_log.h"

#include <algorithm>
#include <utility>

namespace mariner::test {

using replication::SequenceRange;

void LoggerDisk::crash(std::mt19937_64& random) {
  for (auto& [number, what] : in_flight) {
    if (random() % 2 == 0) continue;
    if (what.write) {
      writes[what.numbers.first] = *what.write;
    } else {
      for (SequenceNumber s = what.numbers.first; s <= what.numbers.last; s = s.next()) {
        voids.insert(s);
      }
    }
  }
  in_flight.clear();
  const SequenceNumber end = last();
  writes.erase(writes.upper_bound(end), writes.end());
  voids.erase(voids.upper_bound(end), voids.end());
}

void LoggerDisk::give_up() { given_up = std::max(given_up, std::min(frontier, last())); }

SequenceNumber LoggerDisk::last() const {
  SequenceNumber last = begun;
  while (writes.contains(last.next()) || voids.contains(last.next())) last = last.next();
  return last;
}

replication::LoggerRole::Start LoggerDisk::start(VolumeId volume) const {
  const VersionTime last_time = writes.empty() ? begun_time : writes.rbegin()->second.stamp.time;
  replication::LoggerRole::Start start{volume, promised, last(), last_time, floor, frontier};
  start.end = begun;
  if (!writes.empty()) start.end = writes.rbegin()->second.back_to.value_or(writes.rbegin()->first);
  return start;
}

void SimLog::promise(VolumeId /*volume*/, Epoch epoch, VersionTime floor, Done done) {
  node_.after(std::chrono::microseconds(200 + random_() % 2000),
              [this, epoch, floor, done = std::move(done)]() mutable {
                disk_.promised = std::max(disk_.promised, epoch);
                disk_.floor = std::max(disk_.floor, floor);
                done({});
              });
}

void SimLog::begin_anew(SequenceNumber at, VersionTime time, Done done) {
  if (disk_.last().value > 0) model_.violation("a history that is there begins anew");
  node_.after(std::chrono::microseconds(200 + random_() % 2000),
              [this, at, time, done = std::move(done)]() mutable {
                disk_.begun = at;
                disk_.begun_time = time;
                disk_.frontier = at;
                disk_.floor = std::max(disk_.floor, time);
                done({});
              });
}

void SimLog::log(const replication::WriteMessage& message, Done done) {
  const SequenceNumber sequence = message.stamp.sequence;
  LoggedWrite write{message.stamp, message.write.extent, attempt_of(message.write), {}};
  if (message.write.kind == replication::WriteKind::kRollback) write.back_to = message.write.target;
  append({write, {sequence, sequence}},
         [this, frontier = message.frontier, done = std::move(done)](Result<void> result) mutable {
           if (result) disk_.frontier = std::max(disk_.frontier, frontier);
           done(std::move(result));
         });
}

void SimLog::log_void(const replication::VoidMessage& message, Done done) {
  append({std::nullopt, {message.first, message.last}}, std::move(done));
}

void SimLog::append(LoggerDisk::InFlight what, Done done) {
  if (what.write && faults_.fail_writes > 0) {
    --faults_.fail_writes;
    node_.after(std::chrono::milliseconds(1), [done = std::move(done)]() mutable {
      done(Error{ErrorCode::kNoSpace, "the log is full"});
    });
    return;
  }
  const std::uint64_t number = ++appends_;
  disk_.in_flight[number] = std::move(what);
  if (planted_ == Planted::kAcknowledgedBeforeFlush) {
    node_.after(std::chrono::microseconds(50), [done = std::move(done)]() mutable { done({}); });
    done = [](const Result<void>&) {};
  }
  done_[number] = std::move(done);
  const std::uint64_t us = random_() % 50 == 0 ? random_() % 50'000 : 80 + random_() % 800;
  node_.after(std::chrono::microseconds(us), [this, number] {
    if (faults_.hangs) {
      hanging_.push_back(number);
    } else {
      finish(number);
    }
  });
}

void SimLog::finish(std::uint64_t number) {
  const auto found = disk_.in_flight.find(number);
  const LoggerDisk::InFlight what = found->second;
  disk_.in_flight.erase(found);
  if (what.write) {
    if (!disk_.writes.try_emplace(what.numbers.first, *what.write).second) {
      model_.violation("the logger logs #" + std::to_string(what.numbers.first.value) + " twice");
    }
  } else {
    for (SequenceNumber s = what.numbers.first; s <= what.numbers.last; s = s.next()) {
      disk_.voids.insert(s);
    }
  }
  auto done = done_.extract(number);
  done.mapped()({});
}

void SimLog::set_faults(Faults faults) {
  faults_ = faults;
  if (faults_.hangs) return;
  for (const std::uint64_t number : std::exchange(hanging_, {})) finish(number);
}

void SimLog::fetch(SequenceNumber from, SequenceNumber to,
                   UniqueFunction<void(Result<Portion>)> done) {
  node_.after(std::chrono::microseconds(100 + random_() % 3000),
              [this, from, to, done = std::move(done)]() mutable {
                Portion portion;
                portion.through = to;
                for (auto it = disk_.writes.upper_bound(from);
                     it != disk_.writes.end() && it->first <= to; ++it) {
                  if (it->second.back_to) continue;
                  if (portion.writes.size() == 5) {
                    portion.through = portion.writes.back().stamp.sequence;
                    break;
                  }
                  replication::WriteMessage write;
                  write.stamp = it->second.stamp;
                  write.write = sim_write(it->second.extent, it->second.attempt);
                  portion.writes.push_back(std::move(write));
                }
                done(std::move(portion));
              });
}

Blocks SimLog::changed(SequenceNumber from, SequenceNumber to) const {
  if (from < to && from < disk_.begun && from.value > 0) {
    model_.violation("somebody asks for what the log has lost");
  }
  from = std::max(from, std::min(disk_.base(), to));
  std::set<std::uint64_t> touched;
  const auto touch = [&](SequenceNumber after, SequenceNumber until) {
    for (auto it = disk_.writes.upper_bound(after); it != disk_.writes.end() && it->first <= until;
         ++it) {
      for (std::uint64_t i = 0; i < it->second.extent.count.value; ++i) {
        touched.insert(it->second.extent.first.value + i);
      }
    }
  };
  touch(from, to);
  for (auto it = disk_.writes.upper_bound(from); it != disk_.writes.end() && it->first <= to;
       ++it) {
    if (it->second.back_to) touch(*it->second.back_to, it->first);
  }
  Blocks changed = blocks_at(disk_.writes, to, touched);
  if (planted_ == Planted::kForgottenInCatchUp && !changed.empty()) changed.erase(changed.begin());
  return changed;
}

}  // namespace mariner::test
