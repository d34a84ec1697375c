// What an image lacks, in a file beside it: the pending writes of a storage node that has to keep
// them without the log.
//
// Invariant: an image that holds everything at or below Contents.durable, and the runs of the file
// over it, are the volume as of Contents.committed. The image may hold more than that of what the
// runs hold, too, and of what was written later: the history tells what changed behind `committed`.
// A file stands there whole or not at all: it gets its name when all of it is on stable storage.
//
// The file, in little endian: the head, padded with zeros to whole blocks of 4,096 bytes, then the
// payload blocks of its runs, in their order. The head:
//
//    0   8  magic, "MARSPILL"
//    8   4  version, 1
//   12   4  CRC32C of the head with its padding, this field being zero
//   16   4  volume
//   20   4  CRC32C of the payload blocks
//   24   8  durable
//   32   8  committed, not below `durable`
//   40   8  number of runs
//   48   8  number of payload blocks
//   56   8  reserved: zero
//   64      the runs of 24 bytes, in the order of their blocks and without overlap:
//           first block (8), number of blocks (8), kind (1; 0 zeros, which have no payload; 1 as
//           many payload blocks; 2 one payload block for all), reserved (7)
//
// Owner's thread only, but read(), which may be called anywhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "server/volume/layer.h"
#include "server/volume/pending_table.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class Spill {
 public:
  struct Contents {
    SequenceNumber durable;    // the image held everything at or below
    SequenceNumber committed;  // image and runs together do
    // Ascending, without overlap; none of the history.
    std::vector<PendingTable::Run> runs;
  };

  // `worker` outlives what is under way, which outlives this.
  Spill(std::string path, VolumeId volume, Worker& worker)
      : path_(std::move(path)), volume_(volume), worker_(worker) {}

  // What the file holds of a volume of `blocks` blocks; nothing: there is no file. kCorrupt: it is
  // damaged, or of another volume. Blocking.
  [[nodiscard]] Result<std::optional<Contents>> read(BlockCount blocks) const;

  // Puts `contents` in the place of what the file held, durably when `done` says so. After an error
  // the file holds either.
  void write(Contents contents, Done done);

  // The file is no more, durably when `done` says so. That there was none is no error.
  void remove(Done done);

 private:
  const std::string path_;
  const VolumeId volume_;
  Worker& worker_;
};

}  // namespace mariner::volume
