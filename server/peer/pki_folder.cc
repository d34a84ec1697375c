#include "server/peer/pki_folder.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

namespace mariner::peer {
namespace {

constexpr const char* kAuthorityCertificate = "ca.crt";
constexpr const char* kAuthorityKey = "ca.key";
constexpr const char* kNodeCertificate = "node.crt";
constexpr const char* kNodeKey = "node.key";

constexpr std::size_t kFileBytesMax = 64 * 1024;
constexpr mode_t kFolderMode = 0700;
constexpr mode_t kKeyMode = 0600;
constexpr mode_t kCertificateMode = 0644;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

std::string day(WallTime time) { return fmt::format("{:%Y-%m-%d}", time); }

Error in_file(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{}: {}", path, error.message)};
}

// The user who owns the folder above: whoever makes the files as root makes them for the daemon.
Result<void> give_to_owner_of(const std::string& parent, int fd, const std::string& path) {
  if (::geteuid() != 0) return {};
  struct stat status {};
  if (::stat(parent.c_str(), &status) != 0) return errno_error(errno, parent);
  if (::fchown(fd, status.st_uid, status.st_gid) != 0) return errno_error(errno, path);
  return {};
}

Result<void> sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return errno_error(errno, path);
  return {};
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t bytes = ::write(fd, text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_error(errno, path);
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return {};
}

struct NewFile {
  const char* name;
  std::string text;
  mode_t mode;
};

Result<void> write_file(const std::string& folder, const std::string& parent, const NewFile& made) {
  const std::string path = folder + "/" + made.name;
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, made.mode));
  if (file.get() < 0) return errno_error(errno, path);
  if (::fchmod(file.get(), made.mode) != 0) return errno_error(errno, path);
  if (auto r = give_to_owner_of(parent, file.get(), path); !r) return r;
  if (auto r = write_all(file.get(), made.text, path); !r) return r;
  if (::fsync(file.get()) != 0) return errno_error(errno, path);
  return {};
}

}  // namespace

Result<void> PkiFolder::check_vacant() const {
  std::error_code error;
  const bool vacant =
      !std::filesystem::exists(path_, error) || (!error && std::filesystem::is_empty(path_, error));
  if (error) return errno_error(error.value(), path_);
  if (vacant) return {};
  return Error{ErrorCode::kAlreadyExists,
               fmt::format("{}: there is something already, and a node's identity is never "
                           "replaced; move that folder away if this node is to get another one",
                           path_)};
}

Result<void> PkiFolder::write(const NodeIdentity& identity, const PrivateKey* authority_key) const {
  if (const auto vacant = check_vacant(); !vacant) return vacant;
  std::string parent = std::filesystem::path(path_).parent_path().string();
  if (parent.empty()) parent = ".";
  const std::string fresh = path_ + ".new";
  std::error_code error;
  std::filesystem::create_directories(parent, error);
  if (error) return errno_error(error.value(), parent);
  std::filesystem::remove_all(fresh, error);  // what a crash has left
  if (::mkdir(fresh.c_str(), kFolderMode) != 0) return errno_error(errno, fresh);
  {
    const Descriptor folder(::open(fresh.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.get() < 0) return errno_error(errno, fresh);
    if (auto r = give_to_owner_of(parent, folder.get(), fresh); !r) return r;
  }
  std::vector<NewFile> files{{kAuthorityCertificate, identity.authority.to_pem(), kCertificateMode},
                             {kNodeCertificate, identity.certificate.to_pem(), kCertificateMode},
                             {kNodeKey, identity.key.to_pem(), kKeyMode}};
  if (authority_key != nullptr) files.push_back({kAuthorityKey, authority_key->to_pem(), kKeyMode});
  for (const NewFile& file : files) {
    if (auto r = write_file(fresh, parent, file); !r) return r;
  }
  if (auto r = sync_folder(fresh); !r) return r;
  // Succeeds only where there is no folder of that name, or an empty one (rename(2)).
  if (::rename(fresh.c_str(), path_.c_str()) != 0) return errno_error(errno, path_);
  return sync_folder(parent);
}

Result<NodeIdentity> PkiFolder::create_cluster(const NodeName& name, WallTime now) const {
  if (const auto good = check_name("cluster", name.cluster); !good) return good.error();
  if (const auto good = check_name("node", name.node); !good) return good.error();
  const auto authority = make_authority(name.cluster, now);
  if (!authority) return authority.error();
  const auto key = PrivateKey::generate();
  if (!key) return key.error();
  const auto request = make_signing_request(*key);
  if (!request) return request.error();
  const auto certificate = sign_node(*authority, name, *request, now);
  if (!certificate) return certificate.error();
  NodeIdentity identity{
      .name = name, .authority = authority->certificate, .certificate = *certificate, .key = *key};
  if (const auto written = write(identity, &authority->key); !written) return written.error();
  return identity;
}

Result<void> PkiFolder::store(const NodeIdentity& identity) const {
  return write(identity, nullptr);
}

Result<std::string> PkiFolder::read(const char* name) const {
  const std::string path = file(name);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{}: there is no such file; make a cluster with \"mariner node init\", "
                    "or join one with \"mariner node enrol\"",
                    path)};
  }
  if (file.get() < 0) return errno_error(errno, path);
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t bytes = ::read(file.get(), text.data() + length, text.size() - length);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return errno_error(errno, path);
    if (bytes == 0) break;
    length += static_cast<std::size_t>(bytes);
  }
  if (length > kFileBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: expected a PEM file of at most {} bytes, found more", path,
                             kFileBytesMax)};
  }
  text.resize(length);
  return text;
}

