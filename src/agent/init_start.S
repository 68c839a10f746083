/* The entry of berth-init and its way to make a child: see init_start.h. */
#include <asm/unistd.h>

    .section .note.GNU-stack, "", %progbits
    .text
    .globl _start
    .type _start, %function
    .globl start_child
    .type start_child, %function

#if defined(__x86_64__)
/* The stack begins with argc, argv, NULL, the environment, NULL. */
_start:
    xorl %ebp, %ebp
    movq (%rsp), %rdi
    leaq 8(%rsp), %rsi
    leaq 8(%rsi, %rdi, 8), %rdx
    andq $-16, %rsp
    call init_main
    movl %eax, %edi
    movl $__NR_exit_group, %eax
    syscall
    hlt

/* flags, stack_end, function, argument: the last two survive the call in registers it leaves alone. */
start_child:
    movq %rdx, %r8
    movq %rcx, %r9
    xorl %edx, %edx
    xorl %r10d, %r10d
    movl $__NR_clone, %eax
    syscall
    testq %rax, %rax
    jz 1f
    ret
1:
    xorl %ebp, %ebp
    movq %r9, %rdi
    call *%r8
    hlt

#elif defined(__aarch64__)
_start:
    mov x29, #0
    mov x30, #0
    ldr x0, [sp]
    add x1, sp, #8
    add x2, x1, x0, lsl #3
    add x2, x2, #8
    bl init_main
    mov x8, #__NR_exit_group
    svc 0
    brk #0

start_child:
    mov x9, x2
    mov x10, x3
    mov x2, #0
    mov x3, #0
    mov x4, #0
    mov x8, #__NR_clone
    svc 0
    cbz x0, 1f
    ret
1:
    mov x29, #0
    mov x30, #0
    mov x0, x10
    blr x9
    brk #0
#endif
