// The live page's files as built by cmake/page.cmake, embedded in the program.
//
// Constant; any thread.
#pragma once

#include <span>

namespace sluice {

struct PageFile {
  const char* path;     // of the request: "/", "/app.js"
  const char* version;  // changes with the contents
  std::span<const unsigned char> plain;
  std::span<const unsigned char> gzip;
};

// Empty if the build had no node, or lacked what page/package.json names.
std::span<const PageFile> page_files();

}  // namespace sluice
