#include "tests/sim/cluster/logger_host.h"

#include <utility>

namespace mariner::test {

using replication::ConnectionId;
using replication::LoggerRole;
using replication::SequenceRange;

void LoggerDisk::crash(std::mt19937_64& random) {
  for (auto& [number, what] : in_flight) {
    if (random() % 2 == 0) continue;
    if (what.write) {
      writes[what.numbers.first] = *what.write;
    } else {
      for (SequenceNumber s = what.numbers.first; s <= what.numbers.last; s = s.next())
        voids.insert(s);
    }
  }
  in_flight.clear();
  const SequenceNumber end = last();
  writes.erase(writes.upper_bound(end), writes.end());
  voids.erase(voids.upper_bound(end), voids.end());
}

SequenceNumber LoggerDisk::last() const {
  SequenceNumber last{};
  while (writes.contains(last.next()) || voids.contains(last.next())) last = last.next();
  return last;
}

LoggerHost::LoggerHost(SimNode& node, std::mt19937_64& random, ClusterModel& model,
                       LoggerDisk& disk, VolumeId volume, Planted planted)
    : node_(node),
      random_(random),
      model_(model),
      disk_(disk),
      planted_(planted),
      role_({volume, disk.promised, disk.last(),
             disk.writes.empty() ? VersionTime{} : disk.writes.rbegin()->second.stamp.time,
             disk.floor, disk.frontier}) {}

ConnectionId LoggerHost::accept(const SimConnectionPtr& connection, AnswerTo answer) {
  static std::uint64_t last_connection = 0;
  const ConnectionId id{++last_connection};
  peers_[id] = {connection, std::move(answer)};
  connection->on_closed(SimConnection::Side::kAccepted, [this, id] {
    role_.disconnected(id);
    peers_.erase(id);
  });
  return id;
}

void LoggerHost::received(ConnectionId from, replication::ToLogger message) {
  LoggerRole::Actions actions;
  role_.received(from, std::move(message), actions);
  run(actions);
}

void LoggerHost::run(LoggerRole::Actions& actions) {
  for (auto& action : actions) queue_.push_back(std::move(action));
  actions.clear();
  flush_later();
  if (std::exchange(running_, true)) return;
  while (!queue_.empty()) {
    LoggerRole::Action action = std::move(queue_.front());
    queue_.pop_front();
    if (auto* promise = std::get_if<LoggerRole::Promise>(&action)) {
      node_.after(std::chrono::microseconds(200 + random_() % 2000), [this, promise = *promise] {
        disk_.promised = std::max(disk_.promised, promise.epoch);
        disk_.floor = std::max(disk_.floor, promise.floor);
        LoggerRole::Actions more;
        role_.promised(promise, {}, more);
        run(more);
      });
    } else if (auto* write = std::get_if<LoggerRole::Append>(&action)) {
      const replication::WriteMessage& message = write->message;
      const SequenceNumber sequence = message.stamp.sequence;
      append({LoggedWrite{message.stamp, message.write.extent, attempt_of(message.write)},
              {sequence, sequence}},
             [this, sequence, frontier = message.frontier](const Result<void>& result) {
               if (result) disk_.frontier = std::max(disk_.frontier, frontier);
               LoggerRole::Actions more;
               role_.appended(sequence, result, more);
               run(more);
             });
    } else if (auto* lost = std::get_if<LoggerRole::AppendVoid>(&action)) {
      const SequenceRange numbers{lost->message.first, lost->message.last};
      append({std::nullopt, numbers}, [this, numbers](const Result<void>& result) {
        LoggerRole::Actions more;
        role_.void_appended(numbers, result, more);
        run(more);
      });
    } else {
      auto& send = std::get<LoggerRole::Send>(action);
      const auto peer = peers_.find(send.to);
      if (peer == peers_.end()) continue;
      peer->second.connection->send(
          SimConnection::Side::kAccepted,
          [answer = peer->second.answer, message = std::move(send.message)] { answer(message); });
    }
  }
  running_ = false;
}

void LoggerHost::append(LoggerDisk::InFlight what, std::function<void(const Result<void>&)> done) {
  const std::uint64_t number = ++appends_;
  if (what.write && faults_.fail_writes > 0) {
    --faults_.fail_writes;
    node_.after(std::chrono::milliseconds(1), [done = std::move(done)] {
      done(Error{ErrorCode::kNoSpace, "the log is full"});
    });
    return;
  }
  disk_.in_flight[number] = std::move(what);
  if (planted_ == Planted::kAcknowledgedBeforeFlush) {
    node_.after(std::chrono::microseconds(50), [done] { done({}); });
    done = [](const Result<void>&) {};
  }
  const std::uint64_t us = random_() % 50 == 0 ? random_() % 50'000 : 80 + random_() % 800;
  node_.after(std::chrono::microseconds(us), [this, number, done = std::move(done)] {
    if (faults_.hangs) {
      hanging_.push_back([this, number, done] { finish(number, done); });
    } else {
      finish(number, done);
    }
  });
}

void LoggerHost::finish(std::uint64_t number,
                        const std::function<void(const Result<void>&)>& done) {
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
  done({});
}

void LoggerHost::set_faults(Faults faults) {
  faults_ = faults;
  if (faults_.hangs) return;
  for (auto& one : std::exchange(hanging_, {})) one();
}

void LoggerHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  node_.defer([this] {
    flushing_ = false;
    LoggerRole::Actions actions;
    role_.flush(actions);
    if (!actions.empty()) run(actions);
  });
}

std::optional<Blocks> LoggerHost::changed(SequenceNumber from, SequenceNumber to) const {
  if (role_.settled() < to) return std::nullopt;
  Blocks changed;
  for (auto it = disk_.writes.upper_bound(from); it != disk_.writes.end() && it->first <= to;
       ++it) {
    for (std::uint64_t i = 0; i < it->second.extent.count.value; ++i) {
      changed[it->second.extent.first.value + i] = {it->first, it->second.attempt};
    }
  }
  if (planted_ == Planted::kForgottenInCatchUp && !changed.empty()) changed.erase(changed.begin());
  return changed;
}

}  // namespace mariner::test
