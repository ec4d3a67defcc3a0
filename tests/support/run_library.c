/* Runs the calls of a case (see libraries.py) with a shared library, and writes what they leave in memory. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t entry_t(void *, void *, int32_t);

int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  char symbol[64];
  uint64_t head[5]; /* words of scratch memory, words of results, bytes of the block, pointers, arrays */
  if (!library || !file) {
    fprintf(stderr, "%s\n", library ? argv[2] : dlerror());
    return 2;
  }
  while (fread(symbol, 64, 1, file) == 1 && fread(head, 40, 1, file) == 1) {
    char *block = malloc(head[2] + 1), *arrays[64];
    uint64_t pointers[64][2], sizes[64];
    char *scratch = calloc(head[0] + 1, 8);
    int32_t task = 0;
    if (head[3] > 64 || head[4] > 64 || fread(block, 1, head[2], file) != head[2]) return 3;
    if (fread(pointers, 16, head[3], file) != head[3]) return 3;
    for (uint64_t k = 0; k < head[4]; k++) {
      if (fread(&sizes[k], 8, 1, file) != 1) return 3;
      arrays[k] = aligned_alloc(64, (sizes[k] + 127) / 64 * 64);
      if (fread(arrays[k], 1, sizes[k], file) != sizes[k]) return 3;
    }
    for (uint64_t k = 0; k < head[3]; k++) memcpy(block + pointers[k][0], &arrays[pointers[k][1]], 8);
    entry_t *entry = (entry_t *)dlsym(library, symbol);
    if (!entry) return 4;
    while (task != -1) {
      task = entry(block, scratch, task);
      if (task < -1) return 5;
    }
    for (uint64_t k = 0; k < head[4]; k++) fwrite(arrays[k], 1, sizes[k], stdout);
    fwrite(scratch, 8, head[1], stdout);
  }
  return 0;
}
