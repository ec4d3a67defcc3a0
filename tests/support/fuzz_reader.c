/* Opens, binds and runs mutated saved graphs: fuzz_reader FILE COUNT SEED.  Built with sanitizers, which end it at an error.
 *
 * Half of the mutations change bytes anywhere; half change the manifest and leave the file sound otherwise, so that they get
 * far.  Code is not executed: drivers and libraries are functions of this program, whose memory is the heap's.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#define dlopen(path, mode) found_library(path)
#define dlsym(library, name) ((void)(library), found_symbol(name))
#define dlclose(library) ((void)0)
static void *found_library(const char *path);
static void *found_symbol(const char *name);
#include "quadpy_graph.c"

static uint64_t state;
static int budget;             /* turns of loops that are left */
static volatile unsigned seen; /* what launches read, so that it is read */

static uint64_t draw(uint64_t below) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return below ? state % below : 0;
}

static int get_device(int *out) { return *out = 0; }
static int properties(char *out, int device) {
  (void)device;
  memset(out, 0, 1472);
  strcpy(out + 1160, "gfx942:sramecc+");
  memset(out + 388, 1, 1), memset(out + 688, 1, 1); /* a unit; cooperative launches */
  return 0;
}
static int load_module(void **out, const char *image) { return *out = (void *)8, seen += (unsigned)strlen(image), 0; }
static int get_function(void **out, void *m, const char *name) { return (void)m, *out = (void *)16, seen += (unsigned)*name, 0; }
static int unload(void *m) { return (void)m, 0; }
static int allocate_here(void **out, size_t n) { return n > 1 << 22 || !(*out = malloc(n)); }
static int release_here(void *at) { return free(at), 0; }
static int copy_here(void *to, const void *from, size_t n) { return memmove(to, from, n), 0; }
static int read_condition(void *to, const void *from, size_t n, void *s) { return (void)s, memcpy(to, from, n), budget-- > 0 ? 0 : 999; }
static int copy_on(void *to, const void *from, size_t n, void *s) { return (void)s, memmove(to, from, n), 0; }
static int fill8(void *to, unsigned char v, size_t n, void *s) { return (void)s, memset(to, v, n), 0; }
static int fill16(void *to, unsigned short v, size_t n, void *s) { return (void)s, (void)v, memset(to, 1, 2 * n), 0; }
static int fill32(void *to, unsigned v, size_t n, void *s) { return (void)s, (void)v, memset(to, 2, 4 * n), 0; }
static int capturing_here(void *s, int *out) { return (void)s, *out = seen % 7 == 0, 0; }
static int wait_here(void *s) { return (void)s, 0; }
static int occupancy(int *out, void *f, int t, size_t n) { return (void)f, (void)t, (void)n, *out = 4, 0; }
static int launch_here(void *f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z, unsigned n, void *s, void **p, void **extra) {
  (void)f, (void)b, (void)c, (void)y, (void)z, (void)n, (void)s, (void)p;
  const unsigned char *block = (const unsigned char *)extra[1];
  for (size_t k = 0; k < *(size_t *)extra[3]; k++) seen += block[k];
  return !a || !x;
}
static int launch_together_here(void *f, unsigned a, unsigned b, unsigned c, unsigned x, unsigned y, unsigned z, unsigned n, void *s, void **p) {
  (void)f, (void)a, (void)b, (void)c, (void)x, (void)y, (void)z, (void)n, (void)s;
  if (p[0]) seen += *(unsigned char *)p[0];
  return seen % 5 ? 0 : 720; /* too large, now and then */
}
static int32_t entry_here(void *block, void *scratch, int32_t first) { return (void)block, (void)scratch, (void)first, -1; }

#define ROW(name, function) {name, (void (*)(void))function}
static const struct { const char *name; void (*function)(void); } symbols[] = {
    ROW("hipGetDevice", get_device), ROW("hipGetDevicePropertiesR0600", properties), ROW("hipModuleLoadData", load_module),
    ROW("hipModuleGetFunction", get_function), ROW("hipModuleUnload", unload), ROW("hipMalloc", allocate_here),
    ROW("hipFree", release_here), ROW("hipMemcpyHtoD", copy_here), ROW("hipMemcpyDtoHAsync", read_condition),
    ROW("hipMemcpyDtoDAsync", copy_on), ROW("hipMemsetD8Async", fill8), ROW("hipMemsetD16Async", fill16),
    ROW("hipMemsetD32Async", fill32), ROW("hipModuleLaunchKernel", launch_here),
    ROW("hipModuleLaunchCooperativeKernel", launch_together_here), ROW("hipStreamSynchronize", wait_here),
    ROW("hipStreamIsCapturing", capturing_here),
    ROW("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", occupancy), ROW("qpg_0", entry_here), ROW("qpg_1", entry_here)};