Result<PrivateKey> PkiFolder::read_key(const char* name) const {
  const auto text = read(name);
  if (!text) return text.error();
  struct stat status {};
  if (::stat(file(name).c_str(), &status) != 0) return errno_error(errno, file(name));
  if ((status.st_mode & 0777 & ~kKeyMode) != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{0}: its mode is {1:04o}: a key is for its owner alone; expected "
                             "0600: chmod 600 {0}",
                             file(name), status.st_mode & 07777)};
  }
  auto key = PrivateKey::from_pem(*text);
  if (!key) return in_file(file(name), key.error());
  return key;
}

Result<Certificate> PkiFolder::read_certificate(const char* name, WallTime now) const {
  const auto text = read(name);
  if (!text) return text.error();
  auto certificate = Certificate::from_pem(*text);
  if (!certificate) return in_file(file(name), certificate.error());
  if (now < certificate->not_before() || now > certificate->not_after()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: the certificate is good from {} to {}, and today is {}; set the "
                             "clock right, or enrol this node again",
                             file(name), day(certificate->not_before()),
                             day(certificate->not_after()), day(now))};
  }
  return certificate;
}

Result<NodeIdentity> PkiFolder::load(WallTime now) const {
  const auto authority = read_certificate(kAuthorityCertificate, now);
  if (!authority) return authority.error();
  const auto certificate = read_certificate(kNodeCertificate, now);
  if (!certificate) return certificate.error();
  const auto key = read_key(kNodeKey);
  if (!key) return key.error();
  if (!certificate->belongs_to(*key)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: it is the key of another certificate than {}; enrol this node "
                             "again",
                             file(kNodeKey), file(kNodeCertificate))};
  }
  if (const auto issued = check_issued(*certificate, *authority, now); !issued) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} did not issue it: {}; enrol this node again", file(kNodeCertificate),
                    file(kAuthorityCertificate), issued.error().message)};
  }
  const auto name = certificate->node_name();
  if (!name) return in_file(file(kNodeCertificate), name.error());
  return NodeIdentity{
      .name = *name, .authority = *authority, .certificate = *certificate, .key = *key};
}

Result<Authority> PkiFolder::load_authority(WallTime now) const {
  const auto certificate = read_certificate(kAuthorityCertificate, now);
  if (!certificate) return certificate.error();
  const auto key = read_key(kAuthorityKey);
  if (!key && key.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: this node does not have the key of the cluster's authority; "
                             "nodes are invited where \"mariner node init\" was run",
                             file(kAuthorityKey))};
  }
  if (!key) return key.error();
  if (!certificate->belongs_to(*key)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: it is the key of another certificate than {}",
                             file(kAuthorityKey), file(kAuthorityCertificate))};
  }
  return Authority{.certificate = *certificate, .key = *key};
}

}  // namespace mariner::peer
