#!/bin/sh
# Starts the program of this file's name, which is in lib/sluice with the libraries that it needs.
# The tarball, the npm packages and the wheel have a copy of this file for each program.
file=$(readlink -f "$0")
here=${file%/*} name=${file##*/}
refuse() {
  echo "$name: $*" >&2
  exit 1
}

# The loader says "ld.so (...) stable release version 2.36."
loader=/lib64/ld-linux-x86-64.so.2
said=$("$loader" --version 2>/dev/null | head -n 1)
minor=${said##* version 2.}
minor=${minor%%[!0-9]*}
if ! [ "${minor:-0}" -ge 36 ]; then
  found="glibc 2.$minor"
  [ "$minor" != "" ] || found="another C library, or a glibc before 2.33"
  refuse "requires Linux on x86-64 with glibc 2.36 or newer, as Debian 12 has;" \
    "here is $(uname -sm) with $found"
fi

# In npm's folders the programs are in a package of their own: beside this one, or in it.
for folder in "$here/../lib/sluice" "$here/../../server-linux-x64/lib/sluice" \
  "$here/../node_modules/@sluice/server-linux-x64/lib/sluice"; do
  [ ! -x "$folder/$name" ] || exec "$folder/$name" "$@"
done
refuse "its program is not installed: npm install ./sluice-server-linux-x64-*.tgz"
