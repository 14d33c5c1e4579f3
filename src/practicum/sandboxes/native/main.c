// Entry point: `box agent` and `box become …` in a box, `box hub …` and `box hold …` on the host; `box version` names
// the sources it was built from.
#include "agent.h"

#ifndef SOURCES
#error "compile with -DSOURCES=\"digest of the sources\""
#endif
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

__attribute__((used)) static void begin(i64 *stack) {
    int argc = (int)stack[0];
    char **argv = (char **)(stack + 1);
    if (argc == 2 && equal(argv[1], "agent")) quit(agent_main());
    if (argc >= 2 && equal(argv[1], "hub")) quit(hub_main(argc, argv));
    if (argc >= 4 && equal(argv[1], "hold")) quit(hold_main(argv + 2));
    if (argc >= 5 && equal(argv[1], "become")) quit(become_main(argv + 2, argv + argc + 1));
    if (argc == 2 && equal(argv[1], "version")) {
        write_all(1, TEXT(SOURCES) "\n", sizeof TEXT(SOURCES));
        quit(0);
    }
    write_all(2, "usage: box agent | hub | hold | become | version\n", 49);
    quit(2);
}

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n xor %rbp, %rbp\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#else
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x0, sp\n bl begin\n");
#endif