static void *found_library(const char *path) { return strstr(path, "cuda") ? NULL : (void *)1; }

static void *found_symbol(const char *name) {
  void *found = NULL;
  for (size_t k = 0; k < COUNT(symbols); k++)
    if (!strcmp(name, symbols[k].name)) memcpy(&found, &symbols[k].function, sizeof found);
  return found;
}

/* The file with another manifest; the caller frees it. */
static unsigned char *with_manifest(const unsigned char *file, size_t size, const char *text, size_t length, size_t *out_size) {
  qpg_graph old;
  memset(&old, 0, sizeof old);
  old.file = file, old.file_size = size;
  open_zip(&old);
  size_t names = 0, at = old.directory, done = 0, first = 0;
  for (size_t k = 0; k < old.entries; k++) {
    size_t next = 46 + number(file + at + 28, 2) + number(file + at + 30, 2) + number(file + at + 32, 2);
    names += number(file + at + 28, 2);
    at += next;
  }
  unsigned char *out = (unsigned char *)calloc(1, old.directory + length + 200 * old.entries + 2 * names + 64);
  unsigned char *directory = (unsigned char *)calloc(1, 100 * old.entries + names + 64), *to = directory;
  at = old.directory;
  for (size_t k = 0; k < old.entries; k++) {
    size_t name_size = number(file + at + 28, 2), begin = number(file + at + 42, 4);
    size_t data = begin + 30 + number(file + begin + 26, 2) + number(file + begin + 28, 2);
    bool is_manifest = name_size == 13 && !memcmp(file + at + 46, "manifest.json", 13);
    const unsigned char *body = is_manifest ? (const unsigned char *)text : file + data;
    uint32_t bytes = is_manifest ? (uint32_t)length : number(file + at + 24, 4), crc = crc32_of(body, bytes), place = (uint32_t)done;
    memcpy(out + done, file + begin, 26), memcpy(out + done + 14, &crc, 4), memcpy(out + done + 18, &bytes, 4), memcpy(out + done + 22, &bytes, 4);
    memcpy(out + done + 26, &name_size, 2), memcpy(out + done + 30, file + at + 46, name_size);
    memcpy(out + done + 30 + name_size, body, bytes);
    done += 30 + name_size + bytes;
    memcpy(to, file + at, 46), memcpy(to + 16, &crc, 4), memcpy(to + 20, &bytes, 4), memcpy(to + 24, &bytes, 4);
    memset(to + 30, 0, 4), memcpy(to + 42, &place, 4), memcpy(to + 46, file + at + 46, name_size);
    to += 46 + name_size;
    at += 46 + name_size + number(file + at + 30, 2) + number(file + at + 32, 2);
  }
  first = done;
  memcpy(out + done, directory, (size_t)(to - directory));
  done += (size_t)(to - directory);
  memcpy(out + done, "PK\5\6", 4), memcpy(out + done + 8, &old.entries, 2), memcpy(out + done + 10, &old.entries, 2), memcpy(out + done + 16, &first, 4);
  free(directory);
  *out_size = done + 22;
  return out;
}

