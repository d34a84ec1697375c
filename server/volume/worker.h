// Where work that blocks is done: applying to images, importing, and other file-system calls.
//
// An interface, so that tests run the same code without a thread; the daemon has a ThreadWorker.
#pragma once

#include "proto/error.h"
#include "proto/unique_function.h"

namespace mariner::volume {

class Worker {
 public:
  virtual ~Worker() = default;

  // Runs `job` somewhere else, then `done` with its result on the owner's Executor, never before
  // this call has returned. Jobs run one after another, in order. Any thread may give work; the
  // queue is bounded by its users, which each have at most one job in it.
  virtual void run(UniqueFunction<Result<void>()> job, UniqueFunction<void(Result<void>)> done) = 0;
};

}  // namespace mariner::volume
