/* See quadpy_graph.h.  The file's format is described in quadpy's documentation, "The format of saved graphs".
 *
 * Nothing in a file is trusted until it was checked: a file that is damaged in any way is an error with a text.  Errors leave
 * by longjmp to the call of the user; all memory belongs to the graph, so nothing is lost.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "quadpy_graph.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define NEW(graph, type, count) ((type *)take(graph, count, sizeof(type)))

enum { FORMAT = 1, MOST_DEPTH = 64, ALIGNED = 64, DONE = -1, CHECKED = 1 << 30, SPARE_BLOCKS = 8, USUAL_BLOCKS = 2048, BLOCKS_OF_UNIT = 2, TOO_LARGE = 720 };
static const int64_t MOST_BYTES = (int64_t)1 << 60; /* of an array */

/* JSON --------------------------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;
typedef enum { J_NULL, J_BOOL, J_INTEGER, J_TEXT, J_LIST, J_MAP } kind_t;

typedef struct node {
  wide number;       /* of J_BOOL and J_INTEGER; of J_LIST and J_MAP how many they contain */
  const char *text;  /* of J_TEXT */
  const char *key;   /* in a J_MAP */
  struct node *first, *next;
  kind_t kind;
} node;

/* What a graph is made of -------------------------------------------------------------------------------------------- */

static const char *const memories[] = {"bound", "internal", "constant"};

typedef struct {
  qpg_array info;
  int64_t fixed[QPG_MAX_RANK]; /* the extents; -1 for an axis that the caller chooses */
  int64_t aligned, most, bytes;
  bool is_users, is_bound, is_written;
} array_t;

typedef struct {
  char code;
  size_t offset, size;
} value_t;

typedef struct {
  const char *symbol;
  bool parallel, grid_stride, barrier, together; /* together: its blocks wait for each other */
  int64_t threads, shared, most_blocks;
  const node *extent, *coarsened;
  void *function;
} task_t;

typedef int32_t entry_t(void *, void *, int32_t);

typedef struct kernel_t {
  const char *name;
  int values, tasks, hidden;
  value_t *value; /* 'values' of the layout, and then 'hidden' addresses of scratch memory */
  task_t *task;
  size_t block, passed, scratch; /* CUDA refuses a size that has padding at its end: 'passed' has none */
  const node *flow, *limits, *parameters, *conditions; /* parameters: the values of the layout */
  entry_t *entry;
  struct kernel_t *one; /* for loops on a GPU: all in one launch, or NULL */
  char *memory;         /* of such a launch: scratch of its own, in which blocks count themselves, from 0 */
  int64_t depth, meetings;
} kernel_t;

static const char *const sources[] = {"pointer", "extent", "bits", "size"};
enum { S_POINTER, S_EXTENT, S_BITS, S_SIZE };

static const char *const kinds[] = {"kernel", "copy", "fill", "empty"};
enum { W_KERNEL, W_COPY, W_FILL, W_EMPTY };

typedef struct work_t {
  int kind;
  const char *name;
  kernel_t *code;
  struct work_t *one; /* the same in one launch, or NULL */
  const node *arguments;
  int64_t *number, *blocks; /* of the arguments as formulas see them; of each task's grid */
  char *block;
  void **parameters;        /* where in the block each argument is, for launches that want it so */
  array_t *to, *from;
  int64_t to_at, from_at;
  const node *bytes;        /* of a copy; of a fill, elements of a row */
  int64_t value, element, height, pitch, size;
} work_t;

typedef struct {
  const char *image; /* its entry in the file; NULL while it is not loaded */
  void *handle;
  int file;          /* on the CPU, one more than the descriptor of the file in memory */
} module_t;

typedef struct chunk {
  struct chunk *next;
  void *device; /* memory of a GPU that belongs to it */
} chunk;

struct driver;

struct qpg_graph {
  jmp_buf leave;
  char error[512], target[64];
  chunk *chunks;               /* all memory */
  const unsigned char *file;
  size_t file_size, directory, entries;
  int arrays, kernels, works;
  array_t *array;
  kernel_t *kernel;
  work_t *work;
  const node *sizes, *guards;  /* what formulas of works may use: arrays and axes; those that must be equal */
  int64_t *extents, units;     /* the values of 'sizes'; units of the GPU */
  bool is_ready;               /* all that depends on what is bound is known */
  work_t *one;                 /* all works as one launch, or NULL */
  int64_t longest;             /* the iterations of the longest loop */
  bool always, loops;          /* whether that launch is wanted in any case, and has loops */
  bool cooperates, is_one, is_apart; /* the device can; the arrays that are bound are such that it pays; it was refused */
  const struct driver *driver; /* NULL on the CPU */
  void *driver_library;
  int runs;                    /* of what is bound, up to the one that records them */
  void *recorder, *recorded;   /* a stream, and the works as a graph of CUDA's, or NULL */
  int (*replay)(void *, void *);
  module_t *modules;           /* as many as kernels, and an empty one */
  char *scratch;
};

/* Memory and errors -------------------------------------------------------------------------------------------------- */

__attribute__((noreturn, format(printf, 2, 3))) static void fail(qpg_graph *graph, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(graph->error, sizeof graph->error, format, arguments);
  va_end(arguments);
  longjmp(graph->leave, 1);
}

/* Zeroed memory that lives as long as the graph; pages that nothing touches cost nothing. */
static void *take(qpg_graph *graph, size_t count, size_t size) {
  size_t bytes;
  bool fits = !__builtin_mul_overflow(count, size, &bytes) && bytes < SIZE_MAX / 2;
  chunk *made = fits ? (chunk *)calloc(1, bytes + 2 * ALIGNED) : NULL;
  if (!made) fail(graph, "there is no memory for %zu objects of %zu bytes", count, size);
  made->next = graph->chunks;
  graph->chunks = made;
  return (char *)made + 2 * ALIGNED - (uintptr_t)made % ALIGNED;
}

/* JSON --------------------------------------------------------------------------------------------------------------- */

/* The text ends with NUL; what it contains as texts is decoded in place.  'unused' has room for all nodes. */
typedef struct {
  qpg_graph *graph;
  char *text, *at;
  node *unused;
} parser;

static char look(parser *p) {
  p->at += strspn(p->at, " \n\r\t");
  return *p->at;
}

__attribute__((noreturn)) static void damaged(parser *p, const char *what) {
  fail(p->graph, "the manifest is damaged: %s, at byte %zu", what, (size_t)(p->at - p->text));
}

static unsigned hex4(parser *p) {
  char digits[5] = "";
  if (strspn(p->at, "0123456789abcdefABCDEF") < 4) damaged(p, "\\u has no four digits");
  memcpy(digits, p->at, 4);
  p->at += 4;
  return (unsigned)strtoul(digits, NULL, 16);
}

static char *utf8(parser *p, char *to) {
  unsigned c = hex4(p);
  if (c >= 0xD800 && c < 0xDC00 && !strncmp(p->at, "\\u", 2)) {
    p->at += 2;
    c = 0x10000 + ((c - 0xD800) << 10) + ((hex4(p) - 0xDC00) & 0x3FF);
  }
  if (!c) damaged(p, "a text contains NUL");
  int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3; /* bytes after the first */
  *to++ = (char)(more ? 0xF00 >> more | c >> 6 * more : c);
  while (more--) *to++ = (char)(0x80 | (c >> 6 * more & 63));
  return to;
}

static const char *parse_text(parser *p) {
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  char *text = ++p->at, *to = text;
  while (*p->at && *p->at != '"') {
    const char *escape = *p->at == '\\' && p->at[1] ? strchr(from, p->at[1]) : NULL;
    if (escape) {
      *to++ = into[escape - from];
      p->at += 2;
    } else if (!strncmp(p->at, "\\u", 2)) {
      p->at += 2;
      to = utf8(p, to); /* takes at most 4 bytes for 6 */
    } else if (*p->at == '\\' || (unsigned char)*p->at < 32) {
      damaged(p, "a text contains an unknown escape or a control character");
    } else {
      *to++ = *p->at++;
    }
  }
  if (!*p->at++) damaged(p, "a text has no end");
  *to = '\0';
  return text;
}

