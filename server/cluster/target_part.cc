#include "server/cluster/target_part.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

constexpr auto kIdlePoll = std::chrono::milliseconds(5);
// How often a read looks whether its storage has come so far.
constexpr auto kBehindPoll = std::chrono::milliseconds(1);
// ... and one that needs the logger, which is away, whether it is back.
constexpr auto kAwayPoll = std::chrono::milliseconds(50);

}  // namespace

// One epoch in which this node coordinates.
struct TargetPart::Term final : public volume::CurrentReader {
  Term(TargetPart& part, const manager::VolumeRecord& record)
      : self(part.options_.self),
        executor(part.parts_.executor),
        role(part.parts_.own.storage),
        storage(part.parts_.storage),
        link(part.parts_.caller, record.volume,
             {.logger = record.logger,
              .storages = record.storages,
              .journals = record.away.has_value(),
              .group = part.options_.group,
              .own = part.parts_.own}),
        storages(record.storages),
        host({record.volume, record.epoch, record.storages,
              role == nullptr ? replication::NodeId{} : part.options_.self, record.logger,
              record.away},
             part.options_.coordinator, part.parts_.executor, link,
             {.ready = [&part] { part.tell_later(); },
              .superseded =
                  [&part, epoch = record.epoch](Epoch) {
                    part.later_in(epoch, [&part] { part.election_->superseded(); });
                  },
              .may_answer = [&part] { return part.parts_.lease.held(); },
              .change_logs =
                  [&part, epoch = record.epoch](std::optional<replication::LogAway> away) {
                    part.later_in(epoch, [&part, away] { part.election_->change_logs(away); });
                  },
              .writes_wait =
                  [&part](const Error& why) {
                    if (part.events_.writes_wait) part.events_.writes_wait(why);
                  },
              .given_up =
                  [&part](const replication::CoordinatorRole::GivenUp& which) {
                    if (part.events_.given_up) part.events_.given_up(which);
                  },
              .image_failed =
                  [&part](const replication::CoordinatorRole::ImageFailed& which) {
                    if (part.events_.image_failed) part.events_.image_failed(which);
                  },
              .hand_over =
                  [&part, epoch = record.epoch](replication::NodeId to) {
                    part.later_in(epoch, [&part, to] { part.hand_over(to); });
                  }}),
        elsewhere(role != nullptr ? nullptr
                                  : std::make_unique<RemoteCurrent>(
                                        host, part.parts_.executor,
                                        [&caller = part.parts_.caller, id = record.volume](
                                            replication::NodeId node) -> RemoteHistory& {
                                          return caller.image(id, node);
                                        })),
        live(part.options_.size_bytes,
             {host, elsewhere != nullptr ? static_cast<volume::CurrentReader&>(*elsewhere) : *this,
              part.parts_.history, true, true,
              [](SequenceNumber) -> Result<std::shared_ptr<volume::Layer>> {
                return Error{ErrorCode::kNotFound, "nobody keeps moments of this volume"};
              }}) {}

  ~Term() override { *alive = false; }

  // volume::CurrentReader, of a node that stores the volume: while its storage follows the
  // coordinator, it has committed whatever was answered; but for a rollback, which it asks the
  // history about first.
  void read(BlockRange range, volume::ReadDone done) override {
    if (!host.role().caught_up(self)) {
      return done(Error{ErrorCode::kUnavailable, "the storage of this node is catching up"});
    }
    read_as_of(host.role().settled(), range, std::move(done));
  }
  void read_as_of(SequenceNumber settled, BlockRange range, volume::ReadDone done) {
    if (role->role().committed() < settled) {
      return read_later(kBehindPoll, settled, range, std::move(done));
    }
    // What it has not fetched yet it asks the logger for: reads wait for that as writes do.
    storage->read(
        range, [this, settled, range, done = std::move(done)](Result<PayloadSlice> read) mutable {
          const bool away = !read && read.error().code == ErrorCode::kUnavailable;
          if (away && host.ready()) return read_later(kAwayPoll, settled, range, std::move(done));
          done(std::move(read));
        });
  }
  void read_later(std::chrono::nanoseconds delay, SequenceNumber settled, BlockRange range,
                  volume::ReadDone done) {
    ++waiting;
    executor.after(delay, [this, here = alive, settled, range, done = std::move(done)]() mutable {
      if (!*here) return;
      --waiting;
      if (host.ready()) return read_as_of(settled, range, std::move(done));
      done(Error{ErrorCode::kUnavailable, "another node serves the volume"});
    });
  }
  [[nodiscard]] bool idle() const { return live.idle() && waiting == 0; }

