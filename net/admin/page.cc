// The live page at /. Its files require no token, so that a browser can show the log-in; the data
// on the page is requested from the API with the user's token.
#include <algorithm>

#include "net/admin/api.h"
#include "net/admin/page_files.h"
#include "net/admin/routes.h"

namespace sluice {

namespace {

// Only what this server sends, no inline script or style, and no text that becomes HTML.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr const char* kNoPage =
    "Sluice\n\nThis server was built without its page, which requires node and what tools/setup "
    "installs.\nThe queues as JSON: /api/v1/queues. Other resources: /api/v1/openapi.json\n";

// Whether a response may be compressed, by the header Accept-Encoding (RFC 9110).
bool accepts_gzip(const HttpRequest& request) {
  const std::string* header = request.header("accept-encoding");
  if (header == nullptr) return false;
  std::string all = to_lower(*header);
  all.erase(std::remove_if(all.begin(), all.end(), [](char c) { return c == ' ' || c == '\t'; }),
            all.end());
  for (Bytes rest = all; !rest.empty();) {
    const Bytes coding = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), coding.size() + 1));
    if (coding.substr(0, coding.find(';')) != "gzip") continue;
    const size_t weight = coding.find(";q=");
    // A weight of 0, which may have decimals, refuses it.
    return weight == Bytes::npos || coding.find_first_of("123456789", weight) != Bytes::npos;
  }
  return false;
}

void get_page_file(Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  const auto files = page_files();
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const PageFile& each) { return request.path == each.path; });
  HttpResponse response;
  if (file == files.end()) {
    if (request.path != "/") {
      return exchange.respond(problem(404, "NOTFOUND", "This server was built without its page."));
    }
    response.content_type = "text/plain; charset=utf-8";
    response.body = kNoPage;
    return exchange.respond(std::move(response));
  }
  response.content_type = request.path == "/"              ? "text/html; charset=utf-8"
                          : request.path.ends_with(".js")  ? "text/javascript; charset=utf-8"
                          : request.path.ends_with(".css") ? "text/css; charset=utf-8"
                                                           : "image/svg+xml";
  // Browsers may cache the file but must revalidate it, since another build has another page.
  const bool gzip = accepts_gzip(request);
  const std::string etag = '"' + std::string(file->version) + (gzip ? "-gzip\"" : "\"");
  response.headers = {{"Cache-Control", "no-cache"},
                      {"ETag", etag},
                      {"Vary", "Accept-Encoding"},
                      {"Content-Security-Policy", kPolicy}};
  const std::string* known = request.header("if-none-match");
  if (known != nullptr && known->find(etag) != std::string::npos) {
    response.status = 304;
  } else {
    const std::span<const unsigned char> bytes = gzip ? file->gzip : file->plain;
    response.body.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  }
  exchange.respond(std::move(response));
}

}  // namespace

std::vector<Route> page_routes() {
  std::vector<Route> routes;
  for (const char* path : {"/", "/app.js", "/app.css", "/icon.svg"}) {
    routes.push_back({.pattern = path,
                      .access = Access::kOpen,
                      .handler = get_page_file,
                      .while_loading = true});
  }
  return routes;
}

}  // namespace sluice
