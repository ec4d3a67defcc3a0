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
#include <unistd.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define NEW(graph, type, count) ((type *)take(graph, count, sizeof(type)))

enum { FORMAT = 1, MOST_DEPTH = 64, ALIGNED = 64, DONE = -1, CHECKED = 1 << 30, SPARE_BLOCKS = 8, USUAL_BLOCKS = 2048, BLOCKS_OF_UNIT = 2, TOO_LARGE = 720 };

/* JSON --------------------------------------------------------------------------------------------------------------- */

typedef enum { J_NULL, J_FALSE, J_TRUE, J_INTEGER, J_TEXT, J_LIST, J_MAP } kind_t;

typedef struct node {
  kind_t kind;
  bool large;        /* an integer above INT64_MAX, whose bits are in number */
  int64_t number;    /* of J_INTEGER; of J_LIST and J_MAP how many they contain */
  const char *text;  /* of J_TEXT */
  const char *key;   /* in a J_MAP */
  struct node *first, *next;
} node;

/* What a graph is made of -------------------------------------------------------------------------------------------- */

static const char *const memories[] = {"bound", "internal", "constant"};
enum { BOUND, INTERNAL, CONSTANT };

typedef struct {
  const char *name, *type, *access;
  int memory, rank;
  int64_t fixed[QPG_MAX_RANK], shape[QPG_MAX_RANK]; /* fixed: -1 for an axis that the caller chooses */
  int64_t item, aligned, most, bytes;
  char *pointer;
  bool is_bound, is_written;
} array_t;

typedef struct {
  char code;
  size_t offset, size;
} value_t;

typedef struct {
  const char *symbol;
  bool parallel, grid_stride, barrier, together; /* together: its blocks wait for each other */
  int64_t threads, shared, most_blocks, coarsen_from;
  const node *extent, *coarsened;
  void *function;
} task_t;

typedef int32_t entry_t(void *, void *, int32_t);

typedef struct kernel_t {
  const char *name;
  int values, tasks, hidden;
  value_t *value;
  task_t *task;
  size_t *hidden_at, block, passed, scratch; /* CUDA refuses a size that has padding at its end: 'passed' has none */
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
  int to, from;             /* arrays */
  int64_t to_at, from_at;
  const node *bytes;        /* of a copy; of a fill, elements of a row */
  int64_t value, element, height, pitch, size;
} work_t;

typedef struct {
  const char *image; /* its entry in the file; NULL while it is not loaded */
  void *handle;
  int file;          /* on the CPU, one more than the descriptor of the file in memory */
  int32_t *threads;
} module_t;

typedef struct chunk {
  struct chunk *next;
  void *begin;
} chunk;

struct driver;

struct qpg_graph {
  jmp_buf leave;
  char error[512], target[64];
  chunk *chunks, *memory;      /* of the host, and of a GPU */
  const unsigned char *file;
  size_t file_size, directory, entries;
  int arrays, kernels, works, sizes;
  array_t *array;
  kernel_t *kernel;
  work_t *work;
  int (*size)[2];              /* what formulas of works may use: arrays and axes */
  int64_t *extents, units;     /* the values of these; units of the GPU */
  const node *guards;
  bool is_ready;               /* all that depends on what is bound is known */
  work_t *one;                 /* all works as one launch, or NULL */
  int64_t longest;             /* the iterations of the longest loop */
  bool always, loops;          /* whether that launch is wanted in any case, and has loops */
  bool cooperates, is_one, is_apart; /* the device can; the arrays that are bound are such that it pays; it was refused */
  int (*capturing)(void *, int *);
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
  char *begin = fits ? (char *)calloc(1, bytes + 2 * ALIGNED) : NULL;
  if (!begin) fail(graph, "there is no memory for %zu objects of %zu bytes", count, size);
  char *found = begin + ALIGNED + (ALIGNED - (uintptr_t)begin % ALIGNED) % ALIGNED;
  chunk *header = (chunk *)(void *)(found - sizeof(chunk));
  header->next = graph->chunks;
  header->begin = begin;
  graph->chunks = header;
  return found;
}

/* Memory in small pieces of one block, for the parser, whose text ends with NUL. */
typedef struct {
  qpg_graph *graph;
  const char *text, *at;
  char *free;
  size_t left;
} parser;

static void *piece(parser *p, size_t bytes) {
  bytes = (bytes + 7) & ~(size_t)7;
  if (bytes > p->left) {
    p->left = bytes > 32768 ? bytes : 32768;
    p->free = NEW(p->graph, char, p->left);
  }
  p->left -= bytes;
  p->free += bytes;
  return p->free - bytes;
}

/* JSON --------------------------------------------------------------------------------------------------------------- */

static char look(parser *p) {
  p->at += strspn(p->at, " \n\r\t");
  return *p->at;
}

__attribute__((noreturn)) static void damaged(parser *p, const char *what) {
  fail(p->graph, "the manifest is damaged: %s, at byte %zu", what, (size_t)(p->at - p->text));
}

static unsigned hex4(parser *p) {
  static const char digits[] = "0123456789abcdefABCDEF";
  unsigned found = 0;
  for (int k = 0; k < 4; k++) {
    const char *digit = *p->at ? strchr(digits, *p->at++) : NULL;
    if (!digit) damaged(p, "\\u has no four digits");
    found = found * 16 + (unsigned)(digit - digits) - (digit - digits > 15 ? 6 : 0);
  }
  return found;
}

static char *utf8(parser *p, char *to) {
  unsigned c = hex4(p);
  if (c >= 0xD800 && c < 0xDC00 && !strncmp(p->at, "\\u", 2)) {
    p->at += 2;
    c = 0x10000 + ((c - 0xD800) << 10) + ((hex4(p) - 0xDC00) & 0x3FF);
  }
  if (!c) damaged(p, "a text contains NUL");
  if (c >= 0x10000) *to++ = (char)(0xF0 | (c >> 18)), *to++ = (char)(0x80 | ((c >> 12) & 63));
  else if (c >= 0x800) *to++ = (char)(0xE0 | (c >> 12));
  if (c >= 0x80) *to++ = (char)(c >= 0x800 ? 0x80 | ((c >> 6) & 63) : 0xC0 | (c >> 6));
  *to++ = (char)(c < 0x80 ? c : 0x80 | (c & 63));
  return to;
}

static const char *parse_text(parser *p) {
  static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
  const char *close = ++p->at;
  while (*close && *close != '"') close += *close == '\\' && close[1] ? 2 : 1;
  if (!*close) damaged(p, "a text has no end");
  char *text = (char *)piece(p, (size_t)(close - p->at) + 1), *to = text;
  while (p->at < close) {
    char c = *p->at++;
    if ((unsigned char)c < 32) damaged(p, "a text contains a control character");
    if (c != '\\') {
      *to++ = c;
    } else if (*p->at == 'u') {
      p->at++;
      to = utf8(p, to); /* takes at most 4 bytes for 6, so the text has room */
    } else {
      const char *found = strchr(from, *p->at++);
      if (!found || !*found) damaged(p, "a text contains an unknown escape");
      *to++ = into[found - from];
    }
  }
  p->at = close + 1;
  return text;
}