  const replication::NodeId self;
  Executor& executor;
  const replication::StorageHost* role;
  volume::CurrentReader* storage;
  CoordinatorLink link;
  const std::vector<replication::NodeId> storages;
  replication::CoordinatorHost host;
  const std::unique_ptr<RemoteCurrent> elsewhere;  // null: this node stores the volume
  volume::LiveVolume live;
  bool prepared = false;
  std::size_t waiting = 0;
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

TargetPart::TargetPart(const Options& options, const Parts& parts, Events events)
    : options_(options),
      parts_(parts),
      events_(std::move(events)),
      layer_(std::make_shared<GatedLayer>(options.size_bytes,
                                          [this]() -> volume::Layer* {
                                            Term* const term = serving();
                                            return term == nullptr ? nullptr : &term->live;
                                          })),
      sign_(parts.store, parts.lease, parts.view, options.self, options.volume) {
  CHECK(options.coordinator.void_margin >= options.coordinator.limits.writes_in_flight_max);
  election_.emplace(
      parts_.store, parts_.executor, parts_.lease, parts_.view,
      manager::Election::Options{.volume = options.volume,
                                 .self = options.self,
                                 .promote = options.promote,
                                 .backoff = options.backoff},
      manager::Election::Events{[this](const manager::VolumeRecord& record) { elected(record); },
                                [this] { end_term(); },
                                [this](const Error& error) {
                                  if (events_.failed) events_.failed(error);
                                },
                                [this](replication::NodeId next) { return may_follow(next); }});
}

TargetPart::~TargetPart() {
  CHECK_MSG(idle(), "a target's part of a volume is destroyed in use");
  *alive_ = false;
  layer_->close();
}

void TargetPart::look() {
  if (election_) election_->look();
  tell_later();
}

void TargetPart::elected(const manager::VolumeRecord& record) {
  end_term();
  if (events_.elected) events_.elected(record);
  if (const Result<void> fit = check_nodes(record); !fit) {
    if (events_.failed) events_.failed(fit.error());
    return;
  }
  term_ = std::make_unique<Term>(*this, record);
  term_->link.begin(term_->host);
  prepare(record.epoch);
  tell_later();
}

// Not from within what tells it, and not if the term has ended by then.
void TargetPart::later_in(Epoch epoch, UniqueFunction<void()> work) {
  parts_.executor.post([this, alive = alive_, epoch, work = std::move(work)]() mutable {
    if (*alive && term_ != nullptr && term_->host.role().epoch() == epoch) work();
  });
}

void TargetPart::prepare(Epoch epoch) {
  auto done = [this, alive = alive_, epoch] {
    if (!*alive || term_ == nullptr || term_->host.role().epoch() != epoch) return;
    term_->prepared = true;
    tell_later();
  };
  if (!events_.prepare) return done();
  events_.prepare(std::move(done));
}

// Whether this node can coordinate those whom the record names.
Result<void> TargetPart::check_nodes(const manager::VolumeRecord& record) const {
  const auto unfit = [](const std::string& what) {
    return Error{ErrorCode::kNotFound, "the cluster's record of the volume " + what};
  };
  std::vector<replication::NodeId> nodes = record.storages;
  nodes.push_back(record.logger);
  for (const replication::NodeId node : nodes) {
    if (node == options_.self || parts_.caller.knows(node)) continue;
    return unfit("names node " + std::to_string(node.value) +
                 ", which the configuration does not know");
  }
  const bool stores = std::ranges::find(record.storages, options_.self) != record.storages.end();
  if (!stores && parts_.own.storage != nullptr) {
    return unfit("does not name this node, which has an image of it");
  }
  if (stores && parts_.own.storage == nullptr) {
    return unfit("names this node as a storage node, which it is not by its configuration");
  }
  const bool logs = parts_.own.logger != nullptr && !options_.journal;
  if ((record.logger == options_.self) != logs) {
    return unfit("names node " + std::to_string(record.logger.value) +
                 " as its logger, and its definition another one");
  }
  if (record.away && parts_.own.journal == nullptr) {
    return unfit("says that the logger is away, and this node has no journal ([log] disks)");
  }
  return {};
}

// Who never gets ready serves nothing: anybody else can only do better.
void TargetPart::hand_over(replication::NodeId to) {
  if (!term_->host.role().ready() || may_follow(to)) election_->hand_over(to);
}

void TargetPart::end_term() {
  if (term_ == nullptr) return;
  term_->host.end();
  term_->link.end();
  ended_.push_back(std::move(term_));
  drop_ended();
  tell_later();
}

// Not at once: somebody may be within it.
void TargetPart::drop_ended() {
  if (std::exchange(dropping_, true)) return;
  parts_.executor.after(kIdlePoll, [this, alive = alive_] {
    if (!*alive) return;
    dropping_ = false;
    std::erase_if(ended_, [](const auto& term) { return term->idle(); });
    if (!ended_.empty()) drop_ended();
  });
}

bool TargetPart::serves() const {
  return term_ != nullptr && term_->prepared && term_->host.ready() &&
         term_->host.role().reads_from().has_value();
}

// Asked for every command, when it has arrived.
TargetPart::Term* TargetPart::serving() {
  return serves() && parts_.lease.held() ? term_.get() : nullptr;
}

// Without its lease this node does not know what others do. Who is closed has none, and sends hosts
// away in any case: there the view is good enough.
TargetPart::State TargetPart::state() const {
  if (!election_) {
    const auto server = manager::server_of(parts_.view, options_.volume);
    return server && *server != options_.self ? State::kStandby : State::kTransitioning;
  }
  if (!parts_.lease.held()) return State::kTransitioning;
  if (term_ != nullptr) return serves() ? State::kServing : State::kTransitioning;
  const manager::Entry* entry = parts_.view.find(manager::volume_key(options_.volume));
  if (entry == nullptr) return State::kTransitioning;
  const Result<manager::VolumeRecord> record =
      manager::decode_volume_record(options_.volume, entry->value);
  if (!record || record->coordinator == options_.self) return State::kTransitioning;
  const bool alive = parts_.view.find(manager::alive_key(record->coordinator)) != nullptr;
  return alive ? State::kStandby : State::kTransitioning;
}

bool TargetPart::may_follow(replication::NodeId next) const {
  const auto among = [next](const std::vector<replication::NodeId>& nodes) {
    return std::ranges::find(nodes, next) != nodes.end();
  };
  if (term_ == nullptr) {
    // Elected, and unfit for what the record says: whoever is wanted can only do better.
    const bool unfit = election_ && election_->coordinates();
    return unfit && next != options_.self && (options_.targets.empty() || among(options_.targets));
  }
  const replication::CoordinatorRole& role = term_->host.role();
  const bool stores = among(term_->storages);
  if (options_.targets.empty() ? !stores : !among(options_.targets)) return false;
  return stores ? role.caught_up(next) : !role.away() && role.reads_from().has_value();
}

const replication::CoordinatorHost* TargetPart::coordinator() const {
  return term_ == nullptr ? nullptr : &term_->host;
}

replication::Replicator* TargetPart::replicator() {
  Term* const term = serving();
  return term == nullptr ? nullptr : &term->host;
}

void TargetPart::rollback(index::IndexMoment target, std::shared_ptr<volume::RepairSource> repairs,
                          replication::Replicator::WriteDone done) {
  if (Term* const term = serving()) {
    return term->live.rollback(target, std::move(repairs), std::move(done));
  }
  done(Error{ErrorCode::kUnavailable, "this node does not serve the volume now"});
}

void TargetPart::tell_later() {
  if (std::exchange(telling_, true)) return;
  parts_.executor.post([this, alive = alive_] {
    if (!*alive) return;
    telling_ = false;
    const State now = state();
    if (now != std::exchange(told_, now) && events_.changed) events_.changed(now);
    if (now == State::kServing) sign_.look(term_->host.role().epoch());
    if (term_ != nullptr && now == State::kTransitioning) tell_soon();
  });
}

// That this node's storage has caught up, nothing else tells.
void TargetPart::tell_soon() {
  if (std::exchange(polling_, true)) return;
  parts_.executor.after(kIdlePoll, [this, alive = alive_] {
    if (!*alive) return;
    polling_ = false;
    tell_later();
  });
}

void TargetPart::close() {
  election_.reset();
  end_term();
}

}  // namespace mariner::cluster
