#include "net/http/name_lookup.h"

#include <netdb.h>

#include <cstring>
#include <system_error>
#include <thread>

#include "engine/base/numbers.h"

namespace sluice {

namespace {

using boost::asio::ip::tcp;

NameLookup::Result look_up(const std::string& host, const std::string& port) {
  NameLookup::Result result;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    result.error = host + ": " + ::gai_strerror(error);
    return result;
  }
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    tcp::endpoint address;
    if (at->ai_addrlen > address.capacity()) continue;
    std::memcpy(address.data(), at->ai_addr, at->ai_addrlen);
    address.resize(at->ai_addrlen);
    result.addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  if (result.addresses.empty()) result.error = host + ": no address";
  return result;
}

}  // namespace

std::shared_ptr<NameLookup> NameLookup::begin(const std::string& host, const std::string& port) {
  auto lookup = std::make_shared<NameLookup>();
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(host, error);
  if (!error) {
    const auto number = static_cast<uint16_t>(parse_i64(port).value_or(0));
    lookup->finish({{tcp::endpoint(address, number)}, ""});
    return lookup;
  }
  try {
    std::thread([lookup, host, port] { lookup->finish(look_up(host, port)); }).detach();
  } catch (const std::system_error& failure) {
    lookup->finish({{}, std::string("cannot create a thread for the lookup: ") + failure.what()});
  }
  return lookup;
}

void NameLookup::finish(Result result) {
  MutexLock lock(mutex_);
  result_ = std::move(result);
}

std::optional<NameLookup::Result> NameLookup::result() {
  MutexLock lock(mutex_);
  return result_;
}

}  // namespace sluice
