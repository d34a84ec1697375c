#include "tests/bench/cleaner_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {
namespace {

constexpr std::uint32_t kNone = CleanerModel::kNone;

std::uint32_t share(const CleanerModel& model, double of_track) {
  return static_cast<std::uint32_t>(of_track * model.options().track_blocks);
}

CleanerModel::StreamOfSurvivor into(StreamId stream) {
  return [stream](WriteTime) { return stream; };
}

// The track that can be cleaned for which `score` is the highest, above 0.
template <typename Score>
std::uint32_t best(const CleanerModel& model, Score score) {
  std::uint32_t found = kNone;
  double highest = 0;
  for (std::uint32_t i = 0; i < model.tracks().size(); ++i) {
    const CleanerTrack& track = model.tracks()[i];
    if (!model.can_clean(track)) continue;
    const double its = score(track);
    if (its <= highest) continue;
    found = i;
    highest = its;
  }
  return found;
}

class Fifo : public CleanerPolicy {
 public:
  explicit Fifo(double moved_max) : moved_max_(moved_max) {}
  Streams streams_of(const CleanerModel&, std::uint32_t) override { return {}; }
  bool clean(CleanerModel& model) override {
    const std::uint32_t oldest = model.oldest(0);
    if (oldest == kNone) return false;
    const CleanerTrack& track = model.tracks()[oldest];
    if (!model.can_clean(track) || track.history > share(model, moved_max_)) return false;
    model.clean(oldest, true, into(0));
    return true;
  }

 private:
  const double moved_max_;
};

class Greedy : public CleanerPolicy {
 public:
  Greedy(double moved_max, bool keep_current)
      : moved_max_(moved_max), keep_current_(keep_current) {}
  Streams streams_of(const CleanerModel&, std::uint32_t) override { return {}; }
  bool clean(CleanerModel& model) override {
    const std::uint32_t most = share(model, moved_max_);
    const std::uint32_t victim = best(model, [&](const CleanerTrack& track) {
      return most + 1.0 - track.history - (keep_current_ ? track.current : 0);
    });
    if (victim == kNone) return false;
    model.clean(victim, !keep_current_, into(0));
    return true;
  }

 private:
  const double moved_max_;
  const bool keep_current_;
};

class CostBenefit : public CleanerPolicy {
 public:
  explicit CostBenefit(double moved_max) : moved_max_(moved_max) {}
  Streams streams_of(const CleanerModel&, std::uint32_t) override {
    return {.written = 0, .before_image = 1};
  }
  bool clean(CleanerModel& model) override {
    const std::uint32_t most = share(model, moved_max_);
    const std::uint32_t victim = best(model, [&](const CleanerTrack& track) {
      if (track.history > most) return 0.0;
      const double used = static_cast<double>(track.history) / track.used;
      const double age = 1.0 + model.now() - youngest(model, track);
      return (1 - used) * age / (1 + used);
    });
    if (victim == kNone) return false;
    model.clean(victim, true, into(1));
    return true;
  }

 private:
  // When the last write of a track that takes writes was made; of one of history, when the last of
  // it was replaced.
  static WriteTime youngest(const CleanerModel& model, const CleanerTrack& track) {
    return track.image_has == 0 ? track.last_replaced : track.image_has - model.options().lag;
  }
  const double moved_max_;
};

class Generations : public CleanerPolicy {
 public:
  Generations(double moved_max, double young, double adopt)
      : moved_max_(moved_max), young_(young), adopt_(adopt) {}
  Streams streams_of(const CleanerModel&, std::uint32_t) override {
    return {.written = kYoung, .before_image = kOld};
  }
  void settle(CleanerModel& model) override {
    while (model.tracks_of(kYoung) > young_ * model.options().tracks) {
      const std::uint32_t young = model.oldest(kYoung);
      if (young == kNone || !model.can_clean(model.tracks()[young])) return;
      if (model.tracks()[young].history >= adopt_ * model.options().track_blocks) {
        model.adopt(young, kOld);
      } else {
        model.clean(young, true, into(kOld));
      }
    }
  }
  bool clean(CleanerModel& model) override {
    const std::uint32_t old = model.oldest(kOld);
    if (old == kNone || !model.can_clean(model.tracks()[old])) return false;
    if (model.tracks()[old].history > share(model, moved_max_)) return false;
    model.clean(old, true, into(kOld));
    return true;
  }

 private:
  static constexpr StreamId kYoung = 0, kOld = 1;
  const double moved_max_, young_, adopt_;
};

class Heated : public CleanerPolicy {
 public:
  Heated(const HeatOptions& options, std::unique_ptr<CleanerHeat> heat)
      : options_(options), heat_(std::move(heat)), span_(options.span) {}

 protected:
  bool is_hot(std::uint32_t block) { return heat_->is_hot(block, span_); }
  // A track of hot writes is freed, of which `moved` blocks survive.
  void lead(const CleanerModel& model, std::uint32_t moved) {
    const bool many = moved > options_.survivors * model.options().track_blocks;
    span_ = std::min(options_.span, span_ * (many ? 1 / kStep : kStep));
  }
  const HeatOptions options_;

