// Importing: existing data becomes the base of a new volume. The other half of volume_set.h.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proto/payload.h"
#include "server/node/import_source.h"
#include "server/node/volume_set.h"

namespace mariner::node {

using logging::FileDisk;

namespace {

constexpr std::uint64_t kPieceBytes = 4u << 20;

Error became_shorter() {
  return Error{ErrorCode::kIo, "the file to import became shorter while it was read"};
}

// Copies the next piece of the file that holds data, from `at` on; returns where it ended.
Result<std::uint64_t> copy_piece(int file, FileDisk& image, std::uint64_t at, std::uint64_t end) {
  const off_t data = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0 && errno == ENXIO) {  // only a hole is left, or the file ends before `at` by now
    const off_t file_end = ::lseek(file, 0, SEEK_END);
    if (file_end < 0) return errno_error(errno, "reading the file to import");
    if (static_cast<std::uint64_t>(file_end) < end) return became_shorter();
    return end;
  }
  if (data > 0) at = std::max(at, static_cast<std::uint64_t>(data));
  if (at >= end) return end;
  const std::uint64_t length = std::min(kPieceBytes, end - at);
  Payload piece = Payload::allocate(length);
  std::uint64_t have = 0;
  while (have < length) {
    const ssize_t n =
        ::pread(file, piece.data() + have, length - have, static_cast<off_t>(at + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "reading the file to import");
    if (n == 0) return became_shorter();
    have += static_cast<std::uint64_t>(n);
  }
  const logging::ConstBytes part = piece.bytes();
  if (Result<void> r = image.write(at, {&part, 1}, logging::Durability::kVolatile); !r) {
    return r.error();
  }
  return at + length;
}

}  // namespace

// One import: the file is copied in pieces on the worker, so that images go on being applied.
struct VolumeSet::Import : Filling {
  ImportSource source;
  std::uint64_t copied = 0;
};

Result<void> VolumeSet::begin_filling(Filling& filling, meta::Volume::State state) {
  filling.meta.set_base_in_image(true);
  filling.meta.set_state(state);
  const std::string image = image_path(filling.meta.id());
  if (Result<void> r = parts_.store.put_volume(filling.meta); !r) return r;
  if (Result<void> r =
          FileDisk::create(image, FileDisk::Caching::kBuffered, filling.meta.size_bytes());
      !r) {
    forget_unstarted(filling.meta);
    return r;
  }
  Result<std::unique_ptr<FileDisk>> opened =
      FileDisk::open(image, FileDisk::Caching::kBuffered, nullptr);
  if (!opened) {
    forget_unstarted(filling.meta);
    return opened.error();
  }
  filling.image = std::move(*opened);
  add(filling.meta);
  ++fillings_;
  return {};
}

void VolumeSet::finish_filling(Filling& filling, Result<void> filled) {
  --fillings_;
  filling.image.reset();
  if (filled) {
    filling.meta.set_state(meta::Volume::READY);
    filled = parts_.store.put_volume(filling.meta);
  }
  if (filled) {
    ServedVolume& served = add(filling.meta);
    filled = start_new(served);
    if (filled) return filling.done(&served);
  }
  forget_unstarted(filling.meta);
  filling.done(filled.error());
}

Result<void> VolumeSet::may_fill() const {
  if (!closing_) return {};
  return Error{ErrorCode::kAborted, "the server stopped before the volume was complete"};
}

void VolumeSet::import(const NewVolume& request, const std::string& path, bool dry_run,
                       UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                       UniqueFunction<void(Result<ServedVolume*>)> done) {
  auto import = std::make_shared<Import>();
  import->progress = std::move(progress);
  import->done = std::move(done);
  ++fillings_;  // waited for at the end
  parts_.worker.run(
      [import, path]() -> Result<void> {
        Result<ImportSource> source = ImportSource::open(path);
        if (!source) return source.error();
        import->source = *std::move(source);
        return {};
      },
      [this, import, wanted = request, dry_run](Result<void> opened) {
        --fillings_;
        if (opened) opened = may_fill();
        if (!opened) return import->done(opened.error());
        begin_import(import, wanted, dry_run);
      });
}

void VolumeSet::begin_import(const std::shared_ptr<Import>& import, NewVolume wanted,
                             bool dry_run) {
  wanted.size_bytes = import->source.bytes();
  if (dry_run) {
    Result<meta::Volume> planned = plan(wanted);
    if (!planned) return import->done(planned.error());
    ServedVolume preview;
    preview.meta = *planned;
    return import->done(&preview);
  }
  Result<meta::Volume> meta = new_meta(wanted);
  if (!meta) return import->done(meta.error());
  import->meta = *meta;
  if (Result<void> r = begin_filling(*import, meta::Volume::IMPORTING); !r) {
    return import->done(r.error());
  }
  import_next(import);
}

void VolumeSet::import_next(const std::shared_ptr<Import>& import) {
  const auto finish = [this, import](Result<void> filled) {
    finish_filling(*import, std::move(filled));
  };
  if (Result<void> r = may_fill(); !r) return finish(r.error());
  if (import->copied >= import->source.bytes()) {
    parts_.worker.run([image = import->image.get()] { return image->flush(); }, finish);
    return;
  }
  parts_.worker.run(
      [import]() -> Result<void> {
        Result<std::uint64_t> next = copy_piece(import->source.descriptor(), *import->image,
                                                import->copied, import->source.bytes());
        if (!next) return next.error();
        import->copied = *next;
        return {};
      },
      [this, import, finish](Result<void> copied) {
        if (!copied) return finish(copied.error());
        import->progress(import->copied, import->source.bytes());
        import_next(import);
      });
}

}  // namespace mariner::node