/* Puts something else in place of a part of the text, of which 'size' bytes are used. */
static size_t mutate_text(char *text, size_t size, size_t room) {
  static const char *const words[] = {
      "0", "-1", "1", "2", "7", "64", "4294967296", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "null", "true",
      "[]", "{}", "\"\"", "[0,0]", "[\"value\",0]", "[\"mul\",0,true,[\"value\",0],9223372036854775807]", "[\"count\",0,true,0,[\"value\",1],-1]",
      "\"scratch\"", "\"bound\"", "\"internal\"", "\"copy\"", "\"fill\"", "{\"loop\":\"s\",\"body\":[0]}", "[[0],[0]]", "\"\\ud83d\\ude00\""};
  size_t at = (size_t)draw(size), end = at, length;
  const char *word = words[draw(COUNT(words))];
  switch (draw(4)) {
    case 0: /* a number or another value */
      while (at < size && !strchr("[,: ", text[at])) at++;
      while (at < size && strchr("[,: ", text[at])) at++;
      end = at;
      while (end < size && !strchr(",]}", text[end])) end++;
      break;
    case 1: /* a byte */
      text[at] = (char)draw(256);
      return size;
    case 2: /* nothing instead of a part */
      end = at + (size_t)draw(40), word = "";
      break;
    default: /* a part twice */
      length = (size_t)draw(200);
      if (at + length > size || size + length > room) return size;
      memmove(text + at + length, text + at, size - at);
      return size + length;
  }
  if (at > size) at = size;
  if (end > size) end = size;
  length = strlen(word);
  if (size - (end - at) + length > room) return size;
  memmove(text + at + length, text + end, size - end);
  memcpy(text + at, word, length);
  return size - (end - at) + length;
}

static bool try_file(const unsigned char *bytes, size_t size, const char *target) {
  char error[512] = "";
  void *memory[8] = {0};
  int bound = 0;
  qpg_graph *graph = qpg_open_memory(bytes, size, target, error, sizeof error);
  if (!graph) {
    if (!*error) abort();
    return false;
  }
  for (int k = 0; k < qpg_array_count(graph); k++) {
    qpg_array a;
    int64_t shape[QPG_MAX_RANK];
    size_t total;
    if (qpg_array_info(graph, k, &a) || strcmp(a.memory, "bound") || bound == 8) continue;
    total = a.item;
    for (int axis = 0; axis < a.rank; axis++) {
      shape[axis] = a.shape[axis] >= 0 ? a.shape[axis] : (int64_t)draw(4) ? 40 : (int64_t)draw(100);
      if (__builtin_mul_overflow(total, (size_t)shape[axis], &total)) total = 1 << 30;
    }
    if (total > 1 << 16) continue;
    memory[bound] = calloc(1, total + !total);
    qpg_bind(graph, a.name, memory[bound++], shape, a.rank);
  }
  budget = 8;
  bool ran = !qpg_run(graph, NULL);
  if (!ran && !*qpg_error(graph)) abort();
  qpg_run(graph, NULL);
  qpg_close(graph);
  while (bound) free(memory[--bound]);
  return ran;
}

int main(int argc, char **argv) {
  static unsigned char file[1 << 20];
  static char text[1 << 18];
  FILE *from = argc == 4 ? fopen(argv[1], "rb") : NULL;
  size_t size = from ? fread(file, 1, sizeof file, from) : 0, length, ran = 0, count = from ? strtoull(argv[2], NULL, 10) : 0;
  qpg_graph whole;
  memset(&whole, 0, sizeof whole);
  whole.file = file, whole.file_size = size;
  if (!size || setjmp(whole.leave)) return 2;
  state = 88172645463325252u + strtoull(argv[3], NULL, 10);
  open_zip(&whole);
  const unsigned char *manifest = entry_of(&whole, "manifest.json", &length);
  for (int k = 0; k < 50; k++) ran += try_file(file, size, k % 2 ? "gfx942" : "cpu"); /* some shapes do not fit */
  if (ran < 5 || length > sizeof text / 2) return 3;
  ran = 0;
  for (size_t turn = 0; turn < count; turn++) {
    const char *target = draw(4) ? "gfx942" : "cpu";
    size_t now = size, used = length;
    unsigned char *bytes;
    if (turn % 2) {
      memcpy(text, manifest, length);
      for (uint64_t k = draw(3) + 1; k; k--) used = mutate_text(text, used, sizeof text);
      bytes = with_manifest(file, size, text, used, &now);
    } else {
      bytes = (unsigned char *)malloc(size);
      memcpy(bytes, file, size);
      for (uint64_t k = draw(4) + 1; k; k--) bytes[draw(2) ? size - 1 - draw(size < 900 ? size : 900) : draw(size)] ^= (unsigned char)(1 << draw(8));
      if (!draw(8)) now = (size_t)draw(size);
    }
    unsigned char *exact = (unsigned char *)malloc(now + !now);
    memcpy(exact, bytes, now);
    free(bytes);
    ran += try_file(exact, now, target);
    free(exact);
  }
  printf("%zu of %zu mutated files ran\n", ran, count);
  return 0;
}