static void parse_integer(parser *p, node *out) {
  bool minus = *p->at == '-';
  char *after;
  errno = 0;
  uint64_t found = p->at[minus] >= '0' && p->at[minus] <= '9' ? strtoull(p->at + minus, &after, 10) : (damaged(p, "a value is missing"), 0);
  if (errno || (minus && found > (uint64_t)1 << 63)) damaged(p, "an integer has more than 64 bits");
  if (*after && strchr(".eE", *after)) damaged(p, "a number is not an integer");
  p->at = after;
  out->kind = J_INTEGER;
  out->large = !minus && found >> 63;
  found = minus ? 0 - found : found;
  memcpy(&out->number, &found, 8);
}

static node *parse(parser *p, int depth) {
  static const char *const words[] = {"null", "false", "true"}; /* in the order of their kinds */
  node *out = (node *)piece(p, sizeof(node)), **last = &out->first;
  char begin = look(p), end = begin == '{' ? '}' : ']';
  memset(out, 0, sizeof *out);
  if (depth >= MOST_DEPTH) damaged(p, "it is nested too deeply");
  for (size_t k = 0; k < COUNT(words); k++) {
    if (strncmp(p->at, words[k], strlen(words[k]))) continue;
    out->kind = (kind_t)k;
    p->at += strlen(words[k]);
    return out;
  }
  if (begin == '"') {
    out->kind = J_TEXT;
    out->text = parse_text(p);
  } else if (begin == '{' || begin == '[') {
    out->kind = begin == '{' ? J_MAP : J_LIST;
    p->at++;
    for (char c; (c = look(p)) != end;) {
      const char *key = NULL;
      if (out->number && c != ',') damaged(p, "a comma is missing");
      p->at += out->number > 0;
      if (begin == '{') {
        if (look(p) != '"') damaged(p, "a key is missing");
        key = parse_text(p);
        if (look(p) != ':') damaged(p, "a colon is missing");
        p->at++;
      }
      *last = parse(p, depth + 1);
      (*last)->key = key;
      last = &(*last)->next;
      out->number++;
    }
    p->at++;
  } else {
    parse_integer(p, out);
  }
  return out;
}

/* The member of a map, or NULL. */
static const node *find(const node *map, const char *key) {
  if (map && map->kind == J_MAP)
    for (const node *n = map->first; n; n = n->next)
      if (!strcmp(n->key, key)) return n;
  return NULL;
}

/* The same; NULL for null, too. */
static const node *find_some(const node *map, const char *key) {
  const node *found = find(map, key);
  return found && found->kind != J_NULL ? found : NULL;
}

static const node *get(qpg_graph *graph, const node *map, const char *key, kind_t kind) {
  const node *found = find(map, key);
  if (!found || found->kind != kind) fail(graph, "the manifest is damaged: '%s' is missing or of another kind", key);
  return found;
}

static const char *get_text(qpg_graph *graph, const node *map, const char *key) { return get(graph, map, key, J_TEXT)->text; }

static bool get_bool(qpg_graph *graph, const node *map, const char *key) {
  const node *found = find(map, key);
  return (found && found->kind == J_TRUE) || get(graph, map, key, J_FALSE)->kind == J_TRUE;
}

static int64_t integer(qpg_graph *graph, const node *n, int64_t least, int64_t most, const char *what) {
  if (!n || n->kind != J_INTEGER || n->large || n->number < least || n->number > most)
    fail(graph, "the manifest is damaged: %s is not a number from %lld to %lld", what, (long long)least, (long long)most);
  return n->number;
}

/* An integer of 64 bits, signed or not. */
static int64_t get_number(qpg_graph *graph, const node *n) {
  if (!n || n->kind != J_INTEGER) fail(graph, "the manifest is damaged: a number is missing");
  return n->number;
}

