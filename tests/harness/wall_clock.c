/* A wall clock that a test sets, for a server that is started with LD_PRELOAD (wall_clock.py).
 *
 * The file that SLUICE_WALL_CLOCK names says what the wall clock is: at one moment of the steady
 * clock one time, and the rate from there. CLOCK_BOOTTIME, by which nodes of a group judge silence,
 * runs at SLUICE_BOOT_RATE from the start of the process on. All other clocks are the machine's own.
 * To read one takes SLUICE_CLOCK_READ_US microseconds longer than it would. The calls go to the
 * kernel directly: to look a function up here would allocate, and the allocator reads the clock.
 * gRPC's threads wait until a time of the wall clock. As the kernel's is another one, these waits
 * (FUTEX_CLOCK_REALTIME, by syscall()) are given its time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct setting {
  volatile uint64_t number; /* odd while it is being written */
  volatile int64_t steady_ns;
  volatile int64_t wall_ns;
  volatile double rate;
};

static const struct setting* setting;
static int64_t read_ns;
static int64_t begin_boot_ns;
static double boot_rate = 1.0;

#ifdef __x86_64__
static long kernel(long number, const long* words) {
  long result;
  register long fourth __asm__("r10") = words[3];
  register long fifth __asm__("r8") = words[4];
  register long sixth __asm__("r9") = words[5];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth),
                     "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
}
#endif

static int64_t kernel_ns(clockid_t clock) {
  struct timespec now;
  syscall(SYS_clock_gettime, clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

__attribute__((constructor)) static void begin(void) {
  const char* name = getenv("SLUICE_WALL_CLOCK");
  const char* read_us = getenv("SLUICE_CLOCK_READ_US");
  const char* rate = getenv("SLUICE_BOOT_RATE");
  if (read_us != NULL) read_ns = atoll(read_us) * 1000;
  if (rate != NULL) boot_rate = atof(rate);
  begin_boot_ns = kernel_ns(CLOCK_BOOTTIME);
  const int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  void* mapped = mmap(NULL, sizeof(struct setting), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) setting = mapped;
}

static int64_t boot_ns(void) {
  const int64_t passed_ns = kernel_ns(CLOCK_BOOTTIME) - begin_boot_ns;
  return begin_boot_ns + (int64_t)((double)passed_ns * boot_rate);
}

static int64_t wall_ns(void) {
  if (setting == NULL) return kernel_ns(CLOCK_REALTIME);
  for (;;) {
    const uint64_t number = setting->number;
    __sync_synchronize();
    const int64_t from_ns = setting->steady_ns;
    const int64_t said_ns = setting->wall_ns;
    const double rate = setting->rate;
    __sync_synchronize();
    if (number % 2 != 0 || number != setting->number) continue;
    const int64_t passed_ns = kernel_ns(CLOCK_MONOTONIC) - from_ns;
    return said_ns + (rate == 1.0 ? passed_ns : (int64_t)((double)passed_ns * rate));
  }
}

#ifdef __x86_64__
long syscall(long number, ...) {
  long words[6];
  va_list given;
  va_start(given, number);
  for (int at = 0; at < 6; ++at) words[at] = va_arg(given, long);
  va_end(given);
  struct timespec until;
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && words[3] != 0) {
    until = *(const struct timespec*)words[3];
    int64_t ns = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec;
    ns -= wall_ns() - kernel_ns(CLOCK_REALTIME);
    if (ns < 0) ns = 0;
    until.tv_sec = ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    words[3] = (long)&until;
  }
  const long result = kernel(number, words);
  if (result >= 0 || result < -4095) return result;
  errno = (int)-result;
  return -1;
}
#endif

int clock_gettime(clockid_t clock, struct timespec* out) {
  for (const int64_t end_ns = kernel_ns(CLOCK_MONOTONIC) + read_ns;
       read_ns != 0 && kernel_ns(CLOCK_MONOTONIC) < end_ns;) {
  }
  const int is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (!is_wall && (clock != CLOCK_BOOTTIME || boot_rate == 1.0)) {
    return (int)syscall(SYS_clock_gettime, clock, out);
  }
  const int64_t ns = is_wall ? wall_ns() : boot_ns();
  out->tv_sec = ns / 1000000000;
  out->tv_nsec = ns % 1000000000;
  return 0;
}

int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  (void)zone;
  const int64_t ns = wall_ns();
  out->tv_sec = ns / 1000000000;
  out->tv_usec = ns % 1000000000 / 1000;
  return 0;
}

time_t time(time_t* out) {
  const time_t now = wall_ns() / 1000000000;
  if (out != NULL) *out = now;
  return now;
}
