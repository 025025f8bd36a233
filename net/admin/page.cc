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
  response.headers = {
      {"Cache-Control", "no-cache"}, {"ETag", file->etag}, {"Content-Security-Policy", kPolicy}};
  const std::string* known = request.header("if-none-match");
  if (known != nullptr && known->find(file->etag) != std::string::npos) {
    response.status = 304;
  } else {
    response.body.assign(reinterpret_cast<const char*>(file->bytes), file->size);
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
