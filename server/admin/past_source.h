// What a program beside the daemon asks about the past of a volume, in batches. A reading is begun
// with open() and has an id; what is asked under another one is kNotFound. API.md, "Reading the
// past".
//
// As Control: on the Executor's thread, `done` once; requests are untrusted.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "proto/payload.h"
#include "proto/unique_function.h"
#include "server/admin/past_wire.h"

namespace mariner::admin {

template <typename T>
using Answer = UniqueFunction<void(Result<T>)>;

class PastSource {
 public:
  struct Blocks {
    std::vector<PayloadSlice> slices;    // one block behind the other
    std::shared_ptr<const void> budget;  // to be held as long as they are
  };

  virtual ~PastSource() = default;

  virtual void open(const api::OpenPastRequest& request, Answer<api::Past> done) = 0;
  virtual void show(const api::PastRequest& request, Answer<api::Past> done) = 0;
  virtual void close(const api::PastRequest& request, Answer<api::Past> done) = 0;
  virtual void moment(const api::PastMomentRequest& request, Answer<api::Moment> done) = 0;
  virtual void blocks(const std::string& id, std::vector<BlockQuestion> questions,
                      Answer<Blocks> done) = 0;
  virtual void changed(const api::PastChangedRequest& request, Answer<ChangedPart> done) = 0;
  virtual void stored(const api::PastStoredRequest& request, Answer<StoredPart> done) = 0;
  virtual void versions(const std::string& id, VersionsRequest request,
                        Answer<VersionsPart> done) = 0;
};

}  // namespace mariner::admin
