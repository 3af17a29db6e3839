/* Threads for loops over large arrays. See Note [Threads of compiled kernels] in threads.c. */
#ifndef PULLBACK_THREADS_H
#define PULLBACK_THREADS_H

#include <stddef.h>

/* Does the work of the items from `begin` up to `end`; must not touch Python objects. */
typedef void (*BlockFunction)(void *context, ptrdiff_t begin, ptrdiff_t end);

/* Do `count` items, in as many neighbouring blocks as there are threads, but none smaller than `smallest` items.
 * Call it without the interpreter's lock if the work is long; it returns when all blocks are done. */
void run_blocks(ptrdiff_t count, ptrdiff_t smallest, BlockFunction body, void *context);

/* How many threads loops may use, the calling one included. */
void set_thread_count(int count);
int thread_count(void);

#endif
