#include "server/manager/moment_directory.h"

#include <utility>

#include "server/manager/volume_record.h"

namespace mariner::manager {
namespace {

std::string marks_prefix() { return std::string(kClusterPrefix) + "marks/"; }
std::string marks_prefix(VolumeId volume) {
  return marks_prefix() + std::to_string(volume.value) + "/";
}
std::string views_prefix() { return std::string(kClusterPrefix) + "views/"; }

std::optional<meta::Mark> mark_in(VolumeId volume, const Entry& entry) {
  meta::Mark mark;
  if (!mark.ParseFromString(entry.value) || mark.volume_id() != volume.value ||
      entry.key != mark_key(volume, mark.name())) {
    return std::nullopt;
  }
  return mark;
}
std::optional<meta::View> view_in(const Entry& entry) {
  meta::View view;
  if (!view.ParseFromString(entry.value) || entry.key != view_key(view.name()) || view.writable() ||
      view.size_bytes() == 0 || view.size_bytes() % kBlockBytes != 0) {
    return std::nullopt;
  }
  return view;
}

Error too_many(std::size_t most, const char* what) {
  return Error{ErrorCode::kLimit, "the cluster has " + std::to_string(most) + " " + what +
                                      " already, which is the limit; remove one"};
}
Error unknown(const std::string& what, const std::string& why) {
  return Error{ErrorCode::kUnavailable, "the cluster's store did not answer (" + why +
                                            "): look whether " + what + " is there"};
}

}  // namespace

std::string mark_key(VolumeId volume, std::string_view name) {
  return marks_prefix(volume).append(name);
}
std::string view_key(std::string_view name) { return views_prefix().append(name); }

std::string verdicts_key(VolumeId volume) {
  return std::string(kClusterPrefix) + "verdicts/" + std::to_string(volume.value);
}

std::vector<meta::Mark> MomentDirectory::marks(VolumeId volume) const {
  std::vector<meta::Mark> out;
  view_.visit(marks_prefix(volume), [&](const Entry& entry) {
    if (auto mark = mark_in(volume, entry)) out.push_back(*std::move(mark));
  });
  return out;
}

std::vector<meta::View> MomentDirectory::views() const {
  std::vector<meta::View> out;
  view_.visit(views_prefix(), [&](const Entry& entry) {
    if (auto view = view_in(entry)) out.push_back(*std::move(view));
  });
  return out;
}

bool MomentDirectory::readable(VolumeId volume) const {
  bool good = true;
  view_.visit(marks_prefix(volume),
              [&](const Entry& entry) { good &= mark_in(volume, entry).has_value(); });
  view_.visit(views_prefix(), [&](const Entry& entry) { good &= view_in(entry).has_value(); });
  return good;
}

void MomentDirectory::add(const meta::Mark& mark, Done done) {
  std::size_t marks = 0;
  view_.visit(marks_prefix(), [&](const Entry&) { ++marks; });
  if (marks >= kMarksMax) return done(too_many(kMarksMax, "marks"));
  add(mark_key(VolumeId{mark.volume_id()}, mark.name()), mark.SerializeAsString(),
      "a mark named " + mark.name(), std::move(done));
}

void MomentDirectory::add(const meta::View& view, Done done) {
  std::size_t views = 0;
  view_.visit(views_prefix(), [&](const Entry&) { ++views; });
  if (views >= kViewsMax) return done(too_many(kViewsMax, "views"));
  add(view_key(view.name()), view.SerializeAsString(), "a view named " + view.name(),
      std::move(done));
}

void MomentDirectory::remove_mark(VolumeId volume, const std::string& name, Done done) {
  remove(mark_key(volume, name), "a mark named " + name, std::move(done));
}

void MomentDirectory::remove_view(const std::string& name, Done done) {
  remove(view_key(name), "a view named " + name, std::move(done));
}

void MomentDirectory::add(std::string key, std::string value, std::string what, Done done) {
  Transaction transaction;
  transaction.compares = {{key, Revision{}}};
  transaction.puts = {{std::move(key), std::move(value)}};
  store_.commit(std::move(transaction), [what = std::move(what), done = std::move(done)](
                                            const Result<CommitAnswer>& answer) mutable {
    if (!answer) return done(answer.error());
    switch (answer->outcome) {
      case CommitOutcome::kApplied: return done({});
      case CommitOutcome::kNotApplied:
        return done(Error{ErrorCode::kAlreadyExists, "there is " + what + " already"});
      case CommitOutcome::kUnknown: return done(unknown(what, answer->why));
    }
  });
}

// The one that this node knows: what has come in its place meanwhile stays, also when this reaches
// the store late.
void MomentDirectory::remove(std::string key, std::string what, Done done) {
  const Entry* const known = view_.find(key);
  if (known == nullptr) return done(Error{ErrorCode::kNotFound, "there is not " + what});
  Transaction transaction;
  transaction.compares = {{key, known->revision}};
  transaction.deletes = {std::move(key)};
  store_.commit(std::move(transaction), [what = std::move(what), done = std::move(done)](
                                            const Result<CommitAnswer>& answer) mutable {
    if (!answer) return done(answer.error());
    switch (answer->outcome) {
      case CommitOutcome::kApplied: return done({});
      case CommitOutcome::kUnknown: return done(unknown(what, answer->why));
      case CommitOutcome::kNotApplied: break;
    }
    if (answer->present.empty()) return done({});  // somebody else was first
    done(Error{ErrorCode::kBusy, "there is " + what + " by now that is another one; look at it"});
  });
}

std::vector<meta::Verdict> MomentDirectory::verdicts(VolumeId volume) const {
  const Entry* const entry = view_.find(verdicts_key(volume));
  meta::Verdicts all;
  if (entry == nullptr || !all.ParseFromString(entry->value)) return {};
  return {all.verdicts().begin(), all.verdicts().end()};
}

void MomentDirectory::change_verdicts(VolumeId volume, ChangeVerdicts change, Done done) {
  change_verdicts(volume, std::move(change), kTriesMax, std::move(done));
}

// Of what stands in the store, not of what this node has heard of it.
void MomentDirectory::change_verdicts(VolumeId volume, ChangeVerdicts change, int tries,
                                      Done done) {
  if (tries == 0) {
    return done(Error{ErrorCode::kUnavailable,
                      "the verdicts in the cluster's store are changed by others all the time"});
  }
  store_.get(verdicts_key(volume), [this, volume, change = std::move(change), tries,
                                    done = std::move(done)](const Result<Reading>& found) mutable {
    if (!found) return done(found.error());
    meta::Verdicts all;
    if (found->entry && !all.ParseFromString(found->entry->value)) all.Clear();
    change(all);
    Transaction transaction;
    const std::string key = verdicts_key(volume);
    transaction.compares = {{key, found->entry ? found->entry->revision : Revision{}}};
    transaction.puts = {{key, all.SerializeAsString()}};
    store_.commit(std::move(transaction), [this, volume, change = std::move(change), tries,
                                           done = std::move(done)](
                                              const Result<CommitAnswer>& answer) mutable {
      if (!answer) return done(answer.error());
      switch (answer->outcome) {
        case CommitOutcome::kApplied: return done({});
        case CommitOutcome::kNotApplied:
          return change_verdicts(volume, std::move(change), tries - 1, std::move(done));
        case CommitOutcome::kUnknown: return done(unknown("the verdict", answer->why));
      }
    });
  });
}

}  // namespace mariner::manager