static wide parse_integer(parser *p) {
  bool minus = *p->at == '-';
  const char *digits = p->at + minus;
  errno = 0;
  wide found = (wide)strtoull(digits, &p->at, 10);
  if (*digits < '0' || *digits > '9') damaged(p, "a value is missing");
  if (errno || (minus && found > (wide)1 << 63)) damaged(p, "an integer has more than 64 bits");
  if (*p->at && strchr(".eE", *p->at)) damaged(p, "a number is not an integer");
  return minus ? -found : found;
}

static node *parse(parser *p, int depth) {
  static const char *const words[] = {"null", "false", "true"};
  node *out = p->unused++, **last = &out->first;
  char begin = look(p), end = begin == '{' ? '}' : ']';
  if (depth >= MOST_DEPTH) damaged(p, "it is nested too deeply");
  for (size_t k = 0; k < COUNT(words); k++) {
    if (strncmp(p->at, words[k], strlen(words[k]))) continue;
    out->kind = k ? J_BOOL : J_NULL;
    out->number = k == 2;
    p->at += strlen(words[k]);
    return out;
  }
  if (begin == '"') {
    out->kind = J_TEXT;
    out->text = parse_text(p);
  } else if (begin == '{' || begin == '[') {
    out->kind = begin == '{' ? J_MAP : J_LIST;
    for (p->at++; look(p) != end; out->number++) {
      const char *key = NULL;
      if (out->number && *p->at++ != ',') damaged(p, "a comma is missing");
      if (begin == '{') {
        if (look(p) != '"') damaged(p, "a key is missing");
        key = parse_text(p);
        if (look(p) != ':') damaged(p, "a colon is missing");
        p->at++;
      }
      *last = parse(p, depth + 1);
      (*last)->key = key;
      last = &(*last)->next;
    }
    p->at++;
  } else {
    out->kind = J_INTEGER;
    out->number = parse_integer(p);
  }
  return out;
}

/* What the text of 'size' bytes says. */
static const node *parse_all(qpg_graph *graph, const unsigned char *from, size_t size) {
  size_t most = 1; /* a value is the first one, or comes after one of these; NUL is one of them to strchr */
  for (size_t k = 0; k < size; k++) most += strchr(",[{", from[k]) != NULL;
  char *text = (char *)memcpy(NEW(graph, char, size + 1), from, size);
  parser p = {graph, text, text, NEW(graph, node, most)};
  const node *root = parse(&p, 0);
  if (look(&p) || p.at != text + size) damaged(&p, "something follows it");
  return root;
}

/* The member of a map; NULL if it has none, or null. */
static const node *find(const node *map, const char *key) {
  const node *n = map && map->kind == J_MAP ? map->first : NULL;
  while (n && strcmp(n->key, key)) n = n->next;
  return n && n->kind != J_NULL ? n : NULL;
}

static const node *get(qpg_graph *graph, const node *map, const char *key, kind_t kind) {
  const node *found = find(map, key);
  if (!found || found->kind != kind) fail(graph, "the manifest is damaged: '%s' is missing or of another kind", key);
  return found;
}

static const char *get_text(qpg_graph *graph, const node *map, const char *key) { return get(graph, map, key, J_TEXT)->text; }

static bool get_bool(qpg_graph *graph, const node *map, const char *key) { return get(graph, map, key, J_BOOL)->number != 0; }

static int64_t integer(qpg_graph *graph, const node *n, int64_t least, int64_t most, const char *what) {
  if (!n || n->kind != J_INTEGER || n->number < least || n->number > most)
    fail(graph, "the manifest is damaged: %s is not a number from %lld to %lld", what, (long long)least, (long long)most);
  return (int64_t)n->number;
}

static int64_t get_integer(qpg_graph *graph, const node *map, const char *key, int64_t least, int64_t most) {
  return integer(graph, find(map, key), least, most, key);
}

/* The bits of an integer, signed or not. */
static int64_t bits_of(qpg_graph *graph, const node *n) {
  if (!n || n->kind != J_INTEGER) fail(graph, "the manifest is damaged: a number is missing");
  return (int64_t)n->number;
}

/* Element k of a list; NULL if it has fewer. */
static const node *item(const node *list, int64_t k) {
  const node *n = list && list->kind == J_LIST ? list->first : NULL;
  while (n && k--) n = n->next;
  return n;
}

static bool is_text(const node *n, const char *text) { return n && n->kind == J_TEXT && !strcmp(n->text, text); }

/* The number of the parameter in 'words' that a text names. */
static int choice(qpg_graph *graph, const node *n, const char *const *words, size_t count, const char *what) {
  for (size_t k = 0; k < count; k++)
    if (is_text(n, words[k])) return (int)k;
  fail(graph, "the manifest is damaged or newer than this reader: it has an unknown %s", what);
}

/* ZIP: entries that are stored, as the format has them ------------------------------------------------------------------- */

static uint32_t number(const unsigned char *at, int bytes) {
  uint32_t found = 0;
  while (bytes--) found = found << 8 | at[bytes];
  return found;
}

static uint32_t crc32_of(const unsigned char *at, size_t size) {
  static uint32_t table[256]; /* threads that fill it at once write the same */
  uint32_t crc = 0xFFFFFFFFu;
  for (uint32_t k = 0; !table[255] && k < 256; k++) {
    uint32_t c = k;
    for (int bit = 0; bit < 8; bit++) c = c & 1 ? 0xEDB88320u ^ (c >> 1) : c >> 1;
    table[k] = c;
  }
  while (size--) crc = table[(crc ^ *at++) & 255] ^ crc >> 8;
  return ~crc;
}

/* 'bytes' bytes of the file, which it must have; they begin with a number, unless that is 0. */
static const unsigned char *part(qpg_graph *graph, size_t begin, size_t bytes, uint32_t magic, const char *name) {
  if (begin > graph->file_size || bytes > graph->file_size - begin || (magic && number(graph->file + begin, 4) != magic))
    fail(graph, "the file is damaged: %s lies outside", name);
  return graph->file + begin;
}

static void open_zip(qpg_graph *graph) {
  size_t size = 22; /* of the end: there is no comment */
  const unsigned char *end = graph->file + graph->file_size - (graph->file_size < size ? graph->file_size : size);
  if (graph->file_size < size || number(end, 4) != 0x06054B50)
    fail(graph, "this is not a saved graph, or it is cut short: a ZIP ends otherwise");
  graph->entries = number(end + 10, 2);
  graph->directory = number(end + 16, 4);
}

/* The bytes of entry 'name', whose checksum is right. */
static const unsigned char *entry_of(qpg_graph *graph, const char *name, size_t *size) {
  size_t at = graph->directory, length = strlen(name);
  for (size_t k = 0; k < graph->entries; k++) {
    const unsigned char *entry = part(graph, at, 46, 0x02014B50, "its directory");
    size_t name_size = number(entry + 28, 2), bytes = number(entry + 24, 4), begin = number(entry + 42, 4);
    bool is_it = name_size == length && !memcmp(part(graph, at + 46, length, 0, "its directory"), name, length);
    at += 46 + name_size + number(entry + 30, 2) + number(entry + 32, 2);
    if (!is_it) continue;
    if (number(entry + 10, 2) || number(entry + 20, 4) != bytes) fail(graph, "the file is damaged: %s is compressed", name);
    const unsigned char *local = part(graph, begin, 30, 0x04034B50, name);
    const unsigned char *data = part(graph, begin + 30 + number(local + 26, 2) + number(local + 28, 2), bytes, 0, name);
    if (crc32_of(data, bytes) != number(entry + 16, 4)) fail(graph, "the file is damaged: the checksum of %s is wrong", name);
    *size = bytes;
    return data;
  }
  fail(graph, "the file is damaged, or not a saved graph: it has no %s", name);
}

/* Formulas ----------------------------------------------------------------------------------------------------------- */

static wide floor_division(wide a, wide b) {
  if (!b) return 0;
  wide quotient = b == -1 ? -a : a / b;
  return quotient - (quotient * b != a && (a < 0) != (b < 0));
}

