// One run of a volume against its model: ninety steps that follow from a seed, then everything is
// answered and looked at, and once more after a restart. A failure is a failure of the test.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/volume/volume_model.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::test {

struct Variant {
  bool base_in_image = false;
  bool far_history = false;  // from storage and target
  bool wired = false;        // the same, with bytes between them

  [[nodiscard]] bool far() const { return far_history || wired; }
};

class VolumeModelRun {
 public:
  VolumeModelRun(std::uint64_t seed, Variant variant);

  void execute();
  [[nodiscard]] bool failed() const { return failed_; }
  // By all runs.
  static inline std::uint64_t tracks_freed = 0;
  static inline std::uint64_t resumed_blocks = 0;

 private:
  struct View {
    std::shared_ptr<volume::Layer> layer;
    SequenceNumber at;
  };

  // The volume, or the writable view on it.
  struct Line {
    VolumeModel model;
    std::vector<View> views;
    volume::Volume* volume = nullptr;
    std::multiset<SequenceNumber> reading{};  // moments of views that are being read
    std::set<SequenceNumber> marked{};        // moments that are to be kept
  };

  VolumeRig::Options options(std::uint64_t seed);
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  void fail(const std::string& what);
  Line& any_line() { return *lines_[below(lines_.size())]; }
  ByteRange any_range(std::uint64_t size_bytes, std::uint64_t sectors_max, bool aligned);

  void step();
  // Sometimes, as long as it may take, or until what failed is tried again.
  void wait_for_the_history();
  // The history could not be asked, which initiators are told: they ask again.
  bool is_away(const Result<PayloadSlice>& read) const;
  // A little later, in the same life.
  void ask_again(std::function<void()> ask);
  void follow();

  UniqueFunction<void(Result<void>)> begin(Line& line, ModelWrite write);
  void write(Line& line);
  void write_same(Line& line);
  void trim(Line& line);
  // Any settled moment; often one of the last.
  SequenceNumber any_moment(Line& line);
  void rollback(Line& line);
  void read(Line& line) { read_live(line, any_range(line.volume->size_bytes(), 256, one_in(2))); }
  void read_live(Line& line, ByteRange range);
  // Each whole block of a read is as at some moment while it ran.
  void check_concurrent(Line& line, ByteRange range, const PayloadSlice& read, SequenceNumber from,
                        SequenceNumber to);
  void open_view(Line& line);
  void read_view(Line& line);
  void check_view(Line& line, const View& view, ByteRange range);
  // A moment that was opened by its time means the same ever after.
  void open_time(Line& line);

  void disturb();
  // Gives up the oldest track if it can: of a random stretch of history, but for what is open.
  // Where history is thinned, moments that are open or marked stay without what is between them.
  void reclaim();
  [[nodiscard]] VolumeRig::Wish wish_of(VolumeId id);
  void mark(Line& line);
  void grow();
  void drain();
  void add_overlay();

  // Everything is answered; then the newest contents and some moments must be exact.
  void settle();
  template <typename Busy>
  void finish(Busy busy, const char* what) {
    for (int i = 0; busy(); ++i) {
      if (i == 500) return fail(what);
      rig_.manual().advance(std::chrono::milliseconds(i < 100 ? 1 : 100));
    }
  }
  void close_views();
  void restart(bool power_cut);
  // Once it is being restored, sometimes.
  void cut_power_while_restoring();
  Sectors contents(volume::Volume& of, SequenceNumber at);

  // Reads that were answered, to be looked at when the model has followed.
  std::vector<std::function<void()>> answered_;
  std::mt19937_64 random_;
  const Variant variant_;
  const bool thins_;
  VersionTime began_;
  std::uint64_t next_tag_ = 1;
  Sectors base_;
  std::uint64_t blocks_max_ = 0;
  VolumeRig rig_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::vector<std::pair<VersionTime, SequenceNumber>> opened_;
  std::optional<SequenceNumber> overlay_at_;
  int life_ = 0;
  int reads_ = 0;
  int step_ = 0;
  bool failed_ = false;
};

}  // namespace mariner::test