static int64_t get_integer(qpg_graph *graph, const node *map, const char *key, int64_t least, int64_t most) {
  return integer(graph, find(map, key), least, most, key);
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

static void open_zip(qpg_graph *graph) {
  const unsigned char *file = graph->file;
  size_t at = graph->file_size - 22; /* there is no comment */
  if (graph->file_size < 22 || number(file + at, 4) != 0x06054B50)
    fail(graph, "this is not a saved graph, or it is cut short: a ZIP ends otherwise");
  graph->entries = number(file + at + 10, 2);
  graph->directory = number(file + at + 16, 4);
  if (graph->directory > at) fail(graph, "the file is damaged: its directory lies outside");
}

/* The bytes of entry 'name', whose checksum is right. */
static const unsigned char *entry_of(qpg_graph *graph, const char *name, size_t *size) {
  const unsigned char *file = graph->file;
  size_t at = graph->directory, length = strlen(name);
  for (size_t k = 0; k < graph->entries; k++) {
    if (graph->file_size - at < 46 || number(file + at, 4) != 0x02014B50) break;
    size_t name_size = number(file + at + 28, 2);
    size_t next = 46 + name_size + number(file + at + 30, 2) + number(file + at + 32, 2);
    if (graph->file_size - at < next) break;
    if (name_size == length && !memcmp(file + at + 46, name, length)) {
      size_t begin = number(file + at + 42, 4), bytes = number(file + at + 24, 4);
      if (number(file + at + 10, 2) != 0 || number(file + at + 20, 4) != bytes)
        fail(graph, "the file is damaged: %s is compressed", name);
      if (graph->file_size < 30 || begin > graph->file_size - 30 || number(file + begin, 4) != 0x04034B50)
        fail(graph, "the file is damaged: %s lies outside", name);
      size_t skip = 30 + (size_t)number(file + begin + 26, 2) + number(file + begin + 28, 2);
      if (graph->file_size - begin < skip || graph->file_size - begin - skip < bytes)
        fail(graph, "the file is damaged: %s lies outside", name);
      if (crc32_of(file + begin + skip, bytes) != number(file + at + 16, 4))
        fail(graph, "the file is damaged: the checksum of %s is wrong", name);
      *size = bytes;
      return file + begin + skip;
    }
    at += next;
  }
  fail(graph, "the file is damaged, or not a saved graph: it has no %s", name);
}

/* Formulas ----------------------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;

static wide floor_division(wide a, wide b, bool rest) {
  wide quotient, remainder;
  if (!b) return 0;
  quotient = b == -1 ? -a : a / b;
  remainder = b == -1 ? 0 : a % b;
  if (remainder && (remainder < 0) != (b < 0)) quotient--, remainder += b;
  return rest ? remainder : quotient;
}

static wide evaluate(qpg_graph *graph, const node *formula, const int64_t *values, int count);

/* A number, or an error for one that does not fit in 64 bits. */
static int64_t evaluated(qpg_graph *graph, const node *formula, const int64_t *values, int count) {
  wide found = evaluate(graph, formula, values, count);
  if (found < INT64_MIN || found > INT64_MAX) fail(graph, "a number that follows from the arrays' shapes is too large");
  return (int64_t)found;
}

static wide evaluate(qpg_graph *graph, const node *formula, const int64_t *values, int count) {
  static const char *const names[] = {"add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "wrap", "count", "product"};
  enum { ADD, SUB, MUL, FLOORDIV, MOD, MIN, MAX, AND, WRAP, RANGE, PRODUCT };
  if (formula && formula->kind == J_INTEGER && !formula->large) return formula->number;
  if (is_text(item(formula, 0), "value")) return values[integer(graph, item(formula, 1), 0, count - 1, "a formula's value")];
  int name = choice(graph, item(formula, 0), names, COUNT(names), "operation"), operands = (int)formula->number - 3;
  int64_t bits = integer(graph, item(formula, 1), 0, 64, "a formula's width");
  bool is_signed = item(formula, 2) && item(formula, 2)->kind == J_TRUE, overflow = false;
  const node *next = item(formula, 3);
  wide result = name == PRODUCT ? 1 : 0, x[3] = {0, 0, 0};
  if (name == PRODUCT) {
    for (; next; next = next->next) overflow |= __builtin_mul_overflow(result, evaluate(graph, next, values, count), &result);
  } else {
    if (operands != (name == WRAP ? 1 : name == RANGE ? 3 : 2)) fail(graph, "the manifest is damaged: a formula lacks an operand");
    for (int k = 0; k < operands; k++, next = next->next) x[k] = evaluate(graph, next, values, count);
  }
  switch (name) {
    case ADD: overflow = __builtin_add_overflow(x[0], x[1], &result); break;
    case SUB: overflow = __builtin_sub_overflow(x[0], x[1], &result); break;
    case MUL: overflow = __builtin_mul_overflow(x[0], x[1], &result); break;
    case FLOORDIV: case MOD: result = floor_division(x[0], x[1], name == MOD); break;
    case MIN: result = x[0] < x[1] ? x[0] : x[1]; break;
    case MAX: result = x[0] > x[1] ? x[0] : x[1]; break;
    case AND: result = x[0] & x[1]; break;
    case WRAP: result = x[0]; break;
    case RANGE:
      overflow = __builtin_sub_overflow(x[1], x[0], &result);
      if (x[2] > 0) result = result > 0 ? (result - 1) / x[2] + 1 : 0;
      else if (x[2] < 0) result = result < 0 ? floor_division(result + 1, x[2], false) + 1 : 0;
      else result = 0;
      break;
    default: break;
  }
  if (bits && !overflow) { /* of a number that is wider, its low bits */
    wide range = (wide)1 << bits;
    result &= range - 1;
    if (is_signed && result >= range >> 1) result -= range;
  }
  if (overflow || result > (wide)1 << 100 || result < -((wide)1 << 100))
    fail(graph, "a number that follows from the arrays' shapes is too large");
  return result;
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
  int (*wait)(void *), (*occupancy)(int *, void *, int, size_t);
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
      "hipModuleLaunchCooperativeKernel", "hipStreamSynchronize", "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"},
     3, &calls[0], 3900, 2000, 300, 2, 16, 16},
    {"CUDA", "sm_", {"libcuda.so.1", "libcuda.so"},
     {"cuModuleLoadData", "cuModuleGetFunction", "cuModuleUnload", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoD_v2",
      "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async", "cuLaunchKernel",
      "cuLaunchCooperativeKernel", "cuStreamSynchronize", "cuOccupancyMaxActiveBlocksPerMultiprocessor"},
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
    if (!ask(library, "cuInit", NULL, NULL, NULL) || !ask(library, "cuCtxGetCurrent", &context, NULL, NULL) ||
        (!context && !ask(library, "cuDevicePrimaryCtxRetain", &context, NULL, NULL)) ||
        !ask(library, "cuCtxSetCurrent", context, NULL, NULL) || !ask(library, "cuCtxGetDevice", &ordinal, NULL, NULL))
      return;
    void *on = (void *)(intptr_t)ordinal;
    if (!ask(library, "cuDeviceGetAttribute", &major, (void *)75, on) || !ask(library, "cuDeviceGetAttribute", &minor, (void *)76, on) ||
        !ask(library, "cuDeviceGetAttribute", &units, (void *)16, on) ||
        !ask(library, "cuDeviceGetAttribute", &cooperates, (void *)95, on))
      return;
    snprintf(device, 64, "sm_%d", major * 10 + minor);
  }
  graph->driver_library = library;
  void *capturing = dlsym(library, driver == &drivers[0] ? "hipStreamIsCapturing" : "cuStreamIsCapturing");
  memcpy(&graph->capturing, &capturing, sizeof capturing);
  graph->units = units > 0 ? units : 128;
  graph->cooperates = cooperates && units > 0;
}

/* Targets ------------------------------------------------------------------------------------------------------------ */

/* Whether every kernel has code for the target. */
static bool has(const node *kernels, const char *target) {
  for (const node *n = kernels->first; n; n = n->next)
    if (!find(find(n, "code"), target)) return false;
  return true;
}

/* The processors that code for a generic one runs on begin with these. */
static const char *const families[][2] = {{"gfx9-4-generic", "gfx94"}, {"gfx9-4-generic", "gfx95"}, {"gfx9-generic", "gfx90"},
                                          {"gfx10-1-generic", "gfx101"}, {"gfx10-3-generic", "gfx103"},
                                          {"gfx11-generic", "gfx11"}, {"gfx12-generic", "gfx120"}};

