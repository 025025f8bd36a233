// The live page's files as the build made them (cmake/page.cmake), in the program itself.
//
// Constant; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace sluice {

struct PageFile {
  const char* path;  // of the request: "/", "/app.js"
  const char* etag;  // with its quotes
  const unsigned char* bytes;
  size_t size;
};

// Empty where the build had no node, or not what page/package.json names.
std::span<const PageFile> page_files();

}  // namespace sluice
