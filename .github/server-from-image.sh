#!/usr/bin/env bash
# Extracts redis-server or valkey-server from a Debian image into a new folder. It runs with the loader and libraries of the
# image, so it is independent of this machine's C library and OpenSSL. Arguments: the image, and an absolute path without a colon.
set -euo pipefail

image=$1
folder=$2
case $image in
  *valkey*) server=valkey-server ;;
  *) server=redis-server ;;
esac

mkdir -p "$folder/image"
container=$(docker create "$image")
trap 'docker rm --force "$container" > /dev/null' EXIT
docker export "$container" | tar --extract --directory "$folder/image" usr/lib usr/local/bin

libraries=$(echo "$folder"/image/usr/lib/*-linux-gnu)
loader=$(echo "$libraries"/ld-linux*.so.*)
cat > "$folder/$server" << END
#!/bin/sh
exec '$loader' --library-path '$libraries' '$folder/image/usr/local/bin/$server' "\$@"
END
chmod +x "$folder/$server"
"$folder/$server" --version