/* Whether code for 'target' runs on 'device'; for NVIDIA, how new the code is. */
static int fits(const char *target, const char *device) {
  size_t length = strcspn(target, ":");
  if (!strncmp(target, device, length) && !device[length]) return 1000;
  if (!strncmp(device, "sm_", 3) && !strncmp(target, "sm_", 3)) {
    char *end;
    long made = strtol(target + 3, &end, 10);
    return (*end == '\0' || *end == ':') && made > 0 && made <= strtol(device + 3, NULL, 10) ? (int)made : 0;
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
  if (v4 && !strcmp(target, "cpu:x86-64-v4")) return 4;
  if (v3 && !strcmp(target, "cpu:x86-64-v3")) return 3;
  if (v2 && !strcmp(target, "cpu:x86-64-v2")) return 2;
  return !strcmp(target, "cpu:x86-64");
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
static void choose(qpg_graph *graph, const node *targets, const node *kernels, const char *asked) {
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
    if (how > best && has(kernels, name)) best = how, target = name, found = driver;
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
    for (size_t done = 0; done < size;) {
      ssize_t some = write(m->file - 1, bytes + done, size - done);
      if (some <= 0) fail(graph, "the code cannot be written to memory: %s", strerror(errno));
      done += (size_t)some;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", m->file - 1);
    m->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->handle) fail(graph, "the code cannot be loaded: %s", dlerror());
    m->threads = (int32_t *)dlsym(m->handle, "qpg_threads");
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
  t->extent = find_some(from, "extent");
  t->coarsened = find_some(from, "coarsened");
  t->most_blocks = USUAL_BLOCKS;
  if (!graph->driver) return;
  if (t->threads < 1) fail(graph, "the manifest is damaged: kernel %s has no threads", k->name);
  t->coarsen_from = USUAL_BLOCKS * graph->units / t->threads;
  check(graph, graph->driver->call->function(&t->function, handle, t->symbol), t->symbol);
  if (t->shared) ask(graph->driver_library, "cuFuncSetAttribute", t->function, (void *)8, (void *)(intptr_t)t->shared); /* most dynamic shared memory */
  int resident = 0;
  if (!graph->driver->call->occupancy(&resident, t->function, (int)t->threads, (size_t)t->shared) && resident > 0)
    t->most_blocks = resident * graph->units;
  if (t->together) t->most_blocks = (resident < BLOCKS_OF_UNIT ? resident : BLOCKS_OF_UNIT) * graph->units;
}

/* Refuses steps that are no tasks of the kernel. */
static void check_flow(qpg_graph *graph, const kernel_t *k, const node *flow) {
  if (!flow || flow->kind != J_LIST) fail(graph, "the manifest is damaged: the flow of kernel %s is no list", k->name);
  for (const node *step = flow->first; step; step = step->next) {
    const node *fork = find(step, "fork");
    if (step->kind != J_MAP) integer(graph, step, 0, k->tasks - 1, "a task's number");
    else if (!fork) check_flow(graph, k, get(graph, step, "body", J_LIST)), get_text(graph, step, "loop");
    else if (fork->kind != J_LIST) fail(graph, "the manifest is damaged: the flow of kernel %s is no list", k->name);
    else for (const node *branch = fork->first; branch; branch = branch->next) check_flow(graph, k, branch);
  }
}

/* Memory of the target, all zeros, that lives as long as the graph. */
static char *allocate(qpg_graph *graph, size_t bytes) {
  if (!graph->driver) return NEW(graph, char, bytes);
  if (!bytes) return NULL;
  const struct calls *call = graph->driver->call;
  chunk *owned = NEW(graph, chunk, 1);
  check(graph, call->allocate(&owned->begin, bytes), "allocating memory");
  owned->next = graph->memory;
  graph->memory = owned;
  check(graph, call->fill8(owned->begin, 0, bytes, NULL), "clearing memory");
  check(graph, call->wait(NULL), "clearing memory");
  return (char *)owned->begin;
}

static void load_kernel(qpg_graph *graph, kernel_t *k, const node *from, const node *facts) {
  const node *layout = get(graph, from, "layout", J_MAP);
  const node *tasks = get(graph, facts, "tasks", J_LIST), *hidden = get(graph, facts, "hidden", J_LIST), *n;
  size_t size = (size_t)get_integer(graph, layout, "size", 0, 1 << 20);
  int at = 0;
  k->name = get_text(graph, from, "name");
  k->parameters = get(graph, layout, "values", J_LIST);
  k->values = (int)k->parameters->number;
  k->value = NEW(graph, value_t, (size_t)k->values);
  k->block = graph->driver ? (size_t)get_integer(graph, facts, "block", 0, 1 << 20) : size;
  if (k->block < size) fail(graph, "the manifest is damaged: the arguments of kernel %s have no room", k->name);
  for (n = k->parameters->first; n; n = n->next, at++) {
    const node *code = item(n, 3);
    value_t *v = &k->value[at];
    v->code = code && code->kind == J_TEXT ? *code->text : '\0';
    v->size = size_of(v->code);
    v->offset = (size_t)integer(graph, item(n, 4), 0, 1 << 20, "an argument's offset");
    if (!v->size || v->offset + v->size > size) fail(graph, "the manifest is damaged: an argument of kernel %s lies outside", k->name);
    if (k->passed < v->offset + v->size) k->passed = v->offset + v->size;
  }
  k->hidden_at = NEW(graph, size_t, (size_t)hidden->number);
  for (n = hidden->first; n; n = n->next) { /* those inside the layout are among the arguments */
    size_t offset = (size_t)integer(graph, item(n, 1), 0, 1 << 20, "a hidden argument's offset");
    if (offset < size) continue;
    if (offset + 8 > k->block || (!is_text(item(n, 0), "scratch") && !is_text(item(n, 0), "results")))
      fail(graph, "kernel %s takes an argument that this reader does not know", k->name);
    k->hidden_at[k->hidden++] = offset;
    if (k->passed < offset + 8) k->passed = offset + 8;
  }
  k->scratch = 8 * (size_t)get_integer(graph, facts, "slots", 0, 1 << 28);
  k->limits = find(facts, "limits");
  k->conditions = find(from, "conditions");
  k->tasks = (int)tasks->number;
  k->flow = find_some(facts, "flow");
  if (k->flow) check_flow(graph, k, k->flow);
  k->task = NEW(graph, task_t, (size_t)k->tasks);
  void *handle = module_of(graph, get_text(graph, facts, "image"));
  for (n = tasks->first, at = 0; n; n = n->next, at++) load_task(graph, k, &k->task[at], n, handle);
  if (!graph->driver) {
    void *found = dlsym(handle, get_text(graph, facts, "entry"));
    if (!found) fail(graph, "the code of kernel %s is not in the file's library", k->name);
    memcpy(&k->entry, &found, sizeof found);
  }
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

static void load_array(qpg_graph *graph, array_t *a, const node *from) {
  const node *shape = get(graph, from, "shape", J_LIST), *most = find_some(from, "most"), *data = find_some(from, "data");
  wide bytes;
  a->name = get_text(graph, from, "name");
  a->type = get_text(graph, from, "type");
  a->access = get_text(graph, from, "access");
  a->is_written = strchr(a->access, 'w') != NULL;
  a->memory = choice(graph, find(from, "memory"), memories, COUNT(memories), "kind of memory");
  a->item = get_integer(graph, from, "item", 1, 1 << 30);
  a->aligned = get_integer(graph, from, "aligned", 0, 1 << 20);
  a->most = most ? integer(graph, most, 0, INT64_MAX, "'most'") : -1;
  if (shape->number > QPG_MAX_RANK) fail(graph, "array %s has more than %d axes", a->name, QPG_MAX_RANK);
  for (const node *n = shape->first; n; n = n->next, a->rank++) {
    bool is_free = a->memory == BOUND && is_text(item(n, 0), "value");
    a->fixed[a->rank] = is_free ? -1 : integer(graph, n, 0, INT64_MAX, "an extent");
    a->shape[a->rank] = a->fixed[a->rank];
  }
  if (a->memory == BOUND) return;
  bytes = a->item;
  for (int k = 0; k < a->rank; k++)
    if ((bytes *= a->shape[k]) > (wide)1 << 46) fail(graph, "array %s is too large", a->name);
  a->bytes = (int64_t)bytes;
  a->pointer = allocate(graph, (size_t)a->bytes);
  a->is_bound = true;
  if (data) {
    size_t size;
    const unsigned char *found = entry_of(graph, get_text(graph, from, "data"), &size);
    if (size != (size_t)a->bytes) fail(graph, "the file is damaged: the data of array %s have another size", a->name);
    if (!graph->driver) memcpy(a->pointer, found, size);
    else if (size) check(graph, graph->driver->call->upload(a->pointer, found, size), "copying data");
  }
}

static int array_at(qpg_graph *graph, const node *n) { return (int)integer(graph, n, 0, graph->arrays - 1, "an array's number"); }

static int axis_at(qpg_graph *graph, int k, const node *n) { return (int)integer(graph, n, 0, graph->array[k].rank - 1, "an axis"); }

/* The address in an argument ["pointer", array, offset], which is inside its array or at its end. */
static char *pointer_of(qpg_graph *graph, const work_t *w, const node *argument, int64_t *left) {
  const array_t *a = &graph->array[array_at(graph, item(argument, 1))];
  int64_t offset = integer(graph, item(argument, 2), 0, INT64_MAX, "an offset");
  if (offset > a->bytes) fail(graph, "array %s is too small for kernel %s", a->name, w->code->name);
  *left = a->bytes - offset;
  return a->pointer ? a->pointer + offset : NULL;
}

/* Where the condition 'name' of a loop is, and its bytes. */
static char *condition_of(qpg_graph *graph, const work_t *w, const char *name, size_t *bytes) {
  const node *n = item(w->code->conditions, 0), *value = w->code->parameters->first, *argument = w->arguments->first;
  int64_t left;
  while (n && !is_text(item(n, 0), name)) n = n->next;
  while (value && !is_text(item(value, 0), name)) value = value->next, argument = argument->next;
  if (!n || !value || !is_text(item(argument, 0), "pointer")) fail(graph, "the manifest is damaged: kernel %s has no condition %s", w->code->name, name);
  *bytes = (size_t)integer(graph, item(n, 1), 1, 8, "the size of a condition");
  char *found = pointer_of(graph, w, argument, &left);
  if (left < (int64_t)*bytes) fail(graph, "an array is too small for condition %s of kernel %s", name, w->code->name);
  return found;
}

static void load_call(qpg_graph *graph, work_t *w, kernel_t *k, const node *arguments) {
  char *scratch = k->memory ? k->memory : graph->scratch;
  int at = 0;
  w->name = k->name;
  w->code = k;
  w->arguments = arguments;
  if (arguments->number != k->values) fail(graph, "the manifest is damaged: a call of kernel %s has other arguments", k->name);
  w->number = NEW(graph, int64_t, (size_t)k->values);
  w->blocks = NEW(graph, int64_t, (size_t)k->tasks);
  w->block = NEW(graph, char, k->block);
  w->parameters = NEW(graph, void *, (size_t)k->values + (size_t)k->hidden);
  for (; at < k->values; at++) w->parameters[at] = w->block + k->value[at].offset;
  for (const node *n = arguments->first; n; n = n->next)
    if (choice(graph, item(n, 0), sources, COUNT(sources), "argument") < S_BITS) array_at(graph, item(n, 1));
  for (int hidden = 0; hidden < k->hidden; hidden++) {
    memcpy(w->block + k->hidden_at[hidden], &scratch, 8);
    w->parameters[at + hidden] = w->block + k->hidden_at[hidden];
  }
  if (!k->one) return;
  w->one = NEW(graph, work_t, 1);
  load_call(graph, w->one, k->one, arguments);
}

static void load_work(qpg_graph *graph, work_t *w, const node *from) {
  w->kind = choice(graph, find(from, "kind"), kinds, COUNT(kinds), "kind of work");
  w->name = find(from, "name") ? get_text(graph, from, "name") : kinds[w->kind];
  if (w->kind == W_KERNEL) {
    load_call(graph, w, &graph->kernel[get_integer(graph, from, "kernel", 0, graph->kernels - 1)], get(graph, from, "arguments", J_LIST));
  } else if (w->kind != W_EMPTY) {
    const node *target = get(graph, from, "target", J_LIST), *origin = w->kind == W_COPY ? get(graph, from, "source", J_LIST) : NULL;
    w->to = array_at(graph, item(target, 0));
    w->to_at = integer(graph, item(target, 1), 0, INT64_MAX, "an offset");
    w->bytes = find(from, origin ? "bytes" : "width");
    if (origin) {
      w->from = array_at(graph, item(origin, 0));
      w->from_at = integer(graph, item(origin, 1), 0, INT64_MAX, "an offset");
    } else {
      w->value = get_number(graph, find(from, "value"));
      w->element = get_integer(graph, from, "element", 1, 4);
      w->height = get_integer(graph, from, "height", 0, INT64_MAX);
      w->pitch = get_integer(graph, from, "pitch", 0, INT64_MAX);
      if (w->element == 3) fail(graph, "the manifest is damaged: a fill has elements of 3 bytes");
    }
  }
}

/* Which extents a caller chooses, and which of them must be equal. */
static void load_sizes(qpg_graph *graph, const node *root) {
  const node *sizes = get(graph, root, "sizes", J_LIST), *n;
  graph->size = (int(*)[2])take(graph, (size_t)sizes->number, sizeof *graph->size);
  graph->extents = NEW(graph, int64_t, (size_t)sizes->number);
  for (n = sizes->first; n; n = n->next, graph->sizes++) {
    int *place = graph->size[graph->sizes];
    place[0] = array_at(graph, item(n, 0));
    place[1] = axis_at(graph, place[0], item(n, 1));
  }
  graph->guards = get(graph, root, "guards", J_LIST);
  for (n = graph->guards->first; n; n = n->next) {
    if (!is_text(find(n, "kind"), "same")) fail(graph, "the file has a condition that this reader does not know");
    const node *pairs = get(graph, n, "arrays", J_LIST);
    for (int k = 0; k < 2; k++) axis_at(graph, array_at(graph, item(item(pairs, k), 0)), item(item(pairs, k), 1));
  }
}

__attribute__((noinline)) static void load(qpg_graph *graph, const void *target) {
  size_t size, scratch = 0;
  open_zip(graph);
  const unsigned char *manifest = entry_of(graph, "manifest.json", &size);
  char *text = (char *)memcpy(NEW(graph, char, size + 1), manifest, size);
  parser p = {graph, text, text, NULL, 0};
  const node *root = parse(&p, 0), *n;
  if (look(&p) || p.at != text + size) damaged(&p, "something follows it");
  if (get(graph, root, "format", J_INTEGER)->number != FORMAT)
    fail(graph, "the file has format %lld, this reader knows %d", (long long)find(root, "format")->number, FORMAT);
  if (find_some(root, "parameters")) fail(graph, "the file has a kernel alone, and no graph");
  const node *arrays = get(graph, root, "arrays", J_LIST), *kernels = get(graph, root, "kernels", J_LIST);
  const node *works = get(graph, root, "works", J_LIST);
  choose(graph, get(graph, root, "targets", J_LIST), kernels, (const char *)target);
  graph->array = NEW(graph, array_t, (size_t)arrays->number);
  for (n = arrays->first; n; n = n->next) load_array(graph, &graph->array[graph->arrays++], n);
  graph->kernel = NEW(graph, kernel_t, (size_t)kernels->number);
  graph->modules = NEW(graph, module_t, 2 * (size_t)kernels->number + 2);
  for (n = kernels->first; n; n = n->next) {
    kernel_t *k = &graph->kernel[graph->kernels++];
    const node *facts = get(graph, get(graph, n, "code", J_MAP), graph->target, J_MAP);
    load_kernel(graph, k, n, facts);
    k->one = load_together(graph, n, find_some(facts, "one"));
    if (k->scratch > scratch) scratch = k->scratch;
  }
  graph->scratch = allocate(graph, scratch);
  graph->work = NEW(graph, work_t, (size_t)works->number);
  for (n = works->first; n; n = n->next) load_work(graph, &graph->work[graph->works++], n);
  const node *fused = find_some(root, "fused"), *all = find(fused, "kernel");
  kernel_t *one = load_together(graph, all, find_some(find(all, "code"), graph->target));
  if (one) {
    graph->always = get_bool(graph, fused, "always");
    graph->loops = get_bool(graph, fused, "loops");
    graph->one = NEW(graph, work_t, 1);
    load_call(graph, graph->one, one, get(graph, fused, "arguments", J_LIST));
  }
  load_sizes(graph, root);
}

/* What follows from the arrays that are bound ------------------------------------------------------------------------------ */

/* The bytes of one scalar: the number in the name of its type; 1 for structs. */
static int64_t alignment_of(const char *type) {
  long bits = strchr(type, '(') ? 8 : strtol(type + strcspn(type, "0123456789"), NULL, 10);
  return bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 1;
}

static void check_array(qpg_graph *graph, const array_t *a) {
  if (!a->is_bound) fail(graph, "array %s is not bound", a->name);
  if (a->memory != BOUND) return;
  int64_t unit = graph->driver ? a->aligned : alignment_of(a->type);
  if (a->bytes && unit > 1 && (uintptr_t)a->pointer % (uintptr_t)unit)
    fail(graph, "array %s must begin at a multiple of %lld bytes", a->name, (long long)unit);
  for (const array_t *b = graph->array; b < a && a->bytes; b++)
    if (b->memory == BOUND && b->bytes && (a->is_written || b->is_written) &&
        (uintptr_t)a->pointer < (uintptr_t)b->pointer + (uintptr_t)b->bytes &&
        (uintptr_t)b->pointer < (uintptr_t)a->pointer + (uintptr_t)a->bytes)
      fail(graph, "arrays %s and %s overlap, and the graph writes one of them", b->name, a->name);
}

static void prepare_argument(qpg_graph *graph, const work_t *w, const node *from, int at) {
  const value_t *v = &w->code->value[at];
  int kind = choice(graph, item(from, 0), sources, COUNT(sources), "argument");
  wide found;
  uint64_t bits;
  int64_t left;
  if (kind == S_POINTER) {
    if (v->size != 8) fail(graph, "the manifest is damaged: an address of kernel %s has no 64 bits", w->code->name);
    found = (wide)(uintptr_t)pointer_of(graph, w, from, &left);
  } else if (kind == S_BITS) {
    found = get_number(graph, item(from, 1));
  } else if (kind == S_SIZE) {
    found = evaluated(graph, item(from, 1), graph->extents, graph->sizes);
    if (found > graph->longest) graph->longest = (int64_t)found; /* so that a large one is not used */
  } else {
    int number = array_at(graph, item(from, 1));
    const array_t *a = &graph->array[number];
    found = a->shape[axis_at(graph, number, item(from, 2))];
    if (found >= (wide)1 << (8 * v->size - (v->code >= 'a'))) fail(graph, "array %s is too large for kernel %s", a->name, w->code->name);
  }
  bits = (uint64_t)found;
  memcpy(w->block + v->offset, &bits, v->size);
  if (v->size < 8) { /* as the formulas see it: with its sign */
    int unused = 64 - 8 * (int)v->size;
    bits <<= unused;
    w->number[at] = v->code >= 'a' ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
  } else {
    memcpy(&w->number[at], &bits, 8);
  }
}

static int64_t blocks_of(qpg_graph *graph, const work_t *w, const task_t *t) {
  int64_t count = t->extent ? evaluated(graph, t->extent, w->number, w->code->values) : 0, most = (int64_t)UINT32_MAX / t->threads;
  if (!t->together && count > graph->longest) graph->longest = count;
  if (!t->parallel) return 1;
  if (!t->extent || (t->together && count <= 0)) return t->most_blocks; /* a part whose size only the device knows */
  int64_t blocks = count > 0 ? (count - 1) / t->threads + 1 : 0;
  if (t->grid_stride) return blocks < t->most_blocks ? blocks : t->most_blocks;
  if (blocks > INT32_MAX || blocks > most) fail(graph, "kernel %s: a loop has too many iterations for the device", w->code->name);
  if (t->coarsened && t->coarsen_from <= blocks && blocks <= most - SPARE_BLOCKS) {
    count = evaluated(graph, t->coarsened, w->number, w->code->values);
    count = count > 0 ? (count - 1) / t->threads + 1 : 0;
    if (count < blocks) blocks = count;
  }
  return blocks;
}

/* An access that is certain to be outside its array is an error before anything runs; see core/artifact.py, Limit. */
static void check_limit(qpg_graph *graph, const work_t *w, const node *limit) {
  const int64_t *numbers = w->number;
  int count = w->code->values;
  const node *array = item(item(limit, 0), 0), *low = item(limit, 3), *run = item(item(limit, 5), 1);
  int64_t axis = integer(graph, item(limit, 1), 0, QPG_MAX_RANK, "a limit's axis"), index, extent;
  wide total = 0;
  bool overflow = false;
  for (const node *term = item(item(limit, 4), 0); term; term = term->next) {
    wide product = integer(graph, item(term, 0), INT64_MIN, INT64_MAX, "a limit's factor");
    for (const node *n = item(item(term, 1), 0); n; n = n->next)
      overflow |= __builtin_mul_overflow(product, (wide)numbers[integer(graph, n, 0, count - 1, "a limit's value")], &product);
    overflow |= __builtin_add_overflow(total, product, &total);
  }
  if (!overflow && (low && low->kind == J_TRUE ? total >= 0 : total < 0)) return;
  for (; run; run = run->next)
    if (evaluated(graph, run, numbers, count) <= 0) return;
  index = evaluated(graph, item(item(limit, 5), 0), numbers, count);
  extent = evaluated(graph, item(array, axis + 1), numbers, count);
  if (index < 0 || index >= extent)
    fail(graph, "kernel %s is certain to access index %lld of axis %lld of %s, which has %lld elements there", w->code->name,
         (long long)index, (long long)axis, item(array, 0) && item(array, 0)->kind == J_TEXT ? item(array, 0)->text : "an array", (long long)extent);
}

static void check_range(qpg_graph *graph, const work_t *w, int number, int64_t at, wide bytes) {
  const array_t *a = &graph->array[number];
  if (at > a->bytes || bytes > a->bytes - at) fail(graph, "array %s is too small for %s", a->name, w->name);
}

static void prepare_call(qpg_graph *graph, work_t *w) {
  int at = 0;
  for (const node *n = w->arguments->first; n; n = n->next) prepare_argument(graph, w, n, at++);
  for (const node *n = item(w->code->limits, 0); n; n = n->next) check_limit(graph, w, n);
  for (int k = 0; k < w->code->tasks; k++) {
    const task_t *t = &w->code->task[k];
    if (graph->driver) w->blocks[k] = blocks_of(graph, w, t);
    if (t->barrier && t->extent && t->threads && evaluated(graph, t->extent, w->number, w->code->values) % t->threads)
      fail(graph, "kernel %s: the iterations of a loop wait for each other, and are no whole blocks of %lld", w->code->name, (long long)t->threads);
  }
  if (w->one) prepare_call(graph, w->one);
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

static void prepare(qpg_graph *graph) {
  for (int k = 0; k < graph->arrays; k++) check_array(graph, &graph->array[k]);
  for (const node *n = graph->guards->first; n; n = n->next) {
    int64_t extents[2];
    for (int k = 0; k < 2; k++) {
      const node *pair = item(find(n, "arrays"), k);
      extents[k] = graph->array[item(pair, 0)->number].shape[item(pair, 1)->number];
    }
    if (extents[0] != extents[1]) fail(graph, "arrays have %lld and %lld elements where the graph needs equal numbers", (long long)extents[0], (long long)extents[1]);
  }
  graph->longest = 0;
  for (int k = 0; k < graph->sizes; k++) graph->extents[k] = graph->array[graph->size[k][0]].shape[graph->size[k][1]];
  for (work_t *w = graph->work; w < graph->work + graph->works; w++) {
    if (w->kind == W_KERNEL) {
      prepare_call(graph, w);
    } else if (w->kind != W_EMPTY) {
      w->size = evaluated(graph, w->bytes, graph->extents, graph->sizes);
      if (w->size < 0) fail(graph, "%s has a negative size", w->name);
      if (w->kind == W_COPY) {
        check_range(graph, w, w->to, w->to_at, w->size);
        check_range(graph, w, w->from, w->from_at, w->size);
      } else if (w->height && w->size) {
        wide row = (wide)w->size * w->element;
        if (w->height > 1 && row > w->pitch) fail(graph, "the rows of %s overlap", w->name);
        check_range(graph, w, w->to, w->to_at, (wide)(w->height - 1) * w->pitch + row);
      }
    }
  }
  if (graph->one) prepare_call(graph, graph->one);
  graph->is_one = graph->one && is_quicker(graph);
  forget_recorded(graph);
  graph->is_ready = true;
}

/* Runs --------------------------------------------------------------------------------------------------------------- */

static void launch(qpg_graph *graph, const work_t *w, const task_t *t, int64_t blocks, void *stream) {
  const struct driver *driver = graph->driver;
  size_t size = w->code->passed;
  void *extra[] = {(void *)1, w->block, (void *)2, &size, (void *)driver->last};
  unsigned grid = (unsigned)blocks, threads = (unsigned)t->threads, shared = (unsigned)t->shared;
  if (!blocks) return;
  check(graph, driver->call->launch(t->function, grid, 1, 1, threads, 1, 1, shared, stream, NULL, extra), t->symbol);
}

static bool is_captured(const qpg_graph *graph, void *stream) {
  int status = 0;
  return graph->capturing && !graph->capturing(stream, &status) && status;
}

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

static void run_flow(qpg_graph *graph, const work_t *w, const node *flow, void *stream) {
  for (const node *step = flow->first; step; step = step->next) {
    const node *fork = find(step, "fork"), *loop = find(step, "loop");
    if (step->kind == J_INTEGER) launch(graph, w, &w->code->task[step->number], w->blocks[step->number], stream);
    for (const node *branch = fork ? fork->first : NULL; branch; branch = branch->next) run_flow(graph, w, branch, stream);
    if (fork || !loop) continue;
    if (is_captured(graph, stream)) fail(graph, "kernel %s has a loop for which the host waits, and the stream is captured", w->code->name);
    uint64_t goes_on = 0;
    size_t bytes;
    const char *condition = condition_of(graph, w, loop->text, &bytes);
    do {
      run_flow(graph, w, find(step, "body"), stream);
      check(graph, graph->driver->call->download(&goes_on, condition, bytes, stream), "reading a condition");
      check(graph, graph->driver->call->wait(stream), "waiting for a loop");
    } while (goes_on);
  }
}

static void run_on_gpu(qpg_graph *graph, const work_t *w, void *stream) {
  const struct calls *call = graph->driver->call;
  char *to = w->kind == W_KERNEL ? NULL : graph->array[w->to].pointer + w->to_at;
  if (w->kind == W_KERNEL) {
    if (run_together(graph, w->one, stream)) return;
    if (w->code->flow) run_flow(graph, w, w->code->flow, stream);
    else for (int k = 0; k < w->code->tasks; k++) launch(graph, w, &w->code->task[k], w->blocks[k], stream);
  } else if (w->kind == W_COPY && w->size) {
    check(graph, call->copy(to, graph->array[w->from].pointer + w->from_at, (size_t)w->size, stream), w->name);
  } else if (w->kind == W_FILL && w->size) {
    for (int64_t row = 0; row < w->height; row++, to += w->pitch)
      check(graph,
            w->element == 1   ? call->fill8(to, (unsigned char)w->value, (size_t)w->size, stream)
            : w->element == 2 ? call->fill16(to, (unsigned short)w->value, (size_t)w->size, stream)
                              : call->fill32(to, (unsigned)w->value, (size_t)w->size, stream),
            w->name);
  }
}

static void run_on_cpu(qpg_graph *graph, const work_t *w) {
  if (w->kind == W_KERNEL) {
    int32_t next = item(w->code->limits, 0) ? CHECKED : 0; /* the limits were checked */
    while ((next = w->code->entry(w->block, graph->scratch, next)) >= 0) {}
    if (next != DONE) fail(graph, next == -2 ? "kernel %s: there is no working memory" : "kernel %s was broken off", w->code->name);
  } else if (w->kind == W_COPY && w->size) {
    memmove(graph->array[w->to].pointer + w->to_at, graph->array[w->from].pointer + w->from_at, (size_t)w->size);
  } else if (w->kind == W_FILL && w->size) {
    for (int64_t row = 0; row < w->height; row++) {
      char *to = graph->array[w->to].pointer + w->to_at + row * w->pitch;
      if (w->element == 1) memset(to, (int)w->value, (size_t)w->size);
      else for (int64_t k = 0; k < w->size; k++) memcpy(to + k * w->element, &w->value, (size_t)w->element);
    }
  }
}

static void run_works(qpg_graph *graph, const void *given) {
  void *stream = (void *)(uintptr_t)given;
  for (const work_t *w = graph->work; w < graph->work + graph->works; w++) {
    if (graph->driver) run_on_gpu(graph, w, stream);
    else run_on_cpu(graph, w);
  }
}

/* The calls of the user ------------------------------------------------------------------------------------------------- */

typedef void step_t(qpg_graph *, const void *);

/* Makes a step, which may fail. */
static bool succeeds(qpg_graph *graph, step_t *step, const void *with) {
  if (setjmp(graph->leave)) return false;
  step(graph, with);
  return true;
}

qpg_graph *qpg_open_memory(const void *bytes, size_t size, const char *target, char *error, size_t error_size) {
  qpg_graph *graph = (qpg_graph *)calloc(1, sizeof *graph);
  if (graph) {
    graph->file = (const unsigned char *)bytes;
    graph->file_size = size;
    if (succeeds(graph, load, target)) return graph;
  }
  if (error && error_size) snprintf(error, error_size, "%s", graph ? graph->error : "there is no memory");
  qpg_close(graph);
  return NULL;
}

qpg_graph *qpg_open(const char *path, const char *target, char *error, size_t error_size) {
  FILE *file = fopen(path, "rb");
  long size = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
  char *bytes = size >= 0 && size < LONG_MAX && !fseek(file, 0, SEEK_SET) ? (char *)malloc((size_t)size + 1) : NULL;
  qpg_graph *graph = NULL;
  if (bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size)
    graph = qpg_open_memory(bytes, (size_t)size, target, error, error_size);
  else if (error && error_size)
    snprintf(error, error_size, "%s cannot be read%s%s", path, file ? "" : ": ", file ? "" : strerror(errno));
  if (file) fclose(file);
  free(bytes);
  return graph;
}

const char *qpg_target(const qpg_graph *graph) { return graph->target; }

int qpg_array_count(const qpg_graph *graph) { return graph->arrays; }

int qpg_array_info(const qpg_graph *graph, int k, qpg_array *out) {
  if (k < 0 || k >= graph->arrays) return -1;
  const array_t *a = &graph->array[k];
  memset(out, 0, sizeof *out);
  out->name = a->name, out->type = a->type, out->access = a->access, out->memory = memories[a->memory];
  out->item = (size_t)a->item, out->rank = a->rank, out->pointer = a->pointer;
  memcpy(out->shape, a->shape, sizeof a->shape);
  return 0;
}

typedef struct {
  const char *name;
  void *pointer;
  const int64_t *shape;
  int rank;
} binding;

__attribute__((noinline)) static void bind_array(qpg_graph *graph, const void *with) {
  const binding *b = (const binding *)with;
  array_t *a = graph->array, *end = a + graph->arrays;
  while (a < end && (a->memory != BOUND || strcmp(a->name, b->name))) a++;
  if (a == end) fail(graph, "the graph has no array %.200s that can be bound", b->name);
  if (b->rank != a->rank) fail(graph, "array %s has %d axes, not %d", a->name, a->rank, b->rank);
  wide bytes = a->item;
  for (int k = 0; k < a->rank; k++) {
    if (b->shape[k] < 0) fail(graph, "axis %d of array %s cannot have %lld elements", k, a->name, (long long)b->shape[k]);
    if (a->fixed[k] >= 0 && b->shape[k] != a->fixed[k])
      fail(graph, "axis %d of array %s has %lld elements, not %lld", k, a->name, (long long)a->fixed[k], (long long)b->shape[k]);
    if ((bytes *= b->shape[k]) > (wide)1 << 60 || (a->most >= 0 && (bytes > a->most || b->shape[k] > INT32_MAX)))
      fail(graph, "array %s has more than the %lld bytes that the code is made for", a->name, (long long)a->most);
  }
  if (!b->pointer && bytes) fail(graph, "array %s is bound to NULL", a->name);
  a->pointer = (char *)b->pointer;
  a->bytes = (int64_t)bytes;
  for (int k = 0; k < a->rank; k++) a->shape[k] = b->shape[k]; /* NULL without axes */
  a->is_bound = true;
  graph->is_ready = false;
}

int qpg_bind(qpg_graph *graph, const char *name, void *pointer, const int64_t *shape, int rank) {
  const binding with = {name, pointer, shape, rank};
  return succeeds(graph, bind_array, &with) ? 0 : -1;
}

/* Makes a graph of CUDA's of the works, unless there is one alone or the host repeats loops: it costs one launch.
 * If that fails, they run as before. */
static void record(qpg_graph *graph) {
  void *library = graph->driver_library, *found = library ? dlsym(library, "cuGraphLaunch") : NULL, *made = NULL;
  jmp_buf caller;
  if (!found || graph->works < 2) return; /* HIP's graphs launch their nodes one by one */
  for (const kernel_t *k = graph->kernel; k < graph->kernel + graph->kernels; k++)
    if (item(k->conditions, 0)) return;
  memcpy(&graph->replay, &found, sizeof found);
  if (!graph->recorder && !ask(library, "cuStreamCreate", &graph->recorder, (void *)1, NULL)) return; /* waits for no other */
  if (!ask(library, "cuStreamBeginCapture_v2", graph->recorder, (void *)2, NULL)) return;             /* whatever threads call */
  memcpy(&caller, &graph->leave, sizeof caller);
  bool done = succeeds(graph, run_works, graph->recorder);
  memcpy(&graph->leave, &caller, sizeof caller);
  if (!ask(library, "cuStreamEndCapture", graph->recorder, &made, NULL)) return;
  if (!done || !ask(library, "cuGraphInstantiateWithFlags", &graph->recorded, made, NULL)) graph->recorded = NULL;
  ask(library, "cuGraphDestroy", made, NULL, NULL);
}

__attribute__((noinline)) static void run(qpg_graph *graph, const void *given) {
  void *stream = (void *)(uintptr_t)given;
  if (!graph->is_ready) prepare(graph);
  if (graph->is_one && run_together(graph, graph->one, stream)) return;
  if (graph->runs < 2 && !is_captured(graph, stream) && ++graph->runs == 2) record(graph);
  if (graph->recorded && !is_captured(graph, stream)) check(graph, graph->replay(graph->recorded, stream), "a graph"); /* CUDA captures none */
  else run_works(graph, stream);
}

int qpg_run(qpg_graph *graph, void *stream) { return succeeds(graph, run, stream) ? 0 : -1; }

void qpg_set_threads(qpg_graph *graph, int threads) {
  for (module_t *m = graph->modules; m && m->image; m++)
    if (m->threads) __atomic_store_n(m->threads, threads, __ATOMIC_RELAXED);
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
  for (chunk *c = graph->memory; c; c = c->next)
    if (c->begin) driver->call->release(c->begin);
  while (graph->chunks) {
    chunk *next = graph->chunks->next;
    free(graph->chunks->begin);
    graph->chunks = next;
  }
  free(graph);
}
