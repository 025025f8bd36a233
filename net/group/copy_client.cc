#include "net/group/copy_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <limits>

namespace sluice {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr size_t kReadBytes = 256U << 10;
constexpr size_t kMaxRefusalBytes = 4096;
// How often it is asked whether to go on.
constexpr milliseconds kPollTime(100);

std::string authority(const CopySource& source) {
  const bool is_v6 = source.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + source.host + "]" : source.host) + ":" + std::to_string(source.port);
}

class Download {
 public:
  Download(const CopySource& source, const CopyClientOptions& options)
      : source_(source), options_(options), buffer_(kReadBytes, '\0') {
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
    // As much is read at a time as is reserved; by itself it would be 512 bytes.
    input_.reserve(kReadBytes);
  }

  Status run(const std::function<Status(Bytes)>& take);

 private:
  // Starts an operation with its handler, and runs it to its end, at most so long.
  template <class Start>
  Status wait(int64_t patience_ms, Start start);
  Status connect();
  Status ask();
  // No bytes: the copy has ended.
  Status read_some(Bytes& bytes);
  Status refuse();
  bool goes_on() const { return !options_.goes_on || options_.goes_on(); }
  Status failed(const std::string& what) const {
    return io_error(authority(source_) + ": " + what);
  }

  const CopySource& source_;
  const CopyClientOptions& options_;
  std::string buffer_;
  asio::io_context io_;
  tcp::resolver resolver_{io_};
  beast::tcp_stream stream_{io_};
  beast::flat_buffer input_{kReadBytes};
  http::response_parser<http::buffer_body> parser_;
};

template <class Start>
Status Download::wait(int64_t patience_ms, Start start) {
  stream_.expires_after(milliseconds(patience_ms));
  bool ended = false;
  error_code result;
  start([&](const error_code& error, const auto&...) {
    ended = true;
    result = error;
  });
  bool stopped = false;
  while (!ended) {
    io_.restart();
    io_.run_for(kPollTime);
    if (ended || stopped || goes_on()) continue;
    stopped = true;
    resolver_.cancel();
    stream_.cancel();
  }
  if (stopped) return {StatusCode::kCancelled, "stopped"};
  if (result == beast::error::timeout) {
    return failed("silent for " + std::to_string(patience_ms / 1000) + " s");
  }
  if (result && result != http::error::need_buffer) return failed(result.message());
  return {};
}

Status Download::connect() {
  tcp::resolver::results_type addresses;
  Status status = wait(options_.connect_ms, [&](auto then) {
    resolver_.async_resolve(source_.host, std::to_string(source_.port),
                            [&, then](const error_code& error, const auto& found) {
                              addresses = found;
                              then(error);
                            });
  });
  if (!status.ok()) return status;
  return wait(options_.connect_ms, [&](auto then) { stream_.async_connect(addresses, then); });
}

Status Download::ask() {
  http::request<http::empty_body> request(http::verb::get, "/api/v1/checkpoint", 10);
  request.set(http::field::host, authority(source_));
  if (!source_.token.empty()) {
    request.set(http::field::authorization, "Bearer " + source_.token);
  }
  Status status =
      wait(options_.silence_ms, [&](auto then) { http::async_write(stream_, request, then); });
  if (!status.ok()) return status;
  error_code answered;
  status = wait(options_.silence_ms, [&](auto then) {
    http::async_read_header(stream_, input_, parser_, [&, then](const error_code& error, size_t) {
      answered = error;
      then(error);
    });
  });
  // A port for Redis's protocol ends such a connection without a word.
  const bool is_http_error =
      answered.category() == make_error_code(http::error::end_of_stream).category();
  if (status.code() != StatusCode::kIoError || !is_http_error) return status;
  return io_error(status.message() + ": no answer in HTTP; is it the port for Redis's protocol? " +
                  "The server's http-port is the one to give");
}

Status Download::read_some(Bytes& bytes) {
  http::buffer_body::value_type& body = parser_.get().body();
  bytes = {};
  while (bytes.empty() && !parser_.is_done()) {
    body.data = buffer_.data();
    body.size = buffer_.size();
    stream_.expires_after(milliseconds(options_.silence_ms));
    Status status = wait(options_.silence_ms,
                         [&](auto then) { http::async_read_some(stream_, input_, parser_, then); });
    if (!status.ok()) return status;
    bytes = Bytes(buffer_).substr(0, buffer_.size() - body.size);
  }
  return {};
}

// The problem that the node answers has its sentence in "detail".
Status Download::refuse() {
  std::string problem;
  Bytes bytes;
  while (problem.size() < kMaxRefusalBytes && read_some(bytes).ok() && !bytes.empty()) {
    problem += bytes;
  }
  const std::string text =
      authority(source_) + " answers " + std::to_string(parser_.get().result_int()) + " " +
      std::string(parser_.get().reason()) + ": " + problem.substr(0, kMaxRefusalBytes);
  const http::status answer = parser_.get().result();
  if (answer == http::status::unauthorized || answer == http::status::forbidden) {
    return refusal(text);
  }
  const bool is_made = problem.find("\"NOCHECKPOINT\"") != std::string::npos;
  return {is_made ? StatusCode::kStale : StatusCode::kInvalid, text};
}

Status Download::run(const std::function<Status(Bytes)>& take) {
  if (Status status = connect(); !status.ok()) return status;
  if (Status status = ask(); !status.ok()) return status;
  if (parser_.get().result() != http::status::ok) return refuse();
  for (;;) {
    Bytes bytes;
    if (Status status = read_some(bytes); !status.ok() || bytes.empty()) return status;
    if (!goes_on()) return {StatusCode::kCancelled, "stopped"};
    if (Status status = take(bytes); !status.ok()) return status;
  }
}

}  // namespace

Status fetch_copy(const CopySource& source, const CopyClientOptions& options,
                  const std::function<Status(Bytes)>& take) {
  return Download(source, options).run(take);
}

}  // namespace sluice
