// Copies what a layer holds into a disk that is zeros: the base of a volume that begins as another
// one was.
//
// What is stored is found out and read on the owner's thread, some pieces at once; what is not
// zeros is written on the worker meanwhile, a portion at a time, so that other work of both goes on
// in between. Bounded memory: two portions.
#pragma once

#include <cstdint>
#include <memory>

#include "logging/disk.h"
#include "proto/executor.h"
#include "server/volume/layer.h"
#include "server/volume/worker.h"

namespace mariner::volume {

inline constexpr std::uint64_t kCopyPortionBytes = 8u << 20;

struct LayerCopy {
  std::shared_ptr<Layer> from;  // nobody writes to it
  logging::Disk& to;            // at least as long; until `done`
  Worker& worker;               // these two outlive the copy
  Executor& executor;
  // How far it is, of how many bytes.
  UniqueFunction<void(std::uint64_t, std::uint64_t)> progress{};
  // Asked before each portion: an error ends the copy.
  UniqueFunction<Result<void>()> may_go_on{};
};

// `done` when all is durable, or nothing of it is under way any more. Errors as those of the layer,
// of the disk, and of may_go_on.
void copy_layer(LayerCopy copy, Done done);

}  // namespace mariner::volume
