// What hosts and administrators ask of the volume, and what is answered against the model.
#include <algorithm>

#include "server/volume/settled_moment.h"
#include "tests/server/volume/volume_model_run.h"

namespace mariner::test {

using index::IndexMoment;
using logging::RecordType;
using volume::Layer;
using volume::TrimMode;
using volume::Volume;

namespace {

constexpr std::size_t kOpenViewsMax = 4;

}  // namespace

void VolumeModelRun::write(Line& line) {
  const ByteRange range = any_range(line.volume->size_bytes(), one_in(4) ? 128 : 24, one_in(2));
  ModelWrite write{RecordType::kWrite, range.covering_blocks(), range, {}, {}};
  for (std::uint64_t at = 0; at < range.length; at += kSectorBytes) {
    write.sectors.push_back(next_tag_++);
  }
  Payload data = bytes_of(write.sectors);
  const std::size_t length = data.size();
  line.volume->live_layer()->write(range, {std::move(data), 0, length},
                                   begin(line, std::move(write)));
}

void VolumeModelRun::write_same(Line& line) {
  const bool aligned = one_in(2);
  const ByteRange range = any_range(line.volume->size_bytes(), one_in(3) ? 200 : 20, aligned);
  Sectors pattern(aligned && one_in(2) ? kSectorsPerBlock : 1);
  for (std::uint64_t& sector : pattern) sector = next_tag_++;
  const bool zero = one_in(6);
  if (zero) pattern.assign(1, 0);
  ModelWrite write{zero && !range.inner_blocks().empty() ? RecordType::kZero : RecordType::kWrite,
                   range.covering_blocks(),
                   range,
                   {},
                   {}};
  for (std::uint64_t i = 0; i < range.length / kSectorBytes; ++i) {
    write.sectors.push_back(pattern[i % pattern.size()]);
  }
  Payload data = bytes_of(pattern);
  const std::size_t length = data.size();
  line.volume->live_layer()->write_same(range, {std::move(data), 0, length},
                                        begin(line, std::move(write)));
}

void VolumeModelRun::trim(Line& line) {
  const ByteRange range = any_range(line.volume->size_bytes(), one_in(3) ? 200 : 20, one_in(3));
  const BlockRange inner = range.inner_blocks();
  const TrimMode mode = one_in(2) ? TrimMode::kUnmap : TrimMode::kZero;
  if (mode == TrimMode::kUnmap && inner.empty()) return;  // changes nothing, and is not logged
  const bool unmap = mode == TrimMode::kUnmap;
  ModelWrite write{inner.empty() ? RecordType::kWrite : RecordType::kZero,
                   unmap ? inner : range.covering_blocks(),
                   unmap ? to_bytes(inner) : range,
                   {},
                   {}};
  write.sectors.assign(write.range.length / kSectorBytes, 0);
  line.volume->live_layer()->trim(range, mode, begin(line, std::move(write)));
}

SequenceNumber VolumeModelRun::any_moment(Line& line) {
  const SequenceNumber settled = line.volume->replicator().coordinator().settled();
  if (one_in(4)) return settled;
  const SequenceNumber oldest = line.volume->index().oldest().sequence;
  std::vector<SequenceNumber> all{oldest};
  rig_.answers_of(*line.volume).for_each(oldest, settled, [&](const index::IndexedWrite& w) {
    all.push_back(w.sequence);
    return true;
  });
  // That took time.
  std::erase_if(all,
                [&](SequenceNumber at) { return at < line.volume->index().oldest().sequence; });
  for (const index::KeptMoment& kept : line.volume->index().kept()) {
    all.push_back(kept.moment.sequence);
  }
  if (all.empty()) return settled;
  return one_in(2) ? all[below(all.size())]
                   : all[all.size() - 1 - below(std::min<std::size_t>(all.size(), 5))];
}

void VolumeModelRun::rollback(Line& line) {
  const IndexAnswers answers = rig_.answers_of(*line.volume);
  IndexMoment target = answers.moment_of(any_moment(line));
  if (one_in(3)) {  // undo, and the undoing of that
    std::optional<SequenceNumber> newest;
    answers.for_each(SequenceNumber{0}, line.volume->replicator().coordinator().settled(),
                     [&](const index::IndexedWrite& write) {
                       if (write.type == RecordType::kRollback) newest = write.sequence;
                       return true;
                     });
    if (newest && newest->value > line.volume->index().oldest().sequence.value) {
      target = answers.moment_of(SequenceNumber{newest->value - 1});
    }
  }
  ModelWrite write{RecordType::kRollback, {}, {}, {}, target.sequence};
  line.volume->live().rollback(
      target, [done = begin(line, std::move(write))](const Result<replication::Stamp>& r) mutable {
        if (!r) return done(r.error());
        done({});
      });
}

void VolumeModelRun::read_live(Line& line, ByteRange range) {
  const auto& coordinator = line.volume->replicator().coordinator();
  const SequenceNumber from = std::max(coordinator.settled(), coordinator.acknowledged());
  ++reads_;
  line.volume->live_layer()->read(
      range, [this, &line, range, from, life = life_](const Result<PayloadSlice>& read) {
        if (life != life_) return;
        if (is_away(read)) {
          return ask_again([this, &line, range] {
            --reads_;
            read_live(line, range);
          });
        }
        --reads_;
        if (!read) return fail("a live read failed: " + to_string(read.error()));
        const SequenceNumber to = line.volume->replicator().coordinator().settled();
        answered_.push_back([this, &line, range, read = *read, from, to] {
          check_concurrent(line, range, read, from, to);
        });
      });
}

void VolumeModelRun::check_concurrent(Line& line, ByteRange range, const PayloadSlice& read,
                                      SequenceNumber from, SequenceNumber to) {
  const BlockRange inner = range.inner_blocks();
  if (read.length != range.length) return fail("a live read has another length");
  for (Lbn block = inner.first; block < inner.end(); block = block + BlockCount{1}) {
    const std::size_t at = block.byte_offset() - range.offset;
    if (!line.model.block_was(block.value, read.bytes().subspan(at, kBlockBytes), from, to)) {
      return fail("block " + std::to_string(block.value) +
                  " of a live read is as at no moment of [" + std::to_string(from.value) + ", " +
                  std::to_string(to.value) + "]");
    }
  }
}

void VolumeModelRun::open_view(Line& line) {
  const SequenceNumber at = any_moment(line);
  if (line.views.size() == kOpenViewsMax) line.views.erase(line.views.begin());
  line.views.push_back({line.volume->view_layer(at), at});
}

void VolumeModelRun::read_view(Line& line) {
  if (line.views.empty()) return open_view(line);
  const View view = line.views[below(line.views.size())];
  check_view(line, view, any_range(view.layer->size_bytes(), 256, one_in(2)));
}

void VolumeModelRun::check_view(Line& line, const View& view, ByteRange range) {
  ++reads_;
  line.reading.insert(view.at);
  view.layer->read(range,
                   [this, &line, view, range, life = life_](const Result<PayloadSlice>& read) {
                     if (life != life_) return;
                     if (is_away(read)) {
                       return ask_again([this, &line, view, range] {
                         --reads_;
                         line.reading.erase(line.reading.find(view.at));
                         check_view(line, view, range);
                       });
                     }
                     --reads_;
                     line.reading.erase(line.reading.find(view.at));
                     if (!read) return fail("a view's read failed: " + to_string(read.error()));
                     answered_.push_back([this, &line, at = view.at, range, read = *read] {
                       const auto bad = mismatch(read.bytes(), part_of(line.model.at(at), range));
                       if (bad) {
                         fail("sector " + std::to_string(range.offset / kSectorBytes + *bad) +
                              " of the view at #" + std::to_string(at.value) + " is wrong");
                       }
                     });
                   });
}

void VolumeModelRun::open_time(Line& line) {
  if (line.volume == rig_.overlay()) return;
  const SequenceNumber oldest = line.volume->index().oldest().sequence;
  std::erase_if(opened_, [&](const auto& opened) { return opened.second < oldest; });
  if (!opened_.empty() && one_in(2)) {
    const auto [time, sequence] = opened_[below(opened_.size())];
    const IndexMoment again = rig_.answers_of(*line.volume).moment_at(time);
    // That took time: it may have been given up.
    const bool there = sequence >= line.volume->index().oldest().sequence;
    if (there && again.sequence != sequence) {
      fail("the moment " + std::to_string(time.ns) + " was #" + std::to_string(sequence.value) +
           " and is #" + std::to_string(again.sequence.value));
    }
    return;
  }
  const VersionTime time{rig_.executor().wall_time().ns + below(1000)};
  rig_.opened(time);
  volume::settled_moment(line.volume->replicator(), line.volume->history().history(), time,
                         [this, time, life = life_](const Result<volume::History::Moment>& found) {
                           if (!found || life != life_) return;
                           opened_.emplace_back(time, found->at.sequence);
                         });
}

}  // namespace mariner::test
