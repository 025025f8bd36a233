// The parts of TLS: the stream with an OpenSSL client at the other end of a socket pair, both in
// one thread; the context's errors; the directives.
#include "net/tls/tls_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "net/config/config.h"
#include "net/tls/tls_client.h"
#include "net/tls/tls_context.h"
#include "tests/support/certificates.h"
#include "tests/support/test.h"

namespace sluice {
namespace {

class Directory {
 public:
  Directory() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-tls-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

Settings settings_of(const Directory& directory, const std::string& name) {
  Settings settings;
  settings.tls_cert_file = directory.file(name + ".crt");
  settings.tls_key_file = directory.file(name + ".key");
  settings.tls_session_cache_size = 10;
  settings.tls_session_cache_timeout_s = 10;
  return settings;
}

// A server's stream and OpenSSL's own client.
class Pair {
 public:
  explicit Pair(int version = TLS1_3_VERSION, int buffer_bytes = 0) {
    test::write_certificate(directory_.file("server"));
    context_ = *TlsContext::load(settings_of(directory_, "server"), TlsAuthClients::kNo);
    REQUIRE_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_), 0);
    for (int fd : fds_) {
      if (buffer_bytes == 0) break;
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
      ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    }
    server = std::make_unique<TlsStream>(context_->open(), fds_[0]);
    client_context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(client_context_, version);
    SSL_CTX_set_max_proto_version(client_context_, version);
    SSL_CTX_set_mode(client_context_,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    client = SSL_new(client_context_);
    SSL_set_fd(client, fds_[1]);
    SSL_set_connect_state(client);
  }

  ~Pair() {
    server = nullptr;
    SSL_free(client);
    SSL_CTX_free(client_context_);
    ::close(fds_[0]);
    if (!client_closed_) ::close(fds_[1]);
  }

  void close_client() {
    client_closed_ = true;
    ::close(fds_[1]);
  }
  int client_fd() const { return fds_[1]; }

  ssize_t read_server(std::string& to, size_t most = 1 << 16) {
    std::string buffer(most, '\0');
    server->note_readable(false);
    const ssize_t count = server->read(buffer.data(), buffer.size());
    if (count > 0) to.append(buffer, 0, static_cast<size_t>(count));
    return count;
  }

  // Reads what is available to the client.
  bool read_client(std::string& to, size_t most = 1 << 16) {
    std::string buffer(most, '\0');
    size_t count = 0;
    ERR_clear_error();
    if (SSL_read_ex(client, buffer.data(), buffer.size(), &count) != 1) return false;
    to.append(buffer, 0, count);
    return true;
  }

  void handshake() {
    std::string nothing;
    for (int i = 0; i < 100 && !(server->established() && SSL_is_init_finished(client)); ++i) {
      ERR_clear_error();
      SSL_do_handshake(client);
      read_server(nothing);
    }
    REQUIRE(server->established());
    REQUIRE_EQ(nothing, "");
  }

  std::unique_ptr<TlsStream> server;
  SSL* client = nullptr;