/* What a formula gives, which is far from the limits of 128 bits. */
static wide evaluate(qpg_graph *graph, const node *formula, const int64_t *values, int count) {
  static const char *const names[] = {"add", "sub", "min", "max", "and", "floordiv", "mod", "mul", "count", "wrap", "product"};
  enum { ADD, SUB, MIN, MAX, AND, FLOORDIV, MOD, MUL, RANGE, WRAP, PRODUCT };
  if (formula && formula->kind == J_INTEGER) return formula->number;
  if (is_text(item(formula, 0), "value")) return values[integer(graph, item(formula, 1), 0, count - 1, "a formula's value")];
  int name = choice(graph, item(formula, 0), names, COUNT(names), "operation"), operands = 0;
  int64_t bits = integer(graph, item(formula, 1), 0, 64, "a formula's width");
  bool overflow = false;
  wide x[3] = {0, 0, 0}, product = 1, result;
  for (const node *n = item(formula, 3); n; n = n->next, operands++) {
    wide next = evaluate(graph, n, values, count);
    overflow |= __builtin_mul_overflow(product, next, &product);
    if (operands < 3) x[operands] = next;
  }
  if (name < PRODUCT && operands != (name == WRAP ? 1 : name == RANGE ? 3 : 2)) fail(graph, "the manifest is damaged: a formula lacks an operand");
  switch (name) {
    case ADD: result = x[0] + x[1]; break;
    case SUB: result = x[0] - x[1]; break;
    case MIN: result = x[0] < x[1] ? x[0] : x[1]; break;
    case MAX: result = x[0] > x[1] ? x[0] : x[1]; break;
    case AND: result = x[0] & x[1]; break;
    case FLOORDIV: result = floor_division(x[0], x[1]); break;
    case MOD: result = x[1] ? x[0] - floor_division(x[0], x[1]) * x[1] : 0; break;
    case RANGE: result = x[2] ? floor_division(x[1] - x[0] + (x[2] < 0 ? 1 : -1), x[2]) + 1 : 0; break;
    case WRAP: result = x[0]; break;
    default: result = product; break;
  }
  if (name == RANGE && result < 0) result = 0;
  overflow &= name == MUL || name == PRODUCT;
  if (bits && !overflow) { /* of a number that is wider, its low bits */
    bool is_signed = item(formula, 2) && item(formula, 2)->number;
    wide range = (wide)1 << bits;
    result &= range - 1;
    if (is_signed && result >= range >> 1) result -= range;
  }
  if (overflow || result > (wide)1 << 100 || result < -((wide)1 << 100))
    fail(graph, "a number that follows from the arrays' shapes is too large");
  return result;
}

/* A number, or an error for one that does not fit in 64 bits. */
static int64_t evaluated(qpg_graph *graph, const node *formula, const int64_t *values, int count) {
  wide found = evaluate(graph, formula, values, count);
  if (found < INT64_MIN || found > INT64_MAX) fail(graph, "a number that follows from the arrays' shapes is too large");
  return (int64_t)found;
}

/* GPUs: the calls of two drivers, which take the same arguments ----------------------------------------------------------- */

