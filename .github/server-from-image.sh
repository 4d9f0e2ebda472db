#!/usr/bin/env bash
# In: an image of Redis or Valkey made on Debian, not Alpine; an absolute path without a colon, of a folder to make.
# Out: redis-server or valkey-server in that folder. It runs with the loader and the libraries of its image,
# so that neither the C library nor the OpenSSL of this machine needs to fit it.
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