 private:
  Directory directory_;
  std::shared_ptr<const TlsContext> context_;
  SSL_CTX* client_context_ = nullptr;
  int fds_[2] = {-1, -1};
  bool client_closed_ = false;
};

std::string random_text(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Transfers megabytes in both directions at once through buffers of some kilobytes; `meanwhile` is
// called in each round.
void exchange(Pair& pair, size_t bytes, const std::function<void(int)>& meanwhile) {
  const std::string up = random_text(bytes, 1);
  const std::string down = random_text(bytes, 2);
  std::string at_server;
  std::string at_client;
  size_t sent_up = 0;
  size_t sent_down = 0;
  std::mt19937 random(3);
  for (int round = 0; at_server.size() < bytes || at_client.size() < bytes; ++round) {
    REQUIRE(round < 1'000'000);
    meanwhile(round);
    size_t count = 0;
    ERR_clear_error();
    if (sent_up < bytes &&
        SSL_write_ex(pair.client, up.data() + sent_up, bytes - sent_up, &count)) {
      sent_up += count;
    }
    const ssize_t read = pair.read_server(at_server, 1 + random() % 40'000);
    REQUIRE((read > 0 || errno == EAGAIN));
    if (sent_down < bytes) {
      // From another address each time, with more data appended than before.
      const size_t left = std::min(bytes - sent_down, size_t{50'000} + static_cast<size_t>(round));
      const std::string part = down.substr(sent_down, left);
      const ssize_t wrote = pair.server->write(part.data(), part.size());
      REQUIRE((wrote > 0 || errno == EAGAIN));
      if (wrote > 0) sent_down += static_cast<size_t>(wrote);
    }
    while (random() % 3 != 0 && pair.read_client(at_client, 1 + random() % 40'000)) {
    }
  }
  CHECK(at_server == up);
  CHECK(at_client == down);
}

TEST_CASE("megabytes go both ways through small buffers, in both versions of the protocol") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    CAPTURE(version);
    Pair pair(version, 4096);
    pair.handshake();
    exchange(pair, 3'000'000, [](int) {});
  }
}

TEST_CASE("a client may ask for new keys at any time") {
  Pair pair(TLS1_3_VERSION, 4096);
  pair.handshake();
  int asked = 0;
  exchange(pair, 1'000'000, [&](int round) {
    if (round % 10 == 0) asked += SSL_key_update(pair.client, SSL_KEY_UPDATE_REQUESTED);
  });
  CHECK(asked > 5);
}

TEST_CASE("a write before the handshake drives it, and says that it waits for input") {
  Pair pair;
  CHECK_EQ(pair.server->write("denied", 6), -1);
  CHECK_EQ(errno, EAGAIN);
  CHECK(pair.server->write_waits_for_read());
  std::string got;
  ssize_t wrote = -1;
  for (int i = 0; i < 100 && got.empty(); ++i) {
    pair.read_client(got);
    pair.server->note_readable(false);
    if (wrote < 0) wrote = pair.server->write("denied", 6);
  }
  CHECK_EQ(wrote, 6);
  CHECK_EQ(got, "denied");
}

TEST_CASE("what came before the peer's end is read before the end") {
  Pair pair;
  pair.handshake();
  CHECK_EQ(SSL_write(pair.client, "last", 4), 4);
  SSL_shutdown(pair.client);
  std::string got;
  CHECK_EQ(pair.read_server(got), 4);
  CHECK_EQ(got, "last");
  CHECK_FALSE(pair.server->drained());
  CHECK_EQ(pair.read_server(got), 0);
  // A reply may still be sent.
  CHECK_EQ(pair.server->write("bye", 3), 3);
  std::string answer;
  while (answer.empty() && pair.read_client(answer)) {
  }
  pair.server->shut_down();
  CHECK_EQ(pair.server->write("x", 1), -1);
}

TEST_CASE("a short read is the end of what is there, and costs no further system call") {
  Pair pair;
  pair.handshake();
  std::string got;
  CHECK_EQ(pair.read_server(got), -1);
  CHECK(pair.server->drained());
  SSL_write(pair.client, "one", 3);
  // No edge has been reported, so the socket is not read.
  char buffer[16];
  CHECK_EQ(pair.server->read(buffer, sizeof(buffer)), -1);
  CHECK_EQ(errno, EAGAIN);
  pair.server->note_readable(false);
  CHECK_EQ(pair.server->peek(), 1);
  CHECK_EQ(pair.server->read(buffer, 2), 2);
  CHECK_EQ(pair.server->read(buffer, 2), 1);
  CHECK(pair.server->drained());
}

TEST_CASE("an end without close_notify is an end, one within the handshake no failure to report") {
  for (const bool after : {true, false}) {
    Pair pair;
    if (after) pair.handshake();
    pair.close_client();
    std::string got;
    CHECK(pair.read_server(got) <= 0);
    CHECK_EQ(pair.server->failure(), "");
  }
}

TEST_CASE("what is no TLS breaks the connection, with a reason") {
  Pair pair;
  CHECK_EQ(::send(pair.client_fd(), "PING\r\nPING\r\n", 12, 0), 12);
  std::string got;
  CHECK_EQ(pair.read_server(got), -1);
  CHECK_EQ(errno, EPROTO);
  CHECK_FALSE(pair.server->failure().empty());
  CHECK_EQ(pair.server->write("x", 1), -1);
  CHECK_EQ(errno, EPROTO);
  CHECK_EQ(pair.read_server(got), -1);
}

TEST_CASE("errors of loading name the directive and the file") {
  Directory directory;
  test::write_certificate(directory.file("one"));
  test::write_certificate(directory.file("two"));
  test::write_certificate(directory.file("locked"), "secret");
  const auto error_of = [&](const std::function<void(Settings&)>& change,
                            TlsAuthClients clients = TlsAuthClients::kNo) {
    Settings settings = settings_of(directory, "one");
    change(settings);
    return TlsContext::load(settings, clients).status().message();
  };
  const std::string none = directory.file("none");
  const auto begins = [](const std::string& text, const std::string& with) {
    CAPTURE(text);
    CHECK_EQ(text.substr(0, with.size()), with);
  };
  CHECK_EQ(error_of([](Settings&) {}), "");
  CHECK_EQ(error_of([](Settings& s) { s.tls_cert_file = ""; }), "No tls-cert-file configured!");
  CHECK_EQ(error_of([](Settings& s) { s.tls_key_file = ""; }), "No tls-key-file configured!");
  begins(error_of([&](Settings& s) { s.tls_cert_file = none; }),
         "tls-cert-file: Failed to load certificate: " + none + ": ");
  begins(error_of([&](Settings& s) { s.tls_key_file = none; }),
         "tls-key-file: Failed to load private key: " + none + ": ");
  const std::string other = directory.file("two.key");
  begins(error_of([&](Settings& s) { s.tls_key_file = other; }),
         "tls-key-file: Failed to load private key: " + other + ": ");
  begins(error_of([&](Settings& s) { s = settings_of(directory, "locked"); }),
         "tls-key-file: Failed to load private key: ");
  CHECK_EQ(error_of([&](Settings& s) {
             s = settings_of(directory, "locked");
             s.tls_key_file_pass = "secret";
           }),
           "");
  begins(error_of([](Settings& s) { s.tls_protocols = "TLSv1.2 SSLv3"; }),
         "tls-protocols: Invalid tls-protocols specified.");
  CHECK_EQ(error_of([](Settings& s) { s.tls_protocols = "tlsv1.2 TLSv1.3"; }), "");
  begins(error_of([](Settings& s) { s.tls_ciphers = "x"; }), "tls-ciphers: Failed");
  begins(error_of([](Settings& s) { s.tls_ciphersuites = "x"; }), "tls-ciphersuites: Failed");
  begins(error_of([&](Settings& s) { s.tls_dh_params_file = none; }), "tls-dh-params-file: Failed");
  begins(error_of([](Settings&) {}, TlsAuthClients::kOptional), "Either tls-ca-cert-file or");
  begins(error_of([&](Settings& s) { s.tls_ca_cert_file = none; }, TlsAuthClients::kYes),
         "tls-ca-cert-file: Failed to load CA certificates: " + none + ": ");
}

TEST_CASE("a certificate that has expired is used, with a warning") {
  Directory directory;
  test::write_certificate(directory.file("old"), "", -1);
  const auto context = TlsContext::load(settings_of(directory, "old"), TlsAuthClients::kNo);
  REQUIRE(context.ok());
  CHECK_EQ((*context)->warning(), "has expired");
}

// How many certificates a connection sends besides its own.
int others_sent(const TlsState& state) {
  STACK_OF(X509)* chain = nullptr;
  REQUIRE_EQ(SSL_get0_chain_certs(state.get(), &chain), 1);
  return sk_X509_num(chain);
}

TEST_CASE("authorities behind a certificate in its file are sent with it, by both sides") {
  Directory directory;
  test::write_certificate(directory.file("own"));
  test::write_certificate(directory.file("authority"));
  std::ofstream(directory.file("own.crt"), std::ios::app)
      << std::ifstream(directory.file("authority.crt")).rdbuf();
  const auto server = TlsContext::load(settings_of(directory, "own"), TlsAuthClients::kNo);
  REQUIRE(server.ok());
  CHECK_EQ(others_sent((*server)->open()), 1);
  TlsClientRules rules;
  rules.certificate_file = directory.file("own.crt");
  rules.key_file = directory.file("own.key");
  const auto client = TlsClientContext::load(rules);
  REQUIRE(client.ok());
  CHECK_EQ(others_sent((*client)->open("localhost")), 1);
}

TEST_CASE("the ports of TLS are off unless they are given") {
  Config config;
  CHECK_EQ(config.settings()->tls_port, 0);
  CHECK_EQ(config.settings()->http_tls_port, 0);
  CHECK(config.settings()->tls_auth_clients == TlsAuthClients::kYes);
  CHECK(config.settings()->http_tls_auth_clients == TlsAuthClients::kNo);
  CHECK_FALSE(
      config.load_text("tls-port auto\nhttp-tls-port 8443\ntls-auth-clients optional\n", "x"));
  CHECK_EQ(config.settings()->tls_port, Settings::kPortAuto);
  CHECK_EQ(config.settings()->http_tls_port, 8443);
  CHECK(config.settings()->tls_auth_clients == TlsAuthClients::kOptional);
  CHECK(config.warnings().empty());
}

TEST_CASE("what comes with files is read again by any CONFIG SET of it, which then may fail") {
  Config config;
  std::vector<std::string> read;
  config.on_reload([&](const Settings& after) {
    read.push_back(after.tls_cert_file);
    return after.tls_cert_file == "bad" ? invalid("it is bad") : Status();
  });
  CHECK(config.set({{"tls-cert-file", "a"}, {"timeout", "7"}}).ok());
  CHECK(config.set({{"tls-cert-file", "a"}}).ok());
  CHECK_EQ(config.set({{"timeout", "8"}, {"TLS-cert-file", "bad"}}).message(),
           "ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - it is bad");
  CHECK(config.set({{"timeout", "9"}}).ok());
  CHECK(config.set({{"tls-cluster", "yes"}}).ok());
  CHECK_EQ(read, std::vector<std::string>{"a", "a", "bad"});
  CHECK_EQ(config.settings()->tls_cert_file, "a");
  CHECK_EQ(config.settings()->timeout_s, 9);
}

}  // namespace
}  // namespace sluice
