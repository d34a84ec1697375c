#include "server/node/accounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace mariner::node {
namespace {

// Nobody else may read a secret.
constexpr mode_t kForbidden = S_IRWXG | S_IRWXO;

Result<std::string> read_secret(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno_error(errno, path + ": open");
  struct stat status {};
  std::array<char, iscsi::kChapSecretBytesMax + 3> bytes{};
  const bool known = ::fstat(file, &status) == 0;
  const ssize_t length = known ? ::read(file, bytes.data(), bytes.size()) : -1;
  const int error_number = errno;
  ::close(file);
  if (length < 0) return errno_error(error_number, path + ": read");
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, path + " is not a file"};
  }
  if ((status.st_mode & kForbidden) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: others may read or change it (mode {:04o}); expected mode 0600: "
                             "chmod 600 {}",
                             path, status.st_mode & 07777, path)};
  }
  std::string secret(bytes.data(), static_cast<std::size_t>(length));
  // What editors add.
  if (secret.ends_with('\n')) secret.pop_back();
  if (secret.ends_with('\r')) secret.pop_back();
  if (secret.size() < iscsi::kChapSecretBytesMin || secret.size() > iscsi::kChapSecretBytesMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "{}: expected a secret of {} to {} characters, found {}", path,
            iscsi::kChapSecretBytesMin, iscsi::kChapSecretBytesMax,
            secret.size() > iscsi::kChapSecretBytesMax ? "more" : std::to_string(secret.size()))};
  }
  return secret;
}

}  // namespace

Result<Accounts> load_accounts(const std::vector<AuthConfig>& accounts) {
  Accounts loaded;
  for (const AuthConfig& wanted : accounts) {
    const auto failed = [&](const Error& error) {
      return Error{error.code, "[auth." + wanted.name + "]: " + error.message};
    };
    iscsi::ChapAccount account;
    account.name = wanted.name;
    account.user = wanted.user;
    Result<std::string> secret = read_secret(wanted.secret_file);
    if (!secret) return failed(secret.error());
    account.secret = *std::move(secret);
    if (!wanted.mutual_user.empty()) {
      account.mutual_user = wanted.mutual_user;
      Result<std::string> mutual = read_secret(wanted.mutual_secret_file);
      if (!mutual) return failed(mutual.error());
      account.mutual_secret = *std::move(mutual);
      // Whoever knows one could play the other's part (RFC 7143 12.1.3).
      if (account.mutual_secret == account.secret) {
        return failed({ErrorCode::kInvalidArgument,
                       wanted.mutual_secret_file + ": is the same secret as " + wanted.secret_file +
                           "; expected another one for the other direction"});
      }
    }
    loaded.emplace(wanted.name, std::move(account));
  }
  return loaded;
}

}  // namespace mariner::node
