// Sessions and the doctor. See node_control.h.
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <cerrno>
#include <utility>

#include "server/node/clock_health.h"
#include "server/node/node_control.h"
#include "server/node/session_answer.h"

namespace mariner::node {
namespace {

// A session that had a command within this time counts as using its volume.

void add(api::DoctorAnswer& out, const char* check, const char* level, std::string found,
         std::string advice) {
  api::Finding* finding = out.add_findings();
  finding->set_check(check);
  finding->set_level(level);
  finding->set_found(std::move(found));
  finding->set_advice(std::move(advice));
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "0 %" : std::to_string(part * 100 / whole) + " %";
}

}  // namespace

api::Session NodeControl::to_api(const iscsi::SessionInfo& session) {
  api::Session out = session_answer(session, node_.loop_);
  if (const ServedVolume* volume = node_.volumes_->find_target(session.target)) {
    out.set_volume(volume->meta.name());
  } else if (const ServedView* view = node_.views_->find_target(session.target)) {
    out.set_view(view->meta.name());
  }
  return out;
}

std::vector<iscsi::SessionInfo> NodeControl::sessions_of(const std::string& iqn) const {
  return node_.front_->portal().sessions().list_of(iqn);
}

void NodeControl::session_list(admin::Answer<api::SessionList> done) {
  api::SessionList out;
  out.set_schema(1);
  for (const iscsi::SessionInfo& session : node_.front_->portal().sessions().list()) {
    *out.add_sessions() = to_api(session);
  }
  done(std::move(out));
}

void NodeControl::session_kick(const api::SessionRequest& request,
                               admin::Answer<api::Session> done) {
  if (request.dry_run()) {
    for (const iscsi::SessionInfo& session : node_.front_->portal().sessions().list()) {
      if (session.id == request.id()) return done(to_api(session));
    }
    return done(Error{ErrorCode::kNotFound, "there is no session " + std::to_string(request.id())});
  }
  Result<iscsi::SessionInfo> kicked =
      node_.front_->portal().sessions().kick(request.id(), request.force());
  if (!kicked) return done(kicked.error());
  done(to_api(*kicked));
}

void NodeControl::doctor(admin::Answer<api::DoctorAnswer> done) {
  auto scrubbed = std::make_shared<std::deque<ScrubReport::Scrubbed>>();
  for (const auto& member : node_.node_log_->stack().array().members()) {
    if (!member->scrubber) continue;
    scrubbed->push_back({node_.node_log_->stack().path_of(member->superblock.disk),
                         member->scrubber->enabled(), member->scrubber->progress(),
                         member->scrubber->damage()});
  }
  examine({}, scrubbed, std::move(done));
}

// What the scrubbers found, one after another; then everything else.
void NodeControl::examine(std::vector<api::Finding> scrubs,
                          const std::shared_ptr<std::deque<ScrubReport::Scrubbed>>& left,
                          admin::Answer<api::DoctorAnswer> done) {
  if (left->empty()) return diagnose(scrubs, std::move(done));
  ScrubReport::Scrubbed next = std::move(left->front());
  left->pop_front();
  node_.scrub_report_->finding(
      std::move(next),
      [this, scrubs = std::move(scrubs), left, done = std::move(done)](api::Finding found) mutable {
        scrubs.push_back(std::move(found));
        examine(std::move(scrubs), left, std::move(done));
      });
}

void NodeControl::diagnose(const std::vector<api::Finding>& scrubs,
                           admin::Answer<api::DoctorAnswer> done) {
  api::DoctorAnswer out;
  out.set_schema(1);
  const logging::LogWriter& writer = node_.node_log_->stack().writer();
  const std::uint64_t used = writer.used_bytes();
  const std::uint64_t limit = writer.limit_bytes();
  const std::string found = percent(used, limit) + " of " + std::to_string(limit >> 20) + " MiB";
  switch (node_.log_space_->room()) {
    case LogSpace::Room::kEnough: add(out, "log space", "ok", found, ""); break;
    case LogSpace::Room::kShort:
      add(out, "log space", "warning", found + ", and what is oldest is to be kept",
          "with [log] on_full = \"shorten-window\" the past gets shorter than it is to be, else "
          "writes fail with SPACE ALLOCATION FAILED when it is full: add a log disk ([log] disks), "
          "or end views and marks that nobody needs");
      break;
    case LogSpace::Room::kFull:
      add(out, "log space", "error", found + ": writes are refused",
          "add a log disk ([log] disks), or end views and marks that nobody needs");
      break;
  }
  for (const LogMember& member : node_.node_log_->stack().members()) {
    using State = logging::LogWriter::DiskState;
    const logging::DurableChoice& durable = member.durability;
    const bool odd = !durable.configured && durable.writes == 0;
    add(out, "log durability", odd ? "warning" : "ok", member.path + ": " + to_string(durable),
        odd ? "if the disk is sound, [log] durability = \"fua\" or \"flush\" says it without "
              "measuring"
            : "");
    if (member.draining) {
      add(out, "log disk", "ok", member.path + " is being emptied: it takes no new records",
          "it is let go when the history that it holds has been given up");
      continue;
    }
    switch (writer.state_of(member.number)) {
      case State::kGood: add(out, "log disk", "ok", member.path, ""); break;
      case State::kHanging:
        add(out, "log disk", "error", member.path + " does not answer",
            "look at the kernel's log and at the disk; the other log disks are used meanwhile");
        break;
      case State::kFailed:
        add(out, "log disk", "error", member.path + " has failed",
            "look at the kernel's log, repair or replace the disk, and restart marinerd");
        break;
    }
  }
  const std::size_t damage = node_.node_log_->stack().recovered().damage.size();
  add(out, "log integrity", damage == 0 ? "ok" : "error",
      damage == 0 ? "no damage found at start" : std::to_string(damage) + " damaged ranges",
      damage == 0 ? "" : "the daemon's log names them; the moments that need them cannot be read");
  for (const api::Finding& scrub : scrubs) *out.add_findings() = scrub;
  const IndexStack& index = node_.node_log_->indexes();
  const IndexRepair* repair = index.repair();
  const auto repairing = repair == nullptr ? std::nullopt : repair->progress();
  if (index.is_damaged()) {
    add(out, "index", "error", "damaged blocks in " + index.path() + " that cannot be mended now",
        "moments that need them cannot be read; restart marinerd: the index is made again from the "
        "log then");
  } else if (repairing) {
    add(out, "index", "warning",
        std::to_string(repairing->leaves) + " damaged blocks in " + index.path() +
            " are being made again from the log: " + std::to_string(repairing->tracks_read) +
            " of " + std::to_string(repairing->tracks) + " tracks read",
        "what needs them waits; look at the kernel's log for errors of that disk");
  } else if (!index.store().has_room()) {
    add(out, "index", "warning", "it takes no more, and writers wait: " + index.path(),
        "if this stays, its disk is too slow or fails: look at the daemon's log; give it [index] "
        "memory, or [index] file on another disk");
  } else {
    const std::uint64_t repaired = repair == nullptr ? 0 : repair->repaired();
    add(out, "index", repaired == 0 ? "ok" : "warning",
        repaired == 0 ? "no damage found since start"
                      : std::to_string(repaired) + " damaged blocks in " + index.path() +
                            " have been made again from the log since start",
        repaired == 0 ? "" : "nothing is lost; if this goes on, replace the disk of [index] file");
  }
  struct statvfs space {};
  const std::string& state = node_.config_.server.state_dir;
  if (::statvfs(state.c_str(), &space) == 0) {
    const std::uint64_t free_mib =
        static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize >> 20;
    std::uint64_t missing = 0;  // what the sparse images may still need
    for (const auto& [name, served] : node_.volumes_->all()) {
      if (served.image == nullptr) continue;
      const std::uint64_t allocated = served.image->allocated_bytes();
      if (allocated < served.meta.size_bytes()) missing += served.meta.size_bytes() - allocated;
    }
    const bool overcommitted = missing >> 20 > free_mib;
    add(out, "image space", overcommitted ? "warning" : "ok",
        std::to_string(free_mib) + " MiB free at " + state + ", full images need " +
            std::to_string(missing >> 20) + " MiB more",
        overcommitted ? "images are sparse: make room before the hosts fill their volumes" : "");
  }
  timex clock{};
  const int clock_state = ::adjtimex(&clock);
  const ClockHealth health = clock_health(clock_state, errno, node_.clock_steps_);
  add(out, "clock", health.well ? "ok" : "warning", health.text, health.advice.c_str());
  for (const auto& [name, served] : node_.volumes_->all()) {
    if (!served.failure) continue;
    add(out, ("volume " + name).c_str(), "error", "it is not served: " + served.failure->message,
        "it is looked for every few seconds; see \"The disk of the images fails\" in "
        "docs/operations.md");
  }
  for (const auto& [name, served] : node_.volumes_->all()) {
    if (served.volume == nullptr || served.volume->storage() == nullptr) continue;
    const std::uint64_t lag = served.volume->storage()->lag_bytes();
    const bool late =
        served.volume->storage()->pacing() || lag > node_.config_.storage.lag_max.bytes / 4 * 3;
    add(out, ("image of " + name).c_str(), late ? "warning" : "ok",
        std::to_string(lag >> 20) + " MiB not applied yet",
        late ? "the image's disk is slower than the writes; writers are slowed down" : "");
  }
  for (const std::string& portal : node_.front_->portal().addresses()) {
    add(out, "portal", "ok", "listening on " + portal, "");
  }
  done(std::move(out));
}

}  // namespace mariner::node
