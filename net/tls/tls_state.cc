// What TLS clients share with the server's context. It is separate because the context depends on
// the whole configuration, which the program sluice would otherwise load at each start.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "net/tls/tls_context.h"

namespace sluice {

void TlsFree::operator()(ssl_st* state) const { SSL_free(state); }
void TlsFree::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

// The first error is the cause; the others say where it was noticed.
Status tls_error(const std::string& what) {
  char text[256] = "";
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  ERR_clear_error();
  return invalid(what + ": " + text);
}

}  // namespace sluice
