/* Note [Threads of compiled kernels]
 *
 * Workers are started when a large loop first wants them. After a loop they look out for the next one for some tens of
 * microseconds, since operations follow each other closely and waking a sleeper takes as long as a small loop; then they
 * sleep, and take no processor from BLAS.
 * Blocks are cut by the number of items and of threads alone, so that a sum over blocks is the same in every run.
 * One loop at a time has the workers; another Python thread that comes meanwhile does its loop alone. In a child made by
 * fork() only the forking thread exists: the pool starts anew there.
 */
#include "threads.h"

#define MOST_THREADS 64

static int threads_wanted = 1;

int thread_count(void) { return threads_wanted; }

void set_thread_count(int count)
{
    threads_wanted = count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count;
}

#ifdef _WIN32

void run_blocks(ptrdiff_t count, ptrdiff_t smallest, BlockFunction body, void *context)
{
    (void)smallest;
    body(context, 0, count);
}

#else

#include <pthread.h>
#include <stdatomic.h>

/* How often to look before sleeping, and what to do between two looks. */
#define PATIENCE 2000
#if defined(__x86_64__) || defined(__i386__)
#define RELAX __builtin_ia32_pause()
#else
#define RELAX ((void)0)
#endif

typedef struct {
    BlockFunction body;
    void *context;
    ptrdiff_t count;
    int blocks;
} Loop;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* held by the thread whose loop has the workers */
static pthread_mutex_t state_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loop_begins = PTHREAD_COND_INITIALIZER;
static pthread_cond_t loop_ends = PTHREAD_COND_INITIALIZER;
static Loop current;
static atomic_ulong loop_number = 0;
static int workers = 0;
static atomic_int unfinished = 0;
static int knows_fork = 0;
static unsigned long seen_at_start[MOST_THREADS]; /* a new worker waits for the loop after this one */

static void do_block(const Loop *loop, int block)
{
    ptrdiff_t share = loop->count / loop->blocks, rest = loop->count % loop->blocks;
    ptrdiff_t begin = block * share + (block < rest ? block : rest);
    loop->body(loop->context, begin, begin + share + (block < rest));
}

static void *work(void *number)
{
    int block = (int)(ptrdiff_t)number;
    unsigned long seen = seen_at_start[block];
    for (;;) {
        for (int tries = 0; tries < PATIENCE && atomic_load(&loop_number) == seen; tries++)
            RELAX;
        pthread_mutex_lock(&state_lock);
        while (loop_number == seen)
            pthread_cond_wait(&loop_begins, &state_lock);
        seen = loop_number;
        Loop loop = current;
        pthread_mutex_unlock(&state_lock);
        if (block >= loop.blocks)
            continue;
        do_block(&loop, block);
        if (atomic_fetch_sub(&unfinished, 1) == 1) {
            pthread_mutex_lock(&state_lock);
            pthread_cond_signal(&loop_ends);
            pthread_mutex_unlock(&state_lock);
        }
    }
    return NULL;
}

static void forget_workers(void)
{
    pthread_mutex_init(&pool_lock, NULL);
    pthread_mutex_init(&state_lock, NULL);
    pthread_cond_init(&loop_begins, NULL);
    pthread_cond_init(&loop_ends, NULL);
    workers = 0;
    atomic_store(&unfinished, 0);
}

/* Called with pool_lock held; how many threads there are now, at most `wanted`. */
static int ensure_workers(int wanted)
{
    if (!knows_fork) {
        pthread_atfork(NULL, NULL, forget_workers);
        knows_fork = 1;
    }
    while (workers < wanted - 1) {
        pthread_t thread;
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        seen_at_start[workers + 1] = loop_number;
        int failed = pthread_create(&thread, &detached, work, (void *)(ptrdiff_t)(workers + 1));
        pthread_attr_destroy(&detached);
        if (failed)
            break;
        workers++;
    }
    return workers + 1;
}

void run_blocks(ptrdiff_t count, ptrdiff_t smallest, BlockFunction body, void *context)
{
    ptrdiff_t most = smallest > 0 ? count / smallest : count;
    int blocks = most < threads_wanted ? (int)most : threads_wanted;
    if (blocks < 2 || pthread_mutex_trylock(&pool_lock)) {
        body(context, 0, count);
        return;
    }
    if (ensure_workers(blocks) < blocks) {
        pthread_mutex_unlock(&pool_lock);
        body(context, 0, count);
        return;
    }
    pthread_mutex_lock(&state_lock);
    current = (Loop){body, context, count, blocks};
    atomic_store(&unfinished, blocks - 1);
    loop_number++;
    pthread_cond_broadcast(&loop_begins);
    pthread_mutex_unlock(&state_lock);
    Loop own = {body, context, count, blocks};
    do_block(&own, 0);
    /* The others end about now. */
    for (int tries = 0; tries < PATIENCE && atomic_load(&unfinished); tries++)
        RELAX;
    if (atomic_load(&unfinished)) {
        pthread_mutex_lock(&state_lock);
        while (atomic_load(&unfinished))
            pthread_cond_wait(&loop_ends, &state_lock);
        pthread_mutex_unlock(&state_lock);
    }
    pthread_mutex_unlock(&pool_lock);
}

#endif