 private:
  static constexpr double kStep = 1.01;
  const std::unique_ptr<CleanerHeat> heat_;
  double span_;
};

class StreamsByExpiry : public Heated {
 public:
  using Heated::Heated;
  Streams streams_of(const CleanerModel&, std::uint32_t block) override {
    return {.written = is_hot(block) ? kHot : kCold, .before_image = kHistory};
  }
  bool clean(CleanerModel& model) override {
    const std::uint32_t most = share(model, options_.moved_max);
    const std::uint32_t victim = best(model, [&](const CleanerTrack& track) {
      return track.history > most ? 0.0 : score(model, track);
    });
    if (victim == kNone) return false;
    model.clean(victim, true,
                [&](WriteTime replaced) { return kHistory + bucket_of(model, replaced); });
    return true;
  }

 private:
  static constexpr StreamId kHot = 0, kCold = 1, kHistory = 2;

  // 0: more than half of the window to go; 1: more than a quarter; and so on.
  [[nodiscard]] StreamId bucket_of(const CleanerModel& model, WriteTime replaced) const {
    const double to_go =
        std::max(1.0, static_cast<double>(replaced) - model.horizon()) / model.options().window;
    return std::min(static_cast<StreamId>(-std::log2(std::min(1.0, to_go))), options_.buckets - 1);
  }

  // Benefit: the room that is won by it, times for how long. A dead slot is won until the track
  // would be free by itself; one of a current version until that is replaced, because then its
  // before-image takes room elsewhere. Cost: what is moved, and that before-image.
  [[nodiscard]] double score(const CleanerModel& model, const CleanerTrack& track) const {
    const double again = track.stream == kCold ? model.options().window : options_.span / 2;
    const double to_go =
        track.history == 0 ? 0 : static_cast<double>(track.last_replaced) - model.horizon();
    const double until_free = track.current == 0 ? to_go : std::max(to_go, again);
    const double dead = track.used - track.history - track.current;
    const double cost = track.history + track.current;
    return cost == 0 ? kFree : (dead * until_free + track.current * again) / cost;
  }
  static constexpr double kFree = 1e18;
};

class Rings : public Heated {
 public:
  using Heated::Heated;
  Streams streams_of(const CleanerModel&, std::uint32_t block) override {
    return {.written = is_hot(block) ? kHot : kCold, .before_image = history()};
  }
  bool clean(CleanerModel& model) override {
    for (const StreamId ring : {kHistory, kLate, kHot}) {
      if (cost(model, model.oldest(ring)) == 0) return cleaned(model, model.oldest(ring));
    }
    for (;;) {
      const std::uint32_t cold = model.oldest(kCold);
      if (cost(model, cold) == kNone) break;
      if (cost(model, cold) <= model.options().track_blocks / 2) return cleaned(model, cold);
      model.adopt(cold, history());  // cheaper left as it is
    }
    std::uint32_t cheapest = kNone;
    for (const StreamId ring : {kHistory, kLate, kHot}) {
      const std::uint32_t oldest = model.oldest(ring);
      if (cost(model, oldest) < cost(model, cheapest)) cheapest = oldest;
    }
    return cost(model, cheapest) <= share(model, options_.moved_max) && cleaned(model, cheapest);
  }

 private:
  static constexpr StreamId kHot = 0, kCold = 1, kHistory = 2, kLate = 3;

  [[nodiscard]] StreamId history() const { return options_.history_ring ? kHistory : kHot; }

  // Blocks to move; kNone: it cannot be cleaned.
  static std::uint32_t cost(const CleanerModel& model, std::uint32_t track) {
    if (track == kNone || !model.can_clean(model.tracks()[track])) return kNone;
    return model.tracks()[track].history;
  }
  bool cleaned(CleanerModel& model, std::uint32_t track) {
    const StreamId ring = model.tracks()[track].stream;
    if (ring == kHot) lead(model, cost(model, track));
    const StreamId survivors = options_.late_ring ? kLate : kHot;
    model.clean(track, true, into(ring == kCold ? history() : survivors));
    return true;
  }
};

}  // namespace

std::unique_ptr<CleanerPolicy> make_fifo(double moved_max) {
  return std::make_unique<Fifo>(moved_max);
}

std::unique_ptr<CleanerPolicy> make_greedy(double moved_max, bool keep_current) {
  return std::make_unique<Greedy>(moved_max, keep_current);
}

std::unique_ptr<CleanerPolicy> make_cost_benefit(double moved_max) {
  return std::make_unique<CostBenefit>(moved_max);
}

std::unique_ptr<CleanerPolicy> make_generations(double moved_max, double young, double adopt) {
  return std::make_unique<Generations>(moved_max, young, adopt);
}

std::unique_ptr<CleanerPolicy> make_streams(const HeatOptions& options,
                                            std::unique_ptr<CleanerHeat> heat) {
  return std::make_unique<StreamsByExpiry>(options, std::move(heat));
}

std::unique_ptr<CleanerPolicy> make_rings(const HeatOptions& options,
                                          std::unique_ptr<CleanerHeat> heat) {
  return std::make_unique<Rings>(options, std::move(heat));
}

}  // namespace mariner::bench
