#!/bin/bash
# Builds RocksDB as a rival in the benchmarks: Debian's source, but as its makers release it.
#
#   tests/bench/rocksdb.sh
#
# Debian's library has its assertions, which take a multiple of the CPU time. This one is the same
# version, with them off and with the processor's CRC32C, so that the programs built against Debian's
# run with it: build/bench/rocksdb/librocksdb.so.*, by LD_LIBRARY_PATH. Ten minutes, once. Prints
# the folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

to=$PWD/build/bench/rocksdb
soname=$(readelf -d "$(pkg-config --variable=libdir rocksdb)/librocksdb.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
version=$(dpkg-query -W -f='${source:Version}' librocksdb-dev)
if [ -e "$to/$soname" ] && [ "$(cat "$to/version" 2> /dev/null)" = "$version" ]; then
  echo "$to"
  exit 0
fi

rm -rf "$to"
mkdir -p "$to/lists/partial" "$to/sources"
# The machine's own list of packages, for sources too, without changing it.
sed -e 's/^deb /deb-src /' /etc/apt/sources.list > "$to/sources/own.list" 2> /dev/null || true
for list in /etc/apt/sources.list.d/*.list; do
  [ ! -e "$list" ] || sed -e 's/^deb /deb-src /' "$list" > "$to/sources/$(basename "$list")"
done
for list in /etc/apt/sources.list.d/*.sources; do
  [ ! -e "$list" ] || sed -e 's/^Types:.*/Types: deb-src/' "$list" > "$to/sources/$(basename "$list")"
done
apt=(apt-get -qq -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$to/sources"
  -o "Dir::State::Lists=$to/lists" -o APT::Sandbox::User=root)
{
  "${apt[@]}" update
  (cd "$to" && "${apt[@]}" source --download-only "rocksdb=$version")
  mkdir "$to/source"
  tar -C "$to/source" --strip-components=1 -xf "$to"/rocksdb_*.orig.tar.*
  tar -C "$to/source" -xf "$to"/rocksdb_*.debian.tar.*
  while read -r patch; do
    patch -d "$to/source" -p1 -s < "$to/source/debian/patches/$patch"
  done < <(grep -v '^#' "$to/source/debian/patches/series")
  cmake -G Ninja -S "$to/source" -B "$to/build" -DCMAKE_BUILD_TYPE=Release -DPORTABLE=ON -DFORCE_SSE42=ON \
    -DROCKSDB_BUILD_SHARED=ON -DWITH_SNAPPY=ON -DWITH_LZ4=ON -DWITH_ZLIB=ON -DWITH_ZSTD=ON \
    -DWITH_TESTS=OFF -DWITH_BENCHMARK_TOOLS=OFF -DWITH_CORE_TOOLS=OFF -DWITH_TOOLS=OFF \
    -DFAIL_ON_WARNINGS=OFF -DUSE_RTTI=1
  cmake --build "$to/build" --target rocksdb-shared
} > "$to/build.log" 2>&1 || { tail -n 40 "$to/build.log" >&2; exit 1; }
cp -a "$to"/build/librocksdb.so* "$to/"
rm -rf "$to/build" "$to/source" "$to/lists" "$to/sources" "$to"/rocksdb_*
[ -e "$to/$soname" ] || { echo "what was built is not $soname: $(ls "$to")" >&2; exit 1; }
printf '%s\n' "$version" > "$to/version"
echo "$to"