typedef int launch_t(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int launch_together_t(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);

static struct calls { /* in the order of driver.calls */
  int (*load)(void **, const void *), (*function)(void **, void *, const char *), (*unload)(void *);
  int (*allocate)(void **, size_t), (*release)(void *), (*upload)(void *, const void *, size_t);
  int (*download)(void *, const void *, size_t, void *), (*copy)(void *, const void *, size_t, void *);
  int (*fill8)(void *, unsigned char, size_t, void *), (*fill16)(void *, unsigned short, size_t, void *);
  int (*fill32)(void *, unsigned, size_t, void *);
  launch_t *launch;
  launch_together_t *launch_together;
  int (*wait)(void *), (*capturing)(void *, int *), (*occupancy)(int *, void *, int, size_t);
} calls[2];

enum { CALLS = sizeof(struct calls) / sizeof(void (*)(void)) };

struct driver {
  const char *name, *prefix, *libraries[2], *calls[CALLS];
  uintptr_t last; /* ends the list that says where arguments are */
  struct calls *call;
  /* In nanoseconds, what a node of a graph costs after another, a meeting of all blocks, and one of a single block's waves; from
   * how many launches on one launch is quicker (0: never), and up to how many iterations of a thread, also in loops.  The
   * figures are those of quadpy's own graphs on devices that were not measured (jit/fusion/worth.py). */
  int64_t node, meeting, alone, fewest, up_to, looped;
};

static const struct driver drivers[] = {
    {"HIP", "gfx", {"libamdhip64.so.7", "libamdhip64.so"},
     {"hipModuleLoadData", "hipModuleGetFunction", "hipModuleUnload", "hipMalloc", "hipFree", "hipMemcpyHtoD", "hipMemcpyDtoHAsync",
      "hipMemcpyDtoDAsync", "hipMemsetD8Async", "hipMemsetD16Async", "hipMemsetD32Async", "hipModuleLaunchKernel",
      "hipModuleLaunchCooperativeKernel", "hipStreamSynchronize", "hipStreamIsCapturing",
      "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
     3, &calls[0], 3900, 2000, 300, 2, 16, 16},
    {"CUDA", "sm_", {"libcuda.so.1", "libcuda.so"},
     {"cuModuleLoadData", "cuModuleGetFunction", "cuModuleUnload", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2",
      "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuLaunchKernel",
      "cuLaunchCooperativeKernel", "cuStreamSynchronize", "cuStreamIsCapturing", "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
     0, &calls[1], 1100, 1300, 150, 8, 0, 4},
};

/* Calls function 'name' of the driver with up to three arguments; a status other than 0 is an error where it must work. */
static bool ask(void *library, const char *name, void *a, void *b, void *c) {
  int (*function)(void *, void *, void *) = NULL;
  void *found = dlsym(library, name);
  memcpy(&function, &found, sizeof found);
  return function && !function(a, b, c);
}

static void check(qpg_graph *graph, int status, const char *what) {
  if (status) fail(graph, "%s: %s failed with status %d", graph->driver->name, what, status);
}

/* Opens the driver; 'device' becomes the name of its target, which is empty if nothing can run. */
static void open_driver(qpg_graph *graph, const struct driver *driver, char device[64]) {
  union { char bytes[8192]; int numbers[2048]; } facts;
  int ordinal = 0, major = 0, minor = 0, units = 0, cooperates = 0;
  void *library = NULL, *context = NULL;
  *device = '\0';
  memset(&facts, 0, sizeof facts);
  for (size_t k = 0; k < COUNT(driver->libraries) && !library; k++) library = dlopen(driver->libraries[k], RTLD_NOW);
  if (!library) return;
  for (size_t k = 0; k < CALLS; k++) {
    void *found = dlsym(library, driver->calls[k]);
    if (!found) return;
    memcpy((char *)driver->call + k * sizeof found, &found, sizeof found);
  }
  if (driver == &drivers[0]) { /* of hipDeviceProp_t as HIP 6 and later have it: these two, and gcnArchName */
    if (!ask(library, "hipGetDevice", &ordinal, NULL, NULL) ||
        !ask(library, "hipGetDevicePropertiesR0600", &facts, (void *)(intptr_t)ordinal, NULL))
      return;
    units = facts.numbers[388 / 4], cooperates = facts.numbers[688 / 4];
    snprintf(device, 64, "%.*s", (int)strcspn(facts.bytes + 1160, ":"), facts.bytes + 1160);
  } else {
    static const intptr_t wanted[] = {75, 76, 16, 95}; /* of CUdevice_attribute */
    int *const into[] = {&major, &minor, &units, &cooperates};
    if (!ask(library, "cuInit", NULL, NULL, NULL) || !ask(library, "cuCtxGetCurrent", &context, NULL, NULL) ||
        (!context && !ask(library, "cuDevicePrimaryCtxRetain", &context, NULL, NULL)) ||
        !ask(library, "cuCtxSetCurrent", context, NULL, NULL) || !ask(library, "cuCtxGetDevice", &ordinal, NULL, NULL))
      return;
    for (size_t k = 0; k < COUNT(wanted); k++)
      if (!ask(library, "cuDeviceGetAttribute", into[k], (void *)wanted[k], (void *)(intptr_t)ordinal)) return;
    snprintf(device, 64, "sm_%d", major * 10 + minor);
  }
  graph->driver_library = library;
  graph->units = units > 0 ? units : 128;
  graph->cooperates = cooperates && units > 0;
}

/* Targets ------------------------------------------------------------------------------------------------------------ */

/* The processors that code for a generic one runs on begin with these. */
static const char *const families[][2] = {{"gfx9-4-generic", "gfx94"}, {"gfx9-4-generic", "gfx95"}, {"gfx9-generic", "gfx90"},
                                          {"gfx10-1-generic", "gfx101"}, {"gfx10-3-generic", "gfx103"},
                                          {"gfx11-generic", "gfx11"}, {"gfx12-generic", "gfx120"}};

/* Whether code for 'target' runs on 'device'; for NVIDIA, how new the code is. */
static int fits(const char *target, const char *device) {
  size_t length = strcspn(target, ":");
  if (!strncmp(target, device, length) && !device[length]) return 1000;
  if (!strncmp(device, "sm_", 3) && !strncmp(target, "sm_", 3)) {
    bool is_plain = strspn(target + 3, "0123456789") == length - 3; /* code with a letter is for one device only */
    long made = is_plain ? strtol(target + 3, NULL, 10) : 0;
    return made <= strtol(device + 3, NULL, 10) ? (int)made : 0;
  }
  for (size_t k = 0; k < COUNT(families); k++)
    if (!strncmp(target, families[k][0], length) && !families[k][0][length] && !strncmp(device, families[k][1], strlen(families[k][1])))
      return 1;
  return 0;
}

/* How good code for a CPU is on this one; 0 if it does not run. */
static int runs_here(const char *target) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma");
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  int level = 1 + v2 + v3 + v4, needed = !strcmp(target, "cpu:x86-64");
  if (!strncmp(target, "cpu:x86-64-v", 12)) needed = target[12] - '0';
  return needed > 0 && needed <= level ? needed : 0;
#elif defined(__aarch64__)
  return !strcmp(target, "cpu:arm64");
#else
  return (void)target, 0;
#endif
}

/* Whether the user asks for a target, or accepts it. */
static bool is_wanted(const char *asked, const char *target) {
  bool is_cpu = !strncmp(target, "cpu:", 4);
  return !asked || !strcmp(asked, target) || (is_cpu && (!strcmp(asked, "cpu") || !strcmp(asked, target + 4)));
}

/* Chooses the best target of the file that is wanted and runs here: a GPU before the CPU. */
static void choose(qpg_graph *graph, const node *targets, const char *asked) {
  const struct driver *driver, *found = NULL;
  const char *target = NULL;
  char device[COUNT(drivers)][64] = {"", ""}, names[256] = "";
  int best = 0;
  for (const node *n = targets->first; n; n = n->next) {
    const char *name = n->kind == J_TEXT ? n->text : "";
    int how = strncmp(name, "cpu:", 4) ? 0 : runs_here(name), k = 0;
    snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", name);
    for (driver = NULL; k < (int)COUNT(drivers) && !driver; k++)
      if (!strncmp(name, drivers[k].prefix, 3)) driver = &drivers[k];
    if (!is_wanted(asked, name)) continue;
    if (driver && !*device[k - 1]) open_driver(graph, driver, device[k - 1]);
    if (driver && (how = fits(name, device[k - 1]))) how += 10;
    if (how > best) best = how, target = name, found = driver;
  }
  if (!target)
    fail(graph, "the file has code for %s, of which nothing runs here%s%s; the machine's GPUs: %s %s", *names ? names : "nothing",
         asked ? " as " : "", asked ? asked : "", *device[0] ? device[0] : *device[1] ? "" : "none that was needed", device[1]);
  if (found) open_driver(graph, found, device[0]); /* the last one may be another */
  graph->driver = found;
  snprintf(graph->target, sizeof graph->target, "%s", target);
}

/* Code --------------------------------------------------------------------------------------------------------------- */

/* The module of an image, loaded once; the CPU's library lies in memory that has a name as long as it is loaded. */
static void *module_of(qpg_graph *graph, const char *image) {
  size_t size;
  module_t *m = graph->modules;
  while (m->image && strcmp(m->image, image)) m++;
  if (m->image) return m->handle;
  const unsigned char *bytes = entry_of(graph, image, &size);
  if (graph->driver) {
    char *copy = NEW(graph, char, size + 1); /* PTX is a text, with an end */
    memcpy(copy, bytes, size);
    check(graph, graph->driver->call->load(&m->handle, copy), "loading code");
  } else {
    char path[64];
    m->file = memfd_create("quadpy graph", MFD_CLOEXEC) + 1;
    if (!m->file) fail(graph, "there is no memory for the code: %s", strerror(errno));
    if (write(m->file - 1, bytes, size) != (ssize_t)size) fail(graph, "the code cannot be written to memory: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file - 1);
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle) fail(graph, "the code cannot be loaded: %s", dlerror());
  }
  m->image = image;
  return m->handle;
}

/* The bytes of a value, by its letter in the language of Python's struct; 0 for none. */
static size_t size_of(char code) {
  static const char codes[] = "QqdIifHheBb?";
  const char *found = code ? strchr(codes, code) : NULL;
  return found ? (size_t)8 >> (found - codes) / 3 : 0;
}

static void load_task(qpg_graph *graph, const kernel_t *k, task_t *t, const node *from, void *handle) {
  t->symbol = get_text(graph, from, "symbol");
  t->parallel = get_bool(graph, from, "parallel");
  t->grid_stride = get_bool(graph, from, "grid_stride");
  t->barrier = get_bool(graph, from, "barrier");
  t->together = get_bool(graph, from, "cooperative");
  t->threads = get_integer(graph, from, "threads", 0, 1024);
  t->shared = get_integer(graph, from, "shared", 0, 1 << 20);
  t->extent = find(from, "extent");
  t->coarsened = find(from, "coarsened");
  t->most_blocks = USUAL_BLOCKS;
  if (!graph->driver) return;
  if (t->threads < 1) fail(graph, "the manifest is damaged: kernel %s has no threads", k->name);
  check(graph, graph->driver->call->function(&t->function, handle, t->symbol), t->symbol);
  if (t->shared) ask(graph->driver_library, "cuFuncSetAttribute", t->function, (void *)8, (void *)(intptr_t)t->shared); /* most dynamic shared memory */
  int resident = 0;
  if (!graph->driver->call->occupancy(&resident, t->function, (int)t->threads, (size_t)t->shared) && resident > 0)
    t->most_blocks = resident * graph->units;
  if (t->together) t->most_blocks = (resident < BLOCKS_OF_UNIT ? resident : BLOCKS_OF_UNIT) * graph->units;
}

/* Memory of the target, all zeros, that lives as long as the graph. */
static char *allocate(qpg_graph *graph, size_t bytes) {
  if (!graph->driver) return NEW(graph, char, bytes);
  if (!bytes) return NULL;
  const struct calls *call = graph->driver->call;
  take(graph, 0, 0);
  void **begin = &graph->chunks->device;
  check(graph, call->allocate(begin, bytes), "allocating memory");
  check(graph, call->fill8(*begin, 0, bytes, NULL), "clearing memory");
  check(graph, call->wait(NULL), "clearing memory");
  return (char *)*begin;
}

/* Adds a value of the argument block, of which 'size' bytes may have it. */
static void load_value(qpg_graph *graph, kernel_t *k, char code, const node *offset, size_t size) {
  value_t *v = &k->value[k->values + k->hidden];
  v->code = code;
  v->size = size_of(code);
  v->offset = (size_t)integer(graph, offset, 0, 1 << 20, "an argument's offset");
  if (!v->size || v->offset + v->size > size) fail(graph, "the manifest is damaged: an argument of kernel %s lies outside", k->name);
  if (k->passed < v->offset + v->size) k->passed = v->offset + v->size;
}

static void load_kernel(qpg_graph *graph, kernel_t *k, const node *from, const node *facts) {
  const node *layout = get(graph, from, "layout", J_MAP), *tasks = get(graph, facts, "tasks", J_LIST);
  const node *hidden = get(graph, facts, "hidden", J_LIST), *n;
  size_t size = (size_t)get_integer(graph, layout, "size", 0, 1 << 20);
  k->name = get_text(graph, from, "name");
  k->parameters = get(graph, layout, "values", J_LIST);
  k->value = NEW(graph, value_t, (size_t)(k->parameters->number + hidden->number));
  k->block = graph->driver ? (size_t)get_integer(graph, facts, "block", (int64_t)size, 1 << 20) : size;
  for (n = k->parameters->first; n; n = n->next, k->values++) {
    const node *code = item(n, 3);
    load_value(graph, k, code && code->kind == J_TEXT ? *code->text : '\0', item(n, 4), size);
  }
  for (n = hidden->first; n; n = n->next) { /* those inside the layout are among the arguments */
    if (integer(graph, item(n, 1), 0, 1 << 20, "a hidden argument's offset") < (int64_t)size) continue;
    if (!is_text(item(n, 0), "scratch") && !is_text(item(n, 0), "results"))
      fail(graph, "kernel %s takes an argument that this reader does not know", k->name);
    load_value(graph, k, 'Q', item(n, 1), k->block);
    k->hidden++;
  }
  k->scratch = 8 * (size_t)get_integer(graph, facts, "slots", 0, 1 << 28);
  k->limits = find(facts, "limits");
  k->conditions = find(from, "conditions");
  k->flow = find(facts, "flow");
  k->task = NEW(graph, task_t, (size_t)tasks->number);
  void *handle = module_of(graph, get_text(graph, facts, "image"));
  for (n = tasks->first; n; n = n->next) load_task(graph, k, &k->task[k->tasks++], n, handle);
  if (graph->driver) return;
  void *found = dlsym(handle, get_text(graph, facts, "entry"));
  if (!found) fail(graph, "the code of kernel %s is not in the file's library", k->name);
  memcpy(&k->entry, &found, sizeof found);
}

/* A kernel whose tasks are one launch; NULL if there is no such code, or the device cannot run it. */
static kernel_t *load_together(qpg_graph *graph, const node *from, const node *facts) {
  if (!graph->driver || !graph->cooperates || !facts) return NULL;
  kernel_t *k = NEW(graph, kernel_t, 1);
  load_kernel(graph, k, from, facts);
  if (k->tasks != 1 || !k->task->together) fail(graph, "the manifest is damaged: kernel %s is no single launch", k->name);
  k->memory = allocate(graph, k->scratch + 8);
  k->depth = find(facts, "depth") ? get_integer(graph, facts, "depth", 0, INT32_MAX) : 0;
  k->meetings = get_integer(graph, get(graph, facts, "tasks", J_LIST)->first, "meetings", 0, INT32_MAX);
  return k->task->most_blocks ? k : NULL;
}

/* Arrays and works ------------------------------------------------------------------------------------------------------ */

/* How many bytes an array with these extents has. */
static int64_t bytes_of(qpg_graph *graph, const array_t *a, const int64_t *shape) {
  wide bytes = (wide)a->info.item;
  for (int k = 0; k < a->info.rank; k++) {
    if (shape[k] < 0) fail(graph, "axis %d of array %s cannot have %lld elements", k, a->info.name, (long long)shape[k]);
    if (a->fixed[k] >= 0 && shape[k] != a->fixed[k])
      fail(graph, "axis %d of array %s has %lld elements, not %lld", k, a->info.name, (long long)a->fixed[k], (long long)shape[k]);
    bytes *= shape[k];
    if (bytes > a->most || (a->most < MOST_BYTES && shape[k] > INT32_MAX))
      fail(graph, "array %s has more than the %lld bytes that the code is made for", a->info.name, (long long)a->most);
  }
  return (int64_t)bytes;
}

static void load_array(qpg_graph *graph, array_t *a, const node *from) {
  const node *shape = get(graph, from, "shape", J_LIST), *most = find(from, "most");
  qpg_array *info = &a->info;
  int memory = choice(graph, find(from, "memory"), memories, COUNT(memories), "kind of memory");
  info->memory = memories[memory];
  info->name = get_text(graph, from, "name");
  info->type = get_text(graph, from, "type");
  info->access = get_text(graph, from, "access");
  info->item = (size_t)get_integer(graph, from, "item", 1, 1 << 30);
  a->is_users = memory == 0;
  a->is_written = strchr(info->access, 'w') != NULL;
  a->aligned = get_integer(graph, from, "aligned", 0, 1 << 20);
  a->most = most ? integer(graph, most, 0, MOST_BYTES, "'most'") : MOST_BYTES;
  if (shape->number > QPG_MAX_RANK) fail(graph, "array %s has more than %d axes", info->name, QPG_MAX_RANK);
  for (const node *n = shape->first; n; n = n->next, info->rank++) {
    bool is_free = a->is_users && is_text(item(n, 0), "value");
    a->fixed[info->rank] = info->shape[info->rank] = is_free ? -1 : integer(graph, n, 0, INT64_MAX, "an extent");
  }
  if (a->is_users) return;
  a->bytes = bytes_of(graph, a, a->fixed);
  info->pointer = allocate(graph, (size_t)a->bytes);
  a->is_bound = true;
  if (!find(from, "data")) return;
  size_t size;
  const unsigned char *data = entry_of(graph, get_text(graph, from, "data"), &size);
  if (size != (size_t)a->bytes) fail(graph, "the file is damaged: the data of array %s have another size", info->name);
  if (!graph->driver) memcpy(info->pointer, data, size);
  else if (size) check(graph, graph->driver->call->upload(info->pointer, data, size), "copying data");
}

static array_t *array_at(qpg_graph *graph, const node *n) {
  return &graph->array[integer(graph, n, 0, graph->arrays - 1, "an array's number")];
}

static int64_t extent_at(qpg_graph *graph, const node *array, const node *axis) {
  const qpg_array *info = &array_at(graph, array)->info;
  return info->shape[integer(graph, axis, 0, info->rank - 1, "an axis")];
}

/* The array and the offset of [array, offset]. */
static array_t *place_at(qpg_graph *graph, const node *place, int64_t *offset) {
  *offset = integer(graph, item(place, 1), 0, INT64_MAX, "an offset");
  return array_at(graph, item(place, 0));
}

/* The address in an argument ["pointer", array, offset], of so many bytes that are inside its array. */
static char *pointer_of(qpg_graph *graph, const work_t *w, const node *argument, int64_t bytes) {
  const array_t *a = array_at(graph, item(argument, 1));
  int64_t offset = integer(graph, item(argument, 2), 0, INT64_MAX, "an offset");
  if (offset > a->bytes - bytes) fail(graph, "array %s is too small for kernel %s", a->info.name, w->code->name);
  return a->info.pointer ? (char *)a->info.pointer + offset : NULL;
}

/* Where the condition 'name' of a loop is, and its bytes. */
static char *condition_of(qpg_graph *graph, const work_t *w, const char *name, size_t *bytes) {
  const node *n = item(w->code->conditions, 0), *value = w->code->parameters->first, *argument = w->arguments->first;
  while (n && !is_text(item(n, 0), name)) n = n->next;
  while (value && !is_text(item(value, 0), name)) value = value->next, argument = argument->next;
  if (!n || !value || !is_text(item(argument, 0), "pointer")) fail(graph, "the manifest is damaged: kernel %s has no condition %s", w->code->name, name);
  *bytes = (size_t)integer(graph, item(n, 1), 1, 8, "the size of a condition");
  return pointer_of(graph, w, argument, (int64_t)*bytes);
}

static void load_call(qpg_graph *graph, work_t *w, kernel_t *k, const node *arguments) {
  char *scratch = k->memory ? k->memory : graph->scratch;
  size_t values = (size_t)k->values + (size_t)k->hidden;
  w->name = k->name;
  w->code = k;
  w->arguments = arguments;
  if (arguments->number != k->values) fail(graph, "the manifest is damaged: a call of kernel %s has other arguments", k->name);
  for (const node *n = arguments->first; n; n = n->next)
    if (choice(graph, item(n, 0), sources, COUNT(sources), "argument") < S_BITS) array_at(graph, item(n, 1));
  w->number = NEW(graph, int64_t, values);
  w->blocks = NEW(graph, int64_t, (size_t)k->tasks);
  w->block = NEW(graph, char, k->block);
  w->parameters = NEW(graph, void *, values);
  for (size_t at = 0; at < values; at++) {
    w->parameters[at] = w->block + k->value[at].offset;
    if (at >= (size_t)k->values) memcpy(w->parameters[at], &scratch, 8);
  }
  if (!k->one) return;
  w->one = NEW(graph, work_t, 1);
  load_call(graph, w->one, k->one, arguments);
}

static void load_work(qpg_graph *graph, work_t *w, const node *from) {
  w->kind = choice(graph, find(from, "kind"), kinds, COUNT(kinds), "kind of work");
  w->name = find(from, "name") ? get_text(graph, from, "name") : kinds[w->kind];
  if (w->kind == W_KERNEL)
    load_call(graph, w, &graph->kernel[get_integer(graph, from, "kernel", 0, graph->kernels - 1)], get(graph, from, "arguments", J_LIST));
  if (w->kind == W_COPY || w->kind == W_FILL) w->to = place_at(graph, find(from, "target"), &w->to_at);
  if (w->kind == W_COPY) w->from = place_at(graph, find(from, "source"), &w->from_at);
  w->bytes = find(from, w->kind == W_COPY ? "bytes" : "width");
  if (w->kind != W_FILL) return;
  w->value = bits_of(graph, find(from, "value"));
  w->element = get_integer(graph, from, "element", 1, 4);
  w->height = get_integer(graph, from, "height", 0, INT64_MAX);
  w->pitch = get_integer(graph, from, "pitch", 0, INT64_MAX);
  if (w->element == 3) fail(graph, "the manifest is damaged: a fill has elements of 3 bytes");
}

/* Reads the extents that a caller chooses, and compares those that must be equal; they are -1 before they are bound. */
static void read_extents(qpg_graph *graph) {
  int64_t *to = graph->extents;
  for (const node *n = graph->sizes->first; n; n = n->next) *to++ = extent_at(graph, item(n, 0), item(n, 1));
  for (const node *n = graph->guards->first; n; n = n->next) {
    const node *one = item(find(n, "arrays"), 0), *other = item(find(n, "arrays"), 1);
    if (!is_text(find(n, "kind"), "same")) fail(graph, "the file has a condition that this reader does not know");
    int64_t extent = extent_at(graph, item(one, 0), item(one, 1)), equal = extent_at(graph, item(other, 0), item(other, 1));
    if (extent != equal && extent >= 0 && equal >= 0)
      fail(graph, "arrays have %lld and %lld elements where the graph needs equal numbers", (long long)extent, (long long)equal);
  }
}

static void load(qpg_graph *graph, const char *target) {
  size_t size, scratch = 0;
  open_zip(graph);
  const unsigned char *manifest = entry_of(graph, "manifest.json", &size);
  const node *root = parse_all(graph, manifest, size), *n;
  if (get(graph, root, "format", J_INTEGER)->number != FORMAT)
    fail(graph, "the file has format %lld, this reader knows %d", (long long)find(root, "format")->number, FORMAT);
  if (find(root, "parameters")) fail(graph, "the file has a kernel alone, and no graph");
  const node *arrays = get(graph, root, "arrays", J_LIST), *kernels = get(graph, root, "kernels", J_LIST);
  const node *works = get(graph, root, "works", J_LIST), *fused = find(root, "fused"), *all = find(fused, "kernel");
  choose(graph, get(graph, root, "targets", J_LIST), target);
  graph->array = NEW(graph, array_t, (size_t)arrays->number);
  for (n = arrays->first; n; n = n->next) load_array(graph, &graph->array[graph->arrays++], n);
  graph->kernel = NEW(graph, kernel_t, (size_t)kernels->number);
  graph->modules = NEW(graph, module_t, 2 * (size_t)kernels->number + 2);
  for (n = kernels->first; n; n = n->next) {
    kernel_t *k = &graph->kernel[graph->kernels++];
    const node *facts = get(graph, get(graph, n, "code", J_MAP), graph->target, J_MAP);
    load_kernel(graph, k, n, facts);
    k->one = load_together(graph, n, find(facts, "one"));
    if (k->scratch > scratch) scratch = k->scratch;
  }
  graph->scratch = allocate(graph, scratch);
  graph->work = NEW(graph, work_t, (size_t)works->number);
  for (n = works->first; n; n = n->next) load_work(graph, &graph->work[graph->works++], n);
  kernel_t *one = load_together(graph, all, find(find(all, "code"), graph->target));
  if (one) {
    graph->always = get_bool(graph, fused, "always");
    graph->loops = get_bool(graph, fused, "loops");
    graph->one = NEW(graph, work_t, 1);
    load_call(graph, graph->one, one, get(graph, fused, "arguments", J_LIST));
  }
  graph->sizes = get(graph, root, "sizes", J_LIST);
  graph->guards = get(graph, root, "guards", J_LIST);
  graph->extents = NEW(graph, int64_t, (size_t)graph->sizes->number);
  read_extents(graph);
}

/* Launches ----------------------------------------------------------------------------------------------------------- */

static void launch(qpg_graph *graph, const work_t *w, int64_t task, void *stream) {
  const struct driver *driver = graph->driver;
  const task_t *t = &w->code->task[task];
  size_t size = w->code->passed;
  void *extra[] = {(void *)1, w->block, (void *)2, &size, (void *)driver->last};
  unsigned grid = (unsigned)w->blocks[task], threads = (unsigned)t->threads, shared = (unsigned)t->shared;
  if (grid) check(graph, driver->call->launch(t->function, grid, 1, 1, threads, 1, 1, shared, stream, NULL, extra), t->symbol);
}

static bool is_captured(const qpg_graph *graph, void *stream) {
  int status = 0;
  return graph->driver && !graph->driver->call->capturing(stream, &status) && status;
}

/* Launches the tasks of a flow, or only checks that it can: it comes from a file. */
static void run_flow(qpg_graph *graph, const work_t *w, const node *flow, void *stream, bool is_check) {
  if (!flow || flow->kind != J_LIST) fail(graph, "the manifest is damaged: the flow of kernel %s is no list", w->code->name);
  for (const node *step = flow->first; step; step = step->next) {
    const node *fork = find(step, "fork");
    uint64_t goes_on = 0;
    size_t bytes;
    if (step->kind != J_MAP) {
      int64_t task = integer(graph, step, 0, w->code->tasks - 1, "a task's number");
      if (!is_check) launch(graph, w, task, stream);
      continue;
    }
    for (const node *branch = item(fork, 0); branch; branch = branch->next) run_flow(graph, w, branch, stream, is_check);
    if (fork) continue;
    const char *condition = condition_of(graph, w, get_text(graph, step, "loop"), &bytes);
    if (!is_check && is_captured(graph, stream)) fail(graph, "kernel %s has a loop for which the host waits, and the stream is captured", w->code->name);
    do {
      run_flow(graph, w, find(step, "body"), stream, is_check);
      if (is_check) break;
      check(graph, graph->driver->call->download(&goes_on, condition, bytes, stream), "reading a condition");
      check(graph, graph->driver->call->wait(stream), "waiting for a loop");
    } while (goes_on);
  }
}

/* What follows from the arrays that are bound ------------------------------------------------------------------------------ */

/* The bytes of one scalar: the number in the name of its type; 1 for structs. */
static int64_t alignment_of(const char *type) {
  long bits = strchr(type, '(') ? 8 : strtol(type + strcspn(type, "0123456789"), NULL, 10);
  return bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 1;
}

static void check_array(qpg_graph *graph, const array_t *a) {
  const char *name = a->info.name;
  uintptr_t begin = (uintptr_t)a->info.pointer, end = begin + (uintptr_t)a->bytes;
  if (!a->is_bound) fail(graph, "array %s is not bound", name);
  if (!a->is_users || !a->bytes) return;
  int64_t unit = graph->driver ? a->aligned : alignment_of(a->info.type);
  if (unit > 1 && begin % (uintptr_t)unit) fail(graph, "array %s must begin at a multiple of %lld bytes", name, (long long)unit);
  for (const array_t *b = graph->array; b < a; b++) {
    uintptr_t other = (uintptr_t)b->info.pointer;
    if (b->is_users && (a->is_written || b->is_written) && begin < other + (uintptr_t)b->bytes && other < end)
      fail(graph, "arrays %s and %s overlap, and the graph writes one of them", b->info.name, name);
  }
}

static void prepare_argument(qpg_graph *graph, const work_t *w, const node *from, int at) {
  const value_t *v = &w->code->value[at];
  int kind = choice(graph, item(from, 0), sources, COUNT(sources), "argument"), unused = 64 - 8 * (int)v->size;
  int64_t found;
  if (kind == S_POINTER) {
    if (v->size != 8) fail(graph, "the manifest is damaged: an address of kernel %s has no 64 bits", w->code->name);
    found = (int64_t)(uintptr_t)pointer_of(graph, w, from, 0);
  } else if (kind == S_BITS) {
    found = bits_of(graph, item(from, 1));
  } else if (kind == S_SIZE) {
    found = evaluated(graph, item(from, 1), graph->extents, (int)graph->sizes->number);
    if (found > graph->longest) graph->longest = found; /* so that a large one is not used */
  } else {
    found = extent_at(graph, item(from, 1), item(from, 2));
    if (found >= (wide)1 << (8 * v->size - (v->code >= 'a')))
      fail(graph, "array %s is too large for kernel %s", array_at(graph, item(from, 1))->info.name, w->code->name);
  }
  memcpy(w->block + v->offset, &found, v->size);
  uint64_t bits = (uint64_t)found << unused; /* formulas see it with its sign */
  w->number[at] = v->code >= 'a' ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

static int64_t blocks_of(qpg_graph *graph, const work_t *w, const task_t *t) {
  int64_t count = t->extent ? evaluated(graph, t->extent, w->number, w->code->values) : 0, most = (int64_t)UINT32_MAX / t->threads;
  if (!t->together && count > graph->longest) graph->longest = count;
  if (!t->parallel) return 1;
  if (!t->extent || (t->together && count <= 0)) return t->most_blocks; /* a part whose size only the device knows */
  int64_t blocks = count > 0 ? (count - 1) / t->threads + 1 : 0;
  if (t->grid_stride) return blocks < t->most_blocks ? blocks : t->most_blocks;
  if (blocks > INT32_MAX || blocks > most) fail(graph, "kernel %s: a loop has too many iterations for the device", w->code->name);
  if (t->coarsened && USUAL_BLOCKS * graph->units / t->threads <= blocks && blocks <= most - SPARE_BLOCKS) {
    count = evaluated(graph, t->coarsened, w->number, w->code->values);
    count = count > 0 ? (count - 1) / t->threads + 1 : 0;
    if (count < blocks) blocks = count;
  }
  return blocks;
}

/* An access that is certain to be outside its array is an error before anything runs; see core/artifact.py, Limit.  Its
 * terms, which tell quickly that it is inside, are not needed: this is once for what is bound. */
static void check_limit(qpg_graph *graph, const work_t *w, const node *limit) {
  int count = w->code->values;
  const node *array = item(item(limit, 0), 0), *low = item(limit, 3), *numbers = item(limit, 5);
  int64_t axis = integer(graph, item(limit, 1), 0, QPG_MAX_RANK, "a limit's axis");
  for (const node *run = item(numbers, 1); run; run = run->next)
    if (evaluated(graph, run, w->number, count) <= 0) return;
  int64_t index = evaluated(graph, item(numbers, 0), w->number, count);
  int64_t extent = evaluated(graph, item(array, axis + 1), w->number, count);
  if (index < 0 || (index >= extent && !(low && low->number)))
    fail(graph, "kernel %s is certain to access index %lld of axis %lld of %s, which has %lld elements there", w->code->name,
         (long long)index, (long long)axis, item(array, 0) && item(array, 0)->text ? item(array, 0)->text : "an array", (long long)extent);
}

static void check_range(qpg_graph *graph, const work_t *w, const array_t *a, int64_t at, wide bytes) {
  if (at > a->bytes || bytes > a->bytes - at) fail(graph, "array %s is too small for %s", a->info.name, w->name);
}

static void prepare_call(qpg_graph *graph, work_t *w) {
  const kernel_t *kernel = w->code;
  int at = 0;
  for (const node *n = w->arguments->first; n; n = n->next) prepare_argument(graph, w, n, at++);
  for (const node *n = item(kernel->limits, 0); n; n = n->next) check_limit(graph, w, n);
  for (int k = 0; k < kernel->tasks; k++) {
    const task_t *t = &kernel->task[k];
    if (graph->driver) w->blocks[k] = blocks_of(graph, w, t);
    if (t->barrier && t->extent && t->threads && evaluated(graph, t->extent, w->number, kernel->values) % t->threads)
      fail(graph, "kernel %s: the iterations of a loop wait for each other, and are no whole blocks of %lld", kernel->name, (long long)t->threads);
  }
  if (graph->driver && kernel->flow) run_flow(graph, w, kernel->flow, NULL, true);
  if (w->one) prepare_call(graph, w->one);
}

static void prepare_move(qpg_graph *graph, work_t *w) {
  w->size = evaluated(graph, w->bytes, graph->extents, (int)graph->sizes->number);
  if (w->size < 0) fail(graph, "%s has a negative size", w->name);
  wide row = (wide)w->size * (w->from ? 1 : w->element), below = w->height > 1 ? (wide)(w->height - 1) * w->pitch : 0;
  if (w->from) check_range(graph, w, w->from, w->from_at, row);
  if (w->height > 1 && row > w->pitch) fail(graph, "the rows of %s overlap", w->name);
  if (row && (w->from || w->height)) check_range(graph, w, w->to, w->to_at, below + row);
}

/* Whether all works should be one launch; by counts and costs, as live graphs (jit/fusion/worth.py). */
static bool is_quicker(const qpg_graph *graph) {
  const struct driver *driver = graph->driver;
  const kernel_t *k = graph->one->code;
  int64_t threads = BLOCKS_OF_UNIT * graph->units * 256, up_to = driver->up_to ? driver->up_to * threads : 256;
  if (graph->longest > INT32_MAX) return false;
  if (graph->always) return true;
  if (graph->longest > (graph->loops ? driver->looped * threads : up_to)) return false;
  if (graph->loops) return true;
  if (k->meetings && k->depth < driver->fewest) return false;
  return k->meetings * (*graph->one->blocks > 1 ? driver->meeting : driver->alone) <= (k->depth - 1) * driver->node;
}

static void forget_recorded(qpg_graph *graph) {
  if (graph->recorded) ask(graph->driver_library, "cuGraphExecDestroy", graph->recorded, NULL, NULL);
  graph->recorded = NULL;
  graph->runs = 0;
}

__attribute__((noinline)) static void prepare(qpg_graph *graph) {
  for (int k = 0; k < graph->arrays; k++) check_array(graph, &graph->array[k]);
  read_extents(graph);
  graph->longest = 0;
  for (work_t *w = graph->work; w < graph->work + graph->works; w++) {
    if (w->kind == W_KERNEL) prepare_call(graph, w);
    else if (w->kind != W_EMPTY) prepare_move(graph, w);
  }
  if (graph->one) prepare_call(graph, graph->one);
  graph->is_one = graph->one && is_quicker(graph);
  forget_recorded(graph);
  graph->is_ready = true;
}

/* Runs --------------------------------------------------------------------------------------------------------------- */

/* Runs 'w', if there is one and the device has room for its blocks; false if not. */
static bool run_together(qpg_graph *graph, const work_t *w, void *stream) {
  const struct driver *driver = graph->driver;
  if (!w || graph->is_apart || (driver == &drivers[0] && is_captured(graph, stream))) return false; /* HIP captures no such launch */
  const task_t *t = w->code->task;
  int status = driver->call->launch_together(t->function, (unsigned)*w->blocks, 1, 1, (unsigned)t->threads, 1, 1, (unsigned)t->shared, stream, w->parameters);
  graph->is_apart = status == TOO_LARGE;
  if (graph->is_apart) return false;
  check(graph, status, t->symbol);
  if (driver == &drivers[0]) /* it runs on a queue of its own, for which an event on the stream would not wait */
    check(graph, driver->call->fill8(w->code->memory + w->code->scratch, 0, 8, stream), t->symbol);
  return true;
}

static void run_on_gpu(qpg_graph *graph, const work_t *w, void *stream) {
  const struct calls *call = graph->driver->call;
  if (w->kind == W_KERNEL) {
    if (run_together(graph, w->one, stream)) return;
    if (w->code->flow) run_flow(graph, w, w->code->flow, stream, false);
    else for (int k = 0; k < w->code->tasks; k++) launch(graph, w, k, stream);
    return;
  }
  char *to = (char *)w->to->info.pointer + w->to_at;
  size_t size = (size_t)w->size;
  if (w->kind == W_COPY) check(graph, call->copy(to, (char *)w->from->info.pointer + w->from_at, size, stream), w->name);
  for (int64_t row = 0; row < w->height; row++, to += w->pitch)
    check(graph,
          w->element == 1   ? call->fill8(to, (unsigned char)w->value, size, stream)
          : w->element == 2 ? call->fill16(to, (unsigned short)w->value, size, stream)
                            : call->fill32(to, (unsigned)w->value, size, stream),
          w->name);
}

static void run_on_cpu(qpg_graph *graph, const work_t *w) {
  if (w->kind == W_KERNEL) {
    int32_t next = item(w->code->limits, 0) ? CHECKED : 0; /* the limits were checked */
    while ((next = w->code->entry(w->block, graph->scratch, next)) >= 0) {}
    if (next != DONE) fail(graph, next == -2 ? "kernel %s: there is no working memory" : "kernel %s was broken off", w->code->name);
    return;
  }
  char *to = (char *)w->to->info.pointer + w->to_at;
  size_t size = (size_t)w->size, element = (size_t)w->element;
  if (w->kind == W_COPY) memmove(to, (char *)w->from->info.pointer + w->from_at, size);
  for (int64_t row = 0; row < w->height; row++, to += w->pitch) {
    if (element == 1) memset(to, (int)w->value, size);
    else for (size_t k = 0; k < size; k++) memcpy(to + k * element, &w->value, element);
  }
}

__attribute__((noinline)) static void run_works(qpg_graph *graph, void *stream) {
  for (const work_t *w = graph->work; w < graph->work + graph->works; w++) {
    if (w->kind != W_KERNEL && !w->size) continue;
    if (graph->driver) run_on_gpu(graph, w, stream);
    else run_on_cpu(graph, w);
  }
}

/* Makes a graph of CUDA's of the works, unless there is one alone or the host repeats loops: it costs one launch.
 * If that fails, they run as before. */
static void record(qpg_graph *graph) {
  void *library = graph->driver_library, *found = library ? dlsym(library, "cuGraphLaunch") : NULL, *made = NULL;
  volatile bool done = false;
  jmp_buf caller;
  if (!found || graph->works < 2) return; /* HIP's graphs launch their nodes one by one */
  for (const kernel_t *k = graph->kernel; k < graph->kernel + graph->kernels; k++)
    if (item(k->conditions, 0)) return;
  memcpy(&graph->replay, &found, sizeof found);
  if (!graph->recorder && !ask(library, "cuStreamCreate", &graph->recorder, (void *)1, NULL)) return; /* waits for no other */
  if (!ask(library, "cuStreamBeginCapture_v2", graph->recorder, (void *)2, NULL)) return;             /* whatever threads call */
  memcpy(&caller, &graph->leave, sizeof caller);
  if (!setjmp(graph->leave)) {
    run_works(graph, graph->recorder);
    done = true;
  }
  memcpy(&graph->leave, &caller, sizeof caller);
  if (!ask(graph->driver_library, "cuStreamEndCapture", graph->recorder, &made, NULL)) return;
  if (!done || !ask(graph->driver_library, "cuGraphInstantiateWithFlags", &graph->recorded, made, NULL)) graph->recorded = NULL;
  ask(graph->driver_library, "cuGraphDestroy", made, NULL, NULL);
}

/* The calls of the user ------------------------------------------------------------------------------------------------- */

qpg_graph *qpg_open_memory(const void *bytes, size_t size, const char *target, char *error, size_t error_size) {
  qpg_graph *volatile graph = (qpg_graph *)calloc(1, sizeof *graph); /* after longjmp, too */
  if (graph && !setjmp(graph->leave)) {
    graph->file = (const unsigned char *)bytes;
    graph->file_size = size;
    load(graph, target);
    return graph;
  }
  if (error && error_size) snprintf(error, error_size, "%s", graph ? graph->error : "there is no memory");
  qpg_close(graph);
  return NULL;
}

qpg_graph *qpg_open(const char *path, const char *target, char *error, size_t error_size) {
  struct stat facts;
  FILE *file = fopen(path, "rb");
  char *bytes = file && !fstat(fileno(file), &facts) ? (char *)malloc((size_t)facts.st_size + 1) : NULL;
  size_t size = bytes ? fread(bytes, 1, (size_t)facts.st_size, file) : 0;
  qpg_graph *graph = NULL;
  if (bytes && !ferror(file)) graph = qpg_open_memory(bytes, size, target, error, error_size);
  else if (error && error_size) snprintf(error, error_size, "%s cannot be read: %s", path, strerror(errno));
  if (file) fclose(file);
  free(bytes);
  return graph;
}

const char *qpg_target(const qpg_graph *graph) { return graph->target; }

int qpg_array_count(const qpg_graph *graph) { return graph->arrays; }

int qpg_array_info(const qpg_graph *graph, int k, qpg_array *out) {
  if (k < 0 || k >= graph->arrays) return -1;
  *out = graph->array[k].info;
  return 0;
}

int qpg_bind(qpg_graph *graph, const char *name, void *pointer, const int64_t *shape, int rank) {
  if (setjmp(graph->leave)) return -1;
  array_t *a = graph->array, *end = a + graph->arrays;
  while (a < end && (!a->is_users || strcmp(a->info.name, name))) a++;
  if (a == end) fail(graph, "the graph has no array %.200s that can be bound", name);
  if (rank != a->info.rank) fail(graph, "array %s has %d axes, not %d", name, a->info.rank, rank);
  int64_t bytes = bytes_of(graph, a, shape);
  if (!pointer && bytes) fail(graph, "array %s is bound to NULL", name);
  a->info.pointer = pointer;
  a->bytes = bytes;
  for (int k = 0; k < rank; k++) a->info.shape[k] = shape[k]; /* NULL without axes */
  a->is_bound = true;
  graph->is_ready = false;
  return 0;
}

int qpg_run(qpg_graph *graph, void *stream) {
  if (setjmp(graph->leave)) return -1;
  if (!graph->is_ready) prepare(graph);
  if (graph->is_one && run_together(graph, graph->one, stream)) return 0;
  if (graph->runs < 2 && !is_captured(graph, stream) && ++graph->runs == 2) record(graph);
  if (graph->recorded && !is_captured(graph, stream)) check(graph, graph->replay(graph->recorded, stream), "a graph"); /* CUDA captures none */
  else run_works(graph, stream);
  return 0;
}

void qpg_set_threads(qpg_graph *graph, int threads) {
  for (module_t *m = graph->modules; m->image && !graph->driver; m++) {
    int32_t *found = (int32_t *)dlsym(m->handle, "qpg_threads");
    if (found) __atomic_store_n(found, threads, __ATOMIC_RELAXED);
  }
}

const char *qpg_error(const qpg_graph *graph) { return graph->error; }

void qpg_close(qpg_graph *graph) {
  if (!graph) return;
  const struct driver *driver = graph->driver;
  forget_recorded(graph);
  if (graph->recorder) ask(graph->driver_library, "cuStreamDestroy_v2", graph->recorder, NULL, NULL);
  for (module_t *m = graph->modules; m && (m->handle || m->file); m++) {
    if (driver && m->handle) driver->call->unload(m->handle);
    if (!driver && m->handle) dlclose(m->handle);
    if (m->file) close(m->file - 1);
  }
  while (graph->chunks) {
    chunk *next = graph->chunks->next;
    if (graph->chunks->device) driver->call->release(graph->chunks->device);
    free(graph->chunks);
    graph->chunks = next;
  }
  free(graph);
}
