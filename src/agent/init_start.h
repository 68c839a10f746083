/*
 * init_start.h - what berth-init needs of the machine and has no C library for: its entry, system
 * calls, and a child that shares its memory.
 */
#ifndef AGENT_INIT_START_H
#define AGENT_INIT_START_H

/* Called by the entry; what it returns is the exit status. */
int init_main(long argc, char **argv, char **environment);

/*
 * A child with a stack of its own that runs `function` and never comes back from it. What clone
 * returns: its process id, or minus errno.
 */
long start_child(unsigned long flags, char *stack_end, void (*function)(void *), void *argument);

/* What the kernel answers: a value, or minus errno. */
#if defined(__x86_64__)
static inline long system_call(long number, long a, long b, long c, long d)
{
    register long fourth __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long system_call(long number, long a, long b, long c, long d)
{
    register long result __asm__("x0") = a;
    register long second __asm__("x1") = b;
    register long third __asm__("x2") = c;
    register long fourth __asm__("x3") = d;
    register long which __asm__("x8") = number;
    __asm__ volatile("svc 0"
                     : "+r"(result)
                     : "r"(second), "r"(third), "r"(fourth), "r"(which)
                     : "memory");
    return result;
}
#else
#error "say here how this machine calls its kernel"
#endif

#endif
