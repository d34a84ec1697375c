// Whose history the log of a node holds, and what of it is to be kept: windows, marks and views,
// wherever they are remembered.
//
// Loop's thread.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/version_index.h"
#include "proto/meta.pb.h"
#include "server/client/retention.h"
#include "server/volume/reclaimable.h"

namespace mariner::node {

// As a volume's description has it.
[[nodiscard]] inline Retention retention_of(const meta::Volume& volume) {
  const Result<Retention> retain = parse_retention(volume.retain());
  return retain ? *retain : Retention{};
}

// The clean ones of `verdicts`, ascending.
[[nodiscard]] inline std::vector<index::IndexMoment> clean_among(
    const std::vector<meta::Verdict>& verdicts) {
  std::vector<index::IndexMoment> out;
  for (const meta::Verdict& verdict : verdicts) {
    if (verdict.kind() != meta::Verdict::CLEAN) continue;
    out.push_back({SequenceNumber{verdict.sequence()}, VersionTime{verdict.time_ns()}});
  }
  std::ranges::sort(out, {}, &index::IndexMoment::sequence);
  return out;
}

class HistoryKeeper {
 public:
  struct Window {
    std::string volume;  // its name
    std::uint64_t seconds = 0;
    VersionTime created;
    Retention retain{};  // behind the window
  };

  virtual ~HistoryKeeper() = default;

  // Those whose history is in the log, but for hidden ones and journals.
  [[nodiscard]] virtual std::vector<VolumeId> volumes() const = 0;
  // Null: the volume is gone, and nobody needs its records.
  [[nodiscard]] virtual std::shared_ptr<volume::Reclaimable> find(VolumeId volume) = 0;
  // Nothing: a hidden volume, which has no past of its own that anybody could open.
  [[nodiscard]] virtual std::optional<Window> window(VolumeId volume) const = 0;
  // Whether marks and views are known as they are now: if not, nothing may be given up.
  [[nodiscard]] virtual bool knows() const = 0;
  [[nodiscard]] virtual Result<std::vector<meta::Mark>> marks(VolumeId volume) const = 0;
  // Of the volume, and those whose overlay it is.
  [[nodiscard]] virtual std::vector<meta::View> views(VolumeId volume) const = 0;

  // The moments that checks found clean, ascending.
  [[nodiscard]] virtual std::vector<index::IndexMoment> clean_moments(VolumeId volume) const = 0;

  // Takes it away, with its sessions, soon.
  virtual void drop_view(const std::string& name) = 0;
  // False: it cannot be. Views and marks of a group go with all of their parts.
  virtual bool drop_mark(const meta::Mark& mark) = 0;
};

}  // namespace mariner::node
