// hiredis as its users use it; Debian 12's speaks RESP2. The server dies in the middle.
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kWrites = 600, kPipeline = 1000, kLarge = 3 * 1000 * 1000, kPatienceSeconds = 60 };

static void require(int condition, const char* what) {
  if (condition) return;
  printf("FAILED: %s\n", what);
  exit(1);
}

static redisContext* connect_once(void) {
  const struct timeval limit = {kPatienceSeconds, 0};
  redisContext* context =
      redisConnectWithTimeout("127.0.0.1", atoi(getenv("SLUICE_PORT")), limit);
  require(context != NULL, "memory for a connection");
  if (context->err == 0) redisSetTimeout(context, limit);
  return context;
}

/* Tries until the server answers and has its data. */
static redisContext* reconnect(redisContext* context) {
  const time_t deadline = time(NULL) + kPatienceSeconds;
  redisFree(context);
  for (;;) {
    context = connect_once();
    if (context->err == 0) {
      redisReply* reply = redisCommand(context, "PING");
      const int ready = reply != NULL && reply->type == REDIS_REPLY_STATUS;
      if (reply != NULL) freeReplyObject(reply);
      if (ready) return context;
    }
    require(time(NULL) < deadline, "the server did not come back");
    redisFree(context);
    usleep(20 * 1000);
  }
}

static redisReply* ask(redisContext* context, int type, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  redisReply* reply = redisvCommand(context, format, arguments);
  va_end(arguments);
  require(reply != NULL, "a reply");
  if (reply->type != type) printf("%s: type %d, %s\n", format, reply->type, reply->str);
  require(reply->type == type, format);
  return reply;
}

static void ask_integer(redisContext* context, long long expected, const char* command) {
  redisReply* reply = ask(context, REDIS_REPLY_INTEGER, command);
  require(reply->integer == expected, command);
  freeReplyObject(reply);
}

static void values(redisContext* context) {
  const char bytes[] = {0, 1, '\r', '\n', '$', (char)255};
  freeReplyObject(ask(context, REDIS_REPLY_STATUS, "SET bytes %b", bytes, sizeof bytes));
  redisReply* reply = ask(context, REDIS_REPLY_STRING, "GET bytes");
  require(reply->len == sizeof bytes && memcmp(reply->str, bytes, sizeof bytes) == 0, "bytes");
  freeReplyObject(reply);
  char* large = malloc(kLarge);
  for (int index = 0; index < kLarge; ++index) large[index] = (char)(index * 7);
  freeReplyObject(ask(context, REDIS_REPLY_STATUS, "SET large %b", large, (size_t)kLarge));
  reply = ask(context, REDIS_REPLY_STRING, "GET large");
  require(reply->len == kLarge && memcmp(reply->str, large, kLarge) == 0, "a large value");
  freeReplyObject(reply);
  free(large);
  freeReplyObject(ask(context, REDIS_REPLY_NIL, "GET none"));
  ask_integer(context, 3, "RPUSH list a b c");
  reply = ask(context, REDIS_REPLY_ARRAY, "LRANGE list 0 -1");
  require(reply->elements == 3 && strcmp(reply->element[2]->str, "c") == 0, "LRANGE");
  freeReplyObject(reply);
  reply = ask(context, REDIS_REPLY_ERROR, "INCR list");
  require(strncmp(reply->str, "WRONGTYPE ", 10) == 0, reply->str);
  freeReplyObject(reply);
  reply = ask(context, REDIS_REPLY_ARRAY, "EVAL %s 1 list", "return {KEYS[1], {1, 'x'}, false}");
  require(reply->elements == 3 && reply->element[1]->type == REDIS_REPLY_ARRAY &&
              reply->element[2]->type == REDIS_REPLY_NIL,
          "EVAL");
  freeReplyObject(reply);
}

static void pipeline(redisContext* context) {
  for (int index = 0; index < kPipeline; ++index) redisAppendCommand(context, "INCR many");
  for (int index = 0; index < kPipeline; ++index) {
    redisReply* reply = NULL;
    require(redisGetReply(context, (void**)&reply) == REDIS_OK, "a reply of the pipeline");
    require(reply->integer == index + 1, "the order of the pipeline");
    freeReplyObject(reply);
  }
  freeReplyObject(ask(context, REDIS_REPLY_STATUS, "MULTI"));
  freeReplyObject(ask(context, REDIS_REPLY_STATUS, "INCR many"));
  redisReply* reply = ask(context, REDIS_REPLY_ARRAY, "EXEC");
  require(reply->elements == 1 && reply->element[0]->integer == kPipeline + 1, "EXEC");
  freeReplyObject(reply);
}

static void messages(redisContext* context) {
  redisContext* subscriber = connect_once();
  freeReplyObject(ask(subscriber, REDIS_REPLY_ARRAY, "SUBSCRIBE news"));
  ask_integer(context, 1, "PUBLISH news hello");
  redisReply* reply = NULL;
  require(redisGetReply(subscriber, (void**)&reply) == REDIS_OK, "the message");
  require(reply->elements == 3 && strcmp(reply->element[2]->str, "hello") == 0, "its text");
  freeReplyObject(reply);
  redisFree(subscriber);
}

/* What was acknowledged is there; what was under way may be or not, and nothing comes twice. */
static redisContext* through_a_kill(redisContext* context) {
  long long acknowledged = 0;
  long long unknown = 0;
  for (int index = 0; index < kWrites; ++index) {
    if (index == kWrites / 2) {
      printf("kill\n");
      fflush(stdout);
    }
    redisReply* reply = redisCommand(context, "EVAL %s 2 count log %d",
        "redis.call('RPUSH', KEYS[2], ARGV[1]) return redis.call('INCR', KEYS[1])", index);
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
      acknowledged += 1;
    } else {
      unknown += 1;
      context = reconnect(context);
    }
    if (reply != NULL) freeReplyObject(reply);
    /* The kill comes while this runs: it ends only once it has seen it. */
    if (index == kWrites - 1 && unknown == 0) index -= 1;
  }
  char told[32];
  require(fgets(told, sizeof told, stdin) != NULL && strcmp(told, "restarted\n") == 0, "the return");
  redisReply* reply = ask(context, REDIS_REPLY_STRING, "GET count");
  const long long count = atoll(reply->str);
  freeReplyObject(reply);
  printf("%lld acknowledged, %lld unknown, %lld counted\n", acknowledged, unknown, count);
  require(count >= acknowledged && count <= acknowledged + unknown, "the count");
  reply = ask(context, REDIS_REPLY_INTEGER, "LLEN log");
  require(reply->integer == count, "the log");
  freeReplyObject(reply);
  return context;
}

int main(void) {
  redisContext* context = connect_once();
  require(context->err == 0, context->errstr);
  values(context);
  pipeline(context);
  messages(context);
  redisFree(through_a_kill(context));
  printf("all of it holds\n");
  return 0;
}
