#include "server/manager/etcd_store.h"

#include <fmt/format.h>

#include <utility>

#include "proto/check.h"
#include "server/manager/etcd_json.h"
#include "server/manager/etcd_watch.h"

namespace mariner::manager {
namespace {

Error other_cluster() {
  return {ErrorCode::kProtocol,
          "the etcd that answers is another cluster than before: check its addresses, and whether "
          "its data were replaced"};
}

Result<Lease> parse_renewal(const EtcdAttempt& attempt, LeaseId lease) {
  const auto before = header_of(attempt.answers[0]);
  const auto at = stream_header_of(attempt.answers[1]);
  const auto after = header_of(attempt.answers[2]);
  auto renewed = parse_keep_alive(attempt.answers[1], lease);
  if (!before) return before.error();
  if (!after) return after.error();
  if (!renewed && renewed.error().code != ErrorCode::kNotFound) return renewed.error();
  if (!at) return at.error();
  if (before->term != at->term || at->term != after->term) {
    return Error{ErrorCode::kUnavailable, "etcd has changed its leader while it renewed a lease"};
  }
  if (renewed) renewed->counted_from = attempt.begun;
  return renewed;
}

}  // namespace

// A listing that is being put together.
struct EtcdStore::Pages {
  std::string prefix;
  std::chrono::nanoseconds end{0};  // no page is asked for any more
  Answer<Listing> answer;
  Listing found;
  std::size_t bytes = 0;

  // Whether that was the last one.
  Result<bool> take(ListingPage page) {
    if (found.entries.empty()) found.revision = page.revision;
    for (Entry& entry : page.entries) {
      if (!found.entries.empty() && found.entries.back().key >= entry.key) {
        return Error{ErrorCode::kProtocol,
                     "etcd's answer is not understood: a page of a listing comes again"};
      }
      bytes += entry.key.size() + entry.value.size();
      found.entries.push_back(std::move(entry));
    }
    if (found.entries.size() <= kListingEntriesMax && bytes <= kListingBytesMax) return !page.more;
    return Error{ErrorCode::kLimit,
                 fmt::format("the cluster's store has more than {} entries, or {} MiB, under one "
                             "prefix",
                             kListingEntriesMax, kListingBytesMax >> 20)};
  }
};

// Ends the watch, and gives its place free.
class EtcdStore::WatchHandle final : public Watch {
 public:
  WatchHandle(EtcdStore& store, std::shared_ptr<EtcdWatch> watch)
      : store_(store), watch_(std::move(watch)) {
    ++store_.watches_;
  }
  ~WatchHandle() override {
    watch_->stop();
    --store_.watches_;
  }
  WatchHandle(const WatchHandle&) = delete;
  WatchHandle& operator=(const WatchHandle&) = delete;

