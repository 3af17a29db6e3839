/* CUDA's words for a C++ compiler: a block's threads are fibers that take turns, and meet at barriers and shuffles.
   What is shared in a block is static, since blocks run one after another. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <vector>

struct dim3 { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; };
struct float4 { float x, y, z, w; };
static dim3 gridDim, blockDim, blockIdx, threadIdx;
enum State { RUNS, AT_BLOCK, AT_WARP, DONE };
struct Fiber { ucontext_t context; State state; dim3 index; std::vector<char> stack; };
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static int current;
static char slots[1024][16];

static void wait_at(State where) { fibers[current].state = where; swapcontext(&fibers[current].context, &scheduler); }
static inline void __syncthreads() { wait_at(AT_BLOCK); }
static inline void __syncwarp(unsigned mask = ~0u) { wait_at(AT_WARP); }
static inline void __threadfence() {}
template <class V> static V from_lane(V value, int lane)
{
    memcpy(slots[current], &value, sizeof(V));
    wait_at(AT_WARP);
    V found;
    memcpy(&found, slots[(current & ~31) + lane], sizeof(V));
    wait_at(AT_WARP);
    return found;
}
template <class V> static V __shfl_xor_sync(unsigned, V value, int step) { return from_lane(value, (current & 31) ^ step); }
template <class V> static V __shfl_sync(unsigned, V value, int lane) { return from_lane(value, lane); }
template <class V> static V atomicAdd(V *at, V value) { V before = *at; *at += value; return before; }
static inline double __longlong_as_double(long long bits) { double value; memcpy(&value, &bits, 8); return value; }
#define POOL static REAL pool[1 << 16];
template <class V> static V __ldcg(const V *at) { return *at; }
template <class V> static V __ldg(const V *at) { return *at; }
template <class V> static V rsqrt(V x) { return 1 / std::sqrt(x); }
template <class V> static V sinpi(V x) { return std::sin(V(3.14159265358979323846) * x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline void sincospi(double x, double *s, double *c) { sincos(3.14159265358979323846 * x, s, c); }
template <class V> static V min(V a, V b) { return a < b ? a : b; }
template <class V> static V max(V a, V b) { return a > b ? a : b; }
using std::exp; using std::log; using std::tanh; using std::sqrt; using std::fabs; using std::erf; using std::log1p;
using std::expm1; using std::floor; using std::pow; using std::copysign; using std::sin; using std::cos;
#define __global__
#define __device__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/* Floats of 16 bits, rounded to the nearest even one. */
struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float value)
    {
        uint32_t wide;
        memcpy(&wide, &value, 4);
        bits = value != value ? 0x7fc0 : (wide + 0x7fff + ((wide >> 16) & 1)) >> 16;
    }
    operator float() const { uint32_t wide = (uint32_t)bits << 16; float value; memcpy(&value, &wide, 4); return value; }
};
struct __half {
    uint16_t bits;
    __half() = default;
    __half(float value) { _Float16 narrow = (_Float16)value; memcpy(&bits, &narrow, 2); }
    operator float() const { _Float16 narrow; memcpy(&narrow, &bits, 2); return (float)narrow; }
};

static void (*body)(void **);
static void **arguments;
static void enter() { body(arguments); fibers[current].state = DONE; swapcontext(&fibers[current].context, &scheduler); }

static void run_block()
{
    const int count = blockDim.x * blockDim.y * blockDim.z;
    if ((int)fibers.size() != count) fibers = std::vector<Fiber>(count);
    for (int t = 0; t < count; t++) {
        Fiber &f = fibers[t];
        f.stack.resize(1 << 16);
        f.state = RUNS;
        f.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = &scheduler;
        makecontext(&f.context, enter, 0);
    }
    for (;;) {
        bool ran = false;
        int done = 0, at_block = 0;
        for (int t = 0; t < count; t++) {
            if (fibers[t].state == RUNS) {
                current = t;
                threadIdx = fibers[t].index;
                swapcontext(&scheduler, &fibers[t].context);
                ran = true;
            }
            done += fibers[t].state == DONE;
            at_block += fibers[t].state == AT_BLOCK;
        }
        if (done == count) return;
        if (done + at_block == count) {
            for (Fiber &f : fibers) if (f.state == AT_BLOCK) f.state = RUNS;
            continue;
        }
        for (int warp = 0; warp < count; warp += 32) {
            bool all = true, any = false;
            for (int t = warp; t < warp + 32 && t < count; t++) {
                all = all && (fibers[t].state == AT_WARP || fibers[t].state == DONE);
                any = any || fibers[t].state == AT_WARP;
            }
            if (all && any) {
                ran = true;
                for (int t = warp; t < warp + 32 && t < count; t++) if (fibers[t].state == AT_WARP) fibers[t].state = RUNS;
            }
        }
        if (!ran) { fprintf(stderr, "a barrier that not all threads reach\n"); abort(); }
    }
}

extern "C" void launch(const unsigned *sizes, void **given)
{
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    arguments = given;
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) { blockIdx = {x, y, z}; run_block(); }
}