 private:
  EtcdStore& store_;
  std::shared_ptr<EtcdWatch> watch_;
};

EtcdStore::EtcdStore(boost::asio::io_context& io, Executor& executor, EtcdStoreOptions options)
    : io_(io),
      executor_(executor),
      options_(std::move(options)),
      members_(std::make_shared<EtcdMembers>(options_.endpoints)),
      calls_(std::make_shared<EtcdCalls>(io, executor, *members_, options_.calls)) {}

EtcdStore::~EtcdStore() {
  CHECK(watches_ == 0);
  calls_->stop();
}

template <typename T>
void EtcdStore::refuse(Answer<T> answer, Error error) {
  executor_.post([alive = std::weak_ptr(calls_), answer = std::move(answer),
                  error = std::move(error)]() mutable {
    if (!alive.expired()) answer(std::move(error));
  });
}

template <typename T>
void EtcdStore::run(std::vector<EtcdRequest> requests, Parse<T> parse, Answer<T> answer) {
  auto shared = std::make_shared<Answer<T>>(std::move(answer));
  calls_->run({.requests = std::move(requests),
               .repeatable = true,
               .take = [members = members_, parse = std::move(parse),
                        shared](const EtcdAttempt& attempt) mutable -> Result<void> {
                 const auto header = header_of(attempt.answers[0]);
                 if (header && !members->same_cluster(header->cluster)) {
                   (*shared)(other_cluster());
                   return {};
                 }
                 Result<T> parsed = parse(attempt);
                 if (!parsed && parsed.error().code == ErrorCode::kUnavailable) {
                   return parsed.error();
                 }
                 (*shared)(std::move(parsed));
                 return {};
               },
               .fail = [shared](Error error, bool) { (*shared)(std::move(error)); }});
}

void EtcdStore::get(std::string key, Answer<Reading> answer) {
  if (auto checked = check_key(key); !checked) return refuse(std::move(answer), checked.error());
  std::vector<EtcdRequest> requests{get_request(key)};
  run<Reading>(
      std::move(requests),
      [key = std::move(key)](const EtcdAttempt& attempt) {
        return parse_get(attempt.answers[0], key);
      },
      std::move(answer));
}

void EtcdStore::list(std::string prefix, Answer<Listing> answer) {
  if (auto checked = check_prefix(prefix); !checked) {
    return refuse(std::move(answer), checked.error());
  }
  EtcdRequest first = list_request(prefix);
  auto pages = std::make_shared<Pages>();
  pages->prefix = std::move(prefix);
  pages->end = executor_.monotonic_time() + options_.calls.timeout;
  pages->answer = std::move(answer);
  ask_page(std::move(first), std::move(pages));
}

// All of the store as it was when the first one was answered.
void EtcdStore::ask_page(EtcdRequest request, std::shared_ptr<Pages> pages) {
  run<ListingPage>(
      {std::move(request)},
      [pages](const EtcdAttempt& attempt) { return parse_list(attempt.answers[0], pages->prefix); },
      [this, pages](Result<ListingPage> page) {
        if (!page) return pages->answer(page.error());
        const Result<bool> whole = pages->take(*std::move(page));
        if (!whole) return pages->answer(whole.error());
        if (*whole) return pages->answer(std::move(pages->found));
        if (executor_.monotonic_time() >= pages->end) {
          return pages->answer(
              Error{ErrorCode::kUnavailable, "etcd takes too long for all that the cluster has"});
        }
        const Listing& found = pages->found;
        ask_page(list_request(pages->prefix, found.entries.back().key, found.revision), pages);
      });
}

void EtcdStore::commit(Transaction transaction, Answer<CommitAnswer> answer) {
  if (auto checked = check_transaction(transaction); !checked) {
    return refuse(std::move(answer), checked.error());
  }
  const auto unknown = [](Error error) {
    return CommitAnswer{CommitOutcome::kUnknown, {}, {}, to_string(error)};
  };
  auto shared = std::make_shared<Answer<CommitAnswer>>(std::move(answer));
  std::vector<EtcdRequest> requests{commit_request(transaction)};
  // What was put is not needed any more.
  transaction.puts.clear();
  calls_->run({.requests = std::move(requests),
               .repeatable = false,
               .take = [members = members_, transaction = std::move(transaction), shared,
                        unknown](const EtcdAttempt& attempt) -> Result<void> {
                 const auto header = header_of(attempt.answers[0]);
                 auto parsed = parse_commit(attempt.answers[0], transaction);
                 if (header && !members->same_cluster(header->cluster)) parsed = other_cluster();
                 (*shared)(parsed ? std::move(*parsed) : unknown(parsed.error()));
                 return {};
               },
               .fail =
                   [shared, unknown](Error error, bool lost) {
                     if (lost) return (*shared)(unknown(std::move(error)));
                     (*shared)(std::move(error));
                   }});
}

void EtcdStore::grant_lease(std::chrono::seconds ttl, Answer<Lease> answer) {
  if (auto checked = check_ttl(ttl); !checked) return refuse(std::move(answer), checked.error());
  run<Lease>(
      {grant_request(ttl)},
      [ttl](const EtcdAttempt& attempt) {
        auto lease = parse_grant(attempt.answers[0], ttl);
        if (lease) lease->counted_from = attempt.begun;
        return lease;
      },
      std::move(answer));
}

void EtcdStore::keep_alive(LeaseId lease, Answer<Lease> answer) {
  // Any key will do for a read that asks the cluster who leads it.
  const EtcdRequest read = get_request(std::string_view("\0", 1));
  run<Lease>(
      {read, keep_alive_request(lease), read},
      [lease](const EtcdAttempt& attempt) { return parse_renewal(attempt, lease); },
      std::move(answer));
}

void EtcdStore::revoke(LeaseId lease, Answer<void> answer) {
  run<void>(
      {revoke_request(lease)},
      [](const EtcdAttempt& attempt) -> Result<void> {
        const auto header = header_of(attempt.answers[0]);
        if (!header) return header.error();
        return {};
      },
      std::move(answer));
}

Result<std::unique_ptr<Watch>> EtcdStore::watch(std::string prefix, Revision from,
                                                Watcher& watcher) {
  if (auto checked = check_prefix(prefix); !checked) return checked.error();
  if (from.value == 0) return Error{ErrorCode::kInvalidArgument, "a watch from before all changes"};
  if (watches_ >= options_.watches_max) {
    return Error{ErrorCode::kLimit, fmt::format("{} watches of the cluster's store are the most",
                                                options_.watches_max)};
  }
  BackoffTimes times = options_.calls.backoff;
  times.seed += ++watches_begun_ << 32;
  auto begun =
      std::make_shared<EtcdWatch>(io_, executor_, *members_,
                                  EtcdWatchOptions{.prefix = std::move(prefix),
                                                   .from = from,
                                                   .answer_timeout = options_.calls.attempt_timeout,
                                                   .silence = options_.watch_silence},
                                  times, watcher);
  begun->start();
  return std::unique_ptr<Watch>(std::make_unique<WatchHandle>(*this, std::move(begun)));
}

}  // namespace mariner::manager
